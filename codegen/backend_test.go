package codegen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/kernel"
	"amkc/runtime"
	contract "amkc/validate/kernel"
)

// validate imports neither codegen nor refvm, and has tables of its own of what they do. These tests hold them
// together.

func TestValidateKnowsTheOpcodesOfStageBodies(t *testing.T) {
	run := map[string]bool{"RMSNORM": true, "LAYERNORM": true, "GEMV_TILE": true,
		"GEMM_TILE": true, "SELECTED_TILE": true, "SUM_ROWS": true}
	for _, body := range kernel.Bodies {
		for _, name := range strings.Fields(strings.Join(body.Codes, " ")) {
			run[name] = true
		}
	}
	for c := range ir.Ops {
		code := ir.Opcode(c)
		run[code.String()] = run[code.String()] || finisherOf(code) != nil
		require.Equal(t, run[code.String()], contract.Backend.Implements(code), code)
	}
}

// A finisher is declared as finish.cuh defines it: the emitter and the reader of builds take its parameters from there.
func TestFinishersAreDeclaredAsTheyAre(t *testing.T) {
	header := string(runtime.DeviceSources()["amk/finish.cuh"])
	for _, spec := range ir.Ops {
		f := spec.Finisher
		if f == nil {
			continue
		}
		params := []string{"float v"}
		if f.Row {
			params = slices.Insert(params, 0, "const Row& r")
		}
		if f.Shape != "" {
			params = append(params, "const "+f.Shape+"& shape")
		}
		for _, key := range f.Args {
			params = append(params, "float "+key)
		}
		head := fmt.Sprintf("__device__ __forceinline__ float %s(%s) {", f.Func, strings.Join(params, ", "))
		require.Equal(t, 1, strings.Count(header, head), "finish.cuh has no %s", head)
	}
}

// The producer's walk streams matrices, which lie among the weights, and rows of the cache, which it is told apart
// from them: it copies none of these before it has waited for the end of the step before. That is what validate's
// rule of running ahead takes it to do.
func TestValidateKnowsWhatIsStreamed(t *testing.T) {
	matrix := regexp.MustCompile(`^turns\.(weights|experts)<\w+>\(p\.c, (weights|base) \+ `)
	cache := regexp.MustCompile(`^turns\.cache<\w+>\(p\.c, (layer|\d+), position(, kKvAt\[(layer|\d+)\])?\);$`)
	control := regexp.MustCompile(`^(#pragma unroll 1|for \(int layer = .*|for \(Turns turns; turns\.left\(\); ` +
		`turns\.copy\(p, step\)\) \{|const u8\* base = weights \+ .*|if \(position < \w+\) \{|\} else if \(position ` +
		`< \w+\) \{|(\} else )?if \(of_kind<\d+>\(layer\)\) \{|\} else \{|\})$`)
	for name, p := range goldenPrograms(t) {
		d, err := newCUDAData(p)
		require.NoError(t, err, name)
		matrices, caches := 0, 0
		for _, line := range d.Walk {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "turns.weights"), strings.HasPrefix(line, "turns.experts"):
				require.Regexp(t, matrix, line, name)
				matrices++
			case strings.HasPrefix(line, "turns.cache"):
				require.Regexp(t, cache, line, name)
				caches++
			default:
				require.Regexp(t, control, line, name)
			}
		}
		require.Positive(t, matrices, name)
		require.Positive(t, caches, name)
	}
}
