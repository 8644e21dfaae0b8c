package jinja

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// now is what testdata/make_cases.py has for the clock.
var now = time.Date(2025, 3, 7, 14, 5, 9, 123456000, time.UTC)

// readCases returns the templates of testdata/cases.json with what jinja2 makes of them, and the variables.
func readCases(t testing.TB) (cases [][2]*string, variables *Dict) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases.json"))
	require.NoError(t, err)
	var all struct {
		Variables json.RawMessage
		Cases     [][2]*string
	}
	require.NoError(t, json.Unmarshal(data, &all))
	v, err := FromJSON(all.Variables)
	require.NoError(t, err)
	return all.Cases, v.(*Dict)
}

func render(source string, variables *Dict, o Options) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	return t.Render(variables, o)
}

// Every construct prints what jinja2 prints for it, and fails where jinja2 fails. What this package does not have,
// which a question mark says, is refused by name.
func TestCases(t *testing.T) {
	cases, variables := readCases(t)
	require.Greater(t, len(cases), 1000)
	for _, c := range cases {
		source, lacking := strings.CutPrefix(*c[0], "?")
		got, err := render(source, variables, Options{Now: now})
		var e *Error
		if err != nil {
			require.ErrorAs(t, err, &e, source)
		}
		switch {
		case lacking:
			if err == nil || e.Kind != Unsupported {
				t.Errorf("%q: %v, %q; want it refused as not supported", source, err, got)
			}
		case c[1] == nil && err == nil:
			t.Errorf("%q: got %q; want an error", source, got)
		case c[1] != nil && err != nil:
			t.Errorf("%q: %v; want %q", source, err, *c[1])
		case c[1] != nil && got != *c[1]:
			t.Errorf("%q: got %q; want %q", source, got, *c[1])
		case c[1] == nil && e.Kind == Unsupported:
			t.Errorf("%q: %v, and jinja2 refuses it", source, err)
		}
	}
}
