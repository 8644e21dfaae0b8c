package compiler

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/readback"
	"amkc/validate"
	"amkc/validate/kernel"
)

// What a program multiplies cos and sin by is what the kernel multiplies them by, as rows are finished and in
// attention, and where it says nothing the kernel does nothing. One number is for the whole step.
func TestEditsOfScaledRotations(t *testing.T) {
	const constant = "constexpr float kRopeScale = "
	for _, model := range []string{"llama-rope-yarn", "qwen3-rope-yarn", "phi3-short", "llama-gqa", "qwen3-qknorm"} {
		t.Run(model, func(t *testing.T) {
			l := lowerModel(t, "zoo/"+model, "h200", ir.BF16, 64, ir.ScheduleConfig{})
			original, err := sourcesOf(l.Program, l.Graph)
			require.NoError(t, err)
			scaled := strings.HasSuffix(model, "yarn") || strings.HasPrefix(model, "phi3")
			require.Equal(t, scaled, l.Graph.Rope.Scale != 1)
			for file, text := range map[string]string{"model_config.h": constant,
				"megakernel.cu": "kRopeInvFreq), kRopeScale)", "reference.cu": "kRotationScale);"} {
				require.Equal(t, scaled, bytes.Contains(original[file], []byte(text)), file)
			}
			set := func(rotations int, scale float64) (map[string][]byte, error) {
				p, err := ir.Parse(ir.Print(l.Program), "edited.amk")
				require.NoError(t, err)
				for i := range p.Variants {
					require.NoError(t, eachStage(&p.Variants[i], func(s *ir.Stage, _ int) error {
						for k := range s.Ops {
							if o := &s.Ops[k]; o.Code == ir.ROPE && rotations > 0 {
								rotations--
								o.Params = setParam(o.Params, scale)
							}
						}
						return nil
					}))
				}
				require.True(t, validate.ProgramFor(kernel.Backend, p).OK)
				return sourcesOf(p, l.Graph)
			}
			for _, scale := range []float64{0.5, 1} { // a 1 that is said is emitted as such
				files, err := set(100, scale)
				require.NoError(t, err)
				require.NotEqual(t, original["model_config.h"], files["model_config.h"])
				require.Contains(t, string(files["model_config.h"]), constant)
				require.Equal(t, string(original["reference.cu"]), string(files["reference.cu"]), "as the model says")
			}
			if _, err := set(1, 0.5); strings.HasPrefix(model, "qwen3") {
				require.ErrorContains(t, err, "the kernel's attend would compute", "q alone")
			} else {
				require.NoError(t, err, "q and k are one op")
			}
		})
	}
}

func setParam(params []ir.Param, scale float64) []ir.Param {
	for i := range params {
		if params[i].Key == "scale" {
			params[i].Float = scale
			return params
		}
	}
	return append(params, ir.FloatParam("scale", scale))
}

// The reader takes the scale and the number of pairs from the constants, which the kernel must pass.
func TestRotationsReadBack(t *testing.T) {
	l := lowerModel(t, "zoo/phi3-short", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	files, err := codegen.CUDA(l.Program)
	require.NoError(t, err)
	for _, c := range []struct{ file, old, text, want string }{
		{"megakernel.cu", ", kRopeScale)", ")", "want both, or neither"},
		{"megakernel.cu", ", kRopeScale)", ", kHidden)", "want kRopeScale"},
		{"model_config.h", "constexpr float kRopeScale = ", "constexpr float kRopeStretch = ", "want both, or neither"},
		{"model_config.h", "float kRopeScale = ", "int kRopeScale = ", "kRopeScale"},
		{"megakernel.cu", "rotate_setup<kRotatedPairs>(", "rotate_setup(", "want both, or neither"},
		{"megakernel.cu", "rotate_setup<kRotatedPairs>(", "rotate_setup<9>(", "want kRotatedPairs"},
		{"megakernel.cu", "rotate_setup<kRotatedPairs>(", "rotate_setup<kHeadDim>(", "want kRotatedPairs"},
		{"model_config.h", "int kRotatedPairs = ", "int kRotated = ", "want both, or neither"},
		{"model_config.h", "kRotatedPairs = 9", "kRotatedPairs = 13", "want at most half of kHeadDim, which is 24"},
		{"model_config.h", "kRotatedPairs = 9", "kRotatedPairs = 0", "kRotatedPairs"},
	} {
		edited := map[string][]byte{}
		for _, name := range readback.Files {
			edited[name] = files[name]
		}
		require.Contains(t, string(edited[c.file]), c.old)
		edited[c.file] = bytes.Replace(edited[c.file], []byte(c.old), []byte(c.text), 1)
		_, diags := readback.Program(edited)
		require.ErrorContains(t, diags.Err(), c.want, "%s", c.text)
	}
}

// How many pairs of a head rotate is what the kernel rotates: an edit of the operand and its buffer is emitted, also to
// all pairs and in programs that rotate all, and one that leaves them at odds is refused. The plain kernels need those
// of the model.
func TestEditsOfRotatedPairs(t *testing.T) {
	const constant = "constexpr int kRotatedPairs = "
	for model, own := range map[string]bool{"phi3-short": true, "llama-gqa": false, "qwen3-qknorm": false} {
		t.Run(model, func(t *testing.T) {
			l := lowerModel(t, "zoo/"+model, "h200", ir.BF16, 64, ir.ScheduleConfig{})
			half := l.Graph.Model.HeadDim / 2
			original, err := codegen.CUDA(l.Program)
			require.NoError(t, err)
			require.Equal(t, own, bytes.Contains(original["model_config.h"], []byte(constant)))
			require.Equal(t, own, bytes.Contains(original["megakernel.cu"],
				[]byte("rotate_setup<kRotatedPairs>(c,")))
			set := func(views, buffer int) *ir.Program {
				p, err := ir.Parse(ir.Print(l.Program), "edited.amk")
				require.NoError(t, err)
				for i := range p.Buffers {
					if p.Buffers[i].Name == "rope.inv_freq" {
						p.Buffers[i].Shape = []int{buffer}
					}
				}
				for i := range p.Variants {
					require.NoError(t, eachStage(&p.Variants[i], func(s *ir.Stage, _ int) error {
						for k := range s.Ops {
							if o := &s.Ops[k]; o.Code == ir.ROPE {
								o.In[1].Dims = []ir.Range{ir.Span(ir.Int(0), ir.Int(views))}
							}
						}
						return nil
					}))
				}
				require.True(t, validate.ProgramFor(kernel.Backend, p).OK)
				return p
			}
			for _, pairs := range []int{1, 3, half - 1, half} {
				p := set(pairs, pairs)
				files, err := codegen.CUDA(p)
				require.NoError(t, err)
				require.NoError(t, checkEmitted(files, p), "%d of %d", pairs, half)
				require.Equal(t, pairs < half, bytes.Contains(files["model_config.h"], []byte(constant)))
				_, err = sourcesOf(p, l.Graph)
				if len(l.Graph.Rope.InvFreq) == pairs {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, fmt.Sprintf("needs %d frequencies, and rope.inv_freq holds %d",
						len(l.Graph.Rope.InvFreq), pairs))
				}
			}
			_, err = codegen.CUDA(set(3, half))
			require.ErrorContains(t, err, "rotates 3 pairs of a head by them: want as many")
		})
	}
}
