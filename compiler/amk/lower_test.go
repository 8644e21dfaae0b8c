package amk_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
)

func toyShape(layers int) amk.Shape {
	return amk.Shape{
		Vocab: 256, Hidden: 64, NLayers: layers, NHeads: 4, NKVHeads: 2, HeadDim: 16, Intermediate: 128,
		RMSEps: 1e-6, RopeTheta: 10000, MaxSeq: 256,
	}
}

func llamaShape(layers, hidden, heads, kvHeads, headDim, inter, vocab int) amk.Shape {
	return amk.Shape{
		Vocab: vocab, Hidden: hidden, NLayers: layers, NHeads: heads, NKVHeads: kvHeads, HeadDim: headDim,
		Intermediate: inter,
		RMSEps:       1e-5, RopeTheta: 500000, MaxSeq: 2048,
	}
}

func toy() amk.Request {
	return amk.Request{Shape: toyShape(1), Scheme: amk.SchemeToy, DType: amk.F32, Batch: 1}
}

func tiling(group, knob string, n int) *amk.Config {
	c := amk.DefaultConfig()
	var o amk.Object
	o.Set(knob, amk.Int(n))
	c.Tiling.Set(group, &o)
	return c
}

func lower(t *testing.T, q amk.Request) *amk.Program {
	p, err := amk.Lower(q)
	require.NoError(t, err)
	return p
}

// labelled returns the tasks whose label starts with the prefix.
func labelled(p *amk.Program, prefix string) []amk.Task {
	var tasks []amk.Task
	for _, t := range p.Tasks {
		if len(t.Label) >= len(prefix) && t.Label[:len(prefix)] == prefix {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// The counts were taken from AutoMegaKernel for real models: tasks with no configuration and with N_tile 64, 128, 256.
func TestLowerCounts(t *testing.T) {
	for _, c := range []struct {
		name              string
		shape             amk.Shape
		scheme            amk.Scheme
		tied              bool
		tasks             [4]int
		buffers, counters int
	}{
		{"toy 1L", toyShape(1), amk.SchemeToy, false, [4]int{38, 27, 23, 22}, 37, 22},
		{"toy 2L", toyShape(2), amk.SchemeToy, false, [4]int{66, 48, 42, 41}, 65, 41},
		{"small", llamaShape(4, 2048, 32, 8, 64, 5632, 32000), amk.SchemeToy, false, [4]int{1522, 1074, 690, 402}, 121,
			79},
		{"SmolLM2-135M", llamaShape(30, 576, 9, 3, 64, 1536, 49152), amk.SchemeHFLlama, true,
			[4]int{5286, 2856, 1716, 1116}, 848, 573},
		{"SmolLM2-360M", llamaShape(32, 960, 15, 5, 64, 2560, 49152), amk.SchemeHFLlama, true,
			[4]int{8066, 4770, 2690, 1602}, 904, 611},
		{"TinyLlama-1.1B", llamaShape(22, 2048, 32, 4, 64, 5632, 32000), amk.SchemeHFLlama, false,
			[4]int{7722, 5434, 3410, 1870}, 625, 421},
		{"Llama-3.2-1B", llamaShape(16, 2048, 32, 8, 64, 8192, 128256), amk.SchemeHFLlama, true,
			[4]int{5890, 4098, 3202, 1730}, 456, 307},
		{"Llama-3.1-8B", llamaShape(32, 4096, 32, 8, 128, 14336, 128256), amk.SchemeHFLlama, false,
			[4]int{12738, 11714, 8130, 5826}, 905, 611},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, width := range []int{0, 64, 128, 256} {
				q := amk.Request{Shape: c.shape, Scheme: c.scheme, Tied: c.tied, DType: amk.BF16, Batch: 1}
				if width > 0 {
					q.Config = tiling("gemv", "N_tile", width)
				}
				p := lower(t, q)
				require.Len(t, p.Tasks, c.tasks[i], "N_tile %d", width)
				require.Len(t, p.Buffers, c.buffers)
				require.Len(t, p.Counters, c.counters)
			}
		})
	}
}

func TestTileRows(t *testing.T) {
	for _, c := range []struct {
		vocab, nTile, base int // a knob of -1 is absent
		tiles, first, last int
	}{
		{256, -1, -1, 8, 32, 32},
		{4096, 16, -1, 64, 64, 64},
		{128256, 256, -1, 64, 2004, 2004},
		{200, 3, -1, 50, 4, 4},
		{200, 48, -1, 5, 48, 8},
		{200, 0, -1, 50, 4, 4},
		{200, -7, -1, 50, 4, 4},
		{200, 1000, -1, 1, 200, 200},
		{200, -1, 1, 13, 16, 8},
		{200, -1, 50, 4, 50, 50},
		{10, -1, -1, 1, 10, 10},
	} {
		t.Run(fmt.Sprintf("V=%d N_tile=%d base=%d", c.vocab, c.nTile, c.base), func(t *testing.T) {
			q := toy()
			q.Shape.Vocab = c.vocab
			if c.base != -1 {
				q.Config = tiling("gemv", "base_width", c.base)
			}
			if c.nTile != -1 {
				q.Config = tiling("gemv", "N_tile", c.nTile)
			}
			tiles := labelled(lower(t, q), "lm_head[")
			require.Len(t, tiles, c.tiles)
			first, _ := tiles[0].Params.Int("N_tile")
			last, _ := tiles[c.tiles-1].Params.Int("N_tile")
			offset, _ := tiles[c.tiles-1].Params.Int("n_off")
			require.EqualValues(t, c.first, first)
			require.EqualValues(t, c.last, last)
			require.EqualValues(t, c.vocab, offset+last)
		})
	}
}

func TestScale(t *testing.T) {
	for dim, want := range map[int]amk.Number{
		1: "1.0", 16: "0.25", 20: "0.22360679774997896", 24: "0.2041241452319315", 32: "0.1767766952966369",
		48: "0.14433756729740643",
		64: "0.125", 80: "0.11180339887498948", 96: "0.10206207261596575", 112: "0.09449111825230681",
		128: "0.08838834764831845", 256: "0.0625",
	} {
		q := toy()
		q.Shape.HeadDim = dim
		scale, _ := labelled(lower(t, q), "L0.attention")[0].Params.Get("scale")
		require.Equal(t, want, scale, "head_dim %d", dim)
	}
}

func TestSplitKV(t *testing.T) {
	h100, _ := amk.LookupTarget("h100")
	few := h100
	few.NumSMs = 3
	for _, c := range []struct {
		name               string
		target             *amk.Target
		partitions, kvLen  int
		shards, chunk, end int // length of the first shard and of the last
	}{
		{"plain", &h100, 1, 200, 1, 200, 200},
		{"short", &h100, 4, 16, 1, 16, 16},
		{"one key more", &h100, 4, 17, 2, 9, 8},
		{"at most eight", &h100, 100, 250, 8, 32, 26},
		{"at most one per SM", &few, 8, 250, 3, 84, 82},
		{"no target", nil, 8, 129, 8, 17, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := toy()
			q.Target, q.Pos = c.target, c.kvLen-1
			plain := lower(t, q)
			q.Config = tiling("attention", "n_partitions", c.partitions)
			p := lower(t, q)
			if c.shards == 1 {
				p.Config = nil
				require.Equal(t, string(plain.Marshal()), string(p.Marshal()))
				return
			}
			require.Len(t, p.Tasks, len(plain.Tasks)+c.shards)
			require.Len(t, p.Buffers, len(plain.Buffers)+c.shards)
			require.Len(t, p.Counters, len(plain.Counters)+c.shards)
			shards := labelled(p, "L0.attention.s")
			require.Len(t, shards, c.shards)
			next := int64(0)
			for i, shard := range shards {
				start, _ := shard.Params.Int("kv_start")
				n, _ := shard.Params.Int("kv_len")
				require.Equal(t, next, start)
				require.Equal(t, i, *shard.SM)
				next += n
				switch i {
				case 0:
					require.EqualValues(t, c.chunk, n)
				case c.shards - 1:
					require.EqualValues(t, c.end, n)
				}
			}
			require.EqualValues(t, c.kvLen, next)
		})
	}
}

func TestQuantized(t *testing.T) {
	q := amk.Request{
		Shape: llamaShape(2, 72, 3, 3, 24, 130, 250), Scheme: amk.SchemeHFLlama, DType: amk.F16, Batch: 1,
		Quant: &amk.Quant{Bits: 4, Group: 64},
	}
	for _, tied := range []bool{false, true} {
		q.Tied = tied
		p := lower(t, q)
		projections := 15
		if tied {
			projections = 14
		}
		plain := q
		plain.Quant = nil
		require.Len(t, p.Buffers, len(lower(t, plain).Buffers)+2*projections, "scales and zeros")
		quant, _ := p.Meta.Get("quant")
		keys, _ := quant.(*amk.Object).Int("n_keys")
		require.EqualValues(t, projections, keys)

		down := labelled(p, "L1.down_proj[t2]")[0]
		require.Len(t, down.Inputs, 4, "x, weight, scales, zeros")
		require.Equal(t, amk.Int(8*(65+3*2)), down.EstBytes,
			"8 rows of 130 nibbles and 3 scales; zeros are not counted")
		weight, scales, zeros := p.Buffers[down.Inputs[1]], p.Buffers[down.Inputs[2]], p.Buffers[down.Inputs[3]]
		require.Equal(t, amk.I4, weight.DType)
		require.Equal(t, []int{72, 130}, weight.Shape)
		require.Equal(t, "model.layers.1.mlp.down_proj.weight.scales", scales.Name)
		require.Equal(t, []int{72, 3}, scales.Shape)
		require.Equal(t, "model.layers.1.mlp.down_proj.weight.zeros", *zeros.Source)

		head := labelled(p, "lm_head[t0]")[0]
		_, quantised := head.Params.Get("qdtype")
		require.Equal(t, !tied, quantised)
	}
}

// The three live knobs aside, a configuration is copied and changes nothing.
func TestInertConfig(t *testing.T) {
	plain := lower(t, toy())
	q := toy()
	q.Config = amk.DefaultConfig()
	q.Config.SMAssignment.Explicit = &amk.OrderedMap[int, int]{}
	q.Config.SMAssignment.Explicit.Set(0, 5)
	q.Config.PipeliningDepth = 7
	q.Config.FusionGrouping = [][]string{{"RMSNORM", "GEMV_TILE"}}
	p := lower(t, q)
	require.Equal(t, plain.Tasks, p.Tasks)
	require.Equal(t, q.Config, p.Config)
	require.Nil(t, p.Pages)
}

func TestLowerRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*amk.Request)
		want string
	}{
		{"zero layers", func(q *amk.Request) { q.Shape.NLayers = 0 }, "shape.n_layers is 0; 1 to 256 is accepted"},
		{"huge vocab", func(q *amk.Request) { q.Shape.Vocab = 1 << 62 },
			"shape.vocab is 4611686018427387904; 1 to 16777216 is accepted"},
		{"heads", func(q *amk.Request) { q.Shape.NHeads = 3 },
			"shape.n_heads 3 is not a multiple of shape.n_kv_heads 2"},
		{"wide heads", func(q *amk.Request) { q.Shape.HeadDim = 1 << 19 },
			"shape.head_dim is 524288; 1 to 262144 is accepted"},
		{"outside the cache", func(q *amk.Request) { q.Pos = 256 }, "pos is 256; 0 to 255 is accepted"},
		{"dtype", func(q *amk.Request) { q.DType = amk.I8 }, "dtype is I8; F32, F16 and BF16 are accepted"},
		{"scheme", func(q *amk.Request) { q.Scheme = "gpt2" }, `scheme is "gpt2"; "toy" and "hf-llama" are accepted`},
		{"batch", func(q *amk.Request) { q.Batch = 0 }, "batch is 0; 1 to 1024 is accepted"},
		{"quantised batch", func(q *amk.Request) { q.Batch, q.Quant = 2, &amk.Quant{Bits: 8, Group: 64} },
			"quantised weights with a batch of 2"},
		{"bits", func(q *amk.Request) { q.Quant = &amk.Quant{Bits: 5, Group: 64} },
			"quant.bits is 5; 8 and 4 are accepted"},
		{"group", func(q *amk.Request) { q.Quant = &amk.Quant{Bits: 8} }, "quant.group is 0"},
		{"theta", func(q *amk.Request) { q.Shape.RopeTheta = 0 }, "shape.rope_theta is 0.0"},
		{"knob", func(q *amk.Request) {
			q.Config = amk.DefaultConfig()
			q.Config.Tiling.Set("gemv", amk.Int(64))
		}, "config.tiling.gemv must be an object of integers"},
		{"float knob", func(q *amk.Request) {
			var gemv amk.Object
			gemv.Set("N_tile", amk.Float(64))
			q.Config = amk.DefaultConfig()
			q.Config.Tiling.Set("gemv", &gemv)
		}, "config.tiling.gemv.N_tile must be an integer of 64 bits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := toy()
			c.edit(&q)
			p, err := amk.Lower(q)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "[AMK3910]")
			require.Nil(t, p)
		})
	}
}
