package ir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Names are for people. What somebody has to find, and what an entity does not show by what it does, is a field: the
// role of a stage, a buffer or a counter, and the layer of a stage. Both forms leave a field out that says what the
// name says already, by conventions that stand here and nowhere else.

// Roles of the buffers that a step shares with its host, and of the counter that ends it.
const (
	RoleToken    = "token"     // an I32 input: the token that the step decodes
	RolePosition = "position"  // an I32 input: its position; programs of the AMK profile have one
	RoleNext     = "next"      // an I32 output: the token that the next step decodes
	RoleStopIDs  = "stop_ids"  // an I32 input: the tokens with which a run ends
	RoleStopLast = "stop_last" // an I32 input: whether it ends with this step
	RoleSampling = "sampling"  // an I32 input: the settings by which SAMPLE chooses, of each sequence of the pass
	RoleLogits   = "logits"    // a real output: one value for each token
	// an F32 input: what enters the model instead of the row of a token, for tokens that have none
	RoleEmbeddings = "embeddings"
	RoleHidden     = "hidden" // an F32 output: the last hidden state, after the last norm
	RoleStep       = "step"   // the counter whose completion ends the step
)

// unfitForRole says why a buffer cannot have its role, or nothing.
func (b *Buffer) unfitForRole() string {
	kind, want := Input, ""
	switch b.Role {
	case "":
		return ""
	case RoleToken, RolePosition, RoleStopIDs, RoleStopLast, RoleSampling:
		want = "an I32 input"
	case RoleNext:
		kind, want = Output, "an I32 output"
	case RoleLogits:
		kind, want = Output, "an output that is not I32"
	case RoleEmbeddings:
		want = "an F32 input"
	case RoleHidden:
		kind, want = Output, "an F32 output"
	default:
		return fmt.Sprintf("has the role %s, want one of %s or none", clip(b.Role), strings.Join([]string{RoleToken,
			RolePosition, RoleNext, RoleLogits, RoleStopIDs, RoleStopLast, RoleSampling, RoleEmbeddings,
			RoleHidden}, ", "))
	}
	fits := b.DType == I32
	switch b.Role {
	case RoleLogits:
		fits = b.DType != I32
	case RoleEmbeddings, RoleHidden:
		fits = b.DType == F32
	}
	if b.Kind != kind || !fits || b.Count != 0 {
		return fmt.Sprintf("has the role %s, want %s that is not a family", b.Role, want)
	}
	return ""
}

// HasRole reports whether the buffer has the role, and the kind and type that the role requires. The proof calls it and
// does not rely on Check, because it also takes programs that were built in memory.
func (b *Buffer) HasRole(role string) bool { return b.Role == role && b.unfitForRole() == "" }

// A Layer is the layer of the model that a stage belongs to. The zero value means no layer.
type Layer struct {
	Known bool // whether it belongs to one
	Index bool // whether N counts from the index of the iteration
	N     int
}

// At returns the number of the layer in the iteration of index i; ok is false for a stage that belongs to none.
func (l Layer) At(i int) (n int, ok bool) {
	if l.Index {
		return satAdd(i, l.N), l.Known
	}
	return l.N, l.Known
}

// String returns the layer as the text form has it: 3, {i}, {i+1}, or none.
func (l Layer) String() string {
	switch {
	case !l.Known:
		return none
	case !l.Index:
		return strconv.Itoa(l.N)
	case l.N == 0:
		return "{i}"
	}
	return fmt.Sprintf("{i%+d}", l.N)
}

// none is how both forms say that there is no role, or no layer, where the name would say one.
const none = "none"

// ParseLayer reads what String prints.
func ParseLayer(s string) (Layer, error) {
	if s == none {
		return Layer{}, nil
	}
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		if inner, ok = strings.CutSuffix(inner, "}"); ok {
			if n, ok := indexOffset(inner); ok {
				return Layer{Known: true, Index: true, N: n}, nil
			}
		}
	} else if n, err := strconv.ParseUint(s, 10, 32); err == nil && strconv.FormatUint(n, 10) == s {
		return Layer{Known: true, N: int(n)}, nil
	}
	return Layer{}, fmt.Errorf("layer %s, want a number, {i}, {i+N}, {i-N} or %s", clip(s), none)
}

// InLayer splits the layer from a name that begins with one: L{i+1}.qkv is qkv of layer {i+1}, L03.qkv is qkv of layer
// 3. It returns other names unchanged, without a layer.
func InLayer(name string) (Layer, string) {
	prefix, rest, ok := strings.Cut(name, ".")
	digits, isLayer := strings.CutPrefix(prefix, "L")
	if !ok || !isLayer || rest == "" {
		return Layer{}, name
	}
	if digits != "" && digits[0] == '{' {
		if l, err := ParseLayer(digits); err == nil {
			return l, rest
		}
		return Layer{}, name
	}
	n, err := strconv.ParseUint(digits, 10, 20)
	if err != nil || fmt.Sprintf("%02d", n) != digits {
		return Layer{}, name
	}
	return Layer{Known: true, N: int(n)}, rest
}

// NameIn is a name in a layer: InLayer takes it apart again.
func NameIn(l Layer, name string) string {
	switch {
	case !l.Known:
		return name
	case l.Index:
		return "L" + l.String() + "." + name
	}
	return fmt.Sprintf("L%02d.%s", l.N, name)
}

// Label names the stage in reports, by its layer and role, or by its name where it has no role.
func (s *Stage) Label() string {
	if s.Role == "" {
		return s.Name
	}
	return NameIn(s.Layer, s.Role)
}

// CheckRole returns nil for a valid role: a letter, then letters, digits and underscores, and not the word none.
func CheckRole(role string) error {
	if err := CheckName(role); err != nil {
		return err
	}
	for i, r := range role {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return fmt.Errorf("%s is not a role, want a letter and then letters, digits and underscores", clip(role))
		}
	}
	if role == none {
		return errors.New("none is not a role, want another word")
	}
	return nil
}

// NameRoles sets the role and the layer of every entity of a program from its name, as readers do if a file omits them.
func NameRoles(p *Program) {
	for i := range p.Buffers {
		p.Buffers[i].Role = p.Buffers[i].NamedRole()
	}
	for i := range p.Variants {
		v := &p.Variants[i]
		for k := range v.Counters {
			v.Counters[k].Role = v.Counters[k].NamedRole()
		}
		for _, n := range v.Body {
			switch n := n.(type) {
			case *Stage:
				n.Layer, n.Role = n.named()
			case *Loop:
				for _, s := range n.Body {
					s.Layer, s.Role = s.named()
				}
			}
		}
	}
}

// named returns the layer and the role that a stage's name says. Names that differ in a number alone, such as s12, are
// of no role.
func (s *Stage) named() (Layer, string) {
	l, role := InLayer(s.Name)
	if CheckRole(role) != nil || strings.TrimRight(role, "0123456789") != role {
		role = ""
	}
	return l, role
}

// NamedRole returns the role that follows from a buffer's name: the name with underscores instead of points, if the
// buffer can have that role.
func (b *Buffer) NamedRole() string {
	named := Buffer{Role: strings.ReplaceAll(b.Name, ".", "_"), Kind: b.Kind, DType: b.DType, Count: b.Count}
	if named.unfitForRole() != "" {
		return ""
	}
	return named.Role
}

// NamedRole returns the role that follows from a counter's name.
func (c *Counter) NamedRole() string {
	if c.Name == RoleStep && c.Count == 0 {
		return RoleStep
	}
	return ""
}

// printedRole is what the forms say of a role, given the one that the name says: "" for nothing.
func printedRole(role, named string) string {
	switch role {
	case named:
		return ""
	case "":
		return none
	}
	return role
}

// readRole is what the forms mean by a role: "" is for one that they leave out.
func readRole(given, named string) string {
	switch given {
	case "":
		return named
	case none:
		return ""
	}
	return given
}

// layerToPrint is what the forms say of the stage's layer: "" for nothing.
func (s *Stage) layerToPrint() string {
	if l, _ := s.named(); l.String() == s.Layer.String() {
		return ""
	}
	return s.Layer.String()
}

// read sets role and layer from what a form says of them.
func (s *Stage) read(role, layer string) error {
	var named string
	s.Layer, named = s.named()
	s.Role = readRole(role, named)
	if layer == "" {
		return nil
	}
	var err error
	s.Layer, err = ParseLayer(layer)
	return err
}
