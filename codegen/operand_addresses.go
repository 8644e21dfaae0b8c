package codegen

import (
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
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
	if table := b.ofSome(name, at); table != "" {
		return fmt.Sprintf("weights + %s[%s]", table, variable), nil
	}
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

// ofSome is the table of a weight that layers of some kinds do not have, if a loop goes through the layers one by one
// and the name is that of the layer's; or "".
func (b *builder) ofSome(name string, at site) string {
	if at.loop == nil || at.loop.First != 0 || at.loop.Step > 1 || len(at.loop.Kinds) == 0 {
		return ""
	}
	for i := range at.loop.Count {
		m, known := b.names.Find(name, i)
		if !known {
			continue
		}
		if place := b.weights[m.Declared]; place.some && b.p.Buffers[m.Declared].Index(m.K) == i {
			return place.table
		}
		return ""
	}
	return ""
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
	buf := &b.p.Buffers[ms[0].Declared]
	constant, placed := b.vectors[ms[0].Declared]
	// A member is on the page numbered by its index over the step, whichever run of its family it is in.
	turns := make([]int, len(ms))
	for t, m := range ms {
		turns[t] = b.p.Buffers[m.Declared].Turn(m.K)
	}
	by, even := steps(turns)
	another := slices.ContainsFunc(ms, func(m ir.Member) bool { return b.vectors[m.Declared] != constant })
	switch {
	case !placed:
		return "", diag.Errorf(codeStructure, "buffer "+name,
			"is exchanged but is on no page: want pass pagecolor to have run")
	case len(buf.Pages) == 1 && !another:
		return constant, nil
	case another || !even:
		return "", diag.Errorf(codeStructure, "buffer "+name,
			"is exchanged, and a loop takes its members from several buffers or out of turn: want one family in turn")
	}
	return fmt.Sprintf("%s[(%s) %% %d]", constant, at.expression("c.layer", turns[0], by), len(buf.Pages)), nil
}

// state returns what a stage that keeps rows from step to step is told besides its layer: nothing if the cache of layer
// n is the n-th one of the cache arena, else the number of its cache there, as another argument, or the byte at which
// it begins if caches are of several sizes.
func (b *builder) state(s *ir.Stage, name string, at site, variable string) (string, error) {
	if b.cacheAt != nil {
		return b.stateByLayer(s, name, at, variable)
	}
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

// stateByLayer is where what the layers of a stage keep begins, by the table of all layers: one of rows of positions,
// and one for each name of a STATE. It says 0 of layers without.
func (b *builder) stateByLayer(s *ir.Stage, name string, at site, variable string) (string, error) {
	begin, slots := slices.Repeat([]string{"0"}, b.p.Model.Layers), b.cacheSlots(name)
	for layer, slot := range slots {
		if layer < len(begin) {
			begin[layer] = itoa(b.cacheAt[slot])
		}
	}
	wrong, further := false, 0 // layers after the one that the loop counts
	for t, i := range at.indicesOf(s) {
		layer, known := s.Layer.At(i)
		m, err := b.names.At(name, i)
		if t == 0 {
			further = layer - i
		}
		slot, has := slots[layer]
		wrong = wrong || !known || err != nil || layer-i != further || !has ||
			!slices.Contains(b.caches[m.Declared], slot)
	}
	if wrong {
		return "", diag.Errorf(codeStructure, "buffer "+name, "is of several sizes, and a loop takes the layers out "+
			"of turn, or one has none: want a cache for each layer, in turn")
	}
	first, by := further, 0
	if at.loop != nil {
		first, by = at.loop.First+further, max(1, at.loop.Step)
	}
	_, of := ir.InLayer(kernel.Named.Cache)
	if _, own := ir.InLayer(name); b.isState(own) {
		of = own
	}
	table := b.table("size_t", "k"+camel(of)+"At", begin, "where each layer's "+tabled(of)+" begins")
	return fmt.Sprintf(", %s[%s]", table, at.expression(variable, first, by)), nil
}

// tabled is what a table of places is of.
func tabled(of string) string {
	if _, cache := ir.InLayer(kernel.Named.Cache); of == cache {
		return "cache"
	}
	return of
}

// isState reports whether layers have a STATE of such a name.
func (b *builder) isState(of string) bool {
	return slices.ContainsFunc(b.p.Buffers, func(buf ir.Buffer) bool {
		_, name := ir.InLayer(buf.Name)
		return buf.Kind == ir.Recurrent && name == of
	})
}

// cacheSlots returns which cache of the arena each layer has, which no state-dict key tells; or which STATE, of those
// that are called like one in their layers.
func (b *builder) cacheSlots(like string) map[int]int {
	_, name := ir.InLayer(like)
	state := b.isState(name)
	out := map[int]int{}
	for _, sec := range sections(&b.p.Variants[0]) {
		at := site{loop: sec.loop}
		for _, s := range sec.stages {
			for _, i := range at.indicesOf(s) {
				for k := range s.Ops {
					b.cacheSlot(out, s, &s.Ops[k], i, func(buf *ir.Buffer) bool {
						_, own := ir.InLayer(buf.Name)
						return (buf.Kind == ir.Recurrent) == state && (!state || own == name)
					})
				}
			}
		}
	}
	return out
}

// cacheSlot notes which cache an op of a stage reads, in an iteration.
func (b *builder) cacheSlot(slots map[int]int, s *ir.Stage, o *ir.Op, i int, wanted func(*ir.Buffer) bool) {
	for _, in := range o.In {
		m, err := b.names.At(in.Buf, i)
		if layer, known := s.Layer.At(i); err == nil && known && b.caches[m.Declared] != nil &&
			wanted(&b.p.Buffers[m.Declared]) {
			slots[layer] = b.caches[m.Declared][m.K]
		}
	}
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
