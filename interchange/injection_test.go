package interchange_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/internal/injection"
	"amkc/ir"
)

// Whatever text a file of the profile holds, what is named after it in the flat form has a name.
func TestHostileTextNamesNothing(t *testing.T) {
	files, err := filepath.Glob("../testdata/amk_ir/toy_f16*/program.json")
	require.NoError(t, err)
	require.Len(t, files, 1)
	document, err := os.ReadFile(files[0])
	require.NoError(t, err)
	read, refused := 0, 0
	n := 0
	require.NoError(t, injection.JSON(document, injection.All(), func(where string, text func() []byte) {
		if n++; n > 80 && n%61 != 0 && os.Getenv("AMKC_LONG") == "" {
			return
		}
		p, _ := interchange.Parse(text(), "p.json")
		if p == nil {
			refused++
			return
		}
		flat, _ := p.Flatten()
		if flat == nil {
			return
		}
		read++
		for _, place := range injection.Places(flat) {
			if place.Value != "" {
				require.NoError(t, ir.CheckName(place.Value), "%s: %s", where, place.Path)
			}
		}
	}))
	require.Positive(t, read)
	require.Positive(t, refused)
}
