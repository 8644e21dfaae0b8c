package diag_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
	"amkc/ir/diag"
)

// Whatever the strings of a diagnostic are, it is one printable line, and one for each note.
func TestHostileDiagnostics(t *testing.T) {
	make := func() *diag.Diagnostic {
		d := &diag.Diagnostic{}
		injection.Fill(d)
		return d
	}
	lines := strings.Count(make().Error(), "\n")
	for _, place := range injection.Places(make()) {
		for _, hostile := range injection.Texts {
			d := make()
			for _, same := range injection.Places(d) {
				if same.Path == place.Path {
					same.Set(hostile)
				}
			}
			for _, text := range []string{d.Error(), diag.List{d, d}.Error()} {
				require.Empty(t, injection.Raw(text), "%s: %q", place.Path, hostile)
				require.Less(t, len(text), 50<<10)
			}
			require.Equal(t, lines, strings.Count(d.Error(), "\n"), "%s: %q", place.Path, hostile)
		}
	}
}
