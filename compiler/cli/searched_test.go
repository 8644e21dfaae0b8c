package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
	"amkc/search"
)

// What held-out positions show no gain of is not called confirmed.
func TestSearchedText(t *testing.T) {
	c := &search.Campaign{Device: search.DeviceCUDA, HeldOut: []int{50, 60}}
	r := &searched{Best: knobs.Settings{"tiling.ring.pace": "500"}, Estimate: 0.9}
	require.Contains(t, searchedText(r, c), "best, not confirmed: about 0.9000 of the time of the start, measured\n")
	r.HeldOut = &search.Interval{Mean: 1.01, Low: 1, High: 1.02}
	require.Contains(t, searchedText(r, c), "best, not confirmed: at positions 50,60 it takes 1.0100 (1.0000 to "+
		"1.0200) of the time of the start, which shows no gain, measured\n")
	r.HeldOut = &search.Interval{Mean: 0.9, Low: 0.89, High: 0.91}
	r.Confirmed = r.HeldOut
	require.Contains(t, searchedText(r, c), "best, confirmed at positions 50,60: 0.9000 (0.8900 to 0.9100) of the time")

	// What is adopted on a predicted step whose interval has 1 in it is not called confirmed.
	r.HeldOut, r.Confirmed = &search.Interval{Mean: 0.95, Low: 0.87, High: 1.04}, nil
	r.Stage = &tuned{Name: "qkv", Adopted: r.Best, Known: true}
	require.Contains(t, searchedText(r, c), "adopted, and not confirmed, since the interval is not below 1: 0.9500 "+
		"(0.8700 to 1.0400) of the time of the start")
	r.Confirmed = &search.Interval{Mean: 0.9, Low: 0.89, High: 0.91}
	r.HeldOut = r.Confirmed
	require.Contains(t, searchedText(r, c), "adopted, and confirmed in the step: 0.9000 ")
}
