package knobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a configuration states are settings, whether a schedule can have them or not.
func TestParseSettings(t *testing.T) {
	s, is := ParseSettings([]byte(`{"tiling": {"ring": {"pace": 600, "pase": 1.50}, "none": {}}, "pipelining_depth": 0,
		"page_allocation": "none", "fusion_grouping": [["a", "b"], []], "x": null, "y": true, "z\u001b": "a\ud800b"}`))
	require.True(t, is)
	require.Equal(t, Settings{"tiling.ring.pace": "600", "tiling.ring.pase": "1.50", "pipelining_depth": "0",
		"page_allocation": "none", "fusion_grouping": `[["a","b"],[]]`, "x": "null", "y": "true",
		"z\x1b": "a\ufffdb"}, s)
	_, err := s.Config()
	require.ErrorContains(t, err, "AMK2001")
	require.NotContains(t, err.Error(), "\x1b")
	_, err = Settings{"pipelining_depth": "0"}.Config()
	require.ErrorContains(t, err, `pipelining_depth: error: "0"; want 1 to 16 [AMK2002]`)

	for _, text := range []string{"", "3", "[]", `"a"`, "{", `{"a"`, `{"a":}`, `{"a":1}}`, `{"a":1} 2`, `{"a":1,"a":1}`,
		`{"a":{"b":1},"a.b":2}`, `{"a":{"b":1`, `{"a":1e}`, `{"` + strings.Repeat("a", 300) + `":1}`,
		`{"a":"` + strings.Repeat("a", 300) + `"}`, `{"a":[` + strings.Repeat("1,", 200) + `1]}`,
		strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), strings.Repeat(" ", 70_000) + "{}"} {
		_, is := ParseSettings([]byte(text))
		require.False(t, is, "%.60s", text)
	}
}
