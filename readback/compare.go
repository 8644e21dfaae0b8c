package readback

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
)

// Compare says where a program that was read back differs from the one of program.json, at most the first twenty
// differences by entity and field. What the headers do not hold is left out, and floats are compared as the kernel
// has them.
func Compare(read, want *ir.Program) diag.List {
	const most = 20
	var out diag.List
	have, should := factsOf(read), factsOf(want)
	say := func(where, field, got, wanted string) {
		if len(out) < most {
			out.Add(diag.Errorf(codeDiffers, where, "%s: the headers say %s, and program.json says %s", field, got,
				wanted))
		}
	}
	for _, key := range should.order {
		got, ok := have.values[key]
		if !ok {
			got = "nothing"
		}
		if wanted := should.values[key]; got != wanted {
			say(key.where, key.field, got, wanted)
		}
	}
	for _, key := range have.order {
		if _, ok := should.values[key]; !ok {
			say(key.where, key.field, have.values[key], "nothing")
		}
	}
	return out
}

type factKey struct{ where, field string }

// facts is a program as a list of values, in an order of its own: that of buffers and counters has no meaning.
type facts struct {
	order  []factKey
	values map[factKey]string
	times  map[factKey]int
}

func (f *facts) add(where, field string, value any) {
	key := factKey{where, field}
	f.times[key]++
	if n := f.times[key]; n > 1 { // several waits, or an entity that is defined twice
		key.field = fmt.Sprintf("%s (%d)", field, n)
	}
	f.order = append(f.order, key)
	f.values[key] = fmt.Sprint(value)
}

func factsOf(p *ir.Program) *facts {
	f := &facts{values: map[factKey]string{}, times: map[factKey]int{}}
	f.model(p)
	f.config(p)
	for i := range p.Pages {
		pg := &p.Pages[i]
		where := pagesFile + ": page " + pg.Name
		f.add(where, "number", i)
		f.add(where, "space", pg.Space)
		f.add(where, "layout", pg.Layout)
		f.add(where, "bytes", pg.Bytes)
	}
	for i := range p.Buffers {
		f.buffer(&p.Buffers[i])
	}
	for i := range p.Groups {
		f.group(&p.Groups[i])
	}
	for i := range p.Variants {
		f.variant(i, &p.Variants[i])
	}
	return f
}

func (f *facts) model(p *ir.Program) {
	m, where := &p.Model, configFile+": model"
	f.add(where, "dtype", m.Weights)
	f.add(where, "activations", m.Activations)
	f.add(where, "cache", m.Cache)
	f.add(where, "layers", m.Layers)
	f.add(where, "hidden", m.Hidden)
	f.add(where, "intermediate", m.Intermediate)
	f.add(where, "heads", m.Heads)
	f.add(where, "kv_heads", m.KVHeads)
	f.add(where, "head_dim", m.HeadDim)
	f.add(where, "vocab", m.Vocab)
	f.add(where, "max_seq", m.MaxSeq)
	f.add(where, "tied", m.Tied)
	f.add(where, "facts of layers", m.Kinds)
	f.add(where, "kinds of layers", m.LayerKinds)
}

// config adds the machine, and those knobs that are constants of the kernel and nothing else of the program.
func (f *facts) config(p *ir.Program) {
	where := scheduleFile + ": machine"
	f.add(where, "ranks", p.NumRanks())
	shared, sms := p.Config.SMemBytesPerBlock, 0
	if t := p.Target; t != nil {
		shared, sms = knobs.BlockBytes(&p.Config, t), t.SMs
	}
	f.add(where, "sms", sms)
	f.add(where, "smem_bytes_per_block", shared)
	for _, k := range knobs.Constants() {
		f.add(where, k.Row().Path(""), k.Of(&p.Config))
	}
	for _, k := range knobs.VariantConstants() {
		f.add(where, k.Row().Path(""), k.Of(&p.Config))
	}
	for _, k := range knobs.StageConstants() {
		for _, stage := range k.Row().Stages {
			f.add(where, k.Row().Path(stage), k.Of(&p.Config, stage))
		}
	}
}

func (f *facts) buffer(b *ir.Buffer) {
	file := scheduleFile
	switch {
	case b.Kind == ir.Weight || b.Kind == ir.Const || b.Kind == ir.KVCache:
		file = configFile
	case len(b.Pages) > 0:
		file = pagesFile
	}
	where := file + ": buffer " + b.Name
	f.add(where, "members", members(b.First, b.Last(), b.Count, b.Step))
	f.add(where, "role", b.Role)
	f.add(where, "kind", b.Kind)
	f.add(where, "dtype", b.DType)
	f.add(where, "shape", b.Shape)
	f.add(where, "space", b.Space)
	f.add(where, "layout", b.Layout)
	f.add(where, "pages", b.Pages)
}

func members(first, last, count, step int) string {
	switch {
	case count == 0:
		return "one"
	case step > 1:
		return fmt.Sprintf("%d..%d by %d", first, last, step)
	}
	return fmt.Sprintf("%d..%d", first, last)
}

func (f *facts) group(g *ir.Group) {
	where := scheduleFile + ": group " + g.Name
	f.add(where, "indices", members(g.First, g.Last(), len(g.Members), g.Step))
	f.add(where, "members", g.Members)
}

func (f *facts) variant(number int, v *ir.Variant) {
	where := scheduleFile + ": variant " + v.Name
	f.add(where, "number", number)
	f.add(where, "positions", fmt.Sprintf("%d..%d", v.Lo, v.Hi))
	counters := slices.Clone(v.Counters)
	slices.SortStableFunc(counters, func(a, b ir.Counter) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range counters {
		f.add(where, "counter "+c.Name, fmt.Sprintf("%s %v %v init=%d", members(c.First, c.Last(), c.Count, c.Step),
			c.How, c.Scope, c.Init))
		f.add(where, "role of counter "+c.Name, c.Role)
	}
	var outline []string
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			outline = append(outline, n.Name)
		case *ir.Loop:
			var names []string
			for _, s := range n.Body {
				names = append(names, s.Name)
			}
			outline = append(outline, fmt.Sprintf("%s %s (%s)", n.Name, members(n.First, n.Last(), n.Count, n.Step),
				strings.Join(names, " ")))
			f.add(where, "kinds of loop "+n.Name, n.Kinds)
		}
	}
	f.add(where, "stages", strings.Join(outline, " "))
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			f.stage(v.Name, n)
		case *ir.Loop:
			for _, s := range n.Body {
				f.stage(v.Name, s)
			}
		}
	}
}

func (f *facts) stage(variant string, s *ir.Stage) {
	where := fmt.Sprintf("%s: stage %s of variant %s", scheduleFile, s.Name, variant)
	if s.Kind != 0 {
		where += fmt.Sprintf(", for layers of kind %d", s.Kind)
	}
	f.add(where, "role", s.Role)
	f.add(where, "layer", s.Layer)
	d := &s.Dist
	f.add(where, "distribution", d.Kind)
	f.add(where, "extent", d.Extent)
	if d.Kind != ir.ByUnit { // whose grain is 1 whatever it says
		f.add(where, "grain", d.Grain)
	}
	f.add(where, "sms", d.SMs)
	f.add(where, "rotation", d.Rot)
	f.add(where, "rotation from layer to layer", d.Step)
	f.add(where, "empty", d.Empty)
	f.add(where, "tasks", d.Spans)
	for _, w := range s.Waits {
		f.add(where, "wait", fmt.Sprintf("%s >= %d", w.Counter, w.Threshold))
	}
	f.add(where, "signal", s.Signal)
	for i := range s.Ops {
		f.add(where, fmt.Sprintf("op %d", i+1), printOp(&s.Ops[i]))
	}
}
