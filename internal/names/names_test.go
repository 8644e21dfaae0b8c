package names

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler"
	"amkc/cost"
	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/passes"
	"amkc/readback"
	"amkc/refvm"
	"amkc/validate"
	"amkc/validate/kernel"
)

const goldens = "../../testdata/golden"

// Whatever the buffers, counters, stages and loops of a program are called, it is proved, costs the same, computes the
// same logits to the bit, and its CUDA sources are the same. So it is where the layers are in no loop.
func TestNamesAreForPeople(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	paths, err := filepath.Glob(goldens + "/*/program.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		golden := filepath.Base(filepath.Dir(path))
		t.Run(golden, func(t *testing.T) { anyNames(t, load(t, path)) })
		if strings.HasPrefix(golden, "llama-gqa") {
			t.Run(golden+", expanded", func(t *testing.T) {
				p := load(t, path)
				require.NoError(t, ir.Expand(p))
				anyNames(t, p)
			})
		}
	}
}

// The sources of a pass of several tokens have the same names whatever its program calls things.
func TestNamesOfPasses(t *testing.T) {
	paths, err := filepath.Glob(goldens + "/*/*/program.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	if testing.Short() {
		paths = paths[:2]
	}
	for _, path := range paths {
		p := load(t, path)
		require.Greater(t, p.Pass.NumTokens(), 1, path)
		q := renamed(t, p, invented)
		before, err := codegen.CUDA(p)
		require.NoError(t, err)
		after, err := codegen.CUDA(q)
		require.NoError(t, err)
		require.Equal(t, before, after, path)
		named, clash := codegen.Conventional(q)
		require.Nil(t, clash, path)
		require.NoError(t, readback.Compare(p, named).Err(), path)
	}
}

func load(t *testing.T, path string) *ir.Program {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	p, diags := ir.LoadJSON(text, path)
	require.NoError(t, diags.Err())
	return p
}

func anyNames(t *testing.T, p *ir.Program) {
	for name, to := range map[string]naming{"invented": invented, "swapped": swapped} {
		t.Run(name, func(t *testing.T) {
			q := renamed(t, p, to)
			require.NoError(t, ir.Check(q).Err())
			require.True(t, validate.ProgramFor(kernel.Backend, q).OK)
			sameForms(t, q)
			sameCost(t, p, q)
			sameLogits(t, p, q)
			sameSources(t, p, q)
		})
	}
}

// Passes do not read names either: they make the same of a program that has other names after each of them.
func TestPassesReadNoNames(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, golden := range []string{"llama-gqa_t4_fp16_split", "qwen2-bias_h200_bf16", "qwen3-window-half_h200_bf16"} {
		p := load(t, goldens+"/"+golden+"/program.json")
		lower := slices.IndexFunc(compiler.Passes, func(p passes.Pass) bool { return p.Name == passes.Lower.Name })
		for _, pass := range compiler.Passes[lower:] { // the others make no program
			t.Run(golden+"/"+pass.Name, func(t *testing.T) {
				l, err := compiler.RunPasses(compiler.Options{Model: modelOf(p), Name: p.Model.Name,
					DType: &p.Model.Weights, MaxSeq: p.Model.MaxSeq, Target: p.Target, Config: p.Config,
					ConfigOnly: true, Check: true,
					After: func(_ int, done *passes.Pass, s *passes.State, _ time.Duration) error {
						if done.Name == pass.Name {
							s.Program = renamed(t, s.Program, invented)
						}
						return nil
					}})
				require.NoError(t, err)
				defer l.Close()
				require.True(t, validate.ProgramFor(kernel.Backend, l.Program).OK)
				sameSources(t, p, l.Program)
			})
		}
	}
}

// sameForms: what the names do not say is in both forms.
func sameForms(t *testing.T, q *ir.Program) {
	back, diags := ir.ParseText(ir.Print(q), "renamed.amk")
	require.NoError(t, diags.Err())
	require.Equal(t, q, back)
	json, err := q.MarshalJSON()
	require.NoError(t, err)
	back, diags = ir.ParseJSON(json, "renamed.json")
	require.NoError(t, diags.Err())
	require.Equal(t, q, back)
}

func sameCost(t *testing.T, p, q *ir.Program) {
	before, err := cost.New(p)
	require.NoError(t, err)
	after, err := cost.New(q)
	require.NoError(t, err)
	for _, v := range p.Variants {
		want, err := before.At(v.Hi)
		require.NoError(t, err)
		got, err := after.At(v.Hi)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// noise is weights that depend on what they are of in the checkpoint, and not on names.
type noise struct{}

func (noise) Floats(b *ir.Buffer, i int) ([]float32, error) {
	h := fnv.New64a()
	for _, piece := range b.Pieces {
		key, err := ir.ResolveKey(piece.Key, i)
		if err != nil {
			return nil, err
		}
		h.Write([]byte(key))
	}
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	out := make([]float32, b.Numel())
	for k := range out {
		out[k] = float32(r.NormFloat64() / 8)
	}
	return out, nil
}

func sameLogits(t *testing.T, p, q *ir.Program) {
	const token, steps = 5, 2
	for _, v := range p.Variants {
		var logits [2][]float32
		var next [2]int
		for k, of := range []*ir.Program{p, q} {
			s, err := refvm.NewSession(of, noise{}, refvm.Options{Round: refvm.Device})
			require.NoError(t, err)
			vm, err := s.At(v.Lo)
			require.NoError(t, err)
			for pos := range steps {
				require.NoError(t, vm.Step(v.Lo+pos, token, refvm.Order{}))
			}
			logits[k], next[k] = vm.Logits(), vm.Next()
		}
		require.NotEmpty(t, logits[0])
		require.Equal(t, logits[0], logits[1])
		require.Equal(t, next[0], next[1])
		require.GreaterOrEqual(t, next[0], 0)
	}
}

// sameSources: what is generated speaks of things by names of its own, and is read back as the program.
func sameSources(t *testing.T, p, q *ir.Program) {
	g := graphOf(t, p)
	sources := func(of *ir.Program) map[string][]byte {
		files, err := codegen.CUDA(of)
		require.NoError(t, err)
		files["reference.cu"], err = codegen.Reference(of, g)
		require.NoError(t, err)
		return files
	}
	before, after := sources(p), sources(q)
	require.Equal(t, len(before), len(after))
	for name := range before {
		require.Equal(t, string(before[name]), string(after[name]), name)
	}
	want, err := codegen.Facts(p)
	require.NoError(t, err)
	got, err := codegen.Facts(q)
	require.NoError(t, err)
	require.Equal(t, want, got, "stages have their labels whatever they are called")
	named, clash := codegen.Conventional(q)
	require.Nil(t, clash)
	require.NoError(t, readback.Compare(p, named).Err())
}

// modelOf is the directory of a golden program's model.
func modelOf(p *ir.Program) string {
	dir := "../../testdata/models/" + p.Model.Name
	if _, err := os.Stat(dir); err != nil {
		dir = "../../testdata/models/zoo/" + p.Model.Name
	}
	return dir
}

func graphOf(t *testing.T, p *ir.Program) *ir.Graph {
	config, err := checkpoint.OpenConfig(modelOf(p))
	require.NoError(t, err)
	s := &passes.State{Source: importers.Source{MaxSeq: p.Model.MaxSeq, Name: p.Model.Name, Config: config,
		DType: &p.Model.Weights}}
	require.NoError(t, passes.Import.Run(s))
	return s.Graph
}
