package kernel

import (
	"math"

	"amkc/ir"
)

// DeltaRule is delta_rule of recurrence.cuh: a gated delta rule. Unit a is a head of values of a sequence. Queries,
// keys and values of the step are read from the exchange and convolved with those of the positions before, which the
// unit keeps. Besides these it keeps its state, and what the pass before adds to it. It begins with that, so that the
// state is stored while it waits for its vector.
var DeltaRule = declare(&Body{
	Name:   "delta_rule",
	Header: "recurrence",
	Codes: []string{"STATE_CONV SILU L2NORM STATE_CONV SILU L2NORM STATE_CONV SILU DECAY SIGMOID RECURRENCE RMSNORM " +
		"SILU MUL"},
	Place:    ByUnit,
	NoPrompt: true,
	Buffers: []Buffer{
		{Name: Named.Before, At: func(s *Stage) *string { return &s.Before }, Keeps: before},
		{Name: Named.Memory, At: func(s *Stage) *string { return &s.Memory }, Keeps: memory},
		{Name: Named.Pending, At: func(s *Stage) *string { return &s.Pending }, Keeps: pending},
		{Name: "L{i}.state_conv.weight", At: stateTaps,
			Shape: func(f *Facts) []int { return []int{f.StateChannels() * f.Taps} }},
		{Name: "L{i}.decay_log", At: decayLog, Exact: true,
			Shape: func(f *Facts) []int { return []int{f.StateHeads} }},
		{Name: "L{i}.decay_bias", At: decayBias, Exact: true,
			Shape: func(f *Facts) []int { return []int{f.StateHeads} }},
		{Name: "L{i}.state_norm.weight", At: stateNorm, Shape: func(f *Facts) []int { return []int{f.StateValues} }},
		{Name: "L{i}.szba.weight", Shape: func(f *Facts) []int { return []int{f.stateRows(), f.Hidden} }},
		{Name: "L{i}.state_out.weight",
			Shape: func(f *Facts) []int { return []int{f.Hidden, f.StateHeads * f.StateValues} }}},
	Vectors: []Vector{
		{Name: "L{i}.szba", Roles: []string{"szba"}, Shape: func(f *Facts) []int { return []int{f.stateRows()} }},
		{Name: "L{i}.delta_rule", Roles: []string{"delta_rule"},
			Shape: func(f *Facts) []int { return []int{f.StateHeads * f.StateValues} }}},
	Norms: map[string]string{"szba": "input_norm"},
	Fields: []Field{units, rotation, rotationStep, tasks,
		ofState("kKeyHeads", "heads of keys, which neighbours share", func(s *Stage) *int { return &s.KeyHeads },
			ir.StateKeyHeadsOf),
		ofState("kKeys", "elements of a key", func(s *Stage) *int { return &s.Keys }, ir.StateKeysOf),
		ofState("kValues", "elements of a value", func(s *Stage) *int { return &s.Values }, ir.StateValuesOf),
		ofState("kTaps", "positions that are convolved", func(s *Stage) *int { return &s.Taps }, ir.TapsOf).
			atMost(MaxTaps),
		normEps},
	Args: []Arg{page(input), address(stateTaps), address(decayLog), address(decayBias), address(stateNorm),
		page(output)},
	Read: func(s *Stage, ops []ir.Op) {
		conv, decay, step, norm := &ops[0], find(ops, ir.DECAY), find(ops, ir.RECURRENCE), find(ops, ir.RMSNORM)
		s.In, s.Before, s.StateTaps = name(conv.In, 0), name(conv.In, 1), name(conv.In, 2)
		s.Taps = conv.IntAt("taps", 0, 1)
		s.DecayLog, s.DecayBias = name(decay.In, 1), name(decay.In, 2)
		s.Memory, s.Pending = name(step.In, 5), name(step.In, 6)
		s.StateNorm, s.Eps = name(norm.In, 1), norm.FloatOr("eps", 0)
		s.Out = name(ops[len(ops)-1].Out, 0)
	},
	Derive: func(f *Facts, s *Stage) {
		s.KeyHeads, s.Keys, s.Values = f.StateKeyHeads, f.StateKeys, f.StateValues
	},
	Ops: func(f *Facts, s *Stage) (ops []ir.Op) {
		heads, keys, values := max(1, s.Units), s.Keys, s.Values
		keyHead, ofKeys := spanA.Div(max(1, heads/max(1, s.KeyHeads))), s.KeyHeads*keys
		z := 2*ofKeys + heads*values // what follows queries, keys and values
		b := z + heads*values
		in := func(r ir.Range) ir.Operand { return view(s.In, r) }
		kept := func(buf string, rows int, columns ir.Range) ir.Operand {
			return view(buf, ir.Index(spanA), upTo(rows), columns)
		}
		add := func(code ir.Opcode, out string, in []ir.Operand, params ...ir.Param) *ir.Op {
			ops = append(ops, op(code, views(view(out)), in, params...))
			return &ops[len(ops)-1]
		}
		at := ir.IntParam("pos", position)
		convolved := func(name string, block func(n, offset int) ir.Range, n, offset, own int) {
			rows := kept(s.Before, s.Taps, ir.Span(ir.Int(own), ir.Int(own+n)))
			conv := add(ir.StateConv, "%c"+name, views(in(block(n, offset)), rows,
				view(s.StateTaps, block(n*s.Taps, offset*s.Taps))), at, ir.IntParam("taps", ir.Int(s.Taps)))
			conv.Out = append(conv.Out, rows)
			add(ir.SILU, "%s"+name, views(view("%c"+name)))
		}
		ofHead := func(head ir.Expr) func(n, offset int) ir.Range {
			return func(n, offset int) ir.Range { return block(head, n, offset) }
		}
		unit := func(name string, scale float64) {
			add(ir.L2NORM, "%"+name, views(view("%s"+name)), ir.FloatParam("eps", unitEps),
				ir.IntParam("head_dim", ir.Int(keys)), ir.FloatParam("scale", scale))
		}
		convolved("q", ofHead(keyHead), keys, 0, 0)
		unit("q", 1/math.Sqrt(float64(max(1, keys))))
		convolved("k", ofHead(keyHead), keys, ofKeys, keys)
		unit("k", 1)
		convolved("v", ofHead(spanA), values, 2*ofKeys, 2*keys)
		add(ir.DECAY, "%decay", views(in(block(spanA, 1, b+heads)), view(s.DecayLog, ir.Index(spanA)),
			view(s.DecayBias, ir.Index(spanA))))
		add(ir.SIGMOID, "%beta", views(in(block(spanA, 1, b))))
		was := kept(s.Memory, keys, upTo(values))
		left := view(s.Pending, ir.Index(spanA), firstOnly, upTo(2+keys+values))
		step := add(ir.RECURRENCE, "%o", views(view("%q"), view("%k"), view("%sv"), view("%decay"), view("%beta"), was,
			left), at, ir.IntParam("delta", ir.Int(1)))
		step.Out = append(step.Out, was, left)
		add(ir.RMSNORM, "%n", views(view("%o"), view(s.StateNorm, upTo(values))), ir.FloatParam("eps", s.Eps),
			ir.IntParam("head_dim", ir.Int(values)))
		add(ir.SILU, "%gate", views(in(block(spanA, values, z))))
		return append(ops, op(ir.MUL, views(view(s.Out, block(spanA, values, 0))), views(view("%n"), view("%gate"))))
	},
})

// StatesFit reports whether there is room for states of a number of rows and columns: a thread keeps its part of a
// column in registers, and the sums of products in a compact scratch are room for what a unit convolves, and for sums
// of parts, twice. Recurrence of recurrence.cuh asserts the same.
func StatesFit(keys, values int) bool {
	const mostOfColumn, scratch = 64, 2 * Warps * 64
	threads := ceil(values, 32) * 32
	parts := Warps * 32 / threads
	return parts > 0 && ceil(keys, parts) <= mostOfColumn && 2*keys+values+2*parts*threads <= scratch
}

// unitEps is added to the sum of the squares of a query or a key.
const unitEps = 1e-6

// ofState is a constant that is the same in all layers of a stage.
func ofState(name, note string, at func(s *Stage) *int, want func(f *ir.LayerFacts) int) Field {
	return count(name, note, at).wants("as many as its layers have", func(f *Facts, s *Stage) bool {
		return *at(s) == want(&f.LayerFacts)
	})
}

// What a layer keeps of a pass of one token, of each head.
func memory(f *ir.LayerFacts) []int { return ofHeads(f, f.StateKeys, f.StateValues) }
func pending(f *ir.LayerFacts) []int {
	return ofHeads(f, 1, 2+f.StateKeys+f.StateValues)
}
func before(f *ir.LayerFacts) []int { return ofHeads(f, f.Taps, 2*f.StateKeys+f.StateValues) }

func ofHeads(f *ir.LayerFacts, shape ...int) []int {
	if f.StateHeads == 0 {
		return nil
	}
	return append([]int{f.StateHeads}, shape...)
}

// stateRows are what is projected of a token: queries, keys and values, a gate for each value, and for each head how
// much is replaced, and how much remains.
func (f *Facts) stateRows() int { return f.StateChannels() + f.StateHeads*(f.StateValues+2) }

func stateTaps(s *Stage) *string { return &s.StateTaps }
func stateNorm(s *Stage) *string { return &s.StateNorm }
func decayLog(s *Stage) *string  { return &s.DecayLog }
func decayBias(s *Stage) *string { return &s.DecayBias }
