package diag

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Codes are never reused, neither those that are registered nor those that no release reports any more.
func TestNew(t *testing.T) {
	c := New("AMK9998", "a title", " a text ")
	t.Cleanup(func() { delete(registry, c.ID) })
	require.Same(t, c, Lookup("AMK9998"))
	require.Equal(t, "a text", c.Doc)
	for _, id := range append([]string{"AMK9998", "AMK999", "XYZ9999"}, retired...) {
		require.Panics(t, func() { New(id, "another title", "") }, id)
	}
}
