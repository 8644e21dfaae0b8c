package codegen

import (
	"strings"
)

// All C++ names are made here, from IR names: `L{i}.gate_up` in a loop is GateUp, `L03.gate_up` outside of one L03GateUp.

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

func constName(name string) string { return "k" + camel(stem(name)) }
