package chat

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/text/jinja"
)

const fuzzTemplate = `{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m['content'] }}{% if m.tool_calls %}` +
	`{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endif %}{% endfor %}` +
	`{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}{% if add_generation_prompt %}<|assistant|>{% endif %}`

// Whatever a tokenizer_config.json, a template and a file of messages hold, there is a prompt or a reason.
func FuzzFormat(f *testing.F) {
	messages := `{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, ` +
		`"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}], "thinking": "hm"}], ` +
		`"tools": [{"name": "f"}], "add_generation_prompt": false, "chat_template_kwargs": {"enable_thinking": true}}`
	f.Add(`{"bos_token": {"content": "<s>"}, "chat_template": "{{ messages }}"}`, "", messages)
	f.Add(`{"bos_token": "<s>"}`, fuzzTemplate, messages)
	f.Add(`{"chat_template": [{"name": "default", "template": "{{ 1 }}"}, {"name": "tool_use", "template": "2"}]}`, "",
		`[{"role": "user", "content": [{"type": "text"}]}]`)
	f.Add(`[]`, "{% for %}", `{"messages": []}`)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, config, template, messages string) {
		defer watch.Execution()()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), []byte(config), 0o600))
		os.Remove(filepath.Join(dir, TemplateFile))
		if template != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, TemplateFile), []byte(template), 0o600))
		}
		conversation, parseErr := Parse([]byte(messages))
		format, loadErr := Load(dir)
		if loadErr != nil {
			var e *FileError
			require.ErrorAs(t, loadErr, &e)
		}
		if parseErr != nil || loadErr != nil {
			return
		}
		limits := jinja.Limits{Steps: 200_000, Memory: 8 << 20, Output: 1 << 20}
		text, err := format.Render(conversation, Options{Now: referenceNow, Limits: limits})
		require.True(t, err == nil || text == "")
	})
}
