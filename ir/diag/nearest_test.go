package diag_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

func TestNearest(t *testing.T) {
	targets := []string{"a100", "a6000", "h100", "h200", "l4", "l40", "l40s", "rtx4080", "rtx4090", "jetson-orin"}
	for word, want := range map[string]string{
		"h20": "h200", "H2OO": "", "h300": "h100 h200", "h201": "h200", "h2000": "h200", "4090": "rtx4090",
		"rtx409": "rtx4090", "RTX4O9O": "rtx4090",
		"a100-80gb": "a100", "jetson": "jetson-orin", "orin": "jetson-orin", "l5": "l4", "l40x": "l40 l40s",
		"mi300": "", "": "", "h010": "h100",
		strings.Repeat("h200", 100000): "",
	} {
		require.Equal(t, want, strings.Join(diag.Nearest(word, targets), " "), word)
	}
	flags := []string{"--prompt", "--ids", "--max-seq", "--target", "-q"}
	require.Equal(t, []string{"--prompt"}, diag.Nearest("--promt", flags))
	require.Equal(t, []string{"--max-seq"}, diag.Nearest("--maxseq", flags))
	require.Equal(t, []string{"--target"}, diag.Nearest("--tagret", flags))
	require.Empty(t, diag.Nearest("--frobnicate", flags))
	require.Equal(t, []string{"--temperature"}, diag.Nearest("--temp", []string{"--help", "--temperature"}))
	require.Equal(t, []string{"--top-k", "--top-p"}, diag.Nearest("--top", []string{"--help", "--top-k", "--top-p"}))
	require.Empty(t, diag.Nearest("h200", nil))
}

func TestGuess(t *testing.T) {
	require.Equal(t, "did you mean cost?", diag.Guess("cots", []string{"run", "cost"}, "want run or cost"))
	require.Equal(t, "did you mean h100 or h200?", diag.Guess("h300", []string{"a100", "h100", "h200"}, "none"))
	require.Equal(t, "none", diag.Guess("x5", []string{"x1", "x2", "x3", "x4"}, "none"), "too many to name")
	require.Equal(t, "want run or cost", diag.Guess("xyz", []string{"run", "cost"}, "want run or cost"))
}
