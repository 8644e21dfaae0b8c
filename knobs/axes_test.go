package knobs

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// Every value of an axis is legal, can be stated and read back, and the plain one is among them.
func TestAxes(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Axes() {
		require.False(t, seen[a.Path], a.Path)
		seen[a.Path] = true
		if a.row.Like == nil {
			require.Contains(t, a.Values, a.Plain, a.Path)
		}
		require.Contains(t, a.Values, a.Of(&ir.ScheduleConfig{}), "%s: the default of the table", a.Path)
		require.NotEmpty(t, a.Group)
		require.NotEmpty(t, a.Accepts)
		for _, v := range a.Values {
			c, err := Settings{a.Path: v}.Config()
			require.NoError(t, err)
			require.NoError(t, Check(&c).Err(), "%s %s", a.Path, v)
			require.Equal(t, v, a.Of(&c))
			back, besides := SettingsOf(&c)
			require.Empty(t, besides)
			if v != "0" || a.row.Field == nil { // the zero of a field is its default
				require.Equal(t, Settings{a.Path: v}, back)
			}
		}
	}
	for i := range table { // what no search varies has one value, or no words
		r := &table[i]
		for _, stage := range r.Each() {
			if !seen[r.Path(stage)] {
				require.True(t, r.form != nil && r.form.words == nil || len(r.Legal.OneOf) == 1 || len(r.Steps) == 1,
					r.Path(stage))
			}
		}
		ranges := r.form == nil && r.Legal.OneOf == nil && r.Legal.Words == nil
		require.True(t, ranges == (r.Steps != nil) || len(r.Steps) < len(r.Legal.OneOf), r.Path(""))
		require.True(t, slices.IsSorted(r.Steps), r.Path(""))
	}
}

// What a configuration states of other knobs is not lost.
func TestSettingsBesides(t *testing.T) {
	c, diags := ir.ParseConfig([]byte(`{"tiling": {"prompt": {"tokens": 64},
		"ring": {"pace": 600}}, "sm_assignment": {"qkv": 3}}`), "c.json")
	require.NoError(t, diags.Err())
	s, besides := SettingsOf(&c)
	require.Equal(t, Settings{"tiling.ring.pace": "600"}, s)
	require.Equal(t, []string{"tiling.prompt.tokens", "sm_assignment of stages"}, besides)
	require.Equal(t, []string{"tiling.gemv.parts", "tiling.prompt.tokens"}, Unsearched())
}

func TestSettingsInJSON(t *testing.T) {
	text := `{"page_allocation":"none","tiling.ring.pace":700}`
	var s Settings
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	require.Equal(t, Settings{"page_allocation": "none", "tiling.ring.pace": "700"}, s)
	again, err := json.Marshal(s)
	require.NoError(t, err)
	require.Equal(t, text, string(again))
	for _, bad := range []string{`{"a":1.5}`, `{"a":true}`, `{"a":null}`, `{"a":[1]}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &s), bad)
	}
}

func TestSettingsThatAreNone(t *testing.T) {
	for want, s := range map[string]Settings{
		"did you mean tiling.ring.pace":      {"tiling.ring.pase": "700"},
		`"many"; want 0 to 65536`:            {"tiling.ring.pace": "many"},
		"want graph_color, linear or none":   {"page_allocation": "buddy"},
		"want contiguous, load_balance":      {"sm_assignment": "chess"},
		"is not a knob that a search varies": {"tiling.prompt.tokens": "64"},
	} {
		_, err := s.Config()
		require.ErrorContains(t, err, want)
	}
}
