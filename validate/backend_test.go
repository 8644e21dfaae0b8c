package validate_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
	"amkc/validate/kernel"
)

// forKernel proves variant v of the toy program for the kernel after an edit.
func forKernel(t *testing.T, v int, edit func(m mutant)) validate.Report {
	f := flat(t, program(t, toy), v)
	require.NoError(t, validate.FlatFor(kernel.Backend, f).Diags.Err(), "the program is fine before the edit")
	edit(mutant{f, t})
	return validate.FlatFor(kernel.Backend, f)
}

func TestBackends(t *testing.T) {
	for how, want := range map[string]bool{"flagged": true, "counter": true} {
		require.Equal(t, want, validate.ProgramFor(kernel.Backend, program(t, toy.with(how))).OK, how)
	}
	greedy := func(m mutant) {
		for i := range m.Flat.Tasks {
			for k := range m.Flat.Tasks[i].Ops {
				if op := &m.Flat.Tasks[i].Ops[k]; op.Code == ir.SAMPLE && op.Has("partial") {
					op.InBuf = op.InBuf[:1]
					asArgMax(&op.Op)
				}
			}
		}
	}
	f := flat(t, program(t, toy), 0)
	greedy(mutant{f, t})
	require.True(t, validate.Flat(f).OK)
	rep := forKernel(t, 0, greedy)
	requireCode(t, rep, validate.CodeBackend,
		"backend kernel does not implement SAMPLE_ARGMAX; it implements NOP, COPY, EMBED, RMSNORM,")
	rep = forKernel(t, 0, func(m mutant) {
		op := &m.task("L00.o.s000").Ops[1]
		op.Code, op.Params = ir.FUSED, []ir.Param{ir.IntParam("recipe", ir.Int(0))}
		op.Out, op.OutBuf = op.Out[:1], op.OutBuf[:1]
	})
	requireCode(t, rep, validate.CodeBackend, "no backend implements")
	require.False(t, validate.Reference.Implements(ir.FUSED))
	require.False(t, validate.Reference.Implements(-1))
	require.False(t, kernel.Backend.Implements(ir.Opcode(len(ir.Ops))))
}

// asArgMax makes the choice of a part one that looks at no settings.
func asArgMax(op *ir.Op) {
	op.Code, op.In = ir.ArgMax, op.In[:1]
	op.Params = slices.DeleteFunc(slices.Clone(op.Params), func(p ir.Param) bool { return p.Key == "pos" })
}

// The kernel has one way of waiting, for one exchange per task.
func TestKernelCounters(t *testing.T) {
	for says, edit := range map[string]func(m mutant){
		"counter L01.h: error: is realised as counter, and L00.x as flagged": func(m mutant) {
			m.Counters[m.counter("L01.h")].How = ir.ByCounter
		},
		"counter step: error: starts at 2": func(m mutant) {
			m.Counters[m.counter("step")].Init = 2
		},
		"counter step: error: has scope sm": func(m mutant) {
			m.Counters[m.counter("step")].Scope = ir.ScopeSM
		},
		"runs GEMV_TILE and waits for L00.attn, whose producers write nothing": func(m mutant) {
			for t := range m.Tasks {
				if task := &m.Tasks[t]; task.Signal == m.counter("L00.attn") {
					task.Ops = []ir.FlatOp{{Op: ir.Op{Code: ir.NOP}}}
				}
			}
		},
		"has 2 waits": func(m mutant) {
			task := m.task("L00.o.s000")
			task.Waits = append(task.Waits, ir.FlatWait{Counter: m.counter("L00.qkv"), Threshold: 4})
		},
	} {
		rep := forKernel(t, 0, edit)
		require.False(t, rep.OK)
		requireCode(t, rep, validate.CodeBackend, says)
	}
}

// Words that queue order has ordered are there for the reference VM. The kernel polls them all the same, for the
// exchange that their reader waits for, whatever their writer signals.
func TestKernelPollsWhatIsWaitedFor(t *testing.T) {
	for writer, accepted := range map[string]bool{"signal f": true, "signal g": false, "signal step": false} {
		s := forTheKernel(stage("one", 0, "x[0:2] = COPY(in[0:2])", writer)+stage("two", 1, "z[0:2] = COPY(in[0:2])",
			"signal f")+
			stage("both", 0, "wait f >= "+map[bool]string{true: "2", false: "1"}[accepted], "a[0:2] = COPY(z[0:2])",
				"b[0:2] = COPY(x[0:2])")+emit(0), nil)(t)
		require.True(t, validate.Flat(s.flat).OK)
		rep := validate.FlatFor(kernel.Backend, s.flat)
		require.Equal(t, accepted, rep.OK, writer)
		if !accepted {
			requireCode(t, rep, validate.CodeBackend,
				"reads x[0:2] (bytes 0 to 7) on page p, written by one.s000 (sm 0), for whose counter it does not wait")
		}
	}
}

// All variants are one kernel.
func TestKernelRealisesVariantsAlike(t *testing.T) {
	text := toy.text()
	at := strings.Index(text, "variant long")
	p := parse(t, text[:at]+strings.ReplaceAll(text[at:], " flagged gpu", " counter gpu"))
	require.True(t, validate.Program(p).OK)
	requireCode(t, validate.ProgramFor(kernel.Backend, p), validate.CodeBackend,
		"variant long: error: realises its exchanges as counter, and variant short as flagged")
}

// What the kernel reads ahead of every wait is exactly what no task of the step writes.
func TestRunAhead(t *testing.T) {
	pos := ir.Symbol(ir.Pos)
	rows := func(m mutant, task string, hi ir.Expr) {
		op := &m.task(task).Ops[0]
		op.In[1].Dims[1].Hi, op.In[2].Dims[1].Hi = hi, hi
	}
	for _, c := range []struct {
		name    string
		variant int
		says    string // empty: accepted
		edit    func(m mutant)
	}{
		{"rows below pos", 0, "", func(m mutant) { rows(m, "L00.attn.u000", pos) }},
		{"some of the rows below pos", 0, "", func(m mutant) { rows(m, "L00.attn.u000", pos.Min(ir.Int(20))) }},
		{"the row of this step", 0, "the kernel copies L00.kv[0,0:pos+1,0,0:8], operand 2 of ATTENTION_TILE, " +
			"ahead of every wait of the step, and at pos 0 L00.attn.u000 (sm 0) writes L00.kv[0,pos,0,0:8] in the " +
			"same step; read the rows below pos", func(m mutant) {
			task := m.task("L00.attn.u000") // append first, then read what was appended
			task.Ops = []ir.FlatOp{task.Ops[1], task.Ops[2], task.Ops[0]}
			for _, k := range []int{1, 2} {
				task.Ops[2].In[k].Dims[1].Hi = pos.Add(ir.Int(1))
			}
			require.NoError(m.t, validate.Flat(m.Flat).Diags.Err(), "the reference VM may")
		}},
		{"an old row that is rewritten", 1, "at pos 33 L00.part.u000 (sm 0) writes", func(m mutant) {
			for _, k := range []int{1, 2} {
				r := &m.task("L00.part.u000").Ops[k].Out[0].Dims[1]
				r.Lo, r.Hi = pos.Sub(ir.Int(1)), pos
			}
		}},
		{"a norm that a step writes", 0, "operand 2 of RMSNORM", func(m mutant) {
			w := m.buffer("L00.norm1.weight")
			m.Buffers[w].Kind, m.Buffers[w].Pieces = ir.Activation, nil
			first := m.task("embed.s000")
			first.Ops = append(first.Ops, ir.FlatOp{Op: ir.Op{Code: ir.COPY,
				In:  []ir.Operand{{Buf: "norm.weight", Dims: []ir.Range{span(0, 32)}}},
				Out: []ir.Operand{{Buf: "L00.norm1.weight", Dims: []ir.Range{span(0, 32)}}}},
				InBuf: []int{m.buffer("norm.weight")}, OutBuf: []int{w}})
			for i := range m.Counters { // plain memory needs counting counters
				if m.Counters[i].Name != "best" {
					m.Counters[i].How = ir.ByCounter
				}
			}
		}},
		{"a block of two units", 1, "in blocks of 16 rows, which hold rows of other parts too", func(m mutant) {
			// All shares are of 8 rows: blocks of 16 hold rows of both units.
			for i := range m.Tasks {
				for k := range m.Tasks[i].Ops {
					op := &m.Tasks[i].Ops[k]
					for _, views := range [][]ir.Operand{op.In, op.Out} {
						for v := range views {
							for d := range views[v].Dims {
								if r := &views[v].Dims[d]; r.Shared() {
									r.Block = 1
								}
							}
						}
					}
					op.Params = append([]ir.Param(nil), op.Params...)
					for n := range op.Params {
						if op.Params[n].Key == "block" {
							op.Params[n].Int = ir.Int(1)
						}
					}
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := forKernel(t, c.variant, c.edit)
			if c.says == "" {
				require.NoError(t, rep.Diags.Err())
				return
			}
			require.False(t, rep.OK)
			requireCode(t, rep, kernel.CodeRunAhead, c.says)
		})
	}
}

func TestParameters(t *testing.T) {
	pos := ir.Symbol(ir.Pos)
	set := func(task string, k int, prm ir.Param) func(m mutant) {
		return func(m mutant) {
			op := &m.task(task).Ops[k]
			op.Params = append([]ir.Param(nil), op.Params...)
			for i := range op.Params {
				if op.Params[i].Key == prm.Key {
					op.Params[i] = prm
					return
				}
			}
			op.Params = append(op.Params, prm)
		}
	}
	nan := func() float64 { var zero float64; return zero / zero }()
	for _, c := range []struct {
		says string
		code *diag.Code
		edit func(m mutant)
	}{
		{"head_dim=0", validate.CodeParameter, set("L00.qkv.s000", 2, ir.IntParam("head_dim", ir.Int(0)))},
		{"head_dim=-8", validate.CodeParameter, set("L00.attn.u000", 0, ir.IntParam("head_dim", ir.Int(-8)))},
		{"want a constant", validate.CodeParameter,
			set("L00.attn.u000", 0, ir.IntParam("head_dim", pos.Add(ir.Int(8))))},
		{"order=2", validate.CodeParameter, set("L00.qkv.s000", 2, ir.IntParam("order", ir.Int(2)))},
		{"first=-2", validate.CodeParameter, set("L00.qkv.s000", 2, ir.IntParam("first", ir.Int(-2)))},
		{"pos=pos-1; want 0 to 2147483647 (it is -1 at pos 0)", validate.CodeParameter,
			set("L00.qkv.s000", 2, ir.IntParam("pos", pos.Sub(ir.Int(1))))},
		{"(it is -1 at pos 3)", validate.CodeParameter,
			set("L00.attn.u000", 0, ir.IntParam("row", ir.Int(2).Sub(pos).Max(ir.Int(-1))))},
		{"eps=-1", validate.CodeParameter, set("L00.qkv.s000", 0, ir.FloatParam("eps", -1))},
		{"eps=NaN", validate.CodeParameter, set("L00.qkv.s000", 0, ir.FloatParam("eps", nan))},
		{"scale=NaN", validate.CodeParameter, set("L00.attn.u000", 0, ir.FloatParam("scale", nan))},
		{"block=0", validate.CodeParameter, set("L00.attn.u000", 0, ir.IntParam("block", ir.Int(0)))},
		{"partial=2", validate.CodeParameter, set("lm_head.s000", 2, ir.IntParam("partial", ir.Int(2)))},
		{"qdtype=0", validate.CodeParameter, set("L00.o.s000", 0, ir.IntParam("qdtype", ir.Int(0)))},
	} {
		t.Run(c.says, func(t *testing.T) {
			f := flat(t, program(t, toy), 0)
			c.edit(mutant{f, t})
			requireCode(t, validate.Flat(f), c.code, c.says)
		})
	}
}

func TestEpochs(t *testing.T) {
	f := &ir.Flat{SMs: 1}
	for i := range 1<<16 - 1 {
		f.Counters = append(f.Counters, ir.Counter{Name: "c" + strconv.Itoa(i), How: ir.Flagged})
		f.Tasks = append(f.Tasks, ir.Task{Name: "t" + strconv.Itoa(i), Signal: i})
	}
	requireCode(t, validate.Flat(f), validate.CodeEpochs, "there are 65535 flagged counters")
	f.Tasks[0].Signal = -1
	require.True(t, validate.Flat(f).OK)
}
