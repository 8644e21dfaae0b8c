package serve

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/text/sampling"
)

const countPath = messagesPath + "/count_tokens"

// ask is what a request of the Messages API has at least.
const ask = `"max_tokens": 200, "messages": [{"role": "user", "content": "Hi"}]`

// blockTool is a tool as the Messages API has them.
const blockTool = `, "tools": [{"name": "weather", "description": "of a place", "cache_control": {"type": "ephemeral"},
	"input_schema": {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"],
	"additionalProperties": false}}]`

// A stream is sent to the letter as Anthropic has documented it, and the whole answer is what its events add up to.
func TestMessageStream(t *testing.T) {
	s := serve(t, says(t, "Hello, wörld"))
	body := `{"model": "m", "system": "Be kind.", ` + ask
	status, header, got := s.send(t, http.MethodPost, messagesPath, body+`, "stream": true}`,
		http.Header{"Anthropic-Version": {"2023-06-01"}})
	require.Equal(t, 200, status, got)
	require.Equal(t, "text/event-stream", header.Get("Content-Type"))
	prompt := strconv.Itoa(len(idsOf(t, "<|system|>Be kind.<|user|>Hi<|assistant|>")))
	used := func(n int) string {
		return `{"input_tokens":` + prompt + `,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,` +
			`"output_tokens":` + strconv.Itoa(n) + `}`
	}
	var want strings.Builder
	tell := func(kind, more string) {
		want.WriteString("event: " + kind + "\ndata: {\"type\":\"" + kind + `"` + more + "}\n\n")
	}
	tell("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":`+used(0)+`}`)
	tell("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	for _, piece := range pieces(t, "Hello, wörld") {
		tell("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"`+piece+`"}`)
	}
	tell("content_block_stop", `,"index":0`)
	n := len(idsOf(t, "Hello, wörld")) + 1
	tell("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":`+used(n))
	tell("message_stop", ``)
	require.Equal(t, want.String(), got)

	status, got = s.post(t, messagesPath, body+`}`)
	require.Equal(t, 200, status)
	require.Equal(t, `{"id":"msg_2","type":"message","role":"assistant","model":"m","content":[{"type":"text",`+
		`"text":"Hello, wörld"}],"stop_reason":"end_turn","stop_sequence":null,"usage":`+used(n)+`}`, got)
}

// added are the events of a stream, deltas of one block once, and the message that they add up to.
func added(t *testing.T, stream string) (types []string, m anthropicMessage) {
	t.Helper()
	var partial string
	for _, text := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if strings.HasPrefix(text, ":") { // a comment, for instance of how far a prompt is read
			continue
		}
		name, data, found := strings.Cut(text, "\ndata: ")
		require.True(t, found, text)
		var e struct {
			messageEvent
			Delta struct {
				blockDelta
				stopDelta
			} `json:"delta"`
		}
		require.NoError(t, json.Unmarshal([]byte(data), &e), text)
		require.Equal(t, "event: "+e.Type, name)
		kind := e.Type
		var last *contentBlock
		if e.Index != nil && e.Block == nil {
			require.Equal(t, len(m.Content)-1, *e.Index)
			last = &m.Content[*e.Index]
		}
		switch e.Type {
		case "message_start":
			m = *e.Message
		case "content_block_start":
			require.Equal(t, len(m.Content), *e.Index)
			m.Content, partial = append(m.Content, *e.Block), ""
			kind = e.Block.Type
		case "content_block_delta":
			kind = e.Delta.blockDelta.Type
			switch kind {
			case "text_delta":
				*last.Text += *e.Delta.Text
			case "thinking_delta":
				*last.Thinking += *e.Delta.Thinking
			case "signature_delta":
				*last.Signature += *e.Delta.Signature
			case "input_json_delta":
				if partial += *e.Delta.Partial; json.Valid([]byte(partial)) {
					last.Input = json.RawMessage(partial)
				}
			default:
				t.Fatalf("an event has the delta %q", kind)
			}
		case "message_delta":
			m.StopReason, m.StopSequence, m.Usage = e.Delta.StopReason, e.Delta.StopSequence, *e.Usage
		}
		if len(types) == 0 || types[len(types)-1] != kind {
			types = append(types, kind)
		}
	}
	return types, m
}

// sameMessage asks for a message whole and as a stream, and compares them.
func sameMessage(t *testing.T, s *testServer, fields string) (types []string, m anthropicMessage) {
	t.Helper()
	status, body := s.post(t, messagesPath, `{`+fields+`, "stream": true}`)
	require.Equal(t, 200, status, body)
	types, m = added(t, body)
	status, body = s.post(t, messagesPath, `{`+fields+`}`)
	require.Equal(t, 200, status, body)
	var whole anthropicMessage
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	require.Len(t, whole.Content, len(m.Content))
	for i, block := range m.Content { // ids are new ones
		whole.Content[i].ID = block.ID
	}
	whole.ID = m.ID
	require.Equal(t, whole, m)
	return types, m
}

// messageEvents is what a stream has around blocks.
func aroundBlocks(blocks ...string) []string {
	return append(append([]string{"message_start"}, blocks...), "message_delta", "message_stop")
}

// Calls are blocks of their own, in their place among texts.
func TestMessageCalls(t *testing.T) {
	const call = `<tool_call>{"name": "weather", "arguments": {"days": 2}}</tool_call>`
	s := serve(t, says(t, "Let me see.\n"+call+`<tool_call>{"name": "clock"}</tool_call>`))
	types, m := sameMessage(t, s, ask+blockTool)
	require.Equal(t, aroundBlocks("text", "text_delta", "content_block_stop", "tool_use", "input_json_delta",
		"content_block_stop", "tool_use", "input_json_delta", "content_block_stop"), types)
	require.Equal(t, "tool_use", *m.StopReason)
	require.Equal(t, "Let me see.", *m.Content[0].Text)
	require.Equal(t, "weather", m.Content[1].Name)
	require.JSONEq(t, `{"days": 2}`, string(m.Content[1].Input))
	require.True(t, strings.HasPrefix(m.Content[1].ID, "toolu_"))
	require.Equal(t, "clock", m.Content[2].Name)
	require.JSONEq(t, `{}`, string(m.Content[2].Input))

	_, m = sameMessage(t, s, ask+blockTool+`, "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}`)
	require.Len(t, m.Content, 2)
	require.Equal(t, "tool_use", *m.StopReason)
	_, m = sameMessage(t, s, ask+blockTool+`, "tool_choice": {"type": "none"}`)
	require.Len(t, m.Content, 1)
	require.Equal(t, "end_turn", *m.StopReason)

	s = serve(t, longer())
	for _, choice := range []string{`{"type": "any"}`, `{"type": "tool", "name": "weather"}`} {
		_, m := sameMessage(t, s, ask+blockTool+`, "seed": 3, "tool_choice": `+choice)
		require.Len(t, m.Content, 1)
		require.Equal(t, "tool_use", *m.StopReason)
		var given map[string]any
		require.NoError(t, json.Unmarshal(m.Content[0].Input, &given))
		require.IsType(t, 1.0, given["days"])
	}
	// A call that is cut has no input, and stop_reason says so.
	_, m = sameMessage(t, serve(t, says(t, "x")), strings.Replace(ask, "200", "2", 1)+blockTool+
		`, "tool_choice": {"type": "any"}`)
	require.Equal(t, "max_tokens", *m.StopReason)
	require.Equal(t, `{}`, string(m.Content[0].Input))
}

// A message says why it has ended, and at which stop string.
func TestMessageStops(t *testing.T) {
	s := serve(t, says(t, "one, two, three"))
	_, m := sameMessage(t, s, ask+`, "stop_sequences": ["three", ", tw"]`)
	require.Equal(t, "stop_sequence", *m.StopReason)
	require.Equal(t, ", tw", *m.StopSequence)
	require.Equal(t, "one", *m.Content[0].Text)
	_, m = sameMessage(t, s, ask+`, "stop_sequences": ["four"]`)
	require.Equal(t, "end_turn", *m.StopReason)
	require.Nil(t, m.StopSequence)

	endless := serve(t, newScripted(func(_, _ []int) int { return 300 }))
	_, m = sameMessage(t, endless, strings.Replace(ask, "200", "3", 1))
	require.Equal(t, "max_tokens", *m.StopReason)
	require.Equal(t, 3, m.Usage.Output)
	_, m = sameMessage(t, endless, strings.Replace(ask, "200", "2000", 1))
	require.Equal(t, "model_context_window_exceeded", *m.StopReason)

	types, m := sameMessage(t, serve(t, says(t, "")), ask)
	require.Equal(t, aroundBlocks(), types)
	require.Empty(t, m.Content)
	require.NotNil(t, m.Content)
}

// A thought is a block in front of the text, and is thought or not as the request says.
func TestMessageThoughts(t *testing.T) {
	s := newTest(says(t, "<think>\nAs so.\n</think>\n\nIt is."), func(c *Config) { c.Chat = format(thinks) }).start(t)
	for _, fields := range []string{``, `, "thinking": {"type": "adaptive"}`,
		`, "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"}`} {
		types, m := sameMessage(t, s, ask+fields)
		require.Equal(t, aroundBlocks("thinking", "thinking_delta", "signature_delta", "content_block_stop", "text",
			"text_delta", "content_block_stop"), types)
		require.Equal(t, "As so.", *m.Content[0].Thinking)
		require.Equal(t, "It is.", *m.Content[1].Text)
	}
	prompt := func(template, fields string) int {
		s := newTest(says(t, "x"), func(c *Config) { c.Chat = format(template) }).start(t)
		status, body := s.post(t, countPath, `{"messages": [{"role": "user", "content": "Hi"}]`+fields+`}`)
		require.Equal(t, 200, status, body)
		var count struct {
			Input int `json:"input_tokens"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &count))
		return count.Input
	}
	tokens := func(text string) int { return len(idsOf(t, text)) }
	require.Equal(t, tokens("<|user|>Hi<|assistant|>"), prompt(thinks, ``))
	require.Equal(t, tokens("<|user|>Hi<|assistant|><think></think>"),
		prompt(thinks, `, "thinking": {"type": "disabled"}`))
	const granite = chatML // whose variable has another name
	require.Equal(t, tokens("<|user|>Hi<|assistant|><think>"),
		prompt(granite, `, "thinking": {"type": "enabled", "budget_tokens": 1024}`))
	const seed = `{{ messages[0].content }}{{ thinking_budget }}{% if thinking %}!{% endif %}`
	require.Equal(t, tokens("Hi1024!"), prompt(seed,
		`, "thinking": {"type": "enabled", "budget_tokens": 1024}`))

	plain := newTest(says(t, "x"), func(c *Config) {
		c.Chat = format(`{% for m in messages %}{{ m.content }}{% endfor %}`)
	}).start(t)
	status, body := plain.post(t, messagesPath, `{`+ask+`, "thinking": {"type": "enabled", "budget_tokens": 1024}}`)
	require.Equal(t, 400, status)
	require.Contains(t, body, "thinking cannot be enabled")
	status, body = plain.post(t, messagesPath, `{`+ask+`, "thinking": {"type": "disabled"}}`)
	require.Equal(t, 200, status, body)
}

// conversed is a template that shows all that a message has.
const conversed = `{% for m in messages %}[{{ m.role }}{% if m.reasoning_content %} ({{ m.reasoning_content }})` +
	`{% endif %}: {{ m.content }}{% for c in m.tool_calls or [] %} {{ c.id }}={{ c.function | tojson }}{% endfor %}` +
	`{% if m.tool_call_id %} of {{ m.tool_call_id }}{% endif %}]{% endfor %}{% if tools %}{% endif %}` +
	`{% if add_generation_prompt %}>{% endif %}`

// Content blocks become the messages that templates know.
func TestMessageBlocks(t *testing.T) {
	s := newTest(says(t, "x"), func(c *Config) { c.Chat = format(conversed) })
	for fields, want := range map[string]string{
		`"messages": [{"role": "user", "content": "a"}]`: `[user: a]>`,
		`"system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}, {"type": "text",
			"text": "t"}], "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text",
			"text": "b", "citations": null}]}, {"role": "user", "content": "c"}]`: "[system: s\nt][user: a\nb\nc]>",
		`"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "thinking",
			"thinking": "h", "signature": "x"}, {"type": "text", "text": "b"}, {"type": "tool_use", "id": "1", "name":
			"f", "input": {"x": [1, null]}}, {"type": "tool_use", "id": "2", "name": "g", "input": {}}]}, {"role":
			"user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "7"}, {"type": "tool_result",
			"tool_use_id": "2", "content": [{"type": "text", "text": "8"}], "is_error": true}, {"type": "text",
			"text": "c"}]}]`: `[user: a][assistant (h): b 1={"name": "f", "arguments": {"x": [1, null]}} ` +
			`2={"name": "g", "arguments": {}}][tool: 7 of 1][tool: 8 of 2][user: c]>`,
		`"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}, {"role": "system",
			"content": "s"}, {"role": "user", "content": "a"}]`: `[tool:  of 1][system: s][user: a]>`,
		// What the assistant has begun is continued.
		`"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "It is ("}]`: "[user: a]" +
			"[assistant: It is (",
		`"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": "b"},
			{"type": "text", "text": "c "}]}]`: "[user: a][assistant: b\nc ",
	} {
		all, err := members([]byte(`{"max_tokens": 1, ` + fields + `}`))
		require.NoError(t, err)
		_, p, err := s.messageRequest(all)
		require.NoError(t, err, fields)
		require.Equal(t, want, p.text)
		require.Equal(t, idsOf(t, want), p.ids)
	}
	require.Equal(t, 1, strings.Count(s.log.String(), "field=cache_control"), s.log.String())
	require.Equal(t, 1, strings.Count(s.log.String(), "field=is_error"), s.log.String())
}

// What is continued tells thoughts and text apart.
func TestMessageContinues(t *testing.T) {
	for begun, want := range map[string]string{"The answer": `[{"type":"text","text":"so </think> it is"}]`,
		"<think>Well":         `[{"type":"thinking","thinking":"so","signature":""},{"type":"text","text":"it is"}]`,
		"<think>Well</think>": `[{"type":"text","text":"so </think> it is"}]`,
		"<think>":             `[{"type":"thinking","thinking":"so","signature":""},{"type":"text","text":"it is"}]`,
		"":                    `[{"type":"text","text":"so </think> it is"}]`} {
		s := newTest(says(t, "so </think> it is"), func(c *Config) { c.Chat = format(thinks) }).start(t)
		status, body := s.post(t, messagesPath, `{"max_tokens": 99, "messages": [{"role": "user", "content": "a"},
			{"role": "assistant", "content": "`+begun+`"}]}`)
		require.Equal(t, 200, status, body)
		var m struct{ Content json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(body), &m))
		require.Equal(t, want, string(m.Content), begun)
	}
}

// An answer is constrained to a schema as with chat completions, and options are those of sampling.
func TestMessageFormat(t *testing.T) {
	s := serve(t, longer())
	_, m := sameMessage(t, s, ask+`, "temperature": 1, "top_p": 0.9, "top_k": 40, "seed": 1, "metadata": {"user_id":
		"u"}, "service_tier": "auto", "output_config": {"format": {"type": "json_schema", "schema": {"type": "object",
		"properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": false}}}`)
	require.JSONEq(t, `{"a": 1}`, *m.Content[0].Text)
}

// A messageFault is an error of the Messages API.
type messageFault struct {
	Type, Message string
	Details       struct {
		Code string `json:"error_code"`
	}
}

func anthropicFault(t testing.TB, body string) messageFault {
	t.Helper()
	var out struct {
		Type  string
		Error messageFault
		ID    string `json:"request_id"`
	}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&out), body)
	require.Equal(t, "error", out.Type)
	require.NotEmpty(t, out.Error.Message)
	require.NotEmpty(t, out.Error.Details.Code)
	return out.Error
}

// codeOf is the code of an error at a path.
func codeOf(t testing.TB, path, body string) string {
	t.Helper()
	if strings.HasPrefix(path, messagesPath) {
		return anthropicFault(t, body).Details.Code
	}
	return faultOf(t, body).Code
}

// Whatever is wrong is said in the form of Anthropic's errors, with what would be accepted.
func TestMessageRefusals(t *testing.T) {
	s := serve(t, says(t, "x"))
	one := func(content string) string {
		return `"max_tokens": 9, "messages": [{"role": "user", "content": ` + content + `}]`
	}
	said := func(content string) string {
		return `"max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ` +
			content + `}, {"role": "user", "content": "b"}]`
	}
	for _, c := range []struct{ fields, want string }{
		{`"messages": [{"role": "user", "content": "a"}]`, "there is no max_tokens"},
		{`"max_tokens": 0, "messages": [{"role": "user", "content": "a"}]`, "max_tokens is 0; want an integer from 1"},
		{`"max_tokens": 9`, "there are no messages"},
		{`"max_tokens": 9, "messages": []`, "there are no messages"},
		{`"max_tokens": 9, "messages": [{"role": "tool", "content": "a"}]`, "messages[0].role is not as expected"},
		{`"max_tokens": 9, "messages": [{"role": "user", "content": "a", "name": "b"}]`,
			"messages[0].name is not supported"},
		{`"max_tokens": 9, "messages": [{"role": "user"}]`, "messages[0].content is not as expected"},
		{one(`7`), "messages[0].content is not as expected; want a string or a list of content blocks"},
		{one(`[]`), "messages[0].content has no blocks"},
		{`"max_tokens": 9, "messages": [{"role": "assistant", "content": []}]`, "messages[0].content has no blocks"},
		{one(`[7]`), "messages[0].content[0] is not an object"},
		{one(`[{"text": "a"}]`), `messages[0].content[0] is of type ""`},
		{one(`[{"type": "text"}]`), "messages[0].content[0].text is not a string"},
		{one(`[{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}]`),
			`messages[0].content[0] is of type "image", which is not supported here; want text, tool_result`},
		{one(`[{"type": "document", "source": {}}]`), `is of type "document", which is not supported`},
		{one(`[{"type": "text", "text": "a", "x": 1}]`), "messages[0].content[0].x is not supported"},
		{one(`[{"type": "text", "text": "a", "citations": [{}]}]`), "has citations"},
		{one(`[{"type": "tool_result"}]`), "tool_use_id is not a string"},
		{one(`[{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "image"}]}]`), `is of type "image"`},
		{one(`[{"type": "tool_result", "tool_use_id": "1", "is_error": 1}]`), "is_error is not as expected"},
		{one(`[{"type": "tool_use", "id": "1", "name": "f", "input": {}}]`), `is of type "tool_use"`},
		{said(`[{"type": "redacted_thinking", "data": "x"}]`), `is of type "redacted_thinking"`},
		{said(`[{"type": "thinking", "signature": "x"}]`), "thinking is not a string"},
		{said(`[{"type": "tool_use", "id": "1", "name": "f", "input": "{}"}]`), "input is not an object"},
		{`"max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type":
			"tool_use", "id": "1", "name": "f", "input": {}}]}]`, "an answer continues a last message that is a text"},
		{`"max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]` +
			blockTool, "an answer that continues the last message is not supported alongside tools"},
		{ask + `, "system": 7`, "system is not as expected"},
		{ask + `, "system": [{"type": "image"}]`, `system[0] is of type "image"`},
		{ask + `, "temperature": 1.5`, "temperature is 1.5; want a number from 0 to 1"},
		{ask + `, "stop_sequences": "x"`, "stop_sequences is not as expected"},
		{ask + `, "stop_sequences": [""]`, "a string of stop_sequences has 0 bytes"},
		{ask + `, "stop": "x"`, `there is no field "stop"`},
		{ask + `, "n": 2`, `there is no field "n"`},
		{ask + `, "metadata": {"x": "u"}`, `there is no field "metadata.x"`},
		{ask + `, "thread": {"type": "create"}`, "thread is not supported, as nothing is stored here"},
		{ask + `, "container": "c"`, "container is not supported"},
		{ask + `, "mcp_servers": []`, "mcp_servers is not supported"},
		{ask + `, "thinking": {"type": "between_tools"}`, `thinking of type "between_tools" is not supported`},
		{ask + `, "thinking": {"type": "enabled", "display": "omitted"}`, "thinking.display"},
		{ask + `, "thinking": {"type": "enabled", "budget_tokens": "x"}`, "thinking.budget_tokens is not as expected"},
		{ask + `, "output_config": {"effort": "low"}`, "knows no reasoning_effort"},
		{ask + `, "output_config": {"x": "low"}`, `there is no field "output_config.x"`},
		{ask + `, "tools": [{"type": "web_search_20260209", "name": "web_search", "max_uses": 5}]`,
			"tools[0] is of a type that is not supported; want custom"},
		{ask + `, "tools": [{"name": "f", "input_examples": [{}]}]`, "tools[0].input_examples is not supported"},
		{ask + `, "tools": [{"input_schema": {}}]`, "tools[0] has no name"},
		{ask + blockTool + `, "tool_choice": "auto"`, "tool_choice is not as expected; want an object"},
		{ask + blockTool + `, "tool_choice": {"type": "required"}`, `{"type": TYPE} of the type auto, any or none`},
		{ask + blockTool + `, "tool_choice": {"type": "tool"}`, `or {"type": "tool", "name": NAME}`},
		{ask + blockTool + `, "tool_choice": {"type": "tool", "name": "g"}`, `tool_choice names "g"`},
		{ask + blockTool + `, "tool_choice": {"type": "auto", "x": 1}`, `there is no field "tool_choice.x"`},
	} {
		status, body := s.post(t, messagesPath, `{`+c.fields+`}`)
		require.Equal(t, 400, status, "%s: %s", c.fields, body)
		f := anthropicFault(t, body)
		require.Equal(t, kindRequest, f.Type)
		require.Contains(t, f.Message, c.want, c.fields)
	}
	// Clients tell errors apart by their status and type.
	keyed := newTest(says(t, "x"), func(c *Config) { c.APIKey = "k" }).start(t)
	for _, c := range []struct {
		s                  *testServer
		method, path, body string
		header             http.Header
		status             int
		kind               string
	}{
		{s, "POST", messagesPath, `{"model": "other", ` + ask + `}`, nil, 404, "not_found_error"},
		{s, "GET", messagesPath, ``, nil, 405, kindRequest},
		{s, "POST", messagesPath + "/batches", `{}`, nil, 404, "not_found_error"},
		{s, "POST", messagesPath, ``, http.Header{"Content-Type": {"text/plain"}}, 415, kindRequest},
		{s, "POST", messagesPath, `{"x": "` + strings.Repeat("x", maxBody) + `"}`, nil, 413, "request_too_large"},
		{s, "POST", countPath, `{` + ask + `}`, nil, 400, kindRequest}, // which has no max_tokens
		{keyed, "POST", messagesPath, `{}`, nil, 401, "authentication_error"},
		{keyed, "POST", messagesPath, `{}`, http.Header{"X-Api-Key": {"x"}}, 401, "authentication_error"},
		{keyed, "POST", messagesPath, `{}`, http.Header{"X-Api-Key": {"k"}}, 400, kindRequest},
		{keyed, "POST", messagesPath, `{}`, http.Header{"Authorization": {"Bearer k"}}, 400, kindRequest},
	} {
		status, header, body := c.s.send(t, c.method, c.path, c.body, c.header)
		require.Equal(t, c.status, status, body)
		require.Equal(t, c.kind, anthropicFault(t, body).Type)
		require.Contains(t, body, `"request_id":"`+header.Get("X-Request-Id")+`"`)
	}
}

// A failure after the beginning is an event, and nothing follows; in front of it, a status. Pings are events too.
func TestMessageFails(t *testing.T) {
	e := newScripted(func(_, _ []int) int { return 300 })
	left := 3
	e.fail = func() error {
		if left--; left < 0 {
			return errBusy
		}
		return nil
	}
	s := serve(t, e)
	status, got := s.post(t, messagesPath, `{`+ask+`, "stream": true}`)
	require.Equal(t, 200, status)
	types, _ := added(t, got)
	require.Equal(t, []string{"message_start", "text", "text_delta", "error"}, types)
	require.NotContains(t, got, errBusy.Error())
	status, got = s.post(t, messagesPath, `{`+ask+`, "stream": true}`)
	require.Equal(t, 500, status)
	require.Equal(t, "api_error", anthropicFault(t, got).Type)

	synctest.Test(t, func(t *testing.T) {
		e := says(t, "x")
		e.gate = make(chan struct{})
		s := newTest(e, nil).run(t)
		time.AfterFunc(15*time.Second, func() { close(e.gate) })
		status, got := s.answer(t, messagesPath, `{`+ask+`, "stream": true}`)
		require.Equal(t, 200, status)
		rest, found := strings.CutPrefix(got, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
		require.True(t, found, got)
		types, _ := added(t, rest)
		require.Equal(t, aroundBlocks("text", "text_delta", "content_block_stop"), types)
	})
}

// What the cache has of a prompt is counted apart, in the first event and in the last.
func TestMessageCache(t *testing.T) {
	s := newTest(NewSingle(newVM(t), limits, 4), func(c *Config) { c.Sampling = sampling.Greedy() }).start(t)
	const body = `{"max_tokens": 2, "messages": [{"role": "user", "content": "def"}], "stream": true}`
	_, first := s.post(t, messagesPath, body)
	_, second := s.post(t, messagesPath, body)
	_, m := added(t, first)
	require.Zero(t, m.Usage.CacheRead)
	_, again := added(t, second)
	require.Equal(t, m.Usage.Input-1, again.Usage.CacheRead)
	require.Equal(t, 1, again.Usage.Input)
	begin := `"usage":{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":` +
		strconv.Itoa(again.Usage.CacheRead) + `,"output_tokens":0}`
	require.Contains(t, second, begin)
}
