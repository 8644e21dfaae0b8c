package codegen

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

// Whatever numbers the head of a program says, model, target and configuration, codegen emits it or says why not:
// verify hands it programs that anyone may have edited, once they are proved. AMKC_LONG tries every number, and else it
// is every third of each program.
func TestEditedHeads(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	emitted, refused := 0, 0
	graphs := goldenGraphs(t)
	for _, name := range []string{"pycoder-5m_h200_bf16", "llama-gqa_t4_fp16_split", "llama-odd-dims_h200_fp32"} {
		text, err := os.ReadFile("../testdata/golden/" + name + "/schedule.amk")
		require.NoError(t, err)
		head, rest, found := strings.Cut(string(text), "\npage ")
		require.True(t, found)
		for i, at := range regexp.MustCompile(`\b\d+\b`).FindAllStringIndex(head, -1) {
			if i%3 != 0 && os.Getenv("AMKC_LONG") == "" {
				continue
			}
			for _, n := range []string{"0", "-1", "3", "1099511627776", "9223372036854775807"} {
				edited := head[:at[0]] + n + head[at[1]:]
				p, err := ir.Parse([]byte(edited+"\npage "+rest), "edited.amk")
				if err != nil || ir.Check(p).Err() != nil || !validate.ProgramFor(kernel.Backend, p).OK {
					continue
				}
				require.NotPanics(t, func() { _, err = Project(p, graphs[name], p.Model.Name) }, edited)
				if err != nil {
					refused++
				} else {
					emitted++
				}
			}
		}
	}
	require.Positive(t, emitted)
	require.Positive(t, refused)
}
