package jinja

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// Any template renders any variables or fails with a reason, the same each time, within its limits.
func FuzzRender(f *testing.F) {
	cases, _ := readCases(f)
	variables := `{"s": "Grüße", "n": 7, "f": 2.5, "list": [3, 1, 2], "d": {"a": 1, "b": null}, "t": true,
		"users": [{"name": "a", "age": 1}, {"name": "B", "age": 1}], "words": ["b", "A"], "nul": null, "big": 1e30}`
	for _, c := range cases {
		f.Add(*c[0], variables)
	}
	f.Fuzz(func(t *testing.T, source, variables string) {
		defer watch.Execution()()
		v, err := FromJSON([]byte(variables))
		d, ok := v.(*Dict)
		if err != nil || !ok {
			d = &Dict{}
		}
		o := Options{Now: now, Limits: Limits{Steps: 200_000, Memory: 8 << 20, Output: 1 << 20}}
		text, err := render(source, d, o)
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.What)
		}
		require.LessOrEqual(t, len(text), 1<<20)
		again, errAgain := render(source, d, o)
		require.Equal(t, text, again)
		require.Equal(t, err == nil, errAgain == nil)
	})
}

// FromJSON takes what encoding/json takes, but for what the documentation says, and writes it again as it was.
func FuzzFromJSON(f *testing.F) {
	for _, text := range []string{`{"a": [1, -2.5, 1e3, "x\u00e9\ud83d\ude00", null, true], "a": {}}`, `[[[]]]`,
		`"\ud800"`, `123456789012345678901234567890`, `1e999`, `{"a": 1`, `{} x`, ``} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		v, err := FromJSON(data)
		if !json.Valid(data) {
			require.Error(t, err)
			return
		}
		if err != nil {
			return
		}
		d := &Dict{}
		d.Set("v", v)
		text, err := render("{{ v | tojson }}", d, Options{})
		if err != nil {
			require.Equal(t, Limit, err.(*Error).Kind)
			return
		}
		again, err := FromJSON([]byte(text))
		require.NoError(t, err, text)
		d.Set("v", again)
		twice, err := render("{{ v | tojson }}", d, Options{})
		require.NoError(t, err)
		require.Equal(t, text, twice)
	})
}
