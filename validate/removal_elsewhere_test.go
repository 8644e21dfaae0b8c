package validate_test

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/internal/oracle"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/refvm"
	"amkc/validate"
)

// An elsewhere is a rule of which the oracle cannot show that it is needed, because what goes wrong is a value and not an
// access, or happens in a machine that it does not model. Something else shows it.
type elsewhere struct {
	code *diag.Code
	says string
	why  string
	make func(t *testing.T) subject
	show func(t *testing.T, s subject)
}

// ones supplies weights.
type ones struct{}

func (ones) Floats(b *ir.Buffer, _ int) ([]float32, error) {
	return slices.Repeat([]float32{1}, b.Numel()), nil
}

// small unrolled, after an edit.
func unrolled(edit func(m mutant), lines ...string) func(t *testing.T) subject {
	return func(t *testing.T) subject {
		f := flat(t, parse(t, small+stage("t", 0, lines...)+emit(0)), 0)
		if edit != nil {
			edit(mutant{f, t})
		}
		return subject{flat: f}
	}
}

// notANumber: the reference VM computes something that is none, from finite operands.
func notANumber(t *testing.T, s subject) {
	for _, v := range computed(t, s) {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return
		}
	}
	require.Fail(t, "all finite")
}

// computed returns buffer a after a step at position 0.
func computed(t *testing.T, s subject) []float32 {
	vm, err := refvm.New(s.flat, ones{}, refvm.Options{Workers: 1})
	require.NoError(t, err)
	require.NoError(t, vm.Step(0, 0, refvm.Order{}))
	out, err := vm.Read("a")
	require.NoError(t, err)
	return out[:2]
}

// rowLost: k_row and v_row, which are ones, are the only row, and no task takes it for its own.
func rowLost(t *testing.T, s subject) { require.Equal(t, []float32{0, 0}, computed(t, s)) }

const newRow = "a[0:2] = ATTENTION_TILE(in[0:2], %s, %s, v[0:2], v[0:2]) head_dim=2 n_heads=1 n_kv_heads=1 scale=1.0 row=pos"

func attends(rows, params string) string {
	return strings.ReplaceAll(newRow, "%s", rows) + params
}

// golden is a program that amkc emits a kernel for, before and after an edit.
func golden(edit func(p *ir.Program)) func(t *testing.T) subject {
	return func(t *testing.T) subject {
		p := goldenProgram(t)
		require.True(t, validate.ProgramFor(validate.Kernel, p).OK)
		edit(p)
		return subject{prog: p, backend: validate.Kernel}
	}
}

func goldenProgram(t *testing.T) *ir.Program {
	const path = "../testdata/golden/llama-gqa_t4_fp16_split/program.json"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	p, diags := ir.ParseJSON(text, path)
	require.Empty(t, diags)
	return p
}

// sameKernel: the program says something else, and the kernel that is emitted for it does not.
func sameKernel(t *testing.T, s subject) {
	want, err := codegen.CUDA(goldenProgram(t))
	require.NoError(t, err)
	have, err := codegen.CUDA(s.prog)
	require.NoError(t, err)
	for _, file := range []string{"megakernel.cu", "schedule.h"} {
		require.NotEmpty(t, want[file])
		require.Equal(t, comments.ReplaceAllString(string(want[file]), ""), comments.ReplaceAllString(string(have[file]), ""), file)
	}
}

var comments = regexp.MustCompile(`(?m)//.*$`)

// notEmitted: no kernel can be emitted for the program.
func notEmitted(t *testing.T, s subject) {
	_, err := codegen.CUDA(s.prog)
	require.Error(t, err)
}

// forTheKernel is small without what the kernel does not have.
func forTheKernel(text string, edit func(m mutant)) func(t *testing.T) subject {
	return func(t *testing.T) subject {
		f := flat(t, parse(t, strings.Replace(small, "counter own counter sm\n", "", 1)+text), 0)
		if edit != nil {
			edit(mutant{f, t})
		}
		return subject{flat: f, backend: validate.Kernel}
	}
}

// ahead: what the kernel reads ahead of every wait is read by a task of its own, which waits for nothing, and the oracle
// finds fault with that.
func ahead(kind oracle.Kind) func(t *testing.T, s subject) {
	return func(t *testing.T, s subject) {
		f := *s.flat
		f.Tasks = slices.Clone(f.Tasks)
		for i := range s.flat.Tasks {
			for _, op := range s.flat.Tasks[i].Ops {
				reads := map[ir.Opcode][]int{ir.RMSNORM: {1}, ir.ATTENTION: {1, 2}}[op.Code]
				for _, k := range reads {
					early := ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: op.In[k : k+1], Out: []ir.Operand{{Buf: "%early"}}}, InBuf: op.InBuf[k : k+1], OutBuf: []int{-1}}
					f.Tasks = append(f.Tasks, ir.Task{Name: "ahead of " + f.Tasks[i].Name + string(rune('0'+k)), SM: -1, Signal: -1, Ops: []ir.FlatOp{early}})
				}
			}
		}
		require.False(t, s.judge().Unsafe(), "in order it is safe")
		v := subject{flat: &f}.judge()
		require.True(t, v.Unsafe())
		require.Equal(t, kind, v.Hazard.Kind, v.Hazard)
	}
}

func inVariants(p *ir.Program, change func(v *ir.Variant)) {
	for i := range p.Variants {
		change(&p.Variants[i])
	}
}

func goldenCounter(name string, change func(c *ir.Counter)) func(t *testing.T) subject {
	return golden(func(p *ir.Program) {
		inVariants(p, func(v *ir.Variant) {
			for i := range v.Counters {
				if v.Counters[i].Name == name {
					change(&v.Counters[i])
				}
			}
		})
	})
}

func stageOf(v *ir.Variant, name string) *ir.Stage {
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			if n.Name == name {
				return n
			}
		case *ir.Loop:
			for _, s := range n.Body {
				if s.Name == name {
					return s
				}
			}
		}
	}
	return nil
}

var shownElsewhere = []elsewhere{
	{validate.CodeParameter, "want a finite number", "a value", unrolled(setParam("eps", ir.FloatParam("eps", math.NaN())), "a[0:4] = RMSNORM(in[0:4], v[0:4]) eps=1.0"), notANumber},
	{validate.CodeParameter, "want 0 or more", "a value", unrolled(nil, "a[0:4] = RMSNORM(in[0:4], v[0:4]) eps=-1.0"), notANumber},
	{validate.CodeParameter, "want a positive number", "a value", unrolled(nil, "a[0:4] = ROPE(in[0:4], token[0]) head_dim=4 order=0 theta=0.0"), notANumber},
	{validate.CodeShapes, "the parameters say part 1 of 2", "a value: nobody owns the row", unrolled(nil, attends("wk[0:pos block 1 part 0 of 2,0:1,0:2]", " parts=2 block=1 part=1")), rowLost},
	{validate.CodeShapes, "GEMV_TILE takes one row", "the kernel multiplies by one row: it has no body for GEMM_TILE, which takes several", forTheKernel(stage("t", 0, "%t = GEMV_TILE(in[0:4], w[0:2,0:2])")+emit(0), nil),
		func(t *testing.T, s subject) {
			s.flat.Tasks[0].Ops[0].Code = ir.GEMM
			requireCode(t, validate.FlatFor(validate.Kernel, s.flat), validate.CodeBackend, "does not implement GEMM_TILE")
			require.True(t, validate.Flat(s.flat).OK)
		}},
	{validate.CodeNext, "hands on no token", "what a step computes is its caller's to use", func(t *testing.T) subject {
		return subject{prog: parse(t, strings.ReplaceAll(small, "buffer next", "buffer other")+stage("emit", 0, "other[0] = COPY(token[0])", "signal step"))}
	}, func(t *testing.T, s subject) {
		vm, err := refvm.New(flat(t, s.prog, 0), ones{}, refvm.Options{})
		require.NoError(t, err)
		require.NoError(t, vm.Step(0, 7, refvm.Order{}))
		require.Equal(t, -1, vm.Next(), "no step can follow")
	}},
	{validate.CodeEpochs, "epochs tell fewer than 65535 exchanges apart", "the oracle's words carry who wrote them; the device's carry 16 bits", func(t *testing.T) subject {
		f := &ir.Flat{SMs: 1}
		for i := range 1<<16 - 1 {
			f.Counters = append(f.Counters, ir.Counter{Name: "c" + string(rune(i+1<<16)), How: ir.Flagged})
			f.Tasks = append(f.Tasks, ir.Task{Name: "t" + string(rune(i+1<<16)), Signal: i})
		}
		return subject{flat: f}
	}, func(t *testing.T, s subject) {
		device, err := os.ReadFile("../runtime/cuda/amk/context.cuh")
		require.NoError(t, err)
		require.Contains(t, string(device), "kMaxEpoch = 65535;", "the epoch after it is that of an exchange of the same step")
	}},

	{validate.CodeBackend, "backend kernel does not implement MUL", "the kernel has stage bodies for its opcodes alone", golden(func(p *ir.Program) {
		inVariants(p, func(v *ir.Variant) { stageOf(v, "L{i}.o").Ops[1].Code = ir.MUL })
	}), notEmitted},
	{validate.CodeBackend, "a stage body of the kernel has one", "a stage body waits for its own operand alone", golden(func(p *ir.Program) {
		inVariants(p, func(v *ir.Variant) {
			s := stageOf(v, "L{i}.o")
			s.Waits = append(slices.Clone(stageOf(v, "L{i}.qkv").Waits), s.Waits...)
		})
	}), sameKernel},
	{validate.CodeBackend, "the kernel waits for such a counter at a barrier alone", "a barrier's counter is no exchange's, which a stage body waits for", golden(func(p *ir.Program) {
		inVariants(p, func(v *ir.Variant) {
			v.Counters = append(v.Counters, ir.Counter{Name: "idle", How: ir.ByCounter})
			v.Body = slices.Insert(v.Body, 0, ir.Node(&ir.Stage{Name: "idle", Dist: ir.Dist{Kind: ir.Spread, Extent: 40, Grain: 1, SMs: 40}, Ops: []ir.Op{{Code: ir.NOP}}, Signal: "idle"}))
			stageOf(v, "emit").Waits = []ir.Wait{{Counter: "idle", Threshold: 40}}
		})
	}), notEmitted},
	{validate.CodeBackend, "and the kernel counts from 0", "the kernel's counters start at 0", goldenCounter("step", func(c *ir.Counter) { c.Init = 1 }), sameKernel},
	{validate.CodeBackend, "the kernel's are seen by the whole GPU", "the kernel has one scope", goldenCounter("step", func(c *ir.Counter) { c.Scope = ir.ScopeSystem }), sameKernel},
	{validate.CodeBackend, "the kernel realises all exchanges alike", "the kernel has one realisation", goldenCounter("L{i}.h", func(c *ir.Counter) { c.How = ir.ByCounter }), sameKernel},
	{validate.CodeBackend, "realises its exchanges as counter, and variant", "the kernel has one realisation", golden(func(p *ir.Program) {
		v := &p.Variants[len(p.Variants)-1]
		for i := range v.Counters {
			if v.Counters[i].Name != "best" {
				v.Counters[i].How = ir.ByCounter
			}
		}
	}), sameKernel},
	{validate.CodeBackend, "the kernel polls a view for one epoch", "the device has one epoch at a time", forTheKernel(
		stage("one", 0, "x[0] = COPY(in[0])", "signal e")+
			stage("two", 1, "x[1] = COPY(in[1])", "signal f")+
			stage("both", 0, "wait f >= 1", "a[0:2] = COPY(x[0:2])", "signal d")+emit(0), nil),
		func(t *testing.T, s subject) {
			require.True(t, validate.Flat(s.flat).OK, "one half is there by queue order, and the other is polled")
			device, err := os.ReadFile("../runtime/cuda/amk/exchange.cuh")
			require.NoError(t, err)
			require.Contains(t, string(device), "WordOf<E>::fresh(word, c.epoch)", "every word of a vector is polled for it")
		}},
	{validate.CodeModel, "the model's caches are", "the kernel takes the sizes of a cache from the model's facts", golden(func(p *ir.Program) {
		for i := range p.Buffers {
			if b := &p.Buffers[i]; b.Kind == ir.KVCache {
				b.Shape = slices.Clone(b.Shape)
				b.Shape[0]++
			}
		}
	}), sameKernel},
	{validate.CodeModel, "there are 4 caches", "the kernel takes the number of caches from the model's facts", golden(func(p *ir.Program) {
		more := p.Buffers[slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Kind == ir.KVCache })]
		more.Name, more.First, more.Count = "more", 0, 0
		p.Buffers = append(p.Buffers, more)
	}), sameKernel},
	{validate.CodeModel, "holds I8; what the model's kernel streams and exchanges is F16", "the kernel takes the type of weights from the model's facts", golden(func(p *ir.Program) {
		p.Buffers[slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Name == "L{i}.o.weight" })].DType = ir.I8
		inVariants(p, func(v *ir.Variant) {
			op := &stageOf(v, "L{i}.o").Ops[0]
			op.Params = append(op.Params, ir.IntParam("qdtype", ir.Int(int(ir.I8))), ir.IntParam("group", ir.Int(64)))
		})
	}), sameKernel},
	{validate.CodeModel, "ROPE has head_dim 8; by the model's facts it is 16", "the kernel takes the size of a head from the model's facts", golden(func(p *ir.Program) {
		inVariants(p, func(v *ir.Variant) {
			op := &stageOf(v, "L{i}.qkv").Ops[2]
			op.In = cloneViews(op.In)
			op.In[1].Dims[0].Hi = ir.Int(4)
			op.Params = slices.Clone(op.Params)
			op.Params[slices.IndexFunc(op.Params, func(p ir.Param) bool { return p.Key == "head_dim" })].Int = ir.Int(8)
		})
	}), sameKernel},
	{validate.CodeRunAhead, "operand 2 of RMSNORM, ahead of every wait", "the producer runs ahead of the waits", forTheKernel(stage("t", 0, "b[0:4] = COPY(in[0:4])")+
		stage("u", 0, "%n = RMSNORM(in[0:4], b[0:4]) eps=1.0")+emit(0), nil), ahead(oracle.Race)},
	{validate.CodeRunAhead, "the kernel copies rows of kv ahead of every wait", "the producer runs ahead of the waits", forTheKernel(stage("t", 0, "kv[0,pos,0,0:2] = KV_APPEND(in[0:2])", "kv[0,pos,1,0:2] = KV_APPEND(in[0:2])",
		"%t = ATTENTION_TILE(in[0:2], kv[0,0:pos+1,0,0:2], kv[0,0:pos+1,1,0:2]) head_dim=2 n_heads=1 n_kv_heads=1 scale=1.0")+emit(0), nil), ahead(oracle.Race)},
}

// What the oracle cannot show is shown by other means.
func TestRulesNeededElsewhere(t *testing.T) {
	for _, e := range shownElsewhere {
		t.Run(e.code.ID+" "+e.says, func(t *testing.T) {
			require.NotEmpty(t, e.why)
			s := e.make(t)
			rep, crash := s.proveWithout()
			require.Nil(t, crash)
			requireCode(t, rep, e.code, e.says)
			for _, d := range rep.Diags.Errors() {
				require.Equal(t, e.code.ID, d.Code, "no other rule would reject it: %v", d)
			}
			rep, crash = s.proveWithout(e.code)
			require.Nil(t, crash)
			require.NoError(t, rep.Diags.Err(), "without the rule it is accepted")
			e.show(t, s)
		})
	}
}

func TestNoProgramIsRefusedFirst(t *testing.T) {
	requireCode(t, validate.Flat(nil), validate.CodeStructure, "there is no program")
	require.True(t, validate.FlatWithout(validate.Reference, nil, validate.CodeStructure).OK)
	require.Panics(t, func() { refvm.New(nil, ones{}, refvm.Options{}) }, "and nobody can run it")
}
