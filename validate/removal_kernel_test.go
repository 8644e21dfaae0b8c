package validate_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

// Facts of the model that the kernel and the host take for granted.
var ofModel = []elsewhere{
	{kernel.CodeModel, "the model's caches are", "the kernel takes the sizes of a cache from the model's facts",
		golden(func(p *ir.Program) {
			for i := range p.Buffers {
				if b := &p.Buffers[i]; b.Kind == ir.KVCache {
					b.Shape = slices.Clone(b.Shape)
					b.Shape[0]++
				}
			}
		}), sameKernel},
	{kernel.CodeElements, "the model has F16 weights, F16 activations and F32 rows of the cache; give all three the " +
		"type F16", "the kernel has no code for it", golden(func(p *ir.Program) {
		p.Model.Cache = ir.F32
		for i := range p.Buffers {
			if b := &p.Buffers[i]; b.Kind == ir.KVCache {
				b.DType = ir.F32
			}
		}
	}), notEmitted},
	{kernel.CodeRunAhead, "in blocks of 16 rows, which hold rows of other parts too", "the kernel has no code for it",
		golden(func(p *ir.Program) {
			inVariants(p, func(v *ir.Variant) {
				st := stageOf(v, "L{i}.part")
				if st == nil {
					return
				}
				for k := range st.Ops {
					op := &st.Ops[k]
					op.In, op.Out, op.Params = cloneViews(op.In), cloneViews(op.Out), slices.Clone(op.Params)
					for _, o := range slices.Concat(op.In, op.Out) {
						for d := range o.Dims {
							if o.Dims[d].Shared() {
								o.Dims[d].Block = 8
							}
						}
					}
					for i := range op.Params {
						if op.Params[i].Key == "block" {
							op.Params[i].Int = ir.Int(8)
						}
					}
				}
			})
		}), notEmitted},
	{kernel.CodeModel, "there are 4 caches", "the kernel takes the number of caches from the model's facts",
		golden(func(p *ir.Program) {
			more := p.Buffers[slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Kind == ir.KVCache })]
			more.Name, more.First, more.Count = "more", 0, 0
			p.Buffers = append(p.Buffers, more)
		}), sameKernel},
	{kernel.CodeModel, "holds BF16; the type of the model's weights is F16",
		"the kernel takes the type of weights from the model's facts", golden(func(p *ir.Program) {
			p.Buffers[slices.IndexFunc(p.Buffers,
				func(b ir.Buffer) bool { return b.Name == "L{i}.o.weight" })].DType = ir.BF16
		}), sameKernel},
	{kernel.CodeModel, "ROPE has head_dim 8; by the model's facts it is 16",
		"the kernel takes the size of a head from the model's facts", golden(func(p *ir.Program) {
			inVariants(p, func(v *ir.Variant) {
				op := &stageOf(v, "L{i}.qkv").Ops[2]
				op.In = cloneViews(op.In)
				op.In[1].Dims[0].Hi = ir.Int(4)
				op.Params = slices.Clone(op.Params)
				op.Params[slices.IndexFunc(op.Params,
					func(p ir.Param) bool { return p.Key == "head_dim" })].Int = ir.Int(8)
			})
		}), notEmitted},
	fact("ATTENTION_TILE has 2 query heads for a kv head; the model has 8 query heads",
		"the kernel takes the heads from the model's facts", func(m *ir.Model) { m.Heads = 8 }, notEmitted),
	fact("the model has 5 query heads and 2 kv heads; kv heads have as many",
		"the kernel gives each kv head as many query heads", func(m *ir.Model) { m.Heads = 5 }, notEmitted),
	fact("reads a cache of shape", "the kernel takes the heads of a layer from the model's facts", func(m *ir.Model) {
		second := *m.Of(1)
		second.Heads, second.KVHeads = second.Heads/2, second.KVHeads/2
		m.SetFacts([]ir.LayerFacts{*m.Of(0), second, *m.Of(2)})
	}, notEmitted),
	fact("the model has 8 experts in a layer, and the program no router",
		"what is said of a build, such as its bytes for a token, comes from the model's facts",
		func(m *ir.Model) { m.Experts, m.PerToken = 8, 2 }, sameKernel),
	fact("the model has facts of 0 kinds of layers, and says the kinds of 1",
		"nothing else says of which kind a layer is",
		func(m *ir.Model) { m.LayerKinds = []int{0} }, sameKernel),
	fact("the longest result of SILU_MUL has 176 elements",
		"the reference kernels take the size of the MLP from the model's facts",
		func(m *ir.Model) { m.Intermediate = 200 }, sameKernel),
	fact("for the embedding table, and it has shape", "the kernel takes the number of rows from the model's facts",
		func(m *ir.Model) { m.Vocab++ }, notEmitted),
	fact("the host makes room for as many logits", "the host takes the number of logits from the model's facts",
		func(m *ir.Model) { m.Vocab-- }, notEmitted),
	fact("the model says tied=", "the packing of weights and the count of bytes take it from the model's facts",
		func(m *ir.Model) { m.Tied = !m.Tied }, sameKernel),
}

// fact contradicts the model's facts in a program that amkc emits a kernel for, and in nothing else.
func fact(says, why string, change func(m *ir.Model), show func(t *testing.T, s subject)) elsewhere {
	return elsewhere{kernel.CodeModel, says, why, golden(func(p *ir.Program) { change(&p.Model) }), show}
}

// What the kernel does in one way whatever is declared.
var ofRealisations = []elsewhere{
	{validate.CodeBackend, "counter best: error: is declared counter, and the kernel always realises it as flagged",
		"the kernel has one realisation", goldenCounter("best", func(c *ir.Counter) { c.How = ir.ByCounter }),
		sameKernel},
	{validate.CodeBackend, "is a cache in layout rowmajor; the kernel has all of them in",
		"the kernel has one layout of caches", golden(func(p *ir.Program) {
			bufferOf(p, "L{i}.kv").Layout.Kind = ir.RowMajor
		}), sameKernel},
	{validate.CodeBackend, "input 2 of GEMV_TILE is lm_head.weight, which is F16 rowmajor; the kernel has it " +
		"as F16 tile8x32", "the kernel reads tiles", golden(func(p *ir.Program) {
		bufferOf(p, "lm_head.weight").Layout.Kind = ir.RowMajor
	}), sameKernel},
}

func bufferOf(p *ir.Program, name string) *ir.Buffer {
	return &p.Buffers[slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Name == name })]
}

// What has one realisation is refused in the other, whatever it is called.
func TestFixedRealisations(t *testing.T) {
	for name, c := range map[string]struct {
		edits []string
		says  string // empty: accepted
	}{
		"best by another name": {[]string{"counter best flagged", "counter top flagged", "signal best",
			"signal top", "wait best", "wait top"}, ""},
		"best by another name, counted": {[]string{"counter best flagged", "counter top counter", "signal best",
			"signal top", "wait best", "wait top"},
			"counter top: error: is declared counter, and the kernel always realises it as flagged"},
		"best as the others are": {[]string{"counter best flagged", "counter best counter"},
			"counter best: error: is declared counter"},
		"a vector by the name of best": {[]string{"counter L{i}.h for 0..1 flagged",
			"counter L{i}.h for 0..1 counter"}, "the kernel realises all exchanges alike"},
		"a flagged end of a step": {[]string{"counter step counter", "counter step flagged"},
			"counter step: error: is declared flagged, and the kernel always realises it as counter"},
		"a flagged barrier": {barrierOf("flagged"),
			"counter bar: error: is declared flagged, and the kernel always realises it as counter"},
		"a barrier alongside flagged words": {barrierOf("counter"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			rep := validate.ProgramFor(kernel.Backend, program(t, toy, c.edits...))
			if c.says == "" {
				require.NoError(t, rep.Diags.Err())
				return
			}
			require.False(t, rep.OK)
			requireCode(t, rep, validate.CodeBackend, c.says)
		})
	}
}

// barrierOf puts a barrier of all SMs in front of the head.
func barrierOf(how string) []string {
	return []string{"counter step counter gpu", "counter bar " + how + " gpu\ncounter step counter gpu",
		"stage lm_head", "stage arrive spread extent=4 grain=1 sms=4 rot=0 step=0\n  NOP()\n  signal bar\nstage " +
			"join spread extent=4 grain=1 sms=4 rot=0 step=0\n  wait bar >= 4\n  NOP()\n  signal step\nstage lm_head"}
}
