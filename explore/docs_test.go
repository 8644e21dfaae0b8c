package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/refvm"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "explore.md"))
	require.NoError(t, err)
	return string(text)
}

// docs/explore.md has a row for each job that any build has, and for each kind of finding.
func TestManualHasEveryJobAndKind(t *testing.T) {
	text := manual(t)
	facts := &host.Facts{Prompt: 64}
	hosttest.AddPasses(facts, shape.Pass{Rows: 4}, shape.Pass{Sequences: 2}, shape.Pass{Rows: 4, Sequences: 2})
	facts.Model.MaxSeq = 1024
	named := strings.NewReplacer("sequences2rows4", "sequencesNrowsM", "sequences2", "sequencesN", "rows4", "rowsN")
	for _, j := range Jobs(facts) {
		name := named.Replace(j.Name)
		if strings.HasPrefix(name, "prompt-") {
			name = "prompt-N"
		}
		require.Contains(t, text, "\n| `"+name+"` |", j.Name)
		require.NotEmpty(t, j.Doc)
	}
	for _, source := range []string{"cpu/machine/findings.h", "cpu/machine/model.cc", "worker.go", "pool.go",
		"compare.go", "jobs.go", "jobs_compared.go"} {
		for _, kind := range kindsIn(t, source) {
			require.Contains(t, text, "`"+kind+"`", "%s reports it", source)
		}
	}
}

// kindsIn are the kinds of findings that a source reports.
func kindsIn(t *testing.T, source string) (kinds []string) {
	t.Helper()
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	switch filepath.Ext(source) {
	case ".h":
		kinds = between(string(text), " = \"", "\"")
	case ".cc":
		kinds = between(string(text), "return \"", "\";\n    case")
	default:
		kinds = append(between(string(text), "Kind: \"", "\""), between(string(text), ".found(\"", "\"")...)
	}
	require.NotEmpty(t, kinds, source)
	return kinds
}

// between lists what stands between two texts.
func between(text, before, after string) (all []string) {
	for {
		_, rest, found := strings.Cut(text, before)
		if !found {
			return all
		}
		word, rest, found := strings.Cut(rest, after)
		if !found {
			return all
		}
		all, text = append(all, word), rest
	}
}

// docs/explore-arithmetic.md has the bound of each op, in the words of the reference VM.
func TestManualHasEveryBound(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "docs", "explore-arithmetic.md"))
	require.NoError(t, err)
	text := string(file)
	for _, r := range refvm.Radii {
		require.Contains(t, text, fmt.Sprintf("\n| `%s` | %s |\n", r.Op.Name, r.Says))
	}
	table := between(text, "\n| op | ", "\n\n")
	require.Len(t, table, 1)
	require.Equal(t, len(refvm.Radii), strings.Count(table[0], "\n| `"))
}

// docs/explore.md lists what the machine assumes, in its words, and says that all is on.
func TestManualHasEveryAssumption(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("cpu", "machine", "order.cc"))
	require.NoError(t, err)
	table := between(string(source), "kTable = {", "};")
	require.Len(t, table, 1)
	text, rows := manual(t), 0
	for _, entry := range strings.Split(table[0], "{")[1:] {
		words := between(entry, `"`, `"`)
		require.Greater(t, len(words), 1)
		require.Contains(t, entry, "true}")
		require.Contains(t, text, fmt.Sprintf("| `%s` | %s |", words[0], strings.Join(words[1:], "")))
		rows++
	}
	require.Equal(t, rows, strings.Count(between(text, "\n| name | says |\n", "\n\n")[0], "\n"))
}
