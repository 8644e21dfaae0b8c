package host

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// exchanged is what 4 SMs do in n stages of 10 µs, seen by clocks that differ.
func exchanged(stages int, off [4]float64) recorded {
	var r recorded
	for sm := range off {
		for i := range stages {
			at, name := float64(10*i)+off[sm], fmt.Sprintf("L%02d.o", i)
			late := 0.0
			if sm == i%4 {
				late = 0.5 // one that was still at work
			}
			r.add(Span{SM: sm, Role: "consumer", Kind: "exchange wait", Stage: name, Start: at + 1, End: at + 4 + late})
			r.add(Span{SM: sm, Role: "consumer", Kind: "compute", Stage: name, Start: at + 4 + late, End: at + 11})
		}
		r.add(Span{SM: sm, Role: "producer", Kind: "slot wait", Stage: "L00.o", Start: off[sm] + 2, End: off[sm] + 3})
	}
	return r
}

func TestAlignTakesOutWhatClocksDiffer(t *testing.T) {
	got, want := exchanged(9, [4]float64{0.75, -1, 0, 0.5}), exchanged(9, [4]float64{})
	got.align(4)
	require.Len(t, got.spans, len(want.spans))
	shift := got.spans[0].Start - want.spans[0].Start // of all SMs alike
	for i, s := range got.spans {
		require.InDelta(t, want.spans[i].Start+shift, s.Start, 1e-9, "%d", i)
		require.InDelta(t, want.spans[i].End+shift, s.End, 1e-9, "%d", i)
	}
}

// A wait that some SM does not have says nothing, and neither do few.
func TestAlignNeedsExchangesOfAll(t *testing.T) {
	off := [4]float64{0.75, -1, 0, 0.5}
	few, untouched := exchanged(leastExchanges-1, off), exchanged(leastExchanges-1, off)
	few.align(4)
	require.Equal(t, untouched, few)
	some := exchanged(9, off)
	without := func() (r recorded) {
		for _, s := range some.spans {
			if s.SM != 3 || s.Stage < "L04" || s.Role == "producer" {
				r.spans = append(r.spans, s)
			}
		}
		return r
	}
	got := without()
	got.align(4)
	require.Equal(t, without(), got)
	var none recorded
	none.align(0)
	none.align(4)
	require.Empty(t, none.spans)
}

// A stage may wait twice, as lm_head does: for what it reads, and for what the others found.
func TestAlignTellsWaitsOfAStageApart(t *testing.T) {
	var r recorded
	for sm, off := range []float64{0, 0.5, 0} {
		for i := range 6 {
			r.add(Span{SM: sm, Role: "consumer", Kind: "exchange wait", Stage: "lm_head", Start: float64(10*i) + off,
				End: float64(10*i) + 1 + off})
			r.add(Span{SM: sm, Role: "consumer", Kind: "compute", Stage: "lm_head", Start: float64(10*i) + 1 + off,
				End: float64(10*i) + 10 + off})
		}
	}
	r.align(3)
	for _, s := range r.spans {
		require.InDelta(t, float64(int(s.Start+0.25)), s.Start, 1e-9)
	}
	require.InDelta(t, 1, r.spans[12].End, 1e-9)
}
