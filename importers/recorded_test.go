package importers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

// recordedFlips are small configs of a family, with other values of their fields: what testdata/models/fields.py has
// written of those that transformers loads. Its opening comment describes the form.
type recordedFlips struct {
	Transformers string
	Bases        []struct {
		Config json.RawMessage
		Fields map[string][]flip // by path, the keys joined by dots
	}
}

// A flip is another value of a field: [effect, codes, value], or without a value where the field is left out.
type flip struct {
	moves bool            // it changes logits of transformers
	codes string          // of the errors with which amkc refuses it, or empty: its logits are those of transformers
	value json.RawMessage // nil: none
}

func (f *flip) UnmarshalJSON(text []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil || len(parts) < 2 || len(parts) > 3 {
		return fmt.Errorf("%s: want [effect, codes, value]: %w", text, err)
	}
	if len(parts) == 3 {
		f.value = parts[2]
	}
	f.moves = string(parts[0]) == `"moves"`
	return json.Unmarshal(parts[1], &f.codes)
}

// refusedHere are the codes of an importer's errors; passes after it have others, where a model has no room.
func (f *flip) refusedHere() string {
	if strings.HasPrefix(f.codes, "AMK1") {
		return f.codes
	}
	return ""
}

// flipPositions are those for which fields.py runs models, some of which depend on how many they are built for.
const flipPositions = 28

func readFlips(t testing.TB, family string) recordedFlips {
	var out recordedFlips
	text, err := os.ReadFile("../testdata/models/fields/" + family + ".json")
	require.NoError(t, err, "want a row of FAMILIES in testdata/models/bases.py, and what fields.py writes of it")
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// with returns a config of which the field at a path has another value, or is left out where that is nil.
func with(t testing.TB, config json.RawMessage, path string, value json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(config, &object), path)
	key, rest, nested := strings.Cut(path, ".")
	switch {
	case nested:
		object[key] = with(t, object[key], rest, value)
	case value == nil:
		delete(object, key)
	default:
		object[key] = value
	}
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return text
}

func importFlipped(t testing.TB, config json.RawMessage) (*imported, error) {
	return importConfig(t, string(config), Source{Name: "flipped", MaxSeq: flipPositions})
}

// codesOf lists the codes of errors, sorted, or is empty where there are none.
func codesOf(err error) string {
	var list diag.List
	var one *diag.Diagnostic
	switch {
	case err == nil:
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = diag.List{one}
	default:
		return err.Error()
	}
	var codes []string
	for _, d := range list {
		if d.Severity == diag.Error && !slices.Contains(codes, d.Code) {
			codes = append(codes, d.Code)
		}
	}
	slices.Sort(codes)
	return strings.Join(codes, " ")
}

// Each value of each field of each family that transformers loads is followed or refused, as when its logits were
// compared: what moves them means another model or is refused, and nothing that was refused is accepted.
func TestEveryFieldIsHeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const again = "if these errors are right, run testdata/models/fields.py %s, which compares logits"
	for _, f := range Families {
		family := f.ModelType
		t.Run(family, func(t *testing.T) {
			tried := 0
			for _, base := range readFlips(t, family).Bases {
				before, err := importFlipped(t, base.Config)
				require.NoError(t, err, "%s", base.Config)
				for field, flips := range base.Fields {
					for _, f := range flips {
						c := composites[family]
						tied := c != nil && c.ties == tiedByFiles && field == "tie_word_embeddings" && f.value == nil
						if tied || f.codes == codeMissing.ID {
							continue // by the files, and there are none here
						}
						tried++
						after, err := importFlipped(t, with(t, base.Config, field, f.value))
						if codes := codesOf(err); codes != f.refusedHere() {
							t.Fatalf("%s = %s: want %q: %v; "+again, field, f.value, f.refusedHere(), err, family)
						}
						if err == nil && f.moves {
							require.NotEqual(t, before.Graph, after.Graph, "%s = %s moves logits", field, f.value)
						}
					}
				}
			}
			require.Greater(t, tried, 100)
		})
	}
}

// A field that a family follows has values of some kinds alone; those of all others are refused, and no value whatever
// is more than a diagnostic.
func TestFieldsOfAnotherKind(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	wrong := []string{`[[[]]]`, `{"rope_type": {"x": []}}`, `1e400`, `""`, `"x"`, `true`, `-1`, `1.5`, `-1e-400`,
		`9007199254740993`, `[]`, `["x", null]`, `[1, "x"]`, `{}`, `{"full_attention": 7}`}
	for _, f := range Families {
		family := f.ModelType
		t.Run(family, func(t *testing.T) {
			base := readFlips(t, family).Bases[0]
			for field, flips := range base.Fields {
				kinds, followed := map[string]bool{kindOf(valueAt(t, base.Config, field)): true}, false
				for _, f := range flips {
					if f.codes == "" && f.value != nil {
						kinds[kindOf(f.value)] = true
					}
					followed = followed || f.moves && f.codes == ""
				}
				tried := wrong
				if !followed {
					tried = wrong[:3]
				}
				for _, value := range tried {
					_, err := importFlipped(t, with(t, base.Config, field, json.RawMessage(value)))
					if err != nil {
						require.Regexp(t, `^AMK1\d\d\d`, codesOf(err), "%s = %s", field, value)
					} else if followed {
						require.Contains(t, kinds, kindOf(json.RawMessage(value)), "%s = %s is accepted", field, value)
					}
				}
			}
		})
	}
}

// valueAt is what a config has at a path, null if nothing.
func valueAt(t testing.TB, config json.RawMessage, path string) json.RawMessage {
	for _, key := range strings.Split(path, ".") {
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(config, &object), path)
		if config = object[key]; config == nil {
			return json.RawMessage("null")
		}
	}
	return config
}

// kindOf is the kind of a JSON value.
func kindOf(value json.RawMessage) string {
	switch value = bytes.TrimSpace(value); value[0] {
	case '"':
		return "string"
	case '[':
		return "array"
	case '{':
		return "object"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}
