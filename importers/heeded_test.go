package importers

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// otherValues are, for each field that some family has, what testdata/models/fields.py has given it in any of them, and
// for what is read of a config alongside the model's own fields a value that another model has.
func otherValues(t testing.TB) map[string][]json.RawMessage {
	out := map[string][]json.RawMessage{
		"model_type": {[]byte(`"bloom"`)}, "architectures": {[]byte(`["LlamaForSequenceClassification"]`)},
		"quantization_config": {[]byte(`{"quant_method": "gptq"}`)}, "quantization": {[]byte(`{"bits": 4}`)},
		"compression_config": {[]byte(`{"format": "dense"}`)},
		"text_config":        {[]byte(`{"model_type": "gemma"}`)},
	}
	for _, f := range Families {
		for _, base := range readFlips(t, f.ModelType).Bases {
			for path, flips := range base.Fields {
				if strings.Contains(path, "rope_parameters.") || strings.Contains(path, "rope_scaling.") {
					continue // a key of an object
				}
				field := path[strings.LastIndexByte(path, '.')+1:]
				if has := valueAt(t, base.Config, path); string(has) != "null" {
					out[field] = append(out[field], has)
				}
				for _, flip := range flips {
					if flip.value != nil {
						out[field] = append(out[field], flip.value)
					}
				}
			}
		}
	}
	for field, values := range out {
		slices.SortFunc(values, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
		out[field] = slices.CompactFunc(values, func(a, b json.RawMessage) bool { return string(a) == string(b) })
	}
	return out
}

// Whatever a family models is read: in some config of the family, a value of no kind is refused, and of the values that
// any family gives the field one means another model or is refused. So no field is on a list and then forgotten,
// transformers' class of the family having it or not.
func TestNoFieldIsIgnored(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const ofNoKind = `[[[]]]`
	values := otherValues(t)
	// transformers' classes refuse what flips.py gives it, so no file has a value.
	values[perLayerConfig] = append(values[perLayerConfig], json.RawMessage(`{"1": {"intermediate_size": 24}}`))
	for _, f := range Families {
		var bases []json.RawMessage
		for _, base := range readFlips(t, f.ModelType).Bases {
			bases = append(bases, base.Config)
		}
		var text string // the family of the language model of a composite, which has further bases
		require.NoError(t, json.Unmarshal(valueAt(t, bases[0], "text_config.model_type"), &text))
		if _, own := familyOf(text); own {
			for _, base := range readFlips(t, text).Bases {
				bases = append(bases, with(t, bases[0], "text_config", base.Config))
			}
		}
		heeded := func(path string, values ...json.RawMessage) bool {
			return slices.ContainsFunc(bases, func(base json.RawMessage) bool {
				before, err := importFlipped(t, base)
				require.NoError(t, err)
				at := path
				if string(valueAt(t, base, textConfig)) == "null" { // its fields stand alongside the others
					at = strings.TrimPrefix(path, "text_config.")
				}
				return slices.ContainsFunc(values, func(v json.RawMessage) bool {
					after, err := importFlipped(t, with(t, base, at, v))
					return err != nil || !reflect.DeepEqual(before.Graph, after.Graph)
				})
			})
		}
		whole, modelled := string(valueAt(t, bases[0], "text_config")) != "null", 0
		for _, field := range slices.Sorted(maps.Keys(values)) {
			path := field
			if whole && !slices.Contains(outerModelled, field) {
				path = "text_config." + field
			}
			assumed := Source{AssumeInert: []string{field}}
			_, err := importConfig(t, string(with(t, bases[0], path, json.RawMessage(ofNoKind))), assumed)
			if !strings.Contains(codesOf(err), codeAssume.ID) {
				continue // it is of other families
			}
			modelled++
			require.True(t, heeded(path, json.RawMessage(ofNoKind)), "%s: %s = %s", f.ModelType, path, ofNoKind)
			require.True(t, heeded(path, values[field]...), "%s: no value of %s that is known means another model: %s",
				f.ModelType, path, values[field])
		}
		require.Greater(t, modelled, 10, f.ModelType)
	}
}
