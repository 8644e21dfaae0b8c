package passes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAssumeInert(t *testing.T) {
	assume := func(config string, names ...string) (*State, error) {
		return importConfig(t, config, State{Source: Source{AssumeInert: names}})
	}
	config := edit(tinyConfig, fieldsOf{"logit_note": 1, "auto_map": fieldsOf{"AutoModel": "modeling_x.Model"}})
	_, err := assume(config, "logit_note", "auto_map")
	require.NoError(t, err)
	_, err = assume(config, "logit_note")
	require.ErrorContains(t, err, "auto_map")
	_, err = assume(tinyConfig, "hidden_act")
	require.ErrorContains(t, err, "AMK1114", "a modelled field has its effect")
	s, err := assume(tinyConfig, "no_such")
	require.NoError(t, err)
	require.ErrorContains(t, s.Diags[0], "the config has no such field")
}

// Where it is known what a value does, --assume-inert is neither offered nor of any use.
func TestKnownEffectsCannotBeAssumedAway(t *testing.T) {
	tried := 0
	for field, k := range llamaInert {
		if k.effect == "" {
			continue
		}
		for _, value := range []any{true, 7, []string{"x"}} {
			if k.accept(value) {
				continue
			}
			config := edit(tinyConfig, fieldsOf{field: value})
			_, err := importConfig(t, config, State{Source: Source{AssumeInert: []string{field}}})
			require.ErrorContains(t, err, "AMK1104", field)
			require.ErrorContains(t, err, k.want, field)
			require.NotContains(t, err.Error(), "assume-inert", field)
			tried++
		}
	}
	require.Greater(t, tried, 30)
}

// Whatever its value, pretraining_tp only says how products are cut into slices.
func TestPretrainingTPIsInert(t *testing.T) {
	plain, err := importConfig(t, edit(tinyConfig, fieldsOf{"pretraining_tp": remove{}}), State{})
	require.NoError(t, err)
	for _, value := range []any{1, 2, 8, nil} {
		s, err := importConfig(t, edit(tinyConfig, fieldsOf{"pretraining_tp": value}), State{})
		require.NoError(t, err)
		require.Equal(t, plain.Graph, s.Graph)
	}
}
