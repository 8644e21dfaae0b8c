package ir

import "slices"

// Expand writes out a program, in place: its loops iteration by iteration, and every member of a family as a buffer or
// a counter of its own. Groups go, whose names the stages then no longer use.
func Expand(p *Program) error {
	alias := map[string]string{}
	for i := range p.Groups {
		g := &p.Groups[i]
		for k, member := range g.Members {
			name, err := Resolve(g.Name, g.Index(k))
			if err != nil {
				return err
			}
			alias[name] = member
		}
	}
	for i := range p.Variants {
		if err := expandVariant(&p.Variants[i], alias); err != nil {
			return err
		}
	}
	var all []Buffer
	for i := range p.Buffers {
		f := &p.Buffers[i]
		for k := range max(1, f.Count) {
			b, err := f.member(k)
			if err != nil {
				return err
			}
			all = append(all, b)
		}
	}
	p.Buffers, p.Groups = all, nil
	return nil
}

// member returns the k-th member of a family as a buffer of its own.
func (f *Buffer) member(k int) (Buffer, error) {
	b := *f
	name, err := Resolve(f.Name, f.Index(k))
	b.Name, b.First, b.Count, b.Step = name, 0, 0, 0
	if len(f.Pages) > 1 {
		turn := f.Turn(k) % len(f.Pages)
		b.Pages = f.Pages[turn : turn+1]
	}
	b.Pieces = slices.Clone(f.Pieces)
	for q := range b.Pieces {
		if f.Count > 0 && err == nil {
			b.Pieces[q].Key, err = ResolveKey(f.Pieces[q].Key, f.Index(k))
		}
	}
	return b, err
}

func expandVariant(v *Variant, alias map[string]string) error {
	var body []Node
	for _, n := range v.Body {
		loop, ok := n.(*Loop)
		if !ok {
			loop = &Loop{Count: 1, Body: []*Stage{n.(*Stage)}}
		}
		for k := range loop.Count {
			for _, st := range loop.Body {
				if !loop.Runs(st, k) {
					continue
				}
				own, err := iteration(st, loop.Index(k), alias)
				if err != nil {
					return err
				}
				body = append(body, own)
			}
		}
	}
	v.Body = body
	var counters []Counter
	for _, f := range v.Counters {
		for n := range max(1, f.Count) {
			c := f
			name, err := Resolve(f.Name, f.Index(n))
			if err != nil {
				return err
			}
			c.Name, c.First, c.Count, c.Step = name, 0, 0, 0
			counters = append(counters, c)
		}
	}
	v.Counters = counters
	return nil
}

// iteration returns what a stage of a loop is in iteration i.
func iteration(st *Stage, i int, alias map[string]string) (*Stage, error) {
	own := *st
	own.Kind = 0
	var failed error
	resolve := func(name string) string {
		resolved, err := Resolve(name, i)
		if err != nil {
			failed = err
		}
		return resolved
	}
	buffers := func(ops []Operand) []Operand {
		ops = slices.Clone(ops)
		for k := range ops {
			ops[k].Dims = slices.Clone(ops[k].Dims)
			if !ops[k].IsTemp() {
				ops[k].Buf = resolve(ops[k].Buf)
				if member, ok := alias[ops[k].Buf]; ok {
					ops[k].Buf = member
				}
			}
		}
		return ops
	}
	own.Name, own.Signal = resolve(st.Name), resolve(st.Signal)
	own.Waits, own.Ops = slices.Clone(st.Waits), slices.Clone(st.Ops)
	for k := range own.Waits {
		own.Waits[k].Counter = resolve(own.Waits[k].Counter)
	}
	for k := range own.Ops {
		op := &own.Ops[k]
		op.Out, op.In, op.Params = buffers(op.Out), buffers(op.In), slices.Clone(op.Params)
	}
	if sms := own.Dist.SMs; sms > 0 {
		own.Dist.Rot, own.Dist.Step = (own.Dist.Rot+own.Dist.Step*i)%sms, 0
	}
	return &own, failed
}
