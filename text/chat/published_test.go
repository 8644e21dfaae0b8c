package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/text/jinja"
)

// rendered is what testdata/render.py writes: by template and conversation, the text, or why there is none.
type rendered map[string]map[string]struct {
	Text  *string
	Error string
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

// referenceNow and referenceTokens are what render.py renders with.
var referenceNow = time.Date(2025, 3, 7, 14, 5, 9, 0, time.UTC)

func referenceTokens() *jinja.Dict {
	tokens := &jinja.Dict{}
	for _, pair := range [][2]string{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"},
		{"pad_token", "<pad>"}} {
		tokens.Set(pair[0], pair[1])
	}
	return tokens
}

// Templates that are others' are not in the repository. AMKC_CHAT_TEMPLATES names a folder of them that
// testdata/render.py was run on, as make chat-templates does; the test counts those that are equal byte for byte on
// every conversation, an error where jinja2 has one included.
func TestPublishedTemplates(t *testing.T) {
	folder := os.Getenv("AMKC_CHAT_TEMPLATES")
	if folder == "" {
		t.Skip("AMKC_CHAT_TEMPLATES names no folder of templates")
	}
	var want rendered
	readJSON(t, filepath.Join(folder, "rendered.json"), &want)
	var conversations map[string]json.RawMessage
	readJSON(t, filepath.Join("testdata", "conversations.json"), &conversations)
	var names, unequal []string
	for name := range want {
		names = append(names, name)
	}
	require.NotEmpty(t, names, "templates in %s", folder)
	sort.Strings(names)
	texts, refusals := 0, 0
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(folder, name+".jinja"))
		require.NoError(t, err)
		format := New(map[string]string{"default": string(source)}, referenceTokens())
		var wrong []string
		for conversation, expected := range want[name] {
			c, err := Parse(conversations[conversation])
			require.NoError(t, err, conversation)
			got, err := format.Render(c, Options{Now: referenceNow})
			switch {
			case expected.Text == nil && err == nil:
				wrong = append(wrong, conversation+": no error; jinja2 has "+expected.Error)
			case expected.Text != nil && err != nil:
				wrong = append(wrong, conversation+": "+err.Error())
			case expected.Text != nil && got != *expected.Text:
				wrong = append(wrong, conversation+": "+difference(*expected.Text, got))
			case err != nil:
				refusals++
			default:
				texts++
			}
		}
		if wrong != nil {
			sort.Strings(wrong)
			unequal = append(unequal, name)
			t.Logf("%s: %d of %d differ:\n\t%s", name, len(wrong), len(want[name]),
				strings.Join(wrong[:min(len(wrong), 3)], "\n\t"))
		}
	}
	t.Logf("%d of %d templates are equal: %d texts and %d refusals", len(names)-len(unequal), len(names), texts,
		refusals)
	require.Empty(t, unequal)
	require.Positive(t, texts)
}

// difference shows where two texts part.
func difference(want, got string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, i-30):min(len(s), i+40)] }
	w, _ := json.Marshal(cut(want))
	g, _ := json.Marshal(cut(got))
	return "want " + string(w) + ", got " + string(g)
}
