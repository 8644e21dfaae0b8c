package codegen

import (
	"reflect"
	"slices"

	"amkc/kernel"
)

// A pass over a prompt may have tokens of several variants if these differ in nothing but how attention is divided: its
// products are those of all tokens, and attention has the stage of each token's variant.

// An attentionBefore says which stage attends in place of another one to tokens before a position.
type attentionBefore struct {
	Stage, Before string // descriptors
	End           string
}

// noteVariants takes the stages of each variant in a branch. Notes which attention stands for which, unless something
// else differs.
func (b *builder) noteVariants(branches [][]placedStage) {
	var before []placedStage
	for i, stages := range branches {
		attention, ok := dividedAttention(stages)
		if !ok || i > 0 && !slices.EqualFunc(attention, before, sameButDivided) {
			b.differ = true
			return
		}
		for k := range before {
			b.noteBefore(attentionBefore{attention[k].Struct, before[k].Struct, b.d.Variants[i-1].EndName})
		}
		before = attention
	}
}

// noteBefore adds to the list, in which a stage stands for one other, and for none that came after it.
func (b *builder) noteBefore(n attentionBefore) {
	if n.Stage == n.Before || slices.Contains(b.d.Before, n) {
		return
	}
	if slices.ContainsFunc(b.d.Before, func(o attentionBefore) bool {
		return o.Stage == n.Stage || o.Before == n.Stage
	}) {
		b.differ = true
	}
	b.d.Before = append(b.d.Before, n)
}

// dividedAttention are the stages of attention among those of a branch, as what they deliver when their splits are
// combined. ok is false if there are stages of other bodies.
func dividedAttention(stages []placedStage) (attention []placedStage, ok bool) {
	for _, p := range stages {
		if p.Body == kernel.Attend {
			attention = append(attention, p)
			continue
		}
		combined := false
		for i := range attention {
			a := &attention[i]
			if p.Body != kernel.Combine || a.Of.Out != p.Of.In || p.IR.Kind != 0 && p.IR.Kind != a.IR.Kind {
				continue
			}
			whole, of := *a.stage, *a.Of
			of.Out, whole.Of, combined = p.Of.Out, &of, true
			a.stage = &whole
		}
		if !combined {
			return nil, false
		}
	}
	return attention, true
}

// sameButDivided reports whether two stages attend to the same, divided into units and splits in whatever way.
func sameButDivided(a, b placedStage) bool {
	whole := func(s placedStage) kernel.Stage {
		of := *s.Of
		of.Rows, of.Units, of.Rotation, of.Step, of.Tasks, of.Signal = 0, 0, 0, 0, 0, ""
		of.Splits, of.ShareRows = 0, 0
		return of
	}
	return a.IR.Kind == b.IR.Kind && reflect.DeepEqual(whole(a), whole(b))
}
