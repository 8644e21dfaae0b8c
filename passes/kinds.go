package passes

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// shareKinds merges the stages that are the same in every kind of iteration into one that runs in all of them. Kinds
// with equally many stages are compared position by position, others from both ends. Stages that differ are grouped by
// kind.
func shareKinds(loop *ir.Loop, buffers rewrite.Buffers) {
	kinds := slices.Compact(slices.Sorted(slices.Values(loop.Kinds)))
	if len(kinds) == 0 {
		return
	}
	lists := make([][]*ir.Stage, len(kinds))
	equal := true
	for k, kind := range kinds {
		for _, s := range loop.Body {
			if s.Kind == 0 || s.Kind == kind {
				own := *s
				own.Kind = kind
				lists[k] = append(lists[k], &own)
			}
		}
		equal = equal && len(lists[k]) == len(lists[0])
	}
	shortest := len(slices.MinFunc(lists, func(a, b []*ir.Stage) int { return cmp.Compare(len(a), len(b)) }))
	same := func(at func([]*ir.Stage) *ir.Stage) bool { return sameStages(lists, loop, buffers, at) }
	head := 0
	for head < shortest && same(func(l []*ir.Stage) *ir.Stage { return l[head] }) {
		head++
	}
	tail := 0
	for tail < shortest-head && same(func(l []*ir.Stage) *ir.Stage { return l[len(l)-1-tail] }) {
		tail++
	}
	var body []*ir.Stage
	shared := func(s *ir.Stage) {
		s.Kind = 0
		body = append(body, s)
	}
	for _, s := range lists[0][:head] {
		shared(s)
	}
	for at := head; equal && at < shortest-tail; {
		end := at
		for end < shortest-tail && !same(func(l []*ir.Stage) *ir.Stage { return l[end] }) {
			end++
		}
		for _, l := range lists {
			body = append(body, l[at:end]...)
		}
		for at = end; at < shortest-tail && same(func(l []*ir.Stage) *ir.Stage { return l[at] }); at++ {
			shared(lists[0][at])
		}
	}
	for _, l := range lists {
		if !equal {
			body = append(body, l[head:len(l)-tail]...)
		}
	}
	for _, s := range lists[0][len(lists[0])-tail:] {
		shared(s)
	}
	loop.Body = body
}

// sameStages reports whether stages of several kinds are the same but for the kind: they print alike, and what they
// read is stored alike.
func sameStages(lists [][]*ir.Stage, loop *ir.Loop, buffers rewrite.Buffers, at func([]*ir.Stage) *ir.Stage) bool {
	text := func(s ir.Stage) string {
		stored, i := "", ir.FirstIndex(&s, loop)
		for _, o := range s.Ops {
			for _, in := range o.In {
				if b := buffers.Find(in.Buf, i); b != nil && b.Kind == ir.Weight {
					stored += fmt.Sprintf("%s %s\n", b.DType, b.Layout)
				}
			}
		}
		s.Kind = 0
		return ir.PrintStage(&s) + stored
	}
	first := text(*at(lists[0]))
	return !slices.ContainsFunc(lists[1:], func(l []*ir.Stage) bool { return text(*at(l)) != first })
}
