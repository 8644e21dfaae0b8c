package codegen

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Launches for a layer or a stage have every statement of the loop, once and in order, and besides only what a launch
// takes up from the one before, or leaves. None of them walks a loop over layers.
func TestPartsDoWhatTheLoopDoes(t *testing.T) {
	with := map[string]bool{}
	for name, p := range goldenPrograms(t) {
		d, err := newCUDAData(p)
		require.NoError(t, err)
		if with[name] = d.Parts != nil; !with[name] {
			continue
		}
		var walk, consume, numbers []string
		for i := range d.Parts {
			part := &d.Parts[i]
			numbers = append(numbers, part.Enum)
			walk, consume = append(walk, part.Walk()...), append(consume, part.Consume()...)
		}
		for _, s := range d.Stages {
			require.Contains(t, numbers, s.Enum, name)
		}
		require.Len(t, numbers, len(d.Stages), name)
		require.Equal(t, statements(d.Walk), statements(walk), name)
		taken := func(s string) bool {
			return strings.HasPrefix(s, "rotate_setup") || s == "consumer_barrier();" || s == "has_residual = true;" ||
				s == "take_token(c);" || s == "take_residual(c, has_residual);" || s == "leave_token(c);"
		}
		require.Equal(t, slices.DeleteFunc(statements(d.Consume), func(s string) bool { return s == endsLaunch }),
			slices.DeleteFunc(statements(consume), taken), name)
		files, err := CUDA(p)
		require.NoError(t, err)
		_, own, found := strings.Cut(string(files["measure.cu"]), "#if AMK_PARTS  //")
		require.True(t, found, name)
		own, _, _ = strings.Cut(own, "extern \"C\"")
		require.NotContains(t, own, "kLayers", name)
		require.Equal(t, 1, strings.Count(own, "take_token(c);"), name)
		require.Equal(t, 1, strings.Count(own, "leave_token(c);"), name)
		require.Equal(t, strings.Count(own, "rotate_setup") > 0, len(d.Rotations) > 0, name)
		require.Positive(t, strings.Count(own, "take_residual(c, has_residual);"), name)
	}
	for name, want := range map[string]bool{"llama-gqa_h200_bf16_long": true, "qwen3-qknorm_h200_bf16": true,
		"pycoder-5m_h200_bf16": true, "gemma3-tied_h200_bf16": false, "gpt-neox-parallel_h200_bf16": false} {
		require.Equal(t, want, with[name], name)
	}
	barriers, err := newCUDAData(withBarriers(goldenPrograms(t)["pycoder-5m_h200_bf16"]))
	require.NoError(t, err)
	require.Empty(t, barriers.Parts, "a barrier of all SMs is not a stage")
	pass, err := newCUDAData(builtProgram(t, "pycoder-5m_h200_bf16/rows8"))
	require.NoError(t, err)
	require.Empty(t, pass.Parts, "a step of several tokens is not measured in parts")
	flat, err := newCUDAData(unrolled(t, goldenPrograms(t)["pycoder-5m_h200_bf16"], -1))
	require.NoError(t, err)
	require.Empty(t, flat.Parts, "layers one by one")
}

// statements are those of a walk without its loops and branches, each in one line.
func statements(lines []string) []string {
	var out []string
	for _, line := range lines {
		text := strings.TrimSpace(line)
		switch {
		case len(out) > 0 && !strings.HasSuffix(out[len(out)-1], ";"):
			out[len(out)-1] += " " + text
		case strings.HasSuffix(text, "{") || text == "}" || strings.HasPrefix(text, "#pragma") ||
			strings.HasPrefix(text, "} else") || strings.HasPrefix(text, "const u8* base"):
		default:
			out = append(out, text)
		}
	}
	return out
}

// An exchange names its stage by number too, since stages of several variants may have one label: the numbers are those
// of the variant's own stages.
func TestExchangesAreNumbered(t *testing.T) {
	shared := 0
	for name, p := range goldenPrograms(t) {
		f, err := Facts(p)
		require.NoError(t, err, name)
		for _, v := range f.Variants {
			before := -1
			for _, e := range v.Exchanges {
				require.Greater(t, e.Number, before, "%s: %s of variant %s", name, e.Stage, v.Name)
				require.Equal(t, e.Stage, f.Stages[e.Number], name)
				if slices.Index(f.Stages, e.Stage) != e.Number {
					shared++
				}
				before = e.Number
			}
		}
	}
	require.Positive(t, shared, "some labels are of several stages")
}
