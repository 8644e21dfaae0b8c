package exploration

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/kernel"
)

var planted = flag.String("planted", "", "look for the planted faults whose names have `TEXT`; all: each")

// A fault is a wrong declaration: codegen emits by it, and readback reads the text by it.
type fault struct {
	name string
	body *kernel.Body
	edit func() (undo func())
	// model is one that has what is wrong; "": any.
	model string
}

func swap[T any](a, b *T) func() {
	*a, *b = *b, *a
	return func() { *a, *b = *b, *a }
}

// args swaps two arguments of a body, but for when they are there.
func args(b *kernel.Body, i, k int) func() (undo func()) {
	return func() func() { return swap(&b.Args[i].At, &b.Args[k].At) }
}

// places swaps where a stage has two constants of a body.
func places(b *kernel.Body, name, other string) func() (undo func()) {
	of := func(name string) *kernel.Field {
		return &b.Fields[slices.IndexFunc(b.Fields, func(f kernel.Field) bool { return f.Name == name })]
	}
	return func() func() { return swap(&of(name).At, &of(other).At) }
}

// entries swaps two values of a map.
func entries[V any](m map[string]V, a, b string) func() (undo func()) {
	return func() func() {
		m[a], m[b] = m[b], m[a]
		return func() { m[a], m[b] = m[b], m[a] }
	}
}

// activations swaps the functions of two ops.
func activations(a, b ir.Opcode) func() (undo func()) {
	return func() func() { return swap(&ir.Ops[a].Finisher.Func, &ir.Ops[b].Finisher.Func) }
}

// reads changes what a body takes from the ops of a stage.
func reads(b *kernel.Body, wrong func(s *kernel.Stage)) func() (undo func()) {
	return func() func() {
		right := b.Read
		b.Read = func(s *kernel.Stage, ops []ir.Op) {
			right(s, ops)
			wrong(s)
		}
		return func() { b.Read = right }
	}
}

var faults = []fault{
	{"embed: table and positions swapped", kernel.Embed, args(kernel.Embed, 0, 1), "opt-tied"},
	{"embed: positions one row early", kernel.Embed,
		reads(kernel.Embed, func(s *kernel.Stage) { s.PositionOffset++ }), "opt-tied"},
	{"embed_replicated: rows not scaled", kernel.EmbedReplicated,
		reads(kernel.EmbedReplicated, func(s *kernel.Stage) { s.Scaled = false }), "gemma2-tied"},
	{"add_norm: eps of another norm", kernel.AddNorm, reads(kernel.AddNorm, func(s *kernel.Stage) { s.Eps *= 2 }), ""},
	{"add_norm: vector and weight swapped", kernel.AddNorm, args(kernel.AddNorm, 0, 1), ""},
	{"add_norm_rows: in and out swapped", kernel.AddNormRows, args(kernel.AddNormRows, 0, 2), ""},
	{"add_norm_rows: 1 + weight and weight swapped", kernel.AddNormRows,
		reads(kernel.AddNormRows, func(s *kernel.Stage) { s.UnitOffset = !s.UnitOffset }), ""},
	{"gemv: 1 + weight for weight", kernel.Product, entries(kernel.NormReaders, "RmsNorm", "UnitOffsetRmsNorm"),
		"llama"},
	{"gemv: gain and shift swapped", kernel.Product, func() func() {
		n := kernel.NormReaders["LayerNorm"]
		return swap(&n.Args[1], &n.Args[2])
	}, "gpt2"},
	{"gemv: gain and bias swapped", kernel.Product, entries(kernel.Params, "gain", "bias"), "qwen2-bias"},
	{"gemv: SiLU and GELU of a gate swapped", kernel.Product, activations(ir.SiluMul, ir.GeluTanhMul), "llama"},
	{"gemv: GELU and its tanh form swapped", kernel.Product, activations(ir.GELU, ir.GeluTanh), "gpt2"},
	{"gemv: ReLU and its square swapped", kernel.Product, activations(ir.ReLU, ir.ReLU2), "opt-tied"},
	{"gemv: a cap and a factor swapped", kernel.Product, activations(ir.SoftCap, ir.MUL), "gemma2-tied"},
	{"gemv: rotation and its step swapped", kernel.Product, places(kernel.Product, "kRotation", "kRotationStep"), ""},
	{"gemv: holding and reading again swapped", kernel.Product, places(kernel.Product, "kHolds", "kReadsHeld"),
		"gpt-neox-parallel"},
	{"attend: weights of q and k swapped", kernel.Attend, args(kernel.Attend, 1, 2), "qwen3-window-half"},
	{"attend: biases of q and k swapped", kernel.Attend, args(kernel.Attend, 3, 4), "phi-head-norms"},
	{"attend: scale and cap swapped", kernel.Attend, places(kernel.Attend, "kScale", "kScoreCap"), "gemma2-tied"},
	{"attend: scale and eps swapped", kernel.Attend, places(kernel.Attend, "kScale", "kNormEps"), "qwen3-window-half"},
	{"attend: 1 + weight and own weights swapped", kernel.Attend,
		places(kernel.Attend, "kNormUnitOffset", "kOwnGains"), "gemma3-tied"},
	{"attend: a window one row short", kernel.Attend, reads(kernel.Attend, func(s *kernel.Stage) { s.Window-- }),
		"ministral-windows"},
	{"attend: splits and rows of a chunk swapped", kernel.Attend, places(kernel.Attend, "kSplits", "kShareRows"), ""},
	{"combine: in and out swapped", kernel.Combine, args(kernel.Combine, 0, 1), ""},
	{"combine: splits and width swapped", kernel.Combine, places(kernel.Combine, "kSplits", "kWidth"), ""},
	{"keep_hidden: weight and bias swapped", kernel.KeepHidden, args(kernel.KeepHidden, 1, 2), "gpt2"},
	{"keep_hidden: 1 + weight and mean swapped", kernel.KeepHidden,
		places(kernel.KeepHidden, "kUnitOffset", "kCentred"), "nemotron-half"},
	{"sample: values and indices swapped", kernel.Sample, args(kernel.Sample, 0, 1), ""},
	{"arrive and join swapped", kernel.Arrive,
		func() func() { return swap(&kernel.Arrive.Name, &kernel.Join.Name) }, ""},
	{"join_step: the join of a layer", kernel.JoinStep, func() func() {
		right := kernel.JoinStep.Name
		kernel.JoinStep.Name = kernel.Join.Name
		return func() { kernel.JoinStep.Name = right }
	}, ""},
}

// Wrong declarations are found: by what refuses to emit them, or by running what they emit. A draw is looked at if the
// fault changes what it emits.
func TestPlanted(t *testing.T) {
	if *planted == "" {
		t.Skip("make draws runs it")
	}
	o := exactOptions(t)
	const most, mostRuns = 40, 8 // draws of the body, and those that are run
	for _, f := range faults {
		if *planted != "all" && !strings.Contains(f.name, *planted) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			survived := 0
			for k := range most {
				number := slices.Index(bodies, f.body) + k*len(bodies)
				dir := t.TempDir()
				d := newDraw(number, *seed, 0)
				for i, p := range drawn { // what takes long to compile is left to TestDraws
					if slices.Contains([]string{"rows", "sequences", "prompt", "group"}, p.name) {
						d.picked[i] = 0
					}
					if at := slices.Index(d.of(i).values, f.model); p.name == "model" && at >= 0 {
						d.picked[i] = at
					}
				}
				right, err := d.emit(t, filepath.Join(dir, "right"))
				if err != nil && strings.Contains(err.Error(), noRoom) {
					continue
				}
				require.NoError(t, err)
				undo := f.edit()
				wrong, err := d.emit(t, filepath.Join(dir, "wrong"))
				how := "refused"
				if err == nil && sameKernels(t, right.dir, wrong.dir) {
					undo()
					continue
				}
				if err == nil {
					how = "run"
					jobs := []string{"reference"} // the shortest that has the body
					if f.body == kernel.AddNormRows {
						jobs = nil
					}
					err = wrong.run(t, o, jobs...)
				}
				undo()
				if err != nil {
					text, _, _ := strings.Cut(err.Error(), "\n")
					fmt.Printf("| %s | %s | %d | %s |\n", f.name, how, number, text)
					return
				}
				fmt.Printf("| %s | survives | %d | %s |\n", f.name, number, d)
				if survived++; survived == mostRuns {
					break
				}
			}
			t.Errorf("%s: no draw finds it", f.name)
		})
	}
}

// sameKernels reports whether builds have the same sources.
func sameKernels(t *testing.T, a, b string) bool {
	t.Helper()
	for _, pattern := range []string{"*.cu", "*.h", "*/*.cu", "*/*.h"} {
		paths, err := filepath.Glob(filepath.Join(a, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			name, err := filepath.Rel(a, path)
			require.NoError(t, err)
			one, err := os.ReadFile(path)
			require.NoError(t, err)
			other, err := os.ReadFile(filepath.Join(b, name))
			if errors.Is(err, os.ErrNotExist) || err == nil && string(one) != string(other) {
				return false
			}
			require.NoError(t, err)
		}
	}
	return true
}
