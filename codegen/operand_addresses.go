package codegen

import (
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// How a stage says where its operands lie. Each name is followed through all iterations of the loop: if the members
// advance evenly the place is computed from the variable of the loop, and if not it is looked up in a table.

// numbers lists which members of one buffer a name stands for, iteration by iteration; ok is false where there are
// several buffers.
func numbers(ms []ir.Member) (ks []int, ok bool) {
	for _, m := range ms {
		if m.Declared != ms[0].Declared {
			return nil, false
		}
		ks = append(ks, m.K)
	}
	return ks, len(ms) > 0
}

// within is the site as a name sees it: one without an index is the same in every iteration.
func (s site) within(name string) site {
	if ir.IsFamily(name) {
		return s
	}
	return site{}
}

// address returns the expression for the first byte of a weight. variable is the loop's.
func (b *builder) address(name string, at site, variable string) (string, error) {
	at = at.within(name)
	ms, err := b.members(name, at)
	if err != nil {
		return "", err
	}
	for _, m := range ms {
		if _, placed := b.weights[m.Declared]; !placed {
			return "", diag.Errorf(codeStructure, "buffer "+name, "is not a WEIGHT or CONST of the program")
		}
	}
	if listed, known := b.listed(ms, at, variable); known {
		return listed, nil
	}
	ks, one := numbers(ms)
	by, even := steps(ks)
	if !one || !even {
		offsets := make([]string, len(ms))
		for t, m := range ms {
			offsets[t] = itoa(b.offsets[m.Declared][m.K])
		}
		return fmt.Sprintf("weights + %s[%s]", b.table("size_t", constName(name)+"At", offsets, "of "+name),
			at.iteration(variable)), nil
	}
	place := b.weights[ms[0].Declared]
	index := at.expression(variable, ks[0], by)
	switch {
	case place.stride == "":
		return "weights + " + place.constant, nil
	case place.stride == layerBytes && index == variable && at.loop != nil:
		return "base + " + place.constant, nil
	default:
		return fmt.Sprintf("weights + (%s) * %s + %s", index, place.stride, place.constant), nil
	}
}

// listed is the address of a weight that a table lists layer by layer, if the iterations go through them evenly.
func (b *builder) listed(ms []ir.Member, at site, variable string) (address string, known bool) {
	table, layers := b.weights[ms[0].Declared].table, make([]int, len(ms))
	for t, m := range ms {
		if b.weights[m.Declared].table != table {
			return "", false
		}
		layers[t] = b.p.Buffers[m.Declared].Index(m.K)
	}
	by, even := steps(layers)
	return fmt.Sprintf("weights + %s[%s]", table, at.expression(variable, layers[0], by)), even && table != ""
}

// page returns the expression for the page of an exchanged vector.
func (b *builder) page(name string, at site) (string, error) {
	at = at.within(name)
	ms, err := b.members(name, at)
	if err != nil {
		return "", err
	}
	ks, one := numbers(ms)
	by, even := steps(ks)
	buf := &b.p.Buffers[ms[0].Declared]
	constant, placed := b.vectors[ms[0].Declared]
	switch {
	case !placed:
		return "", diag.Errorf(codeStructure, "buffer "+name,
			"is exchanged but is on no page: want pass pagecolor to have run")
	case len(buf.Pages) == 1 && !slices.ContainsFunc(ms, func(m ir.Member) bool {
		return b.vectors[m.Declared] != constant
	}):
		return constant, nil
	case !one || !even:
		return "", diag.Errorf(codeStructure, "buffer "+name,
			"is exchanged, and a loop takes its members from several buffers or out of turn: want one family in turn")
	}
	// Member k has the index First + k*Step, and is on the page numbered by that index over Step.
	return fmt.Sprintf("%s[(%s) %% %d]", constant, at.expression("c.layer", ks[0]+buf.First/max(1, buf.Step), by),
		len(buf.Pages)), nil
}

// cache returns what a stage of attention is told besides its layer: nothing if the cache of layer n is the n-th one
// of the cache arena, else the number of its cache there, as another argument.
func (b *builder) cache(name string, at site, variable string) (string, error) {
	in := at.within(name)
	ms, err := b.members(name, in)
	if err != nil {
		return "", err
	}
	slots := make([]int, len(ms))
	for t, m := range ms {
		if b.caches[m.Declared] == nil {
			return "", diag.Errorf(codeStructure, "buffer "+name, "is not a KV_CACHE of the program")
		}
		slots[t] = b.caches[m.Declared][m.K]
	}
	if by, even := steps(slots); even {
		if slot := in.expression(variable, slots[0], by); slot != variable {
			return ", " + slot, nil
		}
		return "", nil
	}
	numbers := make([]string, len(slots))
	for t := range slots {
		numbers[t] = itoa(slots[t])
	}
	return fmt.Sprintf(", %s[%s]", b.table("int", constName(name)+"At", numbers, "of "+name), in.iteration(variable)),
		nil
}

// table declares a table for the kernel, once, and returns its name.
func (b *builder) table(typ, name string, values []string, note string) string {
	lines := list(values)
	for i := 1; ; i++ {
		numbered := name
		if i > 1 {
			numbered += itoa(i)
		}
		k := len(b.d.Tables)
		for j := range b.d.Tables {
			if b.d.Tables[j].Name == numbered {
				k = j
			}
		}
		if k == len(b.d.Tables) {
			b.d.Tables = append(b.d.Tables, tableData{Type: typ, Name: numbered, Lines: lines, Note: note})
			return numbered
		}
		if fmt.Sprint(b.d.Tables[k].Lines) == fmt.Sprint(lines) {
			return numbered
		}
	}
}

// tableData is a table in model_config.h: places that a loop cannot compute from its variable.
type tableData struct {
	Type, Name, Note string
	Lines            []string
}
