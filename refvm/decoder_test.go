package refvm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/transform"
)

// A decoder is the shape of a small Llama and of its schedule.
type decoder struct {
	Layers, Hidden, Inter, Heads, KVHeads, HeadDim, Vocab int
	SMs, Splits, Block, SplitFrom, MaxSeq                 int
	DType, Word                                           string
}

// odd has sizes that are multiples of nothing much.
var odd = decoder{
	Layers: 2, Hidden: 72, Inter: 200, Heads: 9, KVHeads: 3, HeadDim: 8, Vocab: 521,
	SMs: 4, Splits: 3, Block: 2, SplitFrom: 5, MaxSeq: 24, DType: "F32", Word: "word64",
}

func (d decoder) Q() int         { return d.Heads * d.HeadDim }
func (d decoder) KV() int        { return d.KVHeads * d.HeadDim }
func (d decoder) G() int         { return d.Heads / d.KVHeads }
func (d decoder) Last() int      { return d.Layers - 1 }
func (d decoder) N() string      { return fmt.Sprintf("%02d", d.Layers) }
func (d decoder) Scale() float64 { return 1 / math.Sqrt(float64(d.HeadDim)) }
func (d decoder) Sum(xs ...int) (n int) {
	for _, x := range xs {
		n += x
	}
	return n
}
func (d decoder) Mul(x, y int) int     { return x * y }
func (d decoder) Div(x, y int) int     { return x / y }
func (d decoder) Tasks(extent int) int { return min(d.SMs, (extent+7)/8) }

// after is a decoder with the number of tasks that write an attention output.
type after struct {
	decoder
	Attn int
}

func (d decoder) After(attn int) after { return after{d, attn} }

// text returns the program of the decoder.
func (d decoder) text(t testing.TB) string {
	var b strings.Builder
	require.NoError(t, template.Must(template.ParseFiles("testdata/decoder.amk.tmpl")).Execute(&b, d))
	return b.String()
}

// tensors are the weights of a model as a checkpoint has them, by name.
type tensors map[string][]float32

func (d decoder) tensors(seed uint64) tensors {
	r := rand.New(rand.NewPCG(seed, 0))
	m := tensors{}
	add := func(name string, n, k int) {
		x := make([]float32, n*k)
		for i := range x {
			x[i] = float32(r.NormFloat64() / math.Sqrt(float64(k)))
			if n == 1 {
				x[i] = 0.5 + r.Float32() // a norm
			}
		}
		m[name] = x
	}
	add("embed", d.Vocab, d.Hidden)
	add("norm", 1, d.Hidden)
	for i := range d.Layers {
		add(fmt.Sprint(i, ".input_norm"), 1, d.Hidden)
		add(fmt.Sprint(i, ".q"), d.Q(), d.Hidden)
		add(fmt.Sprint(i, ".k"), d.KV(), d.Hidden)
		add(fmt.Sprint(i, ".v"), d.KV(), d.Hidden)
		add(fmt.Sprint(i, ".o"), d.Hidden, d.Q())
		add(fmt.Sprint(i, ".post_norm"), 1, d.Hidden)
		add(fmt.Sprint(i, ".gate"), d.Inter, d.Hidden)
		add(fmt.Sprint(i, ".up"), d.Inter, d.Hidden)
		add(fmt.Sprint(i, ".down"), d.Hidden, d.Inter)
	}
	m["@inv_freq"] = d.invFreq()
	return m
}

func (d decoder) invFreq() []float32 {
	out := make([]float32, d.HeadDim/2)
	for j := range out {
		out[j] = float32(math.Pow(10000, -2*float64(j)/float64(d.HeadDim)))
	}
	return out
}

// Floats packs a buffer from its pieces.
func (m tensors) Floats(b *ir.Buffer, i int) ([]float32, error) {
	rows, cols := b.Matrix()
	var views []*transform.View
	var chains []transform.Chain
	for _, p := range b.Pieces {
		key, err := ir.ResolveKey(p.Key, i)
		if err != nil {
			return nil, err
		}
		if m[key] == nil {
			return nil, fmt.Errorf("no tensor %s", key)
		}
		v, err := p.Chain.Of(tensor{m[key], cols})
		if err != nil {
			return nil, err
		}
		views, chains = append(views, v), append(chains, p.Chain)
	}
	s, err := transform.Pack(views, chains, rows, cols)
	if err != nil {
		return nil, err
	}
	out := make([]float32, b.Numel())
	return out, s.ReadRows(out, 0, rows)
}

// tensor is one with rows of n elements.
type tensor struct {
	values []float32
	cols   int
}

func (t tensor) Rows() int   { return len(t.values) / t.cols }
func (t tensor) RowLen() int { return t.cols }

func (t tensor) ReadF32(dst []float32, first int) error {
	copy(dst, t.values[first:])
	return nil
}

// dense is the decoder as a model card would write it, in float64: whole matrices, whole heads, one list of keys and
// one of values for each layer and head.
type dense struct {
	decoder
	w    tensors
	k, v map[[2]int][][]float64 // by layer and key head
}

func (d *dense) linear(name string, x []float64) []float64 {
	return matmul(x, wide(d.w[name]), len(x))
}

func (d *dense) norm(name string, x []float64) []float64 {
	square := 0.0
	for _, f := range x {
		square += f * f
	}
	return each(x, func(i int) float64 {
		return x[i] / math.Sqrt(square/float64(len(x))+1e-5) * float64(d.w[name][i])
	})
}

func (d *dense) rotate(x []float64, pos int) []float64 {
	half := d.HeadDim / 2
	return each(x, func(i int) float64 {
		j := i % d.HeadDim
		angle := float64(pos) * float64(d.w["@inv_freq"][j%half])
		if j < half {
			return x[i]*math.Cos(angle) - x[i+half]*math.Sin(angle)
		}
		return x[i]*math.Cos(angle) + x[i-half]*math.Sin(angle)
	})
}

// step returns the logits after a token.
func (d *dense) step(token, pos int) []float64 {
	x := wide(d.w["embed"][token*d.Hidden:][:d.Hidden])
	plus := func(y []float64) {
		x = each(x, func(i int) float64 { return x[i] + y[i] })
	}
	for l := range d.Layers {
		name := func(s string) string { return fmt.Sprint(l, ".", s) }
		n := d.norm(name("input_norm"), x)
		q, k, v := d.rotate(d.linear(name("q"), n), pos), d.rotate(d.linear(name("k"), n), pos), d.linear(name("v"), n)
		var attn []float64
		for h := range d.Heads {
			at := [2]int{l, h / d.G()}
			if h%d.G() == 0 {
				d.k[at] = append(d.k[at], k[at[1]*d.HeadDim:][:d.HeadDim])
				d.v[at] = append(d.v[at], v[at[1]*d.HeadDim:][:d.HeadDim])
			}
			var keys, values []float64
			for r := range d.k[at] {
				keys, values = append(keys, d.k[at][r]...), append(values, d.v[at][r]...)
			}
			attn = append(attn, normalised(attend(q[h*d.HeadDim:][:d.HeadDim], keys, values, 1, 1, d.HeadDim,
				d.Scale()), d.HeadDim)...)
		}
		plus(d.linear(name("o"), attn))
		n = d.norm(name("post_norm"), x)
		gate, up := d.linear(name("gate"), n), d.linear(name("up"), n)
		plus(d.linear(name("down"), each(gate,
			func(i int) float64 { return gate[i] / (1 + math.Exp(-gate[i])) * up[i] })))
	}
	return d.linear("embed", d.norm("norm", x))
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, f := range x {
		out[i] = float64(f)
	}
	return out
}

func (d decoder) dense(w tensors) *dense {
	return &dense{decoder: d, w: w, k: map[[2]int][][]float64{}, v: map[[2]int][][]float64{}}
}

func (d decoder) session(t testing.TB, w Weights, opts Options) *Session {
	p := parseFile(t, d.text(t))
	require.Empty(t, ir.Check(p).Errors())
	s, err := NewSession(p, w, opts)
	require.NoError(t, err)
	return s
}

// orders are the ways a step is run under test.
var orders = []Order{{}, {Kind: InOrder}, {Kind: Random, Seed: 1}, {Kind: Random, Seed: 2}, {Kind: Latest},
	{Kind: Starve, SM: 0}, {Kind: Starve, SM: 3}}

func TestDecoderAgainstDense(t *testing.T) {
	shapes := map[string]decoder{"odd": odd}
	mha := odd
	mha.Hidden, mha.Heads, mha.KVHeads, mha.HeadDim, mha.Inter, mha.SMs = 32, 4, 4, 16, 24, 9
	shapes["every head its own keys, more SMs than tiles"] = mha
	for name, d := range shapes {
		t.Run(name, func(t *testing.T) {
			w := d.tensors(7)
			ref, s := d.dense(w), d.session(t, w, Options{})
			token := 17
			for pos := range d.MaxSeq {
				want := ref.step(token, pos)
				got, next, err := s.Step(token)
				require.NoError(t, err)
				require.InDeltaSlice(t, want, wide(got), 2e-5, "position %d", pos)
				require.Equal(t, largest(want), next)
				require.Equal(t, pos+1, s.Pos())
				token = next
			}
			_, _, err := s.Step(token)
			require.Equal(t, CodePosition.ID, code(t, err))
		})
	}
}

// Every legal order and any number of workers give the same bits, and so does a second pass over the same tokens.
func TestOrdersAgree(t *testing.T) {
	w := odd.tensors(3)
	var want [][]uint32
	for _, workers := range []int{1, 5} {
		s := odd.session(t, w, Options{Workers: workers, Record: true})
		for _, order := range orders {
			s.Order = order
			s.Reset()
			for pos := range 12 {
				logits, _, err := s.Step(pos * 31 % odd.Vocab)
				require.NoError(t, err)
				if len(want) == pos {
					want = append(want, bitsOf(logits))
				}
				require.Equal(t, want[pos], bitsOf(logits), "%d workers, order %v, position %d", workers, order, pos)
			}
		}
	}
}

// A session that goes back decodes as one that never went further: the rows before are kept.
func TestRewind(t *testing.T) {
	w := odd.tensors(3)
	fresh, s := odd.session(t, w, Options{}), odd.session(t, w, Options{})
	token := func(pos int) int { return pos * 31 % odd.Vocab }
	for pos := range 12 {
		_, _, err := s.Step((token(pos) + 1) % odd.Vocab)
		require.NoError(t, err)
	}
	require.NoError(t, s.Rewind(0))
	for pos := range 9 {
		_, _, err := s.Step(token(pos))
		require.NoError(t, err)
	}
	require.NoError(t, s.Rewind(5))
	require.Equal(t, 5, s.Pos())
	for pos := range 12 {
		want, chosen, err := fresh.Step(token(pos))
		require.NoError(t, err)
		if pos < 5 {
			continue
		}
		got, next, err := s.Step(token(pos))
		require.NoError(t, err)
		require.Equal(t, bitsOf(want), bitsOf(got), "position %d", pos)
		require.Equal(t, chosen, next)
	}
	for _, bad := range []int{-1, 13} {
		require.Equal(t, CodePosition.ID, code(t, s.Rewind(bad)))
		require.Equal(t, 12, s.Pos())
	}
}

func TestDecoderFootprint(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	s := odd.session(t, odd.tensors(3), Options{Record: true})
	for pos := range 11 {
		_, _, err := s.Step(pos)
		require.NoError(t, err)
		vm, err := s.At(pos)
		require.NoError(t, err)
		requireFootprint(t, vm, pos)
	}
}

// Two buffers that live at the same time on one page must not go unnoticed.
func TestWrongPageShows(t *testing.T) {
	const act = "buffer L{i}.act for 0..1 ACTIVATION F32 [200] GLOBAL_SCRATCH word64 page "
	text := strings.Replace(odd.text(t), act+"p1", act+"p0", 1)
	require.NotEqual(t, odd.text(t), text)
	w := odd.tensors(3)
	s, err := NewSession(parseFile(t, text), w, Options{})
	require.NoError(t, err)
	s.Order = Order{Kind: InOrder}
	got, _, err := s.Step(5)
	require.NoError(t, err)
	want, worst := odd.dense(w).step(5, 0), 0.0
	for i := range want {
		worst = max(worst, math.Abs(want[i]-float64(got[i])))
	}
	require.Greater(t, worst, 0.01)
}

// Stages that give the residual to different SMs are caught, whatever the order.
func TestResidualHasOneOwner(t *testing.T) {
	text := strings.Replace(odd.text(t), "stage L{i}.down spread extent=72 grain=8 sms=4 rot=0",
		"stage L{i}.down spread extent=72 grain=8 sms=4 rot=1", 1)
	require.NotEqual(t, odd.text(t), text)
	s, err := NewSession(parseFile(t, text), odd.tensors(3), Options{})
	require.NoError(t, err)
	for _, order := range orders {
		s.Order = order
		_, _, err := s.Step(5)
		require.Equal(t, CodeOwner.ID, code(t, err))
		require.Zero(t, s.Pos())
	}
}
