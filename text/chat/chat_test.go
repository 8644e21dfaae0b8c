package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/text/jinja"
)

// Templates of our own, on conversations of every shape, are equal to what transformers renders; errors are where it
// has some.
func TestTemplates(t *testing.T) {
	folder := filepath.Join("testdata", "templates")
	var want rendered
	readJSON(t, filepath.Join(folder, "rendered.json"), &want)
	var conversations map[string]json.RawMessage
	readJSON(t, filepath.Join("testdata", "conversations.json"), &conversations)
	require.Len(t, want, 4)
	for name, rows := range want {
		source, err := os.ReadFile(filepath.Join(folder, name+".jinja"))
		require.NoError(t, err)
		format := New(map[string]string{"default": string(source)}, referenceTokens())
		require.Len(t, rows, len(conversations))
		for conversation, expected := range rows {
			c, err := Parse(conversations[conversation])
			require.NoError(t, err, conversation)
			got, err := format.Render(c, Options{Now: referenceNow})
			if expected.Text == nil {
				require.Error(t, err, "%s of %s: %s", conversation, name, expected.Error)
				continue
			}
			require.NoError(t, err, "%s of %s", conversation, name)
			require.Equal(t, *expected.Text, got, "%s of %s", conversation, name)
		}
	}
}

// writeFiles writes files of a model into a new folder.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// Which template and which special tokens a model has, transformers says of the same files.
func TestLoad(t *testing.T) {
	var rows []struct {
		Files        map[string]string
		Conversation json.RawMessage
		Template     string
		Text         *string
	}
	readJSON(t, filepath.Join("testdata", "formats.json"), &rows)
	for _, row := range rows {
		dir := writeFiles(t, row.Files)
		for name := range row.Files {
			require.Contains(t, Files(dir), name)
			require.True(t, IsFile(name), name)
		}
		c, err := Parse(row.Conversation)
		require.NoError(t, err)
		format, err := Load(dir)
		got := ""
		if err == nil {
			got, err = format.Render(c, Options{Template: row.Template, Now: time.Now()})
		}
		if row.Text == nil {
			require.Error(t, err, "%v", row.Files)
			continue
		}
		require.NoError(t, err, "%v", row.Files)
		require.Equal(t, *row.Text, got, "%v", row.Files)
	}
}

// Files that are wrong are refused with their path and what is wrong.
func TestLoadRefuses(t *testing.T) {
	many := map[string]string{}
	for i := range maxTemplates {
		many[TemplateDir+"/t"+string(rune('a'+i/26))+string(rune('a'+i%26))+".jinja"] = "x"
	}
	for _, c := range []struct {
		files map[string]string
		says  string
	}{
		{nil, "there is no chat template"},
		{map[string]string{ConfigFile: "{}"}, "want chat_template.jinja, additional_chat_templates/NAME.jinja, or"},
		{map[string]string{ConfigFile: "{"}, "tokenizer_config.json: it cannot be read: line 1, column 2"},
		{map[string]string{ConfigFile: "[]"}, "tokenizer_config.json: it is not an object"},
		{map[string]string{ConfigFile: `{"chat_template": 1}`}, "chat_template is not as expected"},
		{map[string]string{ConfigFile: `{"chat_template": [{"name": "a"}]}`}, "chat_template is not as expected"},
		{map[string]string{TemplateFile: "x", tokensFile: "?"}, "special_tokens_map.json: it cannot be read"},
		{map[string]string{TemplateFile + "/x": ""}, "it is a directory; want a regular file"},
		{map[string]string{TemplateDir: ""}, "it is a file; want a directory"},
		{many, "it has 65 templates; 64 are the most"},
	} {
		_, err := Load(writeFiles(t, c.files))
		var e *FileError
		require.ErrorAs(t, err, &e, c.says)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, c.files == nil || c.files[ConfigFile] == "{}", errorsIsNone(err), c.says)
	}
	many[TemplateDir+"/one-more.jinja"] = "x"
	require.Len(t, Files(writeFiles(t, many)), 3, "a build copies none of them")
	for _, name := range []string{"config.json", TemplateDir, TemplateDir + "/x", "x/" + TemplateFile,
		TemplateDir + "/.jinja", TemplateDir + "/a b.jinja", TemplateDir + "/../x.jinja"} {
		require.False(t, IsFile(name), name)
	}
}

func errorsIsNone(err error) bool {
	e, ok := err.(*FileError)
	return ok && e.Err == ErrNone
}

// What is not a conversation is refused with what would be accepted.
func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		``:                                 "the text ends too early",
		`"hi"`:                             "messages is not a list",
		`[]`:                               "there are no messages; want at least one",
		`{"messages": []}`:                 "there are no messages",
		`{"tools": []}`:                    "there are no messages",
		`["hi"]`:                           "number 1 of messages is not an object",
		`{"messages": [{}], "tools": {}}`:  "tools is not a list; want a list of objects",
		`{"messages": [{}], "tools": [1]}`: "number 1 of tools is not an object",
		`{"messages": [{}], "documents": [{}, "x"]}`:               "number 2 of documents is not an object",
		`{"messages": [{}], "model": "x"}`:                         `a field "model"; want a list of messages, or`,
		`{"messages": [{}], "add_generation_prompt": "no"}`:        "add_generation_prompt is neither true nor false",
		`{"messages": [{}], "chat_template_kwargs": 1}`:            "chat_template_kwargs is not an object",
		`{"messages": [{}], "chat_template_kwargs": {"tools": 1}}`: `chat_template_kwargs has "tools"`,
		`[{"content": "\ud83d"}]`:                                  `\ud83d is half a character`,
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
}

// A part of a message that is not a text is refused, by its type or by what it has. Other parts are the template's
// matter.
func TestOnlyText(t *testing.T) {
	for content, says := range map[string]string{
		`"hi"`: "", `null`: "", `[]`: "", `["hi", {"type": "text", "text": "an image"}]`: "",
		`[{"type": "thinking", "thinking": "image"}]`:                          "",
		`[{"type": "text", "text": "hi"}, {"type": "image"}]`:                  `number 2 of messages has a part`,
		`[{"type": "image_url", "image_url": {"url": "x"}}]`:                   `type "image_url"; want text`,
		`[{"image": "x.png"}]`:                                                 `type "image"`,
		`[{"type": "video", "video": "x.mp4"}]`:                                `type "video"`,
		`[{"type": "input_audio", "input_audio": {"data": "", "format": ""}}]`: `type "input_audio"`,
	} {
		c, err := Parse([]byte(`[{"role": "system"}, {"role": "user", "content": ` + content + `}]`))
		require.NoError(t, err)
		if err := c.OnlyText(); says == "" {
			require.NoError(t, err, content)
		} else {
			require.ErrorContains(t, err, says, content)
		}
	}
}

// Rendering does not change the conversation, and a name that no template has is refused with those that there are.
func TestRender(t *testing.T) {
	c, err := Parse([]byte(`[{"role": "user", "content": "hi", "reasoning": "r", "name": null}]`))
	require.NoError(t, err)
	f := New(map[string]string{"default": "{{ messages|tojson }}", "rag": "{{ documents }}", "bad": "{% if %}"}, nil)
	const want = `[{"thinking": "r", "role": "user", "content": "hi", "reasoning": "r", "reasoning_content": "r"}]`
	for range 2 {
		text, err := f.Render(c, Options{})
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	text, err := f.Render(c, Options{Template: "rag"})
	require.NoError(t, err)
	require.Equal(t, "None", text)
	_, err = f.Render(c, Options{Template: "other"})
	require.EqualError(t, err, `the model has no chat template "other"; it has ["bad" "default" "rag"]`)
	require.NoError(t, f.Check("rag"))
	require.ErrorContains(t, f.Check("bad"), "line 1: found %}; want an expression")
	_, err = f.Render(c, Options{Limits: jinja.Limits{Output: 3}})
	require.ErrorContains(t, err, "prints more than 3 bytes")
}

// The variable that turns thinking on and off is the one with which the prompt depends on its value.
func TestThinking(t *testing.T) {
	for template, want := range map[string]string{
		`{% if enable_thinking is false %}<think></think>{% endif %}`:                     "enable_thinking",
		`{% if add_generation_prompt and thinking %}<think>{% endif %}`:                   "thinking",
		`{{ messages[0].thinking }}{% if loud and enable_thinking %}x{% endif %}`:         "",
		`{{ messages[0].thinking }}{% if not loud and enable_thinking %}x{% endif %}`:     "enable_thinking",
		`{% if messages[0].thinking %}{{ messages[0].thinking }}{% endif %}{{ a or "" }}`: "",
		`x`: "",
	} {
		c, err := Parse([]byte(`{"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": false}`))
		require.NoError(t, err)
		got, err := New(map[string]string{"default": template}, &jinja.Dict{}).Thinking(c, Options{})
		require.NoError(t, err, template)
		require.Equal(t, want, got, template)
		require.False(t, c.AddGenerationPrompt)
		require.Nil(t, c.Extra)
	}
	c, err := Parse([]byte(`{"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"loud": true}}`))
	require.NoError(t, err)
	got, err := New(map[string]string{"default": `{% if loud and enable_thinking %}x{% endif %}`},
		&jinja.Dict{}).Thinking(c, Options{})
	require.NoError(t, err)
	require.Equal(t, "enable_thinking", got)
	require.Len(t, c.Extra.Keys(), 1)
	_, err = New(map[string]string{"default": `{% if thinking %}{{ raise_exception("no") }}{% endif %}`},
		&jinja.Dict{}).Thinking(c, Options{})
	require.ErrorContains(t, err, "no")
}

// A prompt that is continued ends with the last message, whatever the template does to the end of one.
func TestContinueFinalMessage(t *testing.T) {
	for template, want := range map[string]string{
		`{% for m in messages %}[{{ m.content }}]{% endfor %}{{ add_generation_prompt or "" }}`: "[a][ b ",
		`{% for m in messages %}[{{ m.content | trim }}]{% endfor %}`:                           "[a][b ",
		`{% for m in messages %}{{ m.role }}{% endfor %}`:                                       "",
		`{{ messages[-1].content }}{{ messages[-1].content }}`:                                  "",
		`{{ messages[-1].content | upper }}`:                                                    "",
	} {
		c, err := Parse([]byte(`{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content":
			" b "}], "continue_final_message": true}`))
		require.NoError(t, err)
		got, err := New(map[string]string{"default": template}, &jinja.Dict{}).Render(c, Options{})
		if want == "" {
			require.ErrorIs(t, err, ErrNotContinued, template)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for text, says := range map[string]string{
		`{"messages": [{}], "continue_final_message": 1}`:                                   "neither true nor false",
		`{"messages": [{}], "continue_final_message": true, "add_generation_prompt": true}`: "both true",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, says)
	}
	c, err := Parse([]byte(`{"messages": [{"role": "user"}], "continue_final_message": true}`))
	require.NoError(t, err)
	_, err = New(map[string]string{"default": "x"}, &jinja.Dict{}).Render(c, Options{})
	require.ErrorIs(t, err, ErrNotContinued)
}

func TestMentions(t *testing.T) {
	f := New(map[string]string{"default": "{{ messages }}", "tool_use": "{{ tools }}"}, &jinja.Dict{})
	require.True(t, f.Mentions("tools"))
	require.True(t, f.Mentions("messages"))
	require.False(t, f.Mentions("documents"))
}
