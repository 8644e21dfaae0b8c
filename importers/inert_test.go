package importers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
)

func TestAssumeInert(t *testing.T) {
	assume := func(config string, names ...string) (*imported, error) {
		return importConfig(t, config, Source{AssumeInert: names})
	}
	config := edit(modeltest.TinyConfig, fieldsOf{"logit_note": 1,
		"auto_map": fieldsOf{"AutoModel": "modeling_x.Model"}})
	_, err := assume(config, "logit_note", "auto_map")
	require.NoError(t, err)
	_, err = assume(config, "logit_note")
	require.ErrorContains(t, err, "auto_map")
	_, err = assume(modeltest.TinyConfig, "hidden_act")
	require.ErrorContains(t, err, "AMK1114", "a modelled field has its effect")
	s, err := assume(modeltest.TinyConfig, "no_such")
	require.NoError(t, err)
	require.ErrorContains(t, s.Warnings[0], "the config has no such field")
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
			config := edit(modeltest.TinyConfig, fieldsOf{field: value})
			if field == perLayerConfig { // which a Llama may have
				config = edit(config, fieldsOf{"model_type": "mistral", "architectures": remove{}})
			}
			_, err := importConfig(t, config, Source{AssumeInert: []string{field}})
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
	plain, err := importConfig(t, edit(modeltest.TinyConfig, fieldsOf{"pretraining_tp": remove{}}), Source{})
	require.NoError(t, err)
	for _, value := range []any{1, 2, 8, nil} {
		s, err := importConfig(t, edit(modeltest.TinyConfig, fieldsOf{"pretraining_tp": value}), Source{})
		require.NoError(t, err)
		require.Equal(t, plain.Graph, s.Graph)
	}
}

// Fields that begin with an underscore are notes of tools, whatever they say; a class reads one of them, OPT's.
func TestNotesOfTools(t *testing.T) {
	for _, base := range []string{modeltest.TinyConfig, cohere2Config, gpt2Config, optConfig} {
		plain, err := importConfig(t, base, Source{})
		require.NoError(t, err)
		for field, value := range map[string]any{"_model_name_or_path": "m.gguf", "_name_or_path": "x",
			"_commit_hash": nil, "_attn_implementation_autoset": true, "_sliding_window_pattern": 4,
			"_of_a_tool_to_come": []any{1}} {
			s, err := importConfig(t, edit(base, fieldsOf{field: value}), Source{})
			require.NoError(t, err, field)
			require.Equal(t, plain.Graph, s.Graph, field)
		}
	}
	_, err := importConfig(t, edit(optConfig, fieldsOf{"_remove_final_layer_norm": true}), Source{})
	require.ErrorContains(t, err, "there is no norm before the logits")
	_, err = importConfig(t, edit(modeltest.TinyConfig, fieldsOf{"model_name_or_path": "m.gguf"}), Source{})
	require.ErrorContains(t, err, "AMK1105")
}

// What a mixture of experts is trained with is inert in a dense model; a router's logits are those of experts.
func TestFieldsOfRouters(t *testing.T) {
	plain, err := importConfig(t, modeltest.TinyConfig, Source{})
	require.NoError(t, err)
	s, err := importConfig(t, edit(modeltest.TinyConfig, fieldsOf{"output_router_logits": false,
		"router_aux_loss_coef": 0.01,
		"router_jitter_noise":  0.1}), Source{})
	require.NoError(t, err)
	require.Equal(t, plain.Graph, s.Graph)
	_, err = importConfig(t, edit(modeltest.TinyConfig, fieldsOf{"output_router_logits": true}), Source{})
	require.ErrorContains(t, err, experts)
}
