package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The picture in ARCHITECTURE.md is the list that `amkc passes` prints, whole.
func TestArchitectureShowsThePasses(t *testing.T) {
	code, list, _ := amkc("passes")
	require.Zero(t, code)
	document, err := os.ReadFile("../../ARCHITECTURE.md")
	require.NoError(t, err)
	picture := "\n\n    " + strings.ReplaceAll(strings.TrimSpace(list), "\n", "\n    ") + "\n\n"
	require.Contains(t, string(document), picture)
}
