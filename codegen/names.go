package codegen

import (
	"cmp"
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// All C++ names are made here: those of stages from their roles and layers, so that gate_up in a loop is GateUp, and of
// layer 3 outside of one L03GateUp; those of buffers from the names that Conventional gives them.

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

// constName is the constant of a buffer.
func constName(name string) string { return "k" + identifier(stem(name)) }

// identifier is camel of a name that may have an index anywhere.
func identifier(name string) string {
	return camel(strings.NewReplacer("{", "_", "}", "_", "+", "_plus_").Replace(name))
}

// structName is the name of a stage's descriptor: after the variant, the layer of a stage in no loop, the role, and
// what tells apart the stages of a body that is several layers long, those of several loops, and those of several
// kinds. A stage without a role has its own name in place of one.
func structName(s *ir.Stage, at site, prefix string) string {
	name := prefix
	if n, ok := s.Layer.At(0); ok && at.loop == nil {
		name += fmt.Sprintf("L%02d", n)
	}
	if s.Role != "" {
		name += camel(s.Role)
	} else {
		_, rest := ir.InLayer(s.Name)
		name += identifier(rest)
	}
	switch n := s.Layer.N; {
	case s.Layer.Index && n > 0:
		name += "Plus" + itoa(n)
	case s.Layer.Index && n < 0:
		name += "Minus" + itoa(-n)
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
		if err := checkIdentifier("buffer "+b.p.Buffers[k].Name, cmp.Or(place.table, place.constant)); err != nil {
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
