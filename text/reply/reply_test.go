package reply

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/text/chat"
)

// template is the whole of one, of what it writes of a call.
func (e example) chat() *chat.Format {
	source := `{{ tools }}` + e.words + `{% for m in messages %}<|{{ m.role }}|>{{ m.content }}`
	if e.template != "" {
		source += `{% for c in m.tool_calls or [] %}` + e.template + `{% endfor %}`
	}
	source += `{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`
	return chat.New(map[string]string{"default": source}, nil)
}

// Each form is found by what a template writes or says, and reads what models write, in whatever parts it comes.
func TestForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	tools := ParseTools([]byte(exampleTools))
	require.Len(t, examples, len(forms))
	for _, f := range forms {
		e, there := examples[f.name]
		require.True(t, there, "%s has no example", f.name)
		format := Of(e.chat())
		calls, _ := format.Names()
		require.Equal(t, f.name, calls)
		require.Equal(t, f.name == "Functionary 3.2", format.TextArguments(), f.name)
		found := false
		for _, a := range e.answers {
			want := Piece{Text: a.text, Calls: a.calls}
			found = found || a.calls != nil
			for range 30 {
				var parts []string
				for rest := a.answer; rest != ""; {
					n := 1 + rng.IntN(len(rest))
					parts, rest = append(parts, rest[:n]), rest[n:]
				}
				r := format.Reader("<|assistant|>", tools)
				require.Equal(t, want, joined(r, parts...), "%s: %q", f.name, parts)
				require.Equal(t, a.calls != nil, r.Called())
			}
		}
		require.True(t, found, f.name)
	}
}

// Two calls that a template writes are read back as two.
func TestSeveralCalls(t *testing.T) {
	tools := ParseTools([]byte(exampleTools))
	for name, e := range examples {
		if e.template == "" {
			continue
		}
		format := Of(e.chat())
		given := `{"place": "Bern", "days": 2}`
		if format.TextArguments() {
			given = quoted(given)
		}
		call := `{"id": "abcdefghi", "function": {"name": "weather", "arguments": ` + given + `}}`
		c, err := chat.Parse([]byte(`{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", ` +
			`"content": "",
			"tool_calls": [` + call + `, ` + call + `]}]}`))
		require.NoError(t, err)
		c.AddGenerationPrompt = false
		whole, err := format.chat.Render(c, chat.Options{})
		require.NoError(t, err)
		_, answer, _ := strings.Cut(whole, "<|assistant|>")
		got := joined(format.Reader("", tools), answer)
		require.Len(t, got.Calls, 2, "%s: %q", name, answer)
		require.Equal(t, bern, got.Calls[1], name)
		require.Empty(t, strings.TrimSpace(got.Text), name)
	}
}

// A form without calls is one of words, and a model that writes calls in a form that is not known has none.
func TestNoForm(t *testing.T) {
	for _, source := range []string{
		`{{ tools }}{{ messages[0].content }}`,
		`{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ ` +
			`c.function.name }}:` +
			`{{ c.function.arguments }}</tool_call>{% endfor %}{% endfor %}`,
		`{{ raise_exception('no') }}`,
		`{% for %}`,
	} {
		format := Of(chat.New(map[string]string{"default": source}, nil))
		require.False(t, format.Calls(), source)
		require.Equal(t, Piece{Text: `<tool_call>{"name": "f"}</tool_call>`},
			joined(format.Reader("", ParseTools([]byte(exampleTools))), `<tool_call>{"name": "f"}</tool_call>`))
	}
}

// A prompt may end with the mark that a call, or text, begins after.
func TestOpenPrompt(t *testing.T) {
	format := Of(examples["Functionary 3.2"].chat())
	tools := ParseTools([]byte(exampleTools))
	require.Equal(t, Piece{Text: "Fine."}, joined(format.Reader("...>>>", tools), "all\nFine."))
	require.Equal(t, Piece{Text: "Fine."}, joined(format.Reader("...>>>", nil), "all\nFine."))
	require.Equal(t, Piece{Text: "clock\n{}"}, joined(format.Reader("...>>>", nil), "clock\n{}"))
	require.Equal(t, Piece{Calls: []Call{clock}}, joined(format.Reader("...>>>", tools), "clock\n{}"))
}

// Reading takes a time that grows as the answer does, however it is made.
func TestTimeOfReading(t *testing.T) {
	tools := ParseTools([]byte(exampleTools))
	const size = 50_000
	for i, f := range forms {
		if os.Getenv("AMKC_LONG") == "" && i%12 != 1 && !f.bare() {
			continue
		}
		open, body := "", `{"name": "`
		if !f.bare() {
			open = f.call.open
		}
		for _, unit := range []string{open + body, open, " ", open + `{"name": 5}` + f.call.close, "[",
			"f<arg_key>", `\"`,
			f.wrap.open + " ", open + "f" + f.header} {
			if unit == "" {
				continue
			}
			answer := strings.Repeat(unit, size/len(unit))
			took := watch.Thread(func() {
				whole := joined((&Format{calls: f}).Reader("", tools), open+answer)
				bytes := joined((&Format{calls: f}).Reader("", tools), strings.Split(open+answer, "")...)
				require.Equal(t, whole, bytes)
			})
			require.Less(t, took, 3*time.Second, fmt.Sprintf("%s: %q", f.name, unit))
		}
	}
}

// Each form is in the documents by its name.
func TestDocumentedForms(t *testing.T) {
	text, err := os.ReadFile("../../docs/serving.md")
	require.NoError(t, err)
	for _, f := range forms {
		require.Contains(t, string(text), f.name)
	}
}
