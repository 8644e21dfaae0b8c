package codegen

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
	"amkc/runtime/host"
)

// stages calls change for every stage of the program, and lets it say that it has done.
func stages(p *ir.Program, change func(s *ir.Stage) bool) {
	for i := range p.Variants {
		for _, n := range p.Variants[i].Body {
			list := []*ir.Stage{}
			switch n := n.(type) {
			case *ir.Stage:
				list = append(list, n)
			case *ir.Loop:
				list = n.Body
			}
			for _, s := range list {
				if change(s) {
					return
				}
			}
		}
	}
}

func named(p *ir.Program, name string) *ir.Stage {
	var found *ir.Stage
	stages(p, func(s *ir.Stage) bool {
		if s.Name == name {
			found = s
		}
		return found != nil
	})
	return found
}

func bufferNamed(p *ir.Program, name string) *ir.Buffer {
	return &p.Buffers[slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Name == name })]
}

// inParts gives the product of a stage a number of parts.
func inParts(p *ir.Program, stage string, parts int) {
	for k := range named(p, stage).Ops {
		if op := &named(p, stage).Ops[k]; op.Code == ir.GEMV || op.Code == ir.GEMM {
			op.Params = append(op.Params, ir.IntParam("parts", ir.Int(parts)))
		}
	}
}

func setKnob(p *ir.Program, group, name string, value int) { p.Config.Tiling[group][name] = value }

func TestRefusals(t *testing.T) {
	const pycoder, split = "pycoder-5m_h200_bf16", "llama-gqa_t4_fp16_split"
	const experts = "mixtral-window_h200_bf16"
	for name, c := range map[string]struct {
		program, code, want string
		edit                func(p *ir.Program)
	}{
		"ops without a body": {pycoder, "AMK4001", "no stage body runs the ops RMSNORM GEMV_TILE", func(p *ir.Program) {
			s := named(p, "L{i}.gate_up")
			s.Ops = s.Ops[:2]
		}},
		"parts of no blocks": {pycoder, "AMK4005", "stage L{i}.down: error: adds up 8 parts of 88 columns; want " +
			"parts of whole blocks of 32 columns", func(p *ir.Program) { inParts(p, "L{i}.down", 8) }},
		"parts of a few warps": {pycoder, "AMK4005", "stage L{i}.o: error: adds up 2 parts of its columns, 4 warps " +
			"each; want tiling.warps.o of 8", func(p *ir.Program) {
			inParts(p, "L{i}.o", 2)
			setKnob(p, "warps", "o", 4)
		}},
		"parts of a norm": {pycoder, "AMK4001", "adds up 2 parts of the columns of a norm",
			func(p *ir.Program) { inParts(p, "L{i}.gate_up", 2) }},
		"more parts than a flush has tiles": {pycoder, "AMK4001", "kParts of the kernel's gemv cannot be what it " +
			"says; want 1, 2, 4 or 8", func(p *ir.Program) {
			inParts(p, "L{i}.o", 16)
			named(p, "L{i}.o").Ops[0].In[0].Dims[0] = ir.Span(ir.Int(0), ir.Int(512))
			named(p, "L{i}.o").Ops[0].In[1].Dims[1] = ir.Span(ir.Int(0), ir.Int(512))
		}},
		"a matrix in two formats": {pycoder, "AMK4001", "stage L{i}.down: error: streams L01.down.weight as BF16 " +
			"tile8x32, and as I4 tile8x128.g64.BF16 in iteration 1; want one format, and iterations of several kinds",
			func(p *ir.Program) {
				k := slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Name == "L{i}.down.weight" })
				other := p.Buffers[k]
				p.Buffers[k].Count, other.First, other.Count = 1, 1, other.Count-1
				other.DType, other.Layout = ir.I4, ir.Storage{DType: ir.I4,
					Scales: ir.Scales{Group: 64, DType: ir.BF16}}.Layout()
				p.Buffers = slices.Insert(p.Buffers, k+1, other)
			}},
		"norm of v": {pycoder, "AMK4001", "no stage body runs the ops RMSNORM ATTENTION_TILE KV_APPEND KV_APPEND; " +
			"there is one for ATTENTION_TILE KV_APPEND KV_APPEND; " +
			"LAYERNORM LAYERNORM ATTENTION_TILE KV_APPEND KV_APPEND; " +
			"LAYERNORM LAYERNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND; " +
			"RMSNORM RMSNORM ATTENTION_TILE KV_APPEND KV_APPEND; " +
			"RMSNORM RMSNORM RMSNORM ATTENTION_TILE KV_APPEND KV_APPEND; " +
			"RMSNORM RMSNORM RMSNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND; " +
			"RMSNORM RMSNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND [AMK4001]",
			func(p *ir.Program) {
				s := named(p, "L{i}.attn")
				s.Ops = append([]ir.Op{{Code: ir.RMSNORM}}, s.Ops...)
			}},
		"ops that no body has": {pycoder, "AMK4001", "there is one for " + codesBefore("RMSNORM,"),
			func(p *ir.Program) { named(p, "L{i}.attn").Ops = []ir.Op{{Code: ir.ArgMax}} }},
		"explicit tasks": {pycoder, "AMK4002", "want spread over 132",
			func(p *ir.Program) { named(p, "L{i}.o").Dist.Kind = ir.Explicit }},
		"fewer SMs": {pycoder, "AMK4002", "over 131 SMs",
			func(p *ir.Program) { named(p, "L{i}.o").Dist.SMs = 131 }},
		"half a tile": {pycoder, "AMK4002", "grain 12", func(p *ir.Program) { named(p, "L{i}.o").Dist.Grain = 12 }},
		"no target":   {pycoder, "AMK4003", "no target", func(p *ir.Program) { p.Target = nil }},
		"no variants": {pycoder, "AMK4003", "no variants", func(p *ir.Program) { p.Variants = nil }},
		"another dtype": {pycoder, "AMK4003", "want BF16, F16 or F32", func(p *ir.Program) {
			p.Model.DTypes = ir.Uniform(ir.I32)
		}},
		"another cache": {pycoder, "AMK4003", "F32 rows of the cache, want BF16, F16 or F32, the same for weights",
			func(p *ir.Program) { p.Model.Cache = ir.F32 }},
		"several tokens": {pycoder, "AMK4003", "its pass of 8 tokens does not treat all of them alike",
			func(p *ir.Program) { p.Pass = ir.PassOf(2, 4) }},
		"outlines differ": {pycoder, "AMK4003", "want the same outline", func(p *ir.Program) {
			p.Variants[1].Body = p.Variants[1].Body[1:]
		}},
		"loops differ": {pycoder, "AMK4003", "differs in range", func(p *ir.Program) {
			for _, n := range p.Variants[1].Body {
				if l, ok := n.(*ir.Loop); ok {
					l.Count--
				}
			}
		}},
		"one descriptor for two stages": {pycoder, "AMK4003", "the same descriptor", func(p *ir.Program) {
			for i := range p.Variants {
				for _, n := range p.Variants[i].Body {
					if l, ok := n.(*ir.Loop); ok {
						k := slices.IndexFunc(l.Body, func(s *ir.Stage) bool { return s.Name == "L{i}.gate_up" })
						turned := *l.Body[k]
						turned.Dist.Rot++
						l.Body = slices.Insert(slices.Clone(l.Body), k+1, &turned)
					}
				}
			}
		}},
		"a counter of two stages": {pycoder, "AMK4003", "stage embed: error: signals L00.x, and so does stage first",
			func(p *ir.Program) {
				for i := range p.Variants {
					first := *named(p, "embed")
					first.Name, first.Role = "first", "first"
					p.Variants[i].Body = slices.Insert(slices.Clone(p.Variants[i].Body), 0, ir.Node(&first))
				}
			}},
		"partial results of a whole unit": {pycoder, "AMK4001", "has flags=2 and parts=1", func(p *ir.Program) {
			a := op(named(p, "L{i}.attn"), ir.ATTENTION)
			a.Params = append(slices.Clone(a.Params), ir.IntParam("flags", ir.Int(2)))
		}},
		"nothing ends the step": {pycoder, "AMK4003", "ends the step as the kernel's sample", func(p *ir.Program) {
			for i := range p.Variants {
				p.Variants[i].Body = slices.DeleteFunc(slices.Clone(p.Variants[i].Body), func(n ir.Node) bool {
					s, ok := n.(*ir.Stage)
					return ok && slices.Contains([]string{"sample", "stop", "emit", "join"}, s.Name)
				})
			}
		}},
		"no rotary angles": {pycoder, "AMK4003", "no stage rotates by a CONST buffer", func(p *ir.Program) {
			p.Buffers = slices.DeleteFunc(p.Buffers, func(b ir.Buffer) bool { return b.Name == "rope.inv_freq" })
		}},
		"page on chip": {pycoder, "AMK4003", "page xchg0: error: lies in SMEM; want GLOBAL_SCRATCH",
			func(p *ir.Program) { p.Pages[0].Space = ir.SMEM }},
		"vector on no page": {pycoder, "AMK4003", "is on no page", func(p *ir.Program) {
			for i := range p.Buffers {
				p.Buffers[i].Pages = nil
			}
		}},
		"long lines": {pycoder, "AMK4004", "want at most 100",
			func(p *ir.Program) { p.Variants[0].Name = strings.Repeat("x", 100) }},
		"quads of a warp": {pycoder, "AMK4005", "tiling.warps.down", func(p *ir.Program) {
			setKnob(p, "warps", "down", 1)
			last := &op(named(p, "L{i}.down"), ir.GEMV).In[1].Dims[1]
			last.Hi = ir.Int(33 * 128)
		}},
		// 66 quads are 9 rounds of 8 warps, but a chunk holds 2 of them, so that they take 33.
		"quads in small chunks": {pycoder, "AMK4005", "in chunks of 4096 bytes", func(p *ir.Program) {
			setKnob(p, "ring", "chunk_bytes", 4096)
			op(named(p, "L{i}.down"), ir.GEMV).In[1].Dims[1].Hi = ir.Int(66 * 128)
		}},
		// A group of one warp skips the chunks of seven others, and looks at a slot whose chunk before is not there
		// yet.
		"tiles beyond the ring": {pycoder, "AMK4005", "tiling.warps.down larger", func(p *ir.Program) {
			setKnob(p, "warps", "down", 1)
			op(named(p, "L{i}.down"), ir.GEMV).In[1].Dims[1].Hi = ir.Int(32 * 128)
		}},
		"chunk of the cache": {pycoder, "AMK4005", "cache rows take",
			func(p *ir.Program) { p.Model.HeadDim = 256; setKnob(p, "ring", "chunk_bytes", 4096) }},
		"heads of a group": {pycoder, "AMK4005", "at most 128",
			func(p *ir.Program) { p.Model.Heads = 129 * p.Model.KVHeads }},
		"odd heads": {pycoder, "AMK4005", "multiple of 4", func(p *ir.Program) { p.Model.HeadDim = 62 }},
		"wide heads": {pycoder, "AMK4005", "at most 256", func(p *ir.Program) {
			p.Model.HeadDim = 272
			setKnob(p, "ring", "chunk_bytes", 65536)
		}},
		"no chunk": {pycoder, "AMK2002", "tiling.ring.chunk_bytes: error: 0; want a multiple",
			func(p *ir.Program) { setKnob(p, "ring", "chunk_bytes", 0) }},
		"chunk of no unit": {pycoder, "AMK2002", "want a multiple of 256",
			func(p *ir.Program) { setKnob(p, "ring", "chunk_bytes", 5000) }},
		"less than nothing in flight": {pycoder, "AMK2002", "pipelining_depth: error: -1; want 1 to 16",
			func(p *ir.Program) { p.Config.PipeliningDepth = -1 }},
		"negative run-ahead": {pycoder, "AMK2002", "run_ahead: error: -1",
			func(p *ir.Program) { setKnob(p, "ring", "run_ahead", -1) }},
		"negative pace": {pycoder, "AMK2002", "pace: error: -1",
			func(p *ir.Program) { setKnob(p, "ring", "pace", -1) }},
		"pace of no word": {pycoder, "AMK2002", "want 0 to 65536",
			func(p *ir.Program) { setKnob(p, "ring", "pace", 1<<32+700) }},
		"three warps": {pycoder, "AMK2002", "tiling.warps.down: error: 3; want 1, 2, 4 or 8",
			func(p *ir.Program) { setKnob(p, "warps", "down", 3) }},
		"no such knob": {pycoder, "AMK2001", "did you mean ring.pace?",
			func(p *ir.Program) { setKnob(p, "ring", "pase", 700) }},
		"stock beyond the ring": {pycoder, "AMK4005", "less than the ring's 12 slots",
			func(p *ir.Program) { setKnob(p, "ring", "stock", 12) }},
		"stock of nothing": {pycoder, "AMK2002", "0; want 1 to 16",
			func(p *ir.Program) { setKnob(p, "ring", "in_flight_stocked", 0) }},
		"negative stock": {pycoder, "AMK2002", "-1; want 0 to 64",
			func(p *ir.Program) { setKnob(p, "ring", "stock", -1) }},
		"stock as large as all in flight": {pycoder, "AMK4005", "less than the 3 chunks in flight",
			func(p *ir.Program) {
				setKnob(p, "ring", "stock", 6)
				setKnob(p, "ring", "in_flight_stocked", 3)
			}},
		"stock beyond a small ring": {pycoder, "AMK4005", "less than the 12 chunks in flight", func(p *ir.Program) {
			p.Config.PipeliningDepth = 16
			setKnob(p, "ring", "stock", 6)
			setKnob(p, "ring", "in_flight_stocked", 12)
		}},
		"stock without bulk copies": {split, "AMK4005", "which alone are counted",
			func(p *ir.Program) { setKnob(p, "ring", "stock", 1) }},
		"two routers in an iteration": {experts, "AMK4003", "chooses in iteration 0, of 3 layers, after a router of " +
			"iteration 0; want one router in an iteration", func(p *ir.Program) {
			loop := loopOf(p, 0)
			route := slices.IndexFunc(loop.Body, func(s *ir.Stage) bool { return s.Name == "L{i}.route" })
			again := *loop.Body[route]
			again.Name, again.Role = "L{i}.again", "again"
			loop.Body = slices.Insert(loop.Body, route+1, &again)
		}},
		"a choice of the iteration before": {experts, "AMK4003", "takes in iteration 1 what a router has chosen in " +
			"iteration 0; want the same", func(p *ir.Program) {
			loopOf(p, 0).Kinds = []int{1, 2, 1}
			named(p, "L{i}.route").Kind = 1
		}},
		"more routers than layers": {experts, "AMK4003", "chooses in iteration 2, of 2 layers, after a router of " +
			"iteration 1", func(p *ir.Program) { p.Model.Layers = 2 }},
		"a choice of another layer": {experts, "AMK4003", "takes L01.route.ids, and the router before it has left " +
			"L00.route.ids; want that, for an SM keeps the last choice alone", func(p *ir.Program) {
			for _, op := range named(p, "L{i}.experts_up").Ops {
				if op.Code == ir.SELECTED {
					op.In[2].Buf = "L{i+1}.route.ids"
				}
			}
		}},
		"a choice that all SMs share": {experts, "AMK4003", "has L{i}.route.ids for what a router chooses; want one " +
			"row of I32 in SMEM for each SM", func(p *ir.Program) { bufferNamed(p, "L{i}.route.ids").Space = ir.HBM }},
		"a small block": {split, "AMK4005", "and 3120 for the rest; want a larger smem_bytes_per_block",
			func(p *ir.Program) { p.Config.SMemBytesPerBlock = 12000 }},
		"no room for large chunks": {split, "AMK4005",
			"32768 for a ring of 2 chunks, and 3120 for the rest; want tiling.ring.chunk_bytes of 4096",
			func(p *ir.Program) { p.Config.SMemBytesPerBlock = 20000 }},
	} {
		t.Run(name, func(t *testing.T) {
			p := goldenPrograms(t)[c.program]
			requireRefused(t, p, c.edit, c.code, c.want)
		})
	}
}

// A program whose attention publishes on the page of its queries has no kernel for prompts.
func TestNoPromptsInPlace(t *testing.T) {
	p := goldenPrograms(t)["pycoder-5m_h200_bf16"]
	facts, err := Facts(p)
	require.NoError(t, err)
	require.Positive(t, facts.Prompt)
	attn, qkv := bufferNamed(p, "L{i}.attn"), bufferNamed(p, "L{i}.qkv")
	attn.Pages, attn.Layout = qkv.Pages, qkv.Layout
	facts, err = Facts(p)
	require.NoError(t, err)
	require.Zero(t, facts.Prompt)
}

// Nor has one whose loop counts from 1, for layers from 0: a pass would take the last layer but one for the last.
func TestNoPromptsByOtherIndices(t *testing.T) {
	p := goldenPrograms(t)["pycoder-5m_h200_bf16"]
	names := strings.NewReplacer("{i}", "{i-1}", "{i+1}", "{i}")
	for v := range p.Variants {
		l := loopOf(p, v)
		l.First++
		for k, s := range l.Body {
			s = stageOfBody(s, names.Replace)
			s.Layer.N--
			if s.Dist.Step > 0 {
				s.Dist.Rot = (s.Dist.Rot + s.Dist.SMs - s.Dist.Step) % s.Dist.SMs
			}
			l.Body[k] = s
		}
	}
	require.Empty(t, ir.Check(p))
	facts, err := Facts(p)
	require.NoError(t, err)
	require.Zero(t, facts.Prompt)
}

func TestNamesOfBuilds(t *testing.T) {
	p, g := goldenPrograms(t)["pycoder-5m_h200_bf16"], goldenGraphs(t)["pycoder-5m_h200_bf16"]
	for _, name := range []string{"", ".", "..", "a b", "a/b", "a\nb", "-o", "$(x)", "launcher", "amk", "all",
		"program.json", "x.cu", "x.o", "X.GCH", "x.go", "LICENSE", "License", "third_party_notices",
		"json.py", "x.PY", "x.pyd", "x.pth", "x.abi3.so", "x.1.so", "x.whl", "x.", "x..1", "x.-1", "python",
		"Makefile.1",
		"Makefile.sh", "schedule.h.gch", "pages.h.x.y", "megakernel.cu.sh", strings.Repeat("x", 129)} {
		_, err := Project(p, g, name)
		var d *diag.Diagnostic
		require.ErrorAs(t, err, &d, name)
		require.Equal(t, "AMK4006", d.Code, name)
	}
	for _, name := range []string{"pycoder", "Llama-3.2-1B", "Qwen_2+x", "qwen2.5-7b.4", "v0.1",
		"0123456789abcdef0123456789abcdef01234567",
		strings.Repeat("x", 128)} {
		p.Model.Name = name
		files, err := Project(p, g, name)
		require.NoError(t, err)
		require.Contains(t, string(files["Makefile"]), name+": launcher/main.go")
	}
}

func TestCppNames(t *testing.T) {
	for name, want := range map[string]string{"gate_up": "GateUp", "best.value": "BestValue", "lm-head": "LmHead",
		"x": "X", "": ""} {
		require.Equal(t, want, camel(name))
	}
	require.Equal(t, "kQkvWeight", constName("L{i}.qkv.weight"))
	require.Equal(t, "kX", constName("L{i+1}.x"))
	require.Equal(t, "kEmbedWeight", constName("embed.weight"))
	in, next := ir.Layer{Known: true, Index: true}, ir.Layer{Known: true, Index: true, N: 1}
	loop := site{loop: &ir.Loop{Name: "layers", Count: 4}}
	for _, c := range []struct {
		stage ir.Stage
		at    site
		want  string
	}{
		{ir.Stage{Name: "a", Role: "gate_up", Layer: in}, loop, "GateUp"},
		{ir.Stage{Name: "a", Role: "gate_up", Layer: next, Kind: 2}, loop, "GateUpPlus1Kind2"},
		{ir.Stage{Name: "a", Role: "o", Layer: ir.Layer{Known: true, N: 3}}, site{}, "L03O"},
		{ir.Stage{Name: "L03.o", Layer: ir.Layer{Known: true, N: 3}}, site{}, "L03O"},
		{ir.Stage{Name: "a{i}.b"}, site{loop: loop.loop, number: 1}, "AIBLoop2"},
	} {
		require.Equal(t, c.want, structName(&c.stage, c.at, ""), c.stage.Name)
	}
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{"short"}, wrap("short", 20))
	require.Equal(t, []string{"one two", "    three", "    four"}, wrap("one two three four", 9))
	long := strings.Repeat("x", 200)
	require.Equal(t, []string{"a", "    " + long, "    b"}, wrap("a "+long+" b", 95),
		"a word that fits no line has one of its own")
	for n := range 300 { // no line is too long as long as no word is
		for _, line := range wrap(strings.Repeat("ab ", n)+"c", 95) {
			require.LessOrEqual(t, len(line), 95)
		}
	}
}

// A step reads each streamed weight once, a gathered table not at all, and of the cache what one position has in all
// layers, for each that attention sees.
func TestTraffic(t *testing.T) {
	for name, p := range goldenPrograms(t) {
		facts, err := Facts(p)
		require.NoError(t, err)
		m, element := p.Model, int64(p.Model.Weights.Bits()/8)
		up := func(n, to int) int64 { return int64((n + to - 1) / to * to) }
		rows := func(n, k int) int64 { return up(n, 8) * up(k, 32) * element }
		halves := 2 // of gate and up
		if _, err := ir.BufferDirectory(p).At("L00.gate_up.weight", 0); err != nil {
			halves = 1
		}
		want, row := rows(m.Vocab, m.Hidden), int64(0)
		for layer := range m.Layers {
			f := m.Of(layer)
			want += rows((f.Heads+2*f.KVHeads)*f.HeadDim, m.Hidden) + rows(m.Hidden, f.Heads*f.HeadDim)
			if f.Experts > 0 { // and a norm more
				want += rows(f.Experts, m.Hidden) + int64(m.Hidden)*element + int64(f.PerToken)*
					(rows(2*f.Intermediate, m.Hidden)+rows(m.Hidden, f.Intermediate))
			} else {
				want += rows(halves*f.Intermediate, m.Hidden) + rows(m.Hidden, f.Intermediate)
			}
			row += 2 * int64(f.KVHeads) * up(f.HeadDim, 16) * element
		}
		norms := int64(2*m.Layers+1) * int64(m.Hidden) * element
		require.InDelta(t, want+norms, facts.Traffic.Weights, float64(2*m.Layers+1)*256, name)
		row = row * up(m.MaxSeq, 16) / int64(m.MaxSeq)
		cache, ok := map[string][]host.CacheRows{"mistral-window_h200_bf16": {{Bytes: row, Window: 72}},
			"mixtral-window_h200_bf16":    {{Bytes: row, Window: 14}},
			"starcoder2-tied_h200_bf16":   {{Bytes: row, Window: 12}},
			"qwen3-window-half_h200_bf16": {{Bytes: row / 3}, {Bytes: row / 3 * 2, Window: 33}},
			"exaone4-windows_h200_bf16":   {{Bytes: row / 2, Window: 12}, {Bytes: row / 2}},
			"gpt-oss-sinks_h200_bf16":     {{Bytes: row / 2, Window: 12}, {Bytes: row / 2}},
			"gemma4-keys-serve_h200_bf16": {{Bytes: row / 5 * 3, Window: 12}, {Bytes: row / 5 * 2}},
			"gemma3-tied_h200_bf16":       {{Bytes: row / 4 * 3, Window: 12}, {Bytes: row / 4}}}[name]
		if !ok {
			cache = []host.CacheRows{{Bytes: row}}
		}
		require.Equal(t, cache, facts.Traffic.Cache, name)
	}
}

func TestPartsOfSeveralTokensAreRefused(t *testing.T) {
	requireRefused(t, builtProgram(t, "pycoder-5m_h200_bf16/rows8"), func(p *ir.Program) { inParts(p, "L{i}.o", 2) },
		"AMK4001", "adds up 2 parts of its columns for 8 tokens; the kernel has parts in passes of one token: want "+
			"tiling.gemv.parts=1")
}

func TestOrigin(t *testing.T) {
	for file, want := range map[string]string{"amk/ring.cuh": "runtime/cuda/amk/ring.cuh",
		"amk/hw/copy.cuh": "runtime/cuda/amk/hw/copy.cuh", "amk/other/copy.cuh": "",
		"schedule.h":    "templates/schedule.h.tmpl",
		"megakernel.cu": "templates/megakernel.cu.tmpl", "/usr/include/stdio.h": "", "/opt/cuda/amk/ring.cuh": "",
		"cub/block.cuh": ""} {
		require.Equal(t, want, Origin(file), file)
	}
}

// requireRefused edits a program that has been emitted, and wants it refused with a code and a text.
func requireRefused(t *testing.T, p *ir.Program, edit func(p *ir.Program), code, want string) {
	t.Helper()
	_, err := CUDA(p)
	require.NoError(t, err, "before the edit")
	edit(p)
	_, err = CUDA(p)
	var d *diag.Diagnostic
	var all diag.List
	if errors.As(err, &all) {
		d = all[0]
	} else {
		require.ErrorAs(t, err, &d)
	}
	require.Equal(t, code, d.Code, err.Error())
	require.Contains(t, err.Error(), want)
}

// codesBefore lists the sequences of ops that bodies have, in order, as far as they come before a word.
func codesBefore(word string) string {
	var all []string
	for _, b := range kernel.Bodies {
		all = append(all, b.Codes...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c > word }), "; ")
}
