package reply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// Whatever a model writes, it does not matter in which parts it comes; what is not a call is text, none of it lost;
// arguments are JSON.
func FuzzReader(f *testing.F) {
	for i, form := range forms {
		for _, e := range examples[form.name].answers {
			f.Add(uint8(i), uint8(0), e.answer)
		}
	}
	for i := range thoughtForms {
		f.Add(uint8(0), uint8(i+1), thoughtForms[i].open+" so\n"+thoughtForms[i].close+"\n\nIt "+
			"is."+thoughtForms[i].answer.close)
	}
	tools := ParseTools([]byte(exampleTools))
	f.Fuzz(func(t *testing.T, form, thoughts uint8, answer string) {
		defer watch.Execution()()
		format := &Format{calls: forms[int(form)%len(forms)]}
		if n := int(thoughts) % (len(thoughtForms) + 1); n > 0 {
			format.thoughts = thoughtForms[n-1]
		}
		whole := format.Reader("", tools)
		want := joined(whole, answer)
		byBytes := format.Reader("", tools)
		require.Equal(t, want, joined(byBytes, strings.Split(answer, "")...))
		require.Equal(t, want.Calls != nil, whole.Called())
		if format.calls.prose == "" && want.Calls == nil && format.thoughts == nil {
			require.Equal(t, answer, want.Text)
		}
		require.True(t, within(letters(want.Thought+want.Text), letters(answer)), "%q is not in %q", want, answer)
		for _, c := range want.Calls {
			require.NotEmpty(t, c.Name)
			if !strings.Contains(answer, `"`) { // with which an answer may have arguments in a string
				require.True(t, json.Valid([]byte(c.Arguments)), c.Arguments)
			}
		}
	})
}

// joined is what a reader makes of parts. Its text stands where it says.
func joined(r interface {
	Push(string) Piece
	End() Piece
}, parts ...string) (all Piece) {
	var thought, text strings.Builder
	answer, to := strings.Join(parts, ""), 0
	add := func(p Piece) {
		there := ""
		for _, s := range p.At {
			if s.From < to {
				panic(fmt.Sprintf("%q: what stands at %d comes after what ends at %d", parts, s.From, to))
			}
			there, to = there+answer[s.From:s.To], s.To
		}
		if there != p.Text {
			panic(fmt.Sprintf("%q: %q is at %v, and the text is %q", parts, there, p.At, p.Text))
		}
		thought.WriteString(p.Thought)
		text.WriteString(p.Text)
		all.Calls = append(all.Calls, p.Calls...)
	}
	for _, part := range parts {
		add(r.Push(part))
	}
	add(r.End())
	all.Thought, all.Text = thought.String(), text.String()
	return all
}

// letters is a text without spaces.
func letters(text string) string { return strings.Join(strings.Fields(text), "") }

// within reports whether the bytes of a text stand in another one in their order.
func within(text, other string) bool {
	for i := range len(other) {
		if text != "" && other[i] == text[0] {
			text = text[1:]
		}
	}
	return text == ""
}
