package validate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// mutant is a flat program about to be broken.
type mutant struct {
	*ir.Flat
	t *testing.T
}

func (m mutant) task(name string) *ir.Task {
	i := slices.IndexFunc(m.Tasks, func(t ir.Task) bool { return t.Name == name })
	require.GreaterOrEqual(m.t, i, 0, name)
	return &m.Tasks[i]
}

func (m mutant) buffer(name string) int {
	i := slices.IndexFunc(m.Buffers, func(b ir.Buffer) bool { return b.Name == name })
	require.GreaterOrEqual(m.t, i, 0, name)
	return i
}

func (m mutant) counter(name string) int {
	i := slices.IndexFunc(m.Counters, func(c ir.Counter) bool { return c.Name == name })
	require.GreaterOrEqual(m.t, i, 0, name)
	return i
}

// swap exchanges the places of two tasks in the queues, not their SMs.
func (m mutant) swap(a, b string) {
	x, y := m.task(a), m.task(b)
	*x, *y = *y, *x
}

func (m mutant) add(counter string, init int) int {
	m.Counters = append(m.Counters, ir.Counter{Name: counter, How: ir.ByCounter, Init: init})
	return len(m.Counters) - 1
}

func span(lo, hi int) ir.Range { return ir.Span(ir.Int(lo), ir.Int(hi)) }

// Each mutation breaks one thing in variant 0 (short) or 1 (long) of the toy program.
var mutations = []struct {
	name    string
	how     string // realisation of the counters
	variant int
	code    *diag.Code
	says    string // part of the message
	edit    func(m mutant)
}{
	{"drop a wait", "counter", 0, validate.CodeReadRace, "missing: wait L00.h >= 4",
		func(m mutant) { m.task("L00.gate_up.s002").Waits = nil }},
	{"drop a flagged wait", "flagged", 0, validate.CodeReadRace, "missing: wait L01.x >= 4",
		func(m mutant) { m.task("L01.qkv.s001").Waits = nil }},
	{"drop the wait of a unit that needs words of some producers", "flagged", 1, validate.CodeReadRace,
		"missing: wait L00.qkv", func(m mutant) { m.task("L00.part.u003").Waits = nil }},
	{"threshold too low", "flagged", 0, validate.CodePartialWait, "the threshold is 4", func(m mutant) {
		m.task("L00.o.s001").Waits[0].Threshold = 1
		m.task("L00.qkv.s000").Waits[0].Threshold = 3
	}},
	{"threshold too high", "counter", 0, validate.CodeUnreachable, "it reaches 4 (init 0 + 4 producers)",
		func(m mutant) { m.task("L00.qkv.s000").Waits[0].Threshold = 5 }},
	{"initial value that fakes a producer", "counter", 0, validate.CodePartialWait, "init 1 + 4 producers",
		func(m mutant) { m.Counters[m.counter("L00.h")].Init = 1 }},
	{"flagged counter with an initial value", "flagged", 0, validate.CodeRealisation, "starts at 1",
		func(m mutant) { m.Counters[m.counter("best")].Init = 1 }},
	{"producer signals another counter", "counter", 0, validate.CodeUnreachable, "L00.h >= 4",
		func(m mutant) { m.task("L00.o.s001").Signal = m.counter("step") }},
	{"wait without producers", "counter", 0, validate.CodeNoProducer, "idle", func(m mutant) {
		c := m.add("idle", 0)
		m.task("embed.s000").Waits = []ir.FlatWait{{Counter: c, Threshold: 1}}
	}},
	{"queue order through another SM", "counter", 0, validate.CodeDeadlock, "needs itself", func(m mutant) {
		m.swap("L00.gate_up.s001", "L00.down.s001")
	}},
	{"wait on a later stage", "flagged", 0, validate.CodeDeadlock, "needs itself", func(m mutant) {
		t := m.task("L00.qkv.s000")
		t.Waits = append(t.Waits, ir.FlatWait{Counter: m.counter("L01.h"), Threshold: 4})
	}},
	{"undecided counter", "counter", 0, validate.CodeRealisation, "undecided",
		func(m mutant) { m.Counters[m.counter("best")].How = ir.Undecided }},
	{"counter of one SM seen from others", "counter", 0, validate.CodeScope, "scope gpu",
		func(m mutant) { m.Counters[m.counter("L00.x")].Scope = ir.ScopeSM }},
	{"live buffers share a page", "flagged", 0, validate.CodeOverwriteRace, "on page wide", func(m mutant) {
		for _, l := range []string{"L00", "L01", "L02"} {
			m.Buffers[m.buffer(l+".x")].Pages = []string{"wide"}
		}
	}},
	{"page overwritten in the same task", "counter", 0, validate.CodeOverwriteRace, "L00.gate_up", func(m mutant) {
		m.Buffers[m.buffer("L00.h")].Pages = []string{"wide"}
	}},
	{"missing page", "flagged", 0, ir.CodePage, "does not exist",
		func(m mutant) { m.Buffers[m.buffer("L00.h")].Pages = []string{"nowhere"} }},
	{"page too small", "flagged", 0, ir.CodePage, "its page narrow has",
		func(m mutant) { m.Buffers[m.buffer("L00.act")].Pages = []string{"narrow"} }},
	{"page of another layout", "flagged", 0, ir.CodePage, "word32x2",
		func(m mutant) { m.Buffers[m.buffer("best.value")].Pages = []string{"wide"} }},
	{"spans overlap", "counter", 0, validate.CodeWriteRace, "both signal L00.h", func(m mutant) {
		op := &m.task("L00.o.s001").Ops[1]
		op.Out[1].Dims[0] = span(7, 15)
	}},
	{"gap in an output", "flagged", 0, validate.CodeOutputGap, "logits[0:", func(m mutant) {
		for _, name := range []string{"lm_head.s002"} {
			t := m.task(name)
			t.Ops[1].Out[0] = ir.Operand{Buf: "%l"}
			t.Ops[1].OutBuf = []int{-1}
			t.Ops[2].In[0] = ir.Operand{Buf: "%l"}
			t.Ops[2].InBuf[0] = -1
		}
	}},
	{"output never written", "flagged", 0, validate.CodeOutputGap, "next[0:1]",
		func(m mutant) { m.Tasks = m.Tasks[:len(m.Tasks)-1] }},
	{"view outside at the last position only", "flagged", 1, validate.CodeBounds, "at pos 64",
		func(m mutant) { m.Hi = 64 }},
	{"view outside", "flagged", 0, validate.CodeBounds, "[32, 40) of dimension 0", func(m mutant) {
		m.task("L00.o.s003").Ops[0].In[1].Dims[0] = span(32, 40)
	}},
	{"part outside", "flagged", 1, validate.CodeBounds, "part 2 of 2", func(m mutant) {
		m.task("L00.part.u001").Ops[0].In[1].Dims[1].Part = ir.Int(2)
	}},
	{"reading the row that is appended", "counter", 0, validate.CodeReadRace, "at pos 0, written by L00.attn.u001",
		func(m mutant) {
			pos := ir.Symbol(ir.Pos)
			for k := 1; k <= 2; k++ { // unit 0 reads what unit 1 appends
				m.task("L00.attn.u000").Ops[0].In[k].Dims[0] = span(1, 2)
				m.task("L00.attn.u000").Ops[0].In[k].Dims[1] = ir.Span(ir.Int(0), pos.Add(ir.Int(1)))
			}
		}},
	{"two appends to one row", "counter", 0, validate.CodeWriteRace, "L00.kv", func(m mutant) {
		m.task("L00.attn.u001").Ops[1].Out[0].Dims[0] = span(0, 1)
	}},
	{"two shares of the new row", "flagged", 1, validate.CodeWriteRace, "L00.kv", func(m mutant) {
		for _, k := range []int{1, 2} {
			m.task("L00.part.u001").Ops[k].Out[0].Dims[1].Part = ir.Int(0)
		}
	}},
	{"reading a row beyond pos", "counter", 0, validate.CodeUndefined, "only rows below pos", func(m mutant) {
		for k := 1; k <= 2; k++ {
			m.task("L00.attn.u000").Ops[0].In[k].Dims[1] = span(0, 10)
		}
	}},
	{"residual from another SM", "flagged", 0, validate.CodeOwner, "shared memory of SM", func(m mutant) {
		a, b := m.task("L00.o.s000"), m.task("L00.o.s001")
		a.SM, b.SM = b.SM, a.SM
	}},
	{"on-chip memory without an SM", "counter", 0, validate.CodeOwner, "no SM",
		func(m mutant) { m.task("sample.s003").SM = -1 }},
	{"flagged counter orders plain memory", "flagged", 0, validate.CodeFlaggedPlain, "realise it as a counter",
		func(m mutant) {
			for l := range 2 {
				b := &m.Buffers[m.buffer([]string{"L00.h", "L01.h"}[l])]
				b.Layout, b.Pages = ir.Layout{}, nil
			}
			// The tasks still publish words, so that the counter itself is fine.
			extra := len(m.Buffers)
			m.Buffers = append(m.Buffers, ir.Buffer{Name: "also", Kind: ir.Activation, DType: ir.BF16, Shape: []int{32},
				Space: ir.GlobalScratch, Layout: ir.Layout{Kind: ir.Word32}},
				ir.Buffer{Name: "too", Kind: ir.Activation, DType: ir.BF16, Shape: []int{32}, Space: ir.GlobalScratch,
					Layout: ir.Layout{Kind: ir.Word32}})
			for i := range m.Tasks {
				if strings.Contains(m.Tasks[i].Name, ".o.s") {
					op := &m.Tasks[i].Ops[1]
					op.Out = append(op.Out, ir.Operand{Buf: "also", Dims: op.Out[1].Dims})
					op.OutBuf = append(op.OutBuf, extra)
					if strings.HasPrefix(m.Tasks[i].Name, "L01") {
						op.OutBuf[2]++
					}
				}
			}
		}},
	{"flagged words written twice", "flagged", 0, validate.CodeTwice, "cannot tell which", func(m mutant) {
		t := m.task("L00.o.s000")
		t.Ops = append(t.Ops, t.Ops[1])
	}},
	{"words that nobody read overwritten", "flagged", 0, validate.CodeUnread, "read by nobody", func(m mutant) {
		m.task("L00.attn.u001").Ops[0].In[0].Dims[0] = span(8, 24) // leaves 24 to 31 unread
	}},
	{"poll after publishing", "flagged", 0, validate.CodePollOrder, "list the reading op first", func(m mutant) {
		t := m.task("L00.attn.u000")
		t.Ops[0].In = t.Ops[0].In[:3] // the new row is not an operand any more
		t.Ops[0].InBuf = t.Ops[0].InBuf[:3]
	}},
	{"writing a weight", "flagged", 0, validate.CodeReadOnly, "WEIGHT", func(m mutant) {
		op := &m.task("L00.o.s000").Ops[1]
		op.Out[1] = ir.Operand{Buf: "w", Dims: []ir.Range{span(0, 8)}}
		op.OutBuf[1] = m.buffer("L00.norm1.weight")
	}},
	{"uninitialised scratch", "counter", 0, validate.CodeUndefined, "no task writes it", func(m mutant) {
		m.Buffers = append(m.Buffers, ir.Buffer{Name: "scratch", Kind: ir.Activation, DType: ir.BF16, Shape: []int{32},
			Space: ir.GlobalScratch})
		m.task("L00.qkv.s000").Ops[0].InBuf[0] = len(m.Buffers) - 1
	}},
	{"temporary read before it is written", "counter", 0, validate.CodeUndefined, "%y", func(m mutant) {
		ops := m.task("L00.o.s000").Ops
		ops[0], ops[1] = ops[1], ops[0]
	}},
	{"K and x disagree", "counter", 0, validate.CodeShapes, "K is 16",
		func(m mutant) { m.task("L00.o.s000").Ops[0].In[1].Dims[1] = span(0, 16) }},
	{"result and view disagree", "counter", 0, validate.CodeShapes, "output 2 has 4 elements", func(m mutant) {
		m.task("L00.o.s000").Ops[1].Out[1].Dims[0] = span(0, 4)
	}},
	{"parameters and rows disagree", "flagged", 1, validate.CodeShapes, "the parameters say part 0 of 2",
		func(m mutant) {
			op := &m.task("L00.part.u001").Ops[0]
			op.Params = slices.Clone(op.Params)
			for i := range op.Params {
				if op.Params[i].Key == "part" {
					op.Params[i].Int = ir.Int(0)
				}
			}
		}},
	{"float where an index belongs", "flagged", 0, validate.CodeDType, "want I32",
		func(m mutant) { m.Buffers[m.buffer("best.index")].DType = ir.F32 }},
	{"words of the wrong size", "flagged", 0, validate.CodeLayout, "32-bit elements",
		func(m mutant) { m.Buffers[m.buffer("L00.h")].DType = ir.F32 }},
	{"words polled by position", "flagged", 0, validate.CodeSymbolic, "depends on pos", func(m mutant) {
		pos := ir.Symbol(ir.Pos)
		m.task("sample.s000").Ops[0].In[0].Dims[0] = ir.Span(pos.Sub(pos), pos.Add(ir.Int(4)).Sub(pos))
	}},
	{"elements of half a byte on a page", "flagged", 0, ir.CodePage, "whole bytes", func(m mutant) {
		b := &m.Buffers[m.buffer("best.value")]
		b.DType, b.Layout, b.Pages = ir.I4, ir.Layout{}, []string{"bits"}
		m.Pages = append(slices.Clone(m.Pages), ir.Page{Name: "bits", Space: ir.GlobalScratch, Bytes: 64})
	}},
	{"keys of a length that depends on pos", "flagged", 0, validate.CodeShapes,
		"the length of input 2 of ATTENTION_TILE depends on pos", func(m mutant) {
			op := &m.task("L00.attn.u000").Ops[0]
			for _, k := range []int{1, 2} {
				op.In[k].Dims[1] = span(0, 8)
				op.In[k].Dims[3] = ir.Span(ir.Int(0), ir.Symbol(ir.Pos).Min(ir.Int(8)))
			}
		}},
	{"shifted in place", "counter", 0, validate.CodeAlias, "memory of its own", func(m mutant) {
		op := &m.task("L00.o.s000").Ops[1]
		op.In[0].Dims[0] = span(4, 12)
	}},
	{"SM that does not exist", "counter", 0, validate.CodeStructure, "SM 9",
		func(m mutant) { m.task("emit.s000").SM = 9 }},
	{"two tasks of one name", "counter", 0, validate.CodeStructure, "defined twice",
		func(m mutant) { m.task("L00.o.s000").Name = "L00.o.s001" }},
	{"unknown parameter", "counter", 0, ir.CodeOperands, "colour", func(m mutant) {
		op := &m.task("L00.o.s000").Ops[0]
		op.Params = []ir.Param{ir.IntParam("colour", ir.Int(1))}
	}},
	{"empty interval", "counter", 0, validate.CodeStructure, "positions", func(m mutant) { m.Lo = m.Hi + 1 }},
}

func TestRejects(t *testing.T) {
	for _, c := range mutations {
		t.Run(c.name, func(t *testing.T) {
			f := flat(t, program(t, toy.with(c.how)), c.variant)
			before := validate.Flat(f)
			require.NoError(t, before.Diags.Err(), "the program is fine before the mutation")
			c.edit(mutant{f, t})
			rep := validate.Flat(f)
			require.False(t, rep.OK)
			for _, d := range rep.Diags {
				if d.Code == c.code.ID && strings.Contains(d.Error(), c.says) {
					return
				}
			}
			require.Fail(t, "another reason", "want %s saying %q, got\n%s", c.code.ID, c.says, rep.Diags.Error())
		})
	}
}
