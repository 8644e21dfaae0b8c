package checkpoint

import (
	"math"
	"testing"

	"amkc/ir/half"

	"github.com/stretchr/testify/require"
)

// randomVectors are the literals that bench/random_weights.py checks as well when it is run. They were computed by a
// third program, in exact arithmetic.
var randomVectors = []struct {
	seed  uint64
	name  string
	shape []int
	dtype DType
	index int64
	bits  uint32 // of the value as float32
}{
	{0, "model.layers.0.self_attn.q_proj.weight", []int{2048, 2048}, F32, 0, 0xbbb73470},
	{0, "model.layers.0.self_attn.q_proj.weight", []int{2048, 2048}, F32, 1, 0xbcf5c94b},
	{0, "model.layers.0.self_attn.q_proj.weight", []int{2048, 2048}, BF16, 0, 0xbbb70000},
	{0, "model.layers.0.self_attn.q_proj.weight", []int{2048, 2048}, F16, 0, 0xbbb74000},
	{1, "model.layers.0.self_attn.q_proj.weight", []int{2048, 2048}, F32, 0, 0x3cb87b23},
	{1, "model.layers.0.self_attn.q_proj.weight", []int{2048, 2048}, BF16, 4194303, 0x3c4f0000},
	{0, "model.norm.weight", []int{2048}, F32, 0, 0x3f68e490},
	{0, "model.norm.weight", []int{2048}, F32, 1, 0x3f6d74d6},
	{0, "model.norm.weight", []int{2048}, F32, 53, 0x3f8a2bbc}, // a fused multiply-add would give ...bbd
	{0, "model.norm.weight", []int{2048}, BF16, 1, 0x3f6d0000},
	{0, "model.norm.weight", []int{2048}, F16, 2047, 0x3f834000},
	{0, "model.layers.0.self_attn.q_proj.bias", []int{2048}, F32, 0, 0x3c4e2f0e},
	{42, "model.embed_tokens.weight", []int{128256, 2048}, BF16, 262668287, 0x3cec0000},
	{42, "model.embed_tokens.weight", []int{1048576, 8192}, F32, 5000000000, 0x3cda602d},
	{42, "model.embed_tokens.weight", []int{1048576, 8192}, BF16, 8589934591, 0xbbdd0000},
	{0xffffffffffffffff, "x", []int{4, 4}, F32, 15, 0xbceac166},
	{0x123456789abcdef, "größe.weight", []int{7}, F32, 6, 0x3f8c105e},
	{3, "scalar", []int{}, F32, 0, 0x3bfa5c4a},
}

func TestRandomVectors(t *testing.T) {
	for _, v := range randomVectors {
		source := newRandomSource(v.seed, Spec{Name: v.name, DType: v.dtype, Shape: v.shape}, false)
		var got [1]float32
		require.Nil(t, source.floats(got[:], v.index))
		require.Equal(t, v.bits, math.Float32bits(got[0]), "%+v", v)
	}
}

// A norm that multiplies by 1 + w has the weights of one that multiplies by w, less 1.
func TestRandomUnitOffset(t *testing.T) {
	spec := Spec{"model.norm.weight", F32, []int{64}}
	var plain, offset [64]float32
	require.Nil(t, newRandomSource(1, spec, false).floats(plain[:], 0))
	require.Nil(t, newRandomSource(1, spec, true).floats(offset[:], 0))
	for i := range plain {
		require.Equal(t, plain[i], 1+offset[i])
	}
}

func TestRandomIsACheckpoint(t *testing.T) {
	config := &Config{}
	c, err := NewRandom(config, 7, []Spec{
		{"w", BF16, []int{300, 41}},
		{"a.weight", F16, []int{9}},
		{"b.bias", F32, []int{9}},
		{"empty", F32, []int{0, 4}},
	}, nil)
	require.NoError(t, err)
	require.Same(t, config, c.Config)
	require.Equal(t, []string{"a.weight", "b.bias", "empty", "w"}, names(c))
	require.NoError(t, c.Close())

	w, ok := c.Tensor("w")
	require.True(t, ok)
	all := make([]float32, 300*41)
	require.NoError(t, w.ReadRowsF32(all, 0, 300))

	t.Run("rows are a window of the whole", func(t *testing.T) {
		rows := make([]float32, 5*41)
		require.NoError(t, w.ReadRowsF32(rows, 123, 128))
		require.Equal(t, all[123*41:128*41], rows)
	})
	t.Run("raw bytes are the encoded values", func(t *testing.T) {
		raw, err := w.Raw()
		require.NoError(t, err)
		want := make([]byte, 2*len(all))
		half.EncodeBF16(want, all)
		require.Equal(t, want, raw)
		for _, cut := range [][2]int64{{1, 1}, {3, 1030}, {1023, 1025}, {24599, 24600}} { // odd offsets split elements
			part := make([]byte, cut[1]-cut[0])
			require.Nil(t, w.data.bytes(part, cut[0]))
			require.Equal(t, raw[cut[0]:cut[1]], part, "%v", cut)
		}
	})
	t.Run("values are of the dtype", func(t *testing.T) {
		for _, f := range all {
			require.Equal(t, half.RoundBF16(f), f)
		}
	})
	t.Run("standard deviation", func(t *testing.T) {
		sum, squares := 0.0, 0.0
		for _, f := range all {
			sum, squares = sum+float64(f), squares+float64(f)*float64(f)
		}
		n := float64(len(all))
		require.InDelta(t, 0, sum/n, 0.001)
		require.InDelta(t, 0.02, math.Sqrt(squares/n), 0.0005)
	})
	t.Run("vectors", func(t *testing.T) {
		var norm, bias [9]float32
		a, _ := c.Tensor("a.weight")
		b, _ := c.Tensor("b.bias")
		require.NoError(t, a.ReadRowsF32(norm[:], 0, 9))
		require.NoError(t, b.ReadRowsF32(bias[:], 0, 9))
		for i := range norm {
			require.InDelta(t, 1, norm[i], 0.1)
			require.InDelta(t, 0, bias[i], 0.0347)
		}
	})
	t.Run("the seed matters, and nothing else", func(t *testing.T) {
		specs := []Spec{{"w", BF16, []int{300, 41}}}
		same, err := NewRandom(config, 7, specs, nil)
		require.NoError(t, err)
		other, err := NewRandom(config, 8, specs, nil)
		require.NoError(t, err)
		u, _ := same.Tensor("w")
		v, _ := other.Tensor("w")
		equal, err := w.SameBits(u)
		require.NoError(t, err)
		require.True(t, equal)
		equal, err = w.SameBits(v)
		require.NoError(t, err)
		require.False(t, equal)
	})
}

func TestRandomRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		specs []Spec
		code  string
		says  string
	}{
		{"dtype", []Spec{{"w", "I64", []int{2}}}, "AMK1024", "dtype I64"},
		{"twice", []Spec{{"w", F32, []int{2}}, {"w", F32, []int{2}}}, "AMK1026", "declared twice"},
		{"no name", []Spec{{"", F32, []int{2}}}, "AMK1026", "cannot be used"},
		{"negative", []Spec{{"w", F32, []int{-2}}}, "AMK1015", "negative"},
		{"overflow", []Spec{{"w", F32, []int{1 << 40, 1 << 40}}}, "AMK1015", "overflows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewRandom(&Config{}, 0, c.specs, nil)
			requireCode(t, err, c.code, c.says)
		})
	}
}

func BenchmarkRandom(b *testing.B) {
	source := newRandomSource(1, Spec{Name: "w", DType: BF16, Shape: []int{1 << 15, 1}}, false)
	dst := make([]float32, 1<<15)
	b.SetBytes(int64(2 * len(dst)))
	for b.Loop() {
		source.floats(dst, 0)
	}
}
