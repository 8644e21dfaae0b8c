package ir

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is said of AMK3013, by amkc explain and in docs/ir.md, has the budgets of programs.
func TestStatedBudgets(t *testing.T) {
	page, err := os.ReadFile("../docs/ir.md")
	require.NoError(t, err)
	_, limits, found := strings.Cut(string(page), "| `ir.Unroll`, AMK3013 |")
	require.True(t, found)
	for _, of := range []struct {
		n    int
		what string
	}{{MaxTasks, "tasks"}, {MaxViews, "ops and views"}, {MaxBuffers, "buffers, pages and counters"}} {
		said := fmt.Sprintf("%s %s", withCommas(of.n), of.what)
		require.Contains(t, strings.ReplaceAll(CodeSize.Doc, "\n", " "), said)
		require.Contains(t, limits, said)
	}
	for _, of := range []struct {
		n    int
		said string
	}{{MaxVariants, "%s variants"}, {maxIndex, "indices up to %s"}} {
		require.Contains(t, CodeSize.Doc, fmt.Sprintf(of.said, withCommas(of.n)))
	}
}

// withCommas spells a number as documents do.
func withCommas(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
