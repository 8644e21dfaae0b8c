package loops

import (
	"slices"

	"amkc/ir"
)

// A param is a parameter of a repeated body: the operand places that name the same buffer in every call.
type param struct {
	args          []string       // the buffer in each call
	reads, writes []operandPlace // in the body
	usage         Usage
	partner       *param // of a chained one: the other half, which writes what it reads or reads what it writes
}

// constant reports whether every call has the same argument. Of a single call it says nothing about what changes, so
// that there the argument is taken for one of many if its name carries an index.
func (p *param) constant() bool {
	if len(p.args) == 1 {
		layer, _ := splitName(p.args[0])
		return layer < 0
	}
	return !slices.ContainsFunc(p.args, func(a string) bool { return a != p.args[0] })
}

// An operandPlace is an operand of an op of a stage of the body.
type operandPlace struct {
	stage, op, operand int
	out                bool
}

func (pl operandPlace) in(body []*ir.Stage) *ir.Operand {
	op := &body[pl.stage].Ops[pl.op]
	if pl.out {
		return &op.Out[pl.operand]
	}
	return &op.In[pl.operand]
}

// places lists the operands of a body that name buffers, in the order in which they are printed.
func places(body []*ir.Stage) []operandPlace {
	var out []operandPlace
	for s, st := range body {
		for o := range st.Ops {
			for _, list := range []struct {
				operands []ir.Operand
				out      bool
			}{{st.Ops[o].Out, true}, {st.Ops[o].In, false}} {
				for k := range list.operands {
					if !list.operands[k].IsTemp() {
						out = append(out, operandPlace{s, o, k, list.out})
					}
				}
			}
		}
	}
	return out
}

// A run is a list of calls of one body: stages that follow one another in a variant.
type run struct {
	window
	calls  [][]*ir.Stage
	index  indexing
	params []*param
	of     []*param // the parameter of each place, in the order of places

	// What promotion puts around the loop.
	before, after []*ir.Stage
}

func newRun(stages []*ir.Stage, w window) *run {
	r := &run{window: w}
	for k := range w.count {
		r.calls = append(r.calls, stages[w.start+k*w.period:w.start+(k+1)*w.period])
	}
	r.findParams()
	return r
}

func (r *run) body() []*ir.Stage { return r.calls[0] }

// findParams groups the places of the body. Places are in one class as long as no call has told them apart, so that
// each call is looked at once.
func (r *run) findParams() {
	pls := places(r.body())
	class := make([]int, len(pls))
	for _, call := range r.calls {
		type split struct {
			class int
			buf   string
		}
		next := map[split]int{}
		for i, pl := range pls {
			key := split{class[i], pl.in(call).Buf}
			c, known := next[key]
			if !known {
				c = len(next)
				next[key] = c
			}
			class[i] = c
		}
	}
	r.params, r.of = nil, nil
	byClass := map[int]*param{}
	for i, pl := range pls {
		p := byClass[class[i]]
		if p == nil {
			p = &param{args: make([]string, len(r.calls))}
			for k, call := range r.calls {
				p.args[k] = pl.in(call).Buf
			}
			byClass[class[i]] = p
			r.params = append(r.params, p)
		}
		r.of = append(r.of, p)
		if pl.out {
			p.writes = append(p.writes, pl)
		} else {
			p.reads = append(p.reads, pl)
		}
	}
}

// counterArgs calls f for every wait and signal of the body with the counters that the calls name there.
func (r *run) counterArgs(f func(args []string)) {
	for j, st := range r.body() {
		for w := range st.Waits {
			f(r.each(func(call []*ir.Stage) string { return call[j].Waits[w].Counter }))
		}
		f(r.each(func(call []*ir.Stage) string { return call[j].Signal }))
	}
}

// turningCounters does so for those that are not the same in every call.
func (r *run) turningCounters(f func(args []string)) {
	r.counterArgs(func(args []string) {
		if p := (&param{args: args}); !p.constant() {
			f(args)
		}
	})
}

func (r *run) each(name func(call []*ir.Stage) string) []string {
	out := make([]string, len(r.calls))
	for k, call := range r.calls {
		out[k] = name(call)
	}
	return out
}
