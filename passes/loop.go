package passes

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
)

// Loop is the pass that rolls identical layers into one loop, and the buffers and counters of the layers into families.
// Layers are rolled only if their stages are equal up to the layer's number and their rotations advance by a constant
// step; unrolling gives back the same tasks. A program whose layers differ stays as it is.
var Loop = Pass{
	Name:  "loop",
	Doc:   "roll identical layers into one loop, their buffers and counters into families",
	After: []string{"assign"},
	Run:   runLoop,
}

func runLoop(s *State) error {
	p := s.Program
	rolled := make([][]ir.Node, len(p.Variants))
	for i := range p.Variants {
		stages, err := flatStages("loop", &p.Variants[i])
		if err != nil {
			return err
		}
		body, ok := roll(stages)
		if !ok {
			return nil
		}
		rolled[i] = body
	}
	families, ok := rollBuffers(p.Buffers)
	if !ok {
		return nil
	}
	p.Buffers = families
	for i := range p.Variants {
		v := &p.Variants[i]
		v.Body, v.Counters = rolled[i], rollCounters(v.Counters)
	}
	return nil
}

// roll finds the run of stages that belong to layers and returns the body with that run as a loop.
func roll(stages []*ir.Stage) ([]ir.Node, bool) {
	var layers [][]*ir.Stage
	var before, after []ir.Node
	for _, st := range stages {
		layer, _ := splitName(st.Name)
		switch {
		case layer < 0 && layers == nil:
			before = append(before, st)
		case layer < 0:
			after = append(after, st)
		case len(after) > 0 || layer > len(layers) || layer < len(layers)-1:
			return nil, false // layers that are not numbered one after the other from 0
		case layer == len(layers):
			layers = append(layers, []*ir.Stage{st})
		default:
			layers[layer] = append(layers[layer], st)
		}
	}
	if layers == nil {
		return nil, false
	}
	body := make([]*ir.Stage, len(layers[0]))
	for k, st := range layers[0] {
		body[k] = generalise(st, 0)
		if len(layers) > 1 && k < len(layers[1]) {
			body[k].Dist.Step = stepBetween(&st.Dist, &layers[1][k].Dist)
		}
	}
	for l, layer := range layers {
		if !slices.EqualFunc(layer, body, func(st, want *ir.Stage) bool { return equalStage(generalise(st, l), want, l) }) {
			return nil, false
		}
	}
	loop := &ir.Loop{Name: "layers", First: 0, Count: len(layers), Body: body}
	return slices.Concat(before, []ir.Node{loop}, after), true
}

// stepBetween is how much further than a the distribution b is rotated.
func stepBetween(a, b *ir.Dist) int {
	if a.SMs < 1 {
		return 0
	}
	return ((b.Rot-a.Rot)%a.SMs + a.SMs) % a.SMs
}

// generalise replaces the layer's number in every name of a copy of the stage.
func generalise(st *ir.Stage, layer int) *ir.Stage {
	c := cloneStage(st)
	c.Name, c.Signal = family(c.Name, layer), family(c.Signal, layer)
	for i := range c.Waits {
		c.Waits[i].Counter = family(c.Waits[i].Counter, layer)
	}
	for i := range c.Ops {
		for k := range c.Ops[i].Out {
			c.Ops[i].Out[k].Buf = family(c.Ops[i].Out[k].Buf, layer)
		}
		for k := range c.Ops[i].In {
			c.Ops[i].In[k].Buf = family(c.Ops[i].In[k].Buf, layer)
		}
	}
	return c
}

// family is a name relative to a layer: L04.x seen from layer 3 is L{i+1}.x.
func family(name string, layer int) string {
	l, role := splitName(name)
	switch {
	case l < 0:
		return name
	case l == layer:
		return "L{i}." + role
	default:
		return fmt.Sprintf("L{i%+d}.%s", l-layer, role)
	}
}

// equalStage reports whether a stage of some layer, its names generalised, is what the body makes of it.
func equalStage(st, body *ir.Stage, layer int) bool {
	d := body.Dist
	if d.SMs > 0 {
		d.Rot = (d.Rot + d.Step*layer) % d.SMs
	}
	d.Step = 0
	mine := st.Dist
	return st.Name == body.Name && st.Signal == body.Signal && slices.Equal(st.Waits, body.Waits) &&
		slices.Equal(mine.Spans, d.Spans) && mine.Kind == d.Kind && mine.Extent == d.Extent && mine.Grain == d.Grain &&
		mine.SMs == d.SMs && mine.Rot == d.Rot && mine.Step == d.Step && mine.Empty == d.Empty &&
		slices.EqualFunc(st.Ops, body.Ops, equalOp)
}

func equalOp(a, b ir.Op) bool {
	return a.Code == b.Code && slices.EqualFunc(a.Out, b.Out, equalView) && slices.EqualFunc(a.In, b.In, equalView) &&
		slices.EqualFunc(a.Params, b.Params, func(x, y ir.Param) bool {
			return x.Key == y.Key && x.IsFloat == y.IsFloat && x.Float == y.Float && x.Int.Equal(y.Int)
		})
}

func equalView(a, b ir.Operand) bool {
	return a.Buf == b.Buf && slices.EqualFunc(a.Dims, b.Dims, func(x, y ir.Range) bool {
		return x.Lo.Equal(y.Lo) && x.Hi.Equal(y.Hi) && x.Block == y.Block && x.Parts == y.Parts && x.Part.Equal(y.Part)
	})
}

// rollBuffers makes a family of the buffers that differ in their layer alone, or reports that some differ in more.
func rollBuffers(buffers []ir.Buffer) ([]ir.Buffer, bool) {
	at := map[string]int{}
	var out []ir.Buffer
	for _, b := range buffers {
		layer, role := splitName(b.Name)
		if layer < 0 {
			out = append(out, b)
			continue
		}
		b.Name = family(b.Name, layer)
		b.Pieces = familyPieces(b.Pieces, layer)
		k, seen := at[role]
		if !seen {
			at[role] = len(out)
			b.First, b.Count = layer, 1
			out = append(out, b)
			continue
		}
		f := &out[k]
		if layer != f.First+f.Count || !equalBuffer(f, &b) {
			return nil, false
		}
		f.Count++
	}
	return out, true
}

func equalBuffer(a, b *ir.Buffer) bool {
	return a.Kind == b.Kind && a.DType == b.DType && a.Space == b.Space && a.Layout == b.Layout &&
		slices.Equal(a.Shape, b.Shape) && slices.Equal(a.Pieces, b.Pieces) && slices.Equal(a.Pages, b.Pages)
}

// familyPieces replaces the layer's number in state-dict keys.
func familyPieces(pieces []ir.Piece, layer int) []ir.Piece {
	out := slices.Clone(pieces)
	for i := range out {
		out[i].Key = strings.Replace(out[i].Key, fmt.Sprintf(".layers.%d.", layer), ".layers.{i}.", 1)
	}
	return out
}

// rollCounters makes families of counters. Those of a role are alike and numbered without a gap, because their stages are.
func rollCounters(counters []ir.Counter) []ir.Counter {
	at := map[string]int{}
	var out []ir.Counter
	for _, c := range counters {
		layer, role := splitName(c.Name)
		if layer < 0 {
			out = append(out, c)
			continue
		}
		k, seen := at[role]
		if !seen {
			at[role] = len(out)
			c.Name, c.First, c.Count = family(c.Name, layer), layer, 1
			out = append(out, c)
			continue
		}
		out[k].First = min(out[k].First, layer)
		out[k].Count++
	}
	return out
}
