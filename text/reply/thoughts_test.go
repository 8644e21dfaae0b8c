package reply

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/text/chat"
)

// A thought is told from the text, however the answer comes.
func TestThoughts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 6))
	for _, c := range []struct {
		form            int
		prompt, answer  string
		thought, spoken string
	}{
		{0, "", "<think>\nWell.\n</think>\n\nYes.\n", "Well.", "Yes.\n"},
		{0, "", "\n<think></think>Yes.", "", "Yes."},
		{0, "", "Yes <think>no</think>", "", "Yes <think>no</think>"},
		{0, "", "<thin", "", "<thin"},
		{0, "", "  Yes", "", "  Yes"},
		{0, "", strings.Repeat(" ", 70) + "<think>a</think>", "", strings.Repeat(" ", 70) + "<think>a</think>"},
		{0, "", "<think>a <b> </thin", "a <b> </thin", ""},
		{0, "", "<think>a" + strings.Repeat(" ", 70) + "</think>b", "a" + strings.Repeat(" ", 6), "b"},
		{0, "<think>\n", "Well.</think>Yes.", "Well.", "Yes."},
		{0, "<think>\n\n</think>\n\n", "Yes.", "", "Yes."},
		{0, "", "<think>a</think> <response>Yes.</response>\n", "a", "Yes."},
		{0, "", "<think>a</think>See <response> and </response> here", "a", "See <response> and </response> here"},
		{2, "", "[THINK]a[/THINK]b", "a", "b"},
		{3, "", "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "a", "b"},
		{3, "<|START_THINKING|><|END_THINKING|>", "<|START_RESPONSE|>b<|END_RESPONSE|>", "", "b"},
		{4, "", "<|inner_prefix|>a<|inner_suffix|>b", "a", "b"},
		{8, "", "Here is my thought process: a\n\nHere is my response: b", "a", "b"},
		{9, "<|assistant|>\nHere are my reasoning steps:\n", "a\n[BEGIN FINAL RESPONSE]\nb", "a", "b"},
	} {
		for range 30 {
			var parts []string
			for rest := c.answer; rest != ""; {
				n := 1 + rng.IntN(len(rest))
				parts, rest = append(parts, rest[:n]), rest[n:]
			}
			r := (&Format{thoughts: thoughtForms[c.form]}).Reader(c.prompt, nil)
			require.Equal(t, Piece{Thought: c.thought, Text: c.spoken}, joined(r, parts...), "%q", parts)
			r = (&Format{thoughts: thoughtForms[c.form]}).Reader(c.prompt, nil).AsWritten()
			require.Equal(t, Piece{Text: c.answer}, joined(r, parts...), "%q", parts)
		}
	}
}

// An answer that goes on with a text is read as the rest of it.
func TestAfter(t *testing.T) {
	for _, c := range []struct{ prompt, begun, rest, thought, spoken string }{
		{"", "", "<think>a</think>b", "a", "b"},
		{"", "<think>a", " c</think>b", " c", "b"},
		{"", "<think>\n", "\nc</think>b", "c", "b"},
		{"<think>", "<think>", "c</think>b", "c", "b"},
		{"", "<think>a</think>", "<think>c</think>b", "", "<think>c</think>b"},
		{"", "Yes", "<think>c</think>b", "", "<think>c</think>b"},
	} {
		r := (&Format{thoughts: thoughtForms[0]}).Reader(c.prompt, nil).After(c.begun)
		require.Equal(t, Piece{Thought: c.thought, Text: c.spoken}, joined(r, c.rest), c.begun)
		r = (&Format{thoughts: thoughtForms[0]}).Reader(c.prompt, nil).After(c.begun).AsWritten()
		require.Equal(t, Piece{Text: c.rest}, joined(r, c.rest), c.begun)
	}
	r := (&Format{}).Reader("", nil).After("Yes")
	require.Equal(t, Piece{Text: "<think>"}, joined(r, "<think>"))
}

// Calls are read after a thought, and not inside of it; also where that is a part of the text.
func TestCallsAfterThoughts(t *testing.T) {
	format, rng := &Format{calls: forms[0], thoughts: thoughtForms[0]}, rand.New(rand.NewPCG(3, 7))
	const call = "<tool_call><function=clock></function></tool_call>"
	for _, c := range []struct{ before, prompt string }{{"<think>", ""}, {"", "<think>"}} {
		for range 30 {
			var parts []string
			for rest := c.before + call + "</think> " + call; rest != ""; {
				n := 1 + rng.IntN(len(rest))
				parts, rest = append(parts, rest[:n]), rest[n:]
			}
			r := format.Reader(c.prompt, ParseTools([]byte(exampleTools)))
			require.Equal(t, Piece{Thought: call, Calls: []Call{clock}}, joined(r, parts...))
			r = format.Reader(c.prompt, ParseTools([]byte(exampleTools))).AsWritten()
			want := Piece{Text: c.before + call + "</think> ", Calls: []Call{clock}}
			require.Equal(t, want, joined(r, parts...), "%q", parts)
			require.True(t, r.Called())
		}
	}
}

// How a model thinks is found by what its template writes of a thought, or by the mark that it looks for.
func TestThinkingOfTemplates(t *testing.T) {
	for source, want := range map[string]string{
		`{% for m in messages %}{{ m.content }}{% endfor %}`:                                          "",
		`{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}`:                    "<think>",
		`{% for m in messages %}[THINK]{{ m.reasoning_content }}[/THINK]{{ m.content }}{% endfor %}`:  "[THINK]",
		`{% for m in messages %}<seed:think>{{ m.thinking }}</seed:think>{{ m.content }}{% endfor %}`: "<seed:think>",
	} {
		_, thoughts := Of(chat.New(map[string]string{"default": source}, nil)).Names()
		require.Equal(t, want, thoughts, source)
	}
	for _, form := range thoughtForms {
		source := `{% for m in messages %}{% if m.reasoning_content %}` + form.open + `{{ m.reasoning_content }}` +
			form.close + `{% endif %}{{ m.content }}{% endfor %}`
		require.Same(t, form, Of(chat.New(map[string]string{"default": source}, nil)).thoughts)
	}
}
