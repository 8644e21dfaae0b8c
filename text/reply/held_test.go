package reply

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/text/chat"
)

// notHeld are the forms whose calls cannot be held: those without a mark, and those without arguments in JSON.
var notHeld = []string{"Qwen3-Coder", "GLM-4.5", "Seed-OSS", "MiniMax-M2", "MiniCPM5", "DeepSeek-V3.2", "DeepSeek-V4",
	"Hunyuan 3", "Kimi-K3", "Muse", "Llama 3, xLAM", "OLMo 3", "LFM2", "Llama 3.2 and 4 in Python", "Gemma 4",
	"FunctionGemma", "GLM-4"}

// Calls of any other form are read back as they are held, one after the other and alongside text.
func TestHeldForms(t *testing.T) {
	tools := ParseTools([]byte(exampleTools))
	for _, f := range forms {
		e := examples[f.name]
		format := Of(e.chat())
		c, err := chat.Parse([]byte(`{"messages": [{"role": "user", "content": "Warm?"}], "tools": ` + exampleTools +
			`}`))
		require.NoError(t, err)
		held, err := format.Hold(c, chat.Options{Now: time.Unix(0, 0)}, "<|assistant|>", tools.All())
		if slices.Contains(notHeld, f.name) {
			require.Error(t, err, f.name)
			require.True(t, err == ErrNotHeld || err == ErrNotForced, "%s: %v", f.name, err)
			continue
		}
		if e.template == "" { // of words alone, which say nothing of how calls are spelled
			require.ErrorIs(t, err, ErrNotForced, f.name)
			continue
		}
		require.NoError(t, err, f.name)
		require.Equal(t, f.header == "", held.Again)
		require.False(t, held.Within || held.Thinking)
		for _, tool := range []int{0, 1} {
			text := held.Mark + held.Before[tool] + `{"a": {"b": ["}"]}}` + held.After
			want := Call{tools.All()[tool].Name, `{"a":{"b":["}"]}}`}
			p := joined(format.Reader("<|assistant|>", tools), "So. "+text+" "+text)
			require.Equal(t, []Call{want, want}, p.Calls, "%s: %q", f.name, text)
			require.Equal(t, "So.", strings.TrimSpace(p.Text), f.name)
			if held.Prose != "" {
				p := joined(format.Reader("<|assistant|>", tools), held.Mark+held.Prose+"So. "+text)
				require.Equal(t, Piece{Text: "So.", Calls: []Call{want}}, p)
			}
		}
	}
}

// What a prompt has opened is known, and a name that a call could not be read back with is refused.
func TestHeldPrompts(t *testing.T) {
	format := Of(chat.New(map[string]string{"default": `{{ tools }}{% for m in messages %}<think>` +
		`{{ m.reasoning_content }}</think>{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>` +
		`{{ c.function | tojson }}</tool_call>{% endfor %}{% endfor %}`}, nil))
	c, err := chat.Parse([]byte(`{"messages": [{"role": "user", "content": "Warm?"}]}`))
	require.NoError(t, err)
	hold := func(rendered, name string) (*Held, error) {
		return format.Hold(c, chat.Options{Now: time.Unix(0, 0)}, rendered, []Tool{{Name: name}})
	}
	held, err := hold("a<think>\n", "f")
	require.NoError(t, err)
	require.Equal(t, &Held{Mark: "<tool_call>", Before: []string{`{"name": "f", "arguments": `}, After: "}",
		Again: true, Open: "<think>", Close: "</think>", Thinking: true}, held)
	held, err = hold("a<tool_call>", "f")
	require.NoError(t, err)
	require.True(t, held.Within)
	require.False(t, held.Thinking)
	_, err = hold("a", `f"`)
	require.ErrorIs(t, err, ErrNotHeld)
	_, err = hold("a "+probeTool, "f")
	require.ErrorIs(t, err, ErrNotForced)
}

func TestStrictTools(t *testing.T) {
	tools := ParseTools([]byte(`[{"function": {"name": "a", "strict": true}}, {"name": "b", "strict": false},
		{"name": "c"}, {"name": "d", "strict": "yes"}]`))
	require.Len(t, tools.All(), 4)
	for i, tool := range tools.All() {
		require.Equal(t, i == 0, tool.Strict)
	}
}

// Calls that stand alone can be held without a mark too. Marks that such an answer does not begin with are text.
func TestHeldAlone(t *testing.T) {
	tools := ParseTools([]byte(exampleTools))
	alone := 0
	for _, f := range forms {
		e := examples[f.name]
		format := Of(e.chat())
		c, err := chat.Parse([]byte(`{"messages": [{"role": "user", "content": "Warm?"}], "tools": ` + exampleTools +
			`, "add_generation_prompt": true}`))
		require.NoError(t, err)
		c.AddGenerationPrompt = true
		rendered, err := e.chat().Render(c, chat.Options{Now: time.Unix(0, 0)})
		if err != nil {
			rendered = "<|assistant|>"
		}
		held, err := format.HoldAlone(c, chat.Options{Now: time.Unix(0, 0)}, rendered, tools.All())
		if err != nil {
			require.True(t, err == ErrNotHeld || err == ErrNotForced, "%s: %v", f.name, err)
			t.Logf("%s: %v", f.name, err)
			continue
		}
		alone++
		for _, tool := range []int{0, 1} {
			body := held.Before[tool] + `{"a": {"b": ["}"]}}` + held.After
			want := Call{tools.All()[tool].Name, `{"a":{"b":["}"]}}`}
			p := joined(format.Reader(rendered, tools).Alone(), "\n"+held.First+body)
			require.Equal(t, []Call{want}, p.Calls, "%s: %q", f.name, held.First+body)
			require.Empty(t, strings.TrimSpace(p.Text))
			if held.Mark == "" {
				continue
			}
			text := held.First + body + "\n"
			for _, closer := range held.Closers[:min(1, len(held.Closers))] {
				text += closer
			}
			p = joined(format.Reader(rendered, tools).Alone(), text+"\n"+held.Mark+body)
			require.Equal(t, []Call{want, want}, p.Calls, "%s: %q", f.name, text)
			answer := `{"a": "` + held.Mark + held.Before[tool] + `{}` + held.After + `"}`
			p = joined(format.Reader(rendered, tools).Alone(), answer)
			require.Empty(t, p.Calls, "%s: %q", f.name, answer)
			require.Equal(t, answer, p.Text)
		}
	}
	require.Greater(t, alone, 15)
}
