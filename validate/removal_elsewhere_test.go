package validate_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/refvm"
	"amkc/simulate"
	"amkc/validate"
	"amkc/validate/kernel"
)

// An elsewhere is a rule of which the oracle cannot show that it is needed, because what goes wrong is a value and
// not an access, or happens in a machine that it does not model. Something else shows it.
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

// golden is a program that amkc emits a kernel for, before and after an edit.
func golden(edit func(p *ir.Program)) func(t *testing.T) subject {
	return goldenOf("llama-gqa_t4_fp16_split", edit)
}

func goldenOf(build string, edit func(p *ir.Program)) func(t *testing.T) subject {
	return func(t *testing.T) subject {
		p := programOf(t, build)
		require.True(t, validate.ProgramFor(kernel.Backend, p).OK)
		edit(p)
		return subject{prog: p, backend: kernel.Backend}
	}
}

func goldenProgram(t *testing.T) *ir.Program { return programOf(t, "llama-gqa_t4_fp16_split") }

func programOf(t *testing.T, build string) *ir.Program {
	path := "../testdata/golden/" + build + "/program.json"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	p, diags := ir.ParseJSON(text, path)
	require.Empty(t, diags)
	return p
}

// sameKernel: the program says something else, and the kernel that is emitted for it does not.
func sameKernel(t *testing.T, s subject) { sameAs(t, s, goldenProgram(t)) }

// sameAsOf is sameKernel for a program of another build.
func sameAsOf(build string) func(t *testing.T, s subject) {
	return func(t *testing.T, s subject) { sameAs(t, s, programOf(t, build)) }
}

func sameAs(t *testing.T, s subject, p *ir.Program) {
	want, err := codegen.CUDA(p)
	require.NoError(t, err)
	have, err := codegen.CUDA(s.prog)
	require.NoError(t, err)
	for _, file := range []string{"megakernel.cu", "schedule.h"} {
		require.NotEmpty(t, want[file])
		require.Equal(t, comments.ReplaceAllString(string(want[file]), ""),
			comments.ReplaceAllString(string(have[file]), ""), file)
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
		return subject{flat: f, backend: kernel.Backend}
	}
}

// requireAssertion: the kernel does not compile without what a rule asks for.
func requireAssertion(t *testing.T, header, condition string) {
	device, err := os.ReadFile("../runtime/cuda/amk/" + header)
	require.NoError(t, err)
	require.Regexp(t, `static_assert\([^"]*`+regexp.QuoteMeta(condition), string(device))
}

// ahead: where what the kernel reads ahead of every wait is read so, the oracle finds fault with it.
func ahead(kind simulate.Kind) func(t *testing.T, s subject) {
	return func(t *testing.T, s subject) {
		require.False(t, s.judge().Unsafe(), "in order it is safe")
		v := subject{flat: simulate.Ahead(s.flat)}.judge()
		require.True(t, v.Unsafe())
		require.Equal(t, kind, v.Hazard.Kind, v.Hazard)
	}
}

// oneEpoch: the reference VM may read words that are there by queue order, and the kernel polls for them.
func oneEpoch(t *testing.T, s subject) {
	require.True(t, validate.Flat(s.flat).OK, "one half is there by queue order, and the other is polled")
	device, err := os.ReadFile("../runtime/cuda/amk/exchange.cuh")
	require.NoError(t, err)
	require.Contains(t, string(device), "WordOf<E>::fresh(word, c.epoch)", "every word of a vector is polled for it")
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

var shownElsewhere = slices.Concat(ofValues, ofModel, ofRealisations, ofExperts, ofStates, ofRanks)

var ofValues = []elsewhere{
	{validate.CodeNext, "publishes no token", "the caller uses what a step computes", func(t *testing.T) subject {
		return subject{backend: validate.Reference, prog: parse(t,
			strings.ReplaceAll(small, "buffer next", "buffer other")+
				stage("emit", 0, "other[0] = COPY(token[0])", "signal step"))}
	}, func(t *testing.T, s subject) {
		vm, err := refvm.New(flat(t, s.prog, 0), ones{}, refvm.Options{})
		require.NoError(t, err)
		require.NoError(t, vm.Step(0, 7, refvm.Order{}))
		require.Equal(t, -1, vm.Next(), "no step can follow")
	}},
	{validate.CodeEpochs, "epochs tell fewer than 65535 exchanges apart",
		"the oracle's words carry who wrote them; the device's carry 16 bits", func(t *testing.T) subject {
			f := &ir.Flat{SMs: 1}
			for i := range 1<<16 - 1 {
				f.Counters = append(f.Counters, ir.Counter{Name: "c" + string(rune(i+1<<16)), How: ir.Flagged})
				f.Tasks = append(f.Tasks, ir.Task{Name: "t" + string(rune(i+1<<16)), Signal: i})
			}
			return subject{flat: f, backend: validate.Reference}
		}, func(t *testing.T, s subject) {
			device, err := os.ReadFile("../runtime/cuda/amk/context.cuh")
			require.NoError(t, err)
			require.Contains(t, string(device), "kMaxEpoch = 65535;",
				"the epoch after it is that of an exchange of the same step")
		}},

	{validate.CodeBackend, "backend kernel does not implement SAMPLE_ARGMAX",
		"the kernel has stage bodies for its opcodes alone",
		golden(func(p *ir.Program) {
			inVariants(p, func(v *ir.Variant) {
				ops := stageOf(v, "lm_head").Ops
				asArgMax(&ops[len(ops)-1])
			})
		}), notEmitted},
	{validate.CodeSequence, "has row=pos[1], and looks at rows of sequence 0",
		"the row that is appended would count in another share than it falls into, which is a value",
		func(t *testing.T) subject {
			f := flat(t, parse(t, small+stage("t", 0, "a[0:2] = ATTENTION_TILE(v[0:2], "+
				"kv[0,0:pos block 1 part 0 of 2,0,0:2], kv[0,0:pos block 1 part 0 of 2,1,0:2], v[2:4], v[4:6]) "+
				"head_dim=2 n_heads=1 n_kv_heads=1 scale=1.0 row=pos block=1 part=0 parts=2")+
				stage("emit", 0, "next[0:2] = COPY(token[0:2])", "signal step")), 0)
			ofPass(2, 1)(mutant{f, t})
			setParam("row", ir.IntParam("row", ir.PosOf(ir.Int(1))))(mutant{f, t})
			return subject{flat: f, backend: validate.Reference}
		}, func(t *testing.T, s subject) {
			seen := map[int]float32{} // by the position of the other sequence
			for other := range 2 {
				vm, err := refvm.New(s.flat, ones{}, refvm.Options{Workers: 1})
				require.NoError(t, err)
				require.NoError(t, vm.Pass([]int{0, other}, []int{0, 0}, refvm.Order{}))
				a, err := vm.Read("a")
				require.NoError(t, err)
				seen[other] = a[0]
			}
			require.NotEqual(t, seen[0], seen[1], "what sequence 0 sees depends on where sequence 1 is")
		}},
	{kernel.CodeTokens, "the kernel takes at most 8 tokens", "a warp chooses the token after one",
		forTheKernel(passOf(10), ofPass(2, 5)), func(t *testing.T, _ subject) {
			requireAssertion(t, "ending.cuh", "kTokens <= kConsumerWarps")
		}},
	{validate.CodeBackend, "it knows no bias, scales or zeros", "the kernel has no body that adds a bias",
		golden(func(p *ir.Program) {
			bias := ir.Buffer{Name: "bias", Kind: ir.Weight, DType: ir.F16, Shape: []int{64}}
			p.Buffers = append(p.Buffers, bias)
			inVariants(p, func(v *ir.Variant) {
				op := &stageOf(v, "L{i}.o").Ops[0]
				op.In = append(slices.Clone(op.In), ir.Operand{Buf: "bias",
					Dims: []ir.Range{ir.Span(ir.Symbol(ir.SpanA), ir.Symbol(ir.SpanB))}})
			})
		}), notEmitted},
	{validate.CodeBackend, "a stage body of the kernel has one", "a stage body waits for its own operand alone",
		golden(func(p *ir.Program) {
			inVariants(p, func(v *ir.Variant) {
				s := stageOf(v, "L{i}.o")
				s.Waits = append(slices.Clone(stageOf(v, "L{i}.qkv").Waits), s.Waits...)
			})
		}), notEmitted},
	{validate.CodeBackend, "the kernel waits for such a counter at a barrier alone",
		"a barrier's counter is not an exchange's, which a stage body waits for", golden(func(p *ir.Program) {
			inVariants(p, func(v *ir.Variant) {
				v.Counters = append(v.Counters, ir.Counter{Name: "idle", How: ir.ByCounter})
				v.Body = slices.Insert(v.Body, 0, ir.Node(&ir.Stage{Name: "idle",
					Dist: ir.Dist{Kind: ir.Spread, Extent: 40, Grain: 1, SMs: 40}, Ops: []ir.Op{{Code: ir.NOP}},
					Signal: "idle"}))
				stageOf(v, "emit").Waits = []ir.Wait{{Counter: "idle", Threshold: 40}}
			})
		}), notEmitted},
	{validate.CodeBackend, "and the kernel counts from 0", "the kernel's counters start at 0",
		goldenCounter("step", func(c *ir.Counter) { c.Init = 1 }), sameKernel},
	{validate.CodeBackend, "the kernel's is seen by the whole GPU", "the kernel has one scope",
		goldenCounter("step", func(c *ir.Counter) { c.Scope = ir.ScopeSystem }), sameKernel},
	{validate.CodeBackend, "the kernel realises all exchanges alike", "the kernel has one realisation",
		goldenCounter("L{i}.h", func(c *ir.Counter) { c.How = ir.ByCounter }), sameKernel},
	{validate.CodeBackend, "realises its exchanges as counter, and variant", "the kernel has one realisation",
		golden(func(p *ir.Program) {
			v := &p.Variants[len(p.Variants)-1]
			for i := range v.Counters {
				if v.Counters[i].Name != "best" {
					v.Counters[i].How = ir.ByCounter
				}
			}
		}), sameKernel},
	{validate.CodeBackend, "the kernel polls words for the exchange that their reader waits for",
		"the device has one epoch at a time", forTheKernel(
			stage("one", 0, "x[0] = COPY(in[0])", "signal e")+
				stage("two", 1, "x[1] = COPY(in[1])", "signal f")+
				stage("both", 0, "wait f >= 1", "a[0:2] = COPY(x[0:2])", "signal d")+emit(0), nil), oneEpoch},
	{kernel.CodeRunAhead, "operand 2 of RMSNORM, ahead of every wait", "the producer runs ahead of the waits",
		forTheKernel(stage("t", 0, "b[0:4] = COPY(in[0:4])")+
			stage("u", 0, "%n = RMSNORM(in[0:4], b[0:4]) eps=1.0")+emit(0), nil), ahead(simulate.Race)},
	{kernel.CodeRunAhead, "the kernel copies kv[0,0:pos+1,0,0:2], operand 2 of ATTENTION_TILE, ahead of every wait",
		"the producer runs ahead of the waits",
		forTheKernel(stage("t", 0, "kv[0,pos,0,0:2] = KV_APPEND(in[0:2])", "kv[0,pos,1,0:2] = KV_APPEND(in[0:2])",
			"%t = ATTENTION_TILE(in[0:2], kv[0,0:pos+1,0,0:2], kv[0,0:pos+1,1,0:2]) head_dim=2 n_heads=1 "+
				"n_kv_heads=1 scale=1.0")+emit(0), nil), ahead(simulate.Undefined)},
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
