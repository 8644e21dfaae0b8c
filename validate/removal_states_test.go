package validate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/refvm"
	"amkc/validate"
)

const keepsState = "b[0:2], st[0:1,0:2], left[0:1,0:5] = RECURRENCE(in[0], in[1], in[2:4], v[0], v[1], st[0:1,0:2], " +
	"left[0:1,0:5]) pos=pos"

// ofStates are programs whose states are not those of the tokens before. What goes wrong is a value, and each step
// adds the outer product of 1 and what is in the last two elements of in.
var ofStates = func() []elsewhere {
	state := func(says, why, shape string, want []float32, lines ...string) elsewhere {
		declared := "buffer st STATE F32 " + shape + " HBM rowmajor\nbuffer left STATE F32 [1,5] HBM rowmajor\n" +
			"buffer kv"
		return elsewhere{validate.CodeState, says, why, func(t *testing.T) subject {
			text := strings.Replace(small, "buffer kv", declared, 1) + strings.Join(lines, "") + emit(0)
			return subject{backend: validate.Reference, prog: parse(t, text)}
		}, func(t *testing.T, s subject) {
			vm, err := refvm.New(flat(t, s.prog, 0), ones{}, refvm.Options{})
			require.NoError(t, err)
			require.NoError(t, vm.Write("in", []float32{1, 1, 5, 7}))
			for pos := range 3 {
				require.NoError(t, vm.Step(pos, 0, refvm.Order{}))
			}
			have, err := vm.Read("st")
			require.NoError(t, err)
			seen, err := vm.Read("a")
			require.NoError(t, err)
			require.Equal(t, want, append(have, seen[:2]...), "the state of two tokens is 10 and 14")
		}}
	}
	return []elsewhere{
		state("COPY reads st[0,0:2], which is a STATE, and does not keep it",
			"what is read is of the tokens before the step, and not the 15 and 21 that the step makes of it", "[1,2]",
			[]float32{10, 14, 10, 14}, stage("t", 0, keepsState, "a[0:2] = COPY(st[0,0:2])")),
		state("which depends on the position", "each position has a state of the token before it alone", "[4,2]",
			[]float32{0, 0, 5, 7, 5, 7, 0, 0, 0, 0},
			stage("t", 0, strings.ReplaceAll(keepsState, "st[0:1,", "st[pos:pos+1,"))),
		state("of which t.s000 (sm 0) keeps elements too",
			"what one task has left for the next step, the other overwrites", "[1,2]", []float32{2, 2, 0, 0},
			stage("t", 0, keepsState)+stage("u", 0, strings.ReplaceAll(keepsState, "in[2:4]", "in[0:2]"))),
		state("has element [0 2], which no task of the step keeps", "no step makes anything of it", "[1,3]",
			[]float32{10, 14, 0, 0, 0}, stage("t", 0, keepsState)),
	}
}()
