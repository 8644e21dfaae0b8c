package codegen

import (
	"fmt"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// All C++ names are made here, from IR names: `L{i}.gate_up` in a loop is GateUp, `L03.gate_up` outside of one
// L03GateUp.

// camel joins the words of an IR name: gate_up -> GateUp, best.value -> BestValue.
func camel(name string) string {
	var b strings.Builder
	upper := true
	for _, r := range name {
		switch {
		case r == '_' || r == '.' || r == '-':
			upper = true
		case upper:
			b.WriteString(strings.ToUpper(string(r)))
			upper = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// stem strips the layer index of a family: L{i}.qkv.weight -> qkv.weight.
func stem(name string) string {
	if open := strings.IndexByte(name, '{'); open >= 0 {
		if dot := strings.IndexByte(name[open:], '.'); dot >= 0 {
			return name[open+dot+1:]
		}
	}
	return name
}

// constName is the constant of a buffer. A group's name may have its index anywhere.
func constName(name string) string {
	return "k" + camel(strings.NewReplacer("{", "_", "}", "_", "+", "_plus_").Replace(stem(name)))
}

// layerOf returns the layer of a stage outside a loop, from its name.
func layerOf(name string) (int, bool) {
	head, _, ok := strings.Cut(name, ".")
	if !ok || !strings.HasPrefix(head, "L") || ir.IsFamily(name) {
		return 0, false
	}
	n, err := strconv.Atoi(head[1:])
	return n, err == nil
}

// structName is the name of a stage's descriptor: after the variant, the layer of a stage in no loop, and what tells
// apart the stages of a body that is several layers long, those of several loops, and those of several kinds.
func structName(s *ir.Stage, at site, prefix string) string {
	if n, ok := layerOf(s.Name); ok {
		_, rest, _ := strings.Cut(s.Name, ".")
		return fmt.Sprintf("%sL%02d%s", prefix, n, camel(rest))
	}
	name := prefix + camel(stem(s.Name))
	if open := strings.IndexByte(s.Name, '{'); open >= 0 {
		if offset, _, ok := strings.Cut(s.Name[open+1:], "}"); ok && offset != "i" {
			name += camel(strings.NewReplacer("i+", "plus", "i-", "minus").Replace(offset))
		}
	}
	if at.number > 0 {
		name += "Loop" + itoa(at.number+1)
	}
	if s.Kind > 0 {
		name += "Kind" + itoa(s.Kind)
	}
	return name
}

// checkIdentifiers refuses a program with a name that no C++ identifier can be made of: a name may hold blanks and
// marks.
func (b *builder) checkIdentifiers() error {
	for i, v := range b.d.Variants {
		if err := checkIdentifier("variant "+b.p.Variants[i].Name, v.EndName); err != nil {
			return err
		}
	}
	for i, pg := range b.d.Pages {
		if err := checkIdentifier("page "+b.p.Pages[i].Name, pg.Name); err != nil {
			return err
		}
	}
	for k, name := range b.vectors {
		if err := checkIdentifier("buffer "+b.p.Buffers[k].Name, name); err != nil {
			return err
		}
	}
	for k, place := range b.weights {
		if err := checkIdentifier("buffer "+b.p.Buffers[k].Name, place.constant); err != nil {
			return err
		}
	}
	for _, s := range b.d.Descriptors {
		if err := checkIdentifier("stage "+s.IR.Name, s.Struct); err != nil {
			return err
		}
	}
	return nil
}

func checkIdentifier(pos, name string) error {
	inside := func(r rune) bool {
		return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	if name == "" || name[0] >= '0' && name[0] <= '9' || strings.TrimFunc(name, inside) != "" {
		return diag.Errorf(codeStructure, pos, "would be %q in C++; want a name of ASCII letters, digits and _ . -",
			name)
	}
	return nil
}
