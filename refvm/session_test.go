package refvm

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// Weights are asked for by the index of the member, whatever the indices of its family are, and stand where unrolling
// puts them.
func TestWeightsOfFamilies(t *testing.T) {
	p := parse(t, `model m max_seq=1
buffer plain CONST F32 [1] HBM rowmajor
buffer L{i}.odd for 1..5 by 2 WEIGHT F32 [1] HBM rowmajor
buffer L{i}.all for 2..3 WEIGHT F32 [1] HBM rowmajor
group g{i} for 0..1 of L03.odd plain
variant v pos 0..0
`)
	var asked []string
	supply := fromFamilies(p, weightsFunc(func(b *ir.Buffer, i int) ([]float32, error) {
		asked = append(asked, fmt.Sprint(b.Name, " ", i))
		return nil, nil
	}))
	flat := unroll(t, p)
	var names []string
	for k := range flat.Buffers {
		_, err := supply(k)
		require.NoError(t, err)
		names = append(names, flat.Buffers[k].Name)
	}
	require.Equal(t, []string{"plain", "L01.odd", "L03.odd", "L05.odd", "L02.all", "L03.all"}, names)
	require.Equal(t, []string{"plain 0", "L{i}.odd 1", "L{i}.odd 3", "L{i}.odd 5", "L{i}.all 2", "L{i}.all 3"}, asked)
}

// A run ends where the program says so: at an id that was given, in the last step, and nowhere else.
func TestSessionStops(t *testing.T) {
	text, err := os.ReadFile("../testdata/ir/tiny.amk")
	require.NoError(t, err)
	p := parseFile(t, string(text))
	session := func() *Session {
		s, err := NewSession(p, noise(1), Options{})
		require.NoError(t, err)
		return s
	}
	chosen := func(s *Session) int {
		_, next, err := s.Step(3)
		require.NoError(t, err)
		return next
	}
	s := session()
	next := chosen(s)
	require.False(t, s.Stopped(), "no id was given")
	for _, c := range []struct {
		ids   []int
		last  bool
		stops bool
	}{{[]int{next}, false, true}, {[]int{next + 1, next}, false, true}, {[]int{next + 1}, false, false},
		{nil, true, true}, {[]int{next + 1}, true, true}} {
		s := session()
		require.NoError(t, s.StopAt(c.ids))
		s.Last = c.last
		require.Equal(t, next, chosen(s))
		require.Equal(t, c.stops, s.Stopped(), c)
	}
	require.Equal(t, CodeBuffer.ID, code(t, s.StopAt(make([]int, ir.MaxStopIDs+1))))
	require.NoError(t, s.StopAt(make([]int, ir.MaxStopIDs)))
	s, err = NewSession(parse(t, "model m max_seq=1\nvariant v pos 0..0\n"), noise(1), Options{})
	require.NoError(t, err)
	require.Equal(t, CodeBuffer.ID, code(t, s.StopAt(nil)), "no input takes them")
	require.False(t, s.Stopped())
}
