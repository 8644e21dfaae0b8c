package validate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
	"amkc/validate"
)

func TestAcceptsCompiledShape(t *testing.T) {
	for _, how := range []string{"flagged", "counter"} {
		rep := validate.Program(program(t, toy.with(how)))
		require.NoError(t, rep.Diags.Err())
		require.Empty(t, rep.Diags)
		require.True(t, rep.OK)
		require.Equal(t, 2, rep.Stats.Variants)
		require.Equal(t, toy.sms, rep.Stats.Chains)
		require.Zero(t, rep.Stats.Positions, "the symbolic proof decides")
	}
}

func TestAcceptsWhatPassesMake(t *testing.T) {
	files, err := filepath.Glob("../passes/testdata/exchange/*.out.amk")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		p, err := ir.Parse(data, file)
		require.NoError(t, err)
		rep := validate.Program(p)
		require.NoError(t, rep.Diags.Err(), file)
	}
}

func TestAcceptsProfileLowerings(t *testing.T) {
	files, err := filepath.Glob("../testdata/amk_ir/*/program.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		p, diags := interchange.Parse(data, file)
		require.NoError(t, diags.Err(), file)
		f, diags := p.Flatten()
		require.NoError(t, diags.Err(), file)
		rep := validate.Flat(f)
		require.NoError(t, rep.Diags.Err(), file)
	}
}

// The carried vector of a model may live in one buffer for all layers: each exchange has its epoch.
func TestAcceptsBufferRewrittenByAnotherExchange(t *testing.T) {
	f := flat(t, program(t, toy), 0)
	m := mutant{f, t}
	from, to := m.buffer("L01.x"), m.buffer("L00.x")
	for i := range f.Tasks {
		for _, op := range f.Tasks[i].Ops {
			for _, bufs := range [][]int{op.InBuf, op.OutBuf} {
				for k := range bufs {
					if bufs[k] == from {
						bufs[k] = to
					}
				}
			}
		}
	}
	require.NoError(t, validate.Flat(f).Diags.Err())
}

// What works element by element may write the elements that it reads. Nothing else may, on plain vectors of one length:
// either they do not fit it, or they overlap.
func TestInPlace(t *testing.T) {
	for _, spec := range ir.Ops {
		in := strings.TrimSuffix(strings.Repeat("a[0:2], ", min(2, max(1, spec.In.Max))), ", ")
		text := "a[0:2] = " + spec.Name + "(" + in + ")"
		for i := range spec.Params {
			if p := &spec.Params[i]; p.Needed && p.Real {
				text += " " + p.Key + "=0.5"
			} else if p.Needed {
				text += fmt.Sprintf(" %s=%d", p.Key, max(1, p.Lo))
			}
		}
		p := parse(t, small+stage("t", 0, "a[0:2] = COPY(in[0:2])", text)+emit(0))
		require.Equal(t, spec.Pointwise, validate.Program(p).OK, spec.Name)
	}
}
