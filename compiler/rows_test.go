package compiler

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes"
	"amkc/refvm"
	"amkc/validate"
)

// A passCase is a model whose rows are decoded in passes of all sorts.
type passCase struct {
	model, weights string
	dtype          ir.DType
	cache          bool // of integers
	sms            int
}

// passCases differ in what a token of a pass meets: families with windows, soft caps, norms in front of branches,
// after them, of heads and of all heads, branches side by side, LayerNorms, biases and experts; every dtype, format and
// cache.
var passCases = []passCase{
	{model: "pycoder-5m", dtype: ir.BF16, sms: 6},
	{model: "pycoder-5m", dtype: ir.BF16, sms: 6, weights: "int4:sym", cache: true},
	{model: "zoo/llama-gqa", dtype: ir.F32, sms: 6},
	{model: "zoo/llama-gqa", dtype: ir.F32, sms: 6, cache: true},
	{model: "zoo/mistral-window-narrow", dtype: ir.F16, sms: 4},
	{model: "zoo/qwen3-window-half", dtype: ir.BF16, sms: 4, weights: "int8", cache: true},
	{model: "zoo/gemma2-split-k", dtype: ir.BF16, sms: 8},
	{model: "zoo/gemma3-tied", dtype: ir.F16, sms: 4, weights: "fp8"},
	{model: "zoo/olmo2-plain", dtype: ir.BF16, sms: 4, weights: "int4"},
	{model: "zoo/gpt-neox-parallel", dtype: ir.F16, sms: 4, cache: true},
	{model: "zoo/cohere2-tied", dtype: ir.BF16, sms: 4, weights: "int8:g32,lm_head=none"},
	{model: "zoo/exaone4-windows", dtype: ir.F32, sms: 4, weights: "int4:sym"},
	{model: "zoo/gpt2", dtype: ir.BF16, sms: 4},
	{model: "zoo/phi-half", dtype: ir.BF16, sms: 4},
	{model: "zoo/glm4-moe-groups", dtype: ir.BF16, sms: 4},
	{model: "zoo/gpt-oss-mxfp4", dtype: ir.F16, sms: 4},
}

// passPositions are those of a text: several splits of a context fit into them.
const passPositions = 84

func (c *passCase) lower(t *testing.T, pass ir.Pass) *Scheduled {
	t.Helper()
	formats, err := passes.ParseWeightFormats(cmp.Or(c.weights, "none"))
	require.NoError(t, err)
	target := *ir.FindTarget("h200")
	target.SMs = c.sms
	o := Options{Model: filepath.Join(root, "models", c.model), Name: "m", Target: &target, DType: &c.dtype,
		MaxSeq: passPositions, Formats: formats, Check: true, Pass: pass, Config: ir.ScheduleConfig{
			Tiling: map[string]map[string]int{
				"attention": {"max_splits": 16, "split_from": 21}, "ring": {"chunk_bytes": 4096}}}}
	if c.cache {
		cache := ir.I8
		o.Cache = &cache
	}
	l, err := RunPasses(o)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	report := validate.Program(l.Program)
	require.True(t, report.OK, "%v", report.Diags)
	return l
}

// The logits of a position are the same to the bit however a text is cut into passes, and whatever stands in a pass
// alongside it: rejected drafts, or other sequences at other positions. Without AMKC_LONG, every second case of a small
// model is tried.
func TestLogitsDoNotDependOnThePass(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for i, c := range passCases {
		if os.Getenv("AMKC_LONG") == "" && (i%2 != 0 || !strings.HasPrefix(c.model, "zoo/")) {
			continue
		}
		t.Run(fmt.Sprintf("%s %v %s %v", c.model, c.dtype, c.weights, c.cache), func(t *testing.T) {
			one := c.lower(t, ir.Pass{})
			vocab := one.Program.Model.Vocab
			rng := rand.New(rand.NewPCG(uint64(i), 'r'))
			texts, want := make([][]int, 3), make([][][]float32, 3)
			for s := range texts {
				session, err := refvm.NewSession(one.Program, one.Weights, refvm.Options{Round: refvm.Device})
				require.NoError(t, err)
				for range passPositions {
					token := rng.IntN(vocab)
					logits, _, err := session.Step(token)
					require.NoError(t, err)
					texts[s], want[s] = append(texts[s], token), append(want[s], slices.Clone(logits))
				}
			}
			t.Run("cuts", func(t *testing.T) { c.cut(t, rng, one, texts[0], want[0]) })
			for _, pass := range []ir.Pass{ir.PassOf(2, 1), ir.PassOf(3, 2)} {
				t.Run(fmt.Sprint(pass), func(t *testing.T) { c.together(t, rng, pass, texts, want) })
			}
		})
	}
}

// cut decodes a text by passes of several sizes, which one cache is for. Some rows of a pass are drafts.
func (c *passCase) cut(t *testing.T, rng *rand.Rand, one *Scheduled, text []int, want [][]float32) {
	first, err := refvm.NewSession(one.Program, one.Weights, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	sizes, sessions := []int{1, 2, 3, 5, 8}, []*refvm.Session{first}
	for _, rows := range sizes[1:] {
		l := c.lower(t, ir.PassOf(1, rows))
		s, err := first.Alongside(l.Program, l.Weights)
		require.NoError(t, err)
		sessions = append(sessions, s)
	}
	for at := 0; at < len(text); {
		k := rng.IntN(len(sizes))
		if _, err := sessions[k].At(at); err != nil {
			k = 0
		}
		right := 1 + rng.IntN(sizes[k])
		checkPass(t, rng, sessions[k], []int{at}, []int{right}, sizes[k], [][]int{text}, [][][]float32{want})
		at += right
	}
}

// together decodes several texts in one pass, each from a position of its own.
func (c *passCase) together(t *testing.T, rng *rand.Rand, pass ir.Pass, texts [][]int, want [][][]float32) {
	l := c.lower(t, pass)
	session, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	at, right := make([]int, pass.NumSequences()), make([]int, pass.NumSequences())
	for _, v := range l.Program.Variants {
		for s := range at {
			at[s] = v.Lo
		}
		for last := false; !last; {
			last = slices.Min(at) == v.Hi
			for s := range at {
				if right[s] = 1 + rng.IntN(pass.NumRows()); last {
					right[s] = pass.NumRows()
				}
			}
			checkPass(t, rng, session, at, right, pass.NumRows(), texts, want)
			for s := range at {
				if rng.IntN(4) > 0 { // or it is decoded once more
					at[s] = min(at[s]+right[s], v.Hi)
				}
			}
		}
	}
}

// checkPass decodes a pass of which the first rows of each sequence are right, and compares the logits of these.
func checkPass(t *testing.T, rng *rand.Rand, session *refvm.Session, at, right []int, rows int, texts [][]int,
	want [][][]float32) {
	t.Helper()
	vocab := len(want[0][0])
	var tokens []int
	for s, pos := range at {
		for r := range rows {
			if r < right[s] {
				tokens = append(tokens, texts[s][pos+r])
			} else {
				tokens = append(tokens, rng.IntN(vocab))
			}
		}
	}
	logits, _, err := session.Pass(at, tokens)
	require.NoError(t, err)
	for s, pos := range at {
		for r := range right[s] {
			row := logits[(s*rows+r)*vocab:][:vocab]
			for i, x := range want[s][pos+r] {
				require.Equal(t, math.Float32bits(x), math.Float32bits(row[i]),
					"row %d of %d of sequence %d at position %d, logit %d", r, rows, s, pos+r, i)
			}
		}
	}
}
