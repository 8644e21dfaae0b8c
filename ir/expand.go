package ir

import "slices"

// Expand writes out a program, in place: its loops iteration by iteration, and every member of a family as a separate
// buffer or counter. Groups are removed: stages no longer use their names. The error is for a name that Check would
// refuse.
func Expand(p *Program) error {
	buffers := BufferDirectory(p)
	for i := range p.Variants {
		if err := expandVariant(&p.Variants[i], buffers); err != nil {
			return err
		}
	}
	var all []Buffer
	for _, m := range buffers.Members() {
		f := &p.Buffers[m.Declared]
		b := f.member(m.Name, m.K)
		b.Pieces = slices.Clone(f.Pieces)
		for q := range b.Pieces {
			if f.Count > 0 {
				var err error
				if b.Pieces[q].Key, err = ResolveKey(f.Pieces[q].Key, f.Index(m.K)); err != nil {
					return err
				}
			}
		}
		all = append(all, b)
	}
	p.Buffers, p.Groups = all, nil
	return nil
}

func expandVariant(v *Variant, buffers *Directory) error {
	declared := CounterDirectory(v)
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
				own, err := iteration(st, loop.Index(k), buffers)
				if err != nil {
					return err
				}
				body = append(body, own)
			}
		}
	}
	v.Body = body
	var counters []Counter
	for _, m := range declared.Members() {
		counters = append(counters, v.Counters[m.Declared].member(m.Name))
	}
	v.Counters = counters
	return nil
}

// iteration returns what a stage of a loop is in iteration i.
func iteration(st *Stage, i int, buffers *Directory) (*Stage, error) {
	own := *st
	own.Kind = 0
	if n, ok := st.Layer.At(i); ok {
		own.Layer = Layer{Known: true, N: n}
	}
	var failed error
	resolve := func(name string) string {
		resolved, err := Resolve(name, i)
		if err != nil {
			failed = err
		}
		return resolved
	}
	named := func(ops []Operand) []Operand {
		ops = slices.Clone(ops)
		for k := range ops {
			ops[k].Dims = slices.Clone(ops[k].Dims)
			if !ops[k].IsTemp() {
				m, err := buffers.At(ops[k].Buf, i)
				if err != nil {
					failed = err
				}
				ops[k].Buf = m.Name
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
		op.Out, op.In, op.Params = named(op.Out), named(op.In), slices.Clone(op.Params)
	}
	if sms := own.Dist.SMs; sms > 0 {
		own.Dist.Rot, own.Dist.Step = (own.Dist.Rot+own.Dist.Step*i)%sms, 0
	}
	return &own, failed
}
