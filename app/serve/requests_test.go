package serve

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fault is the error of an answer.
type fault struct {
	Message, Type, Param, Code string
}

func faultOf(t testing.TB, body string) fault {
	t.Helper()
	var out struct{ Error *fault }
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&out), body)
	require.NotNil(t, out.Error, body)
	require.NotEmpty(t, out.Error.Message)
	require.NotEmpty(t, out.Error.Type)
	return *out.Error
}

// Whatever is wrong with a request is said with the field that is at fault, and with what would be accepted.
func TestRefusals(t *testing.T) {
	e := says(t, "x")
	s := serve(t, e)
	const messages = `"messages": [{"role": "user", "content": "x"}]`
	chats := "/v1/chat/completions"
	texts := "/v1/completions"
	states := "/v1/embeddings"
	for _, c := range []struct {
		path, body, code, param, want string
	}{
		{texts, ``, "invalid_json", "", "ends too early"},
		{texts, `[]`, "invalid_json", "", "a JSON object"},
		{texts, `{"prompt": "x"`, "invalid_json", "", "ends too early"},
		{texts, `{"prompt": "x"} {}`, "invalid_json", "", "the end of the text"},
		{texts, "{\"prompt\": \"\xff\"}", "invalid_json", "", "UTF-8"},
		{texts, strings.Repeat(`{"a":`, 20000), "invalid_json", "", ""},
		{texts, `{}`, "invalid_value", "prompt", "a string, a list of strings, a list of token ids"},
		{texts, `{"prompt": null}`, "invalid_value", "prompt", "there is no prompt"},
		{texts, `{"prompt": {}}`, "invalid_value", "prompt", "a string, a list"},
		{texts, `{"prompt": []}`, "invalid_value", "prompt", "no tokens"},
		{texts, `{"prompt": [null]}`, "invalid_value", "prompt", "a string, a list"},
		{texts, `{"prompt": [5, null]}`, "invalid_value", "prompt", "a string, a list"},
		{texts, `{"prompt": [5, "x"]}`, "invalid_value", "prompt", "a string, a list"},
		{texts, `{"prompt": [1.5]}`, "invalid_value", "prompt", "a string, a list"},
		{texts, `{"prompt": [4096]}`, "invalid_value", "prompt", "ids from 0 to 4095"},
		{texts, `{"prompt": [-1]}`, "invalid_value", "prompt", "ids from 0 to 4095"},
		{texts, `{"prompt": ["a", [5], {}]}`, "invalid_value", "prompt[2]", "a string, a list"},
		{texts, `{"prompt": [[1], []]}`, "invalid_value", "prompt[1]", "no tokens"},
		{texts, `{"prompt": ["a"` + strings.Repeat(`, "a"`, 65) + `]}`, "invalid_value", "prompt", "at most 65"},
		{texts, `{"prompt": ["a"` + strings.Repeat(`, "a"`, 21) + `], "n": 3}`, "invalid_value", "n",
			"asks for 66 answers, and this server decodes and queues 65"},
		{texts, `{"prompt": "x", "n": 0}`, "invalid_value", "n", "an integer from 1 to 128"},
		{chats, `{` + messages + `, "n": 129}`, "invalid_value", "n", "an integer from 1 to 128"},
		{chats, `{` + messages + `, "n": 66}`, "invalid_value", "n", "asks for 66 answers"},
		{texts, `{"prompt": "x", "best_of": 1.5}`, "invalid_value", "best_of", "an integer"},
		{texts, `{"prompt": "x", "n": 2, "best_of": 3}`, "unsupported_parameter", "best_of", "want n, which is 2"},
		{texts, `{"prompt": "x", "model": "other"}`, "model_not_found", "model", `this server has "m"`},
		{texts, `{"prompt": "x", "model": 7}`, "invalid_value", "model", "want a string"},
		{texts, `{"prompt": "x", "max_tokens": -1}`, "invalid_value", "max_tokens", "from 0 to"},
		{texts, `{"prompt": "x", "max_tokens": 1.5}`, "invalid_value", "max_tokens", "is 1.5; want an integer"},
		{texts, `{"prompt": "x", "max_tokens": 1e99}`, "invalid_value", "max_tokens", "an integer"},
		{texts, `{"prompt": "x", "max_completion_tokens": 1}`, "unknown_parameter",
			"max_completion_tokens", "no field"},
		{texts, `{"prompt": "x", "best": 1}`, "unknown_parameter", "best", "there is no field"},
		{texts, `{"prompt": "x", "suffix": "y"}`, "unsupported_parameter", "suffix", "want none"},
		{texts, `{"prompt": "x", "logprobs": 6}`, "invalid_value", "logprobs", "from 0 to 5"},
		{texts, `{"prompt": "x", "logprobs": 1, "echo": 1}`, "invalid_value", "echo", "true or false"},
		{texts, `{"prompt": "x", "stream": 1}`, "invalid_value", "stream", "true or false"},
		{texts, `{"prompt": "x", "stream_options": {}}`, "invalid_value", "stream_options", "goes with stream"},
		{texts, `{"prompt": "x", "stream": true, "stream_options": {"x": 1}}`, "unknown_parameter", "stream_options.x",
			"no field"},
		{texts, `{"prompt": "x", "stream": true, "stream_options": {"include_usage": 1}}`, "invalid_value",
			"stream_options.include_usage", "true or false"},
		{texts, `{"prompt": "x", "stop": 1}`, "invalid_value", "stop", "up to 16"},
		{texts, `{"prompt": "x", "stop": ""}`, "invalid_value", "stop", "0 bytes"},
		{texts, `{"prompt": "x", "stop": [null]}`, "invalid_value", "stop", "up to 16"},
		{texts, `{"prompt": "x", "stop": ["a"` + strings.Repeat(`,"a"`, 16) + `]}`,
			"invalid_value", "stop", "at most 16"},
		{texts, `{"prompt": "x", "logit_bias": {"x": 1}}`, "invalid_value", "logit_bias", "by token ids"},
		{texts, `{"prompt": "x", "logit_bias": {"5": null}}`, "invalid_value", "logit_bias", "by token ids"},
		{texts, `{"prompt": "x", "logit_bias": {"5": 101}}`, "invalid_value", "logit_bias", "from -100 to 100"},
		{texts, `{"prompt": "x", "logit_bias": {"4096": 1}}`, "invalid_value", "logit_bias", "from 0 to 4095"},
		{texts, `{"prompt": "x", "seed": "x"}`, "invalid_value", "seed", "an integer of 64 bits"},
		{texts, `{"prompt": "x", "seed": 1e30}`, "invalid_value", "seed", "an integer of 64 bits"},
		{texts, `{"prompt": "x", "temperature": 2.1}`, "invalid_value", "temperature", "a number from 0 to 2"},
		{texts, `{"prompt": "x", "temperature": 1e-9}`, "invalid_value", "temperature", "want 0, or a number from"},
		{texts, `{"prompt": "x", "top_p": -1}`, "invalid_value", "top_p", "a number from 0 to 1"},
		{texts, `{"prompt": "x", "top_k": 0.5}`, "invalid_value", "top_k", "an integer from -1"},
		{texts, `{"prompt": "x", "presence_penalty": 3}`, "invalid_value", "presence_penalty", "from -2 to 2"},
		{texts, `{"prompt": "x", "guided_json": {}}`, "unsupported_parameter", "guided_json", "not supported"},
		{texts, `{"prompt": "x", "prompt_embeds": "AAAA"}`, "unsupported_parameter", "prompt_embeds",
			"the library for C and Python"},
		{states, `{}`, "invalid_value", "input", "a list of strings"},
		{states, `{"input": []}`, "invalid_value", "input", "no tokens"},
		{states, `{"input": {}}`, "invalid_value", "input", "a list of strings"},
		{states, `{"input": ["x", 5]}`, "invalid_value", "input[1]", "a list of strings"},
		{states, `{"input": ["x", null]}`, "invalid_value", "input", "a list of strings"},
		{states, `{"input": [[5], [4096]]}`, "invalid_value", "input[1]", "ids from 0 to 4095"},
		{states, `{"input": [5, "x"]}`, "invalid_value", "input", "a list of strings"},
		{states, `{"input": ["x"` + strings.Repeat(`,"x"`, 2048) + `]}`, "invalid_value", "input", "at most 2048"},
		{states, `{"input": "x", "encoding_format": "int8"}`, "invalid_value", "encoding_format", `"base64"`},
		{states, `{"input": "x", "dimensions": 4}`, "invalid_value", "dimensions", "from 1 to 3"},
		{states, `{"input": "x", "model": "other"}`, "model_not_found", "model", `this server has "m"`},
		{states, `{"input": "x", "temperature": 1}`, "unknown_parameter", "temperature", "no field"},
		{states, `{"input": "x", "stream": true}`, "unknown_parameter", "stream", "no field"},
		{chats, `{}`, "invalid_value", "messages", "at least one"},
		{chats, `{"messages": []}`, "invalid_value", "messages", "at least one"},
		{chats, `{"messages": {}}`, "invalid_value", "messages", "a list of objects"},
		{chats, `{"messages": ["x"]}`, "invalid_value", "messages", "[0] is not an object"},
		{chats, `{"messages": [{"content": "x"}]}`, "invalid_value", "messages[0].role", "one of system"},
		{chats, `{"messages": [{"role": "root", "content": "x"}]}`, "invalid_value",
			"messages[0].role", "one of system"},
		{chats, `{"messages": [{"role": "user"}]}`, "invalid_value", "messages[0].content", "is missing"},
		{chats, `{"messages": [{"role": "user", "content": 5}]}`, "invalid_value", "messages[0].content", "text parts"},
		{chats, `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, "unsupported_parameter",
			"messages[0].content", `"image_url"`},
		{chats, `{"messages": [{"role": "user", "content": [{"type": "text"}]}]}`, "invalid_value",
			"messages[0].content", "[0].text is not a string"},
		{chats, `{"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "{"}}]}]}`,
			"invalid_value", "messages[0].tool_calls", "is not JSON"},
		{chats, `{"messages": [{"role": "assistant", "tool_calls": {}}]}`, "invalid_value", "messages[0].tool_calls",
			"not a list"},
		{chats, `{"messages": [{"role": "assistant", "tool_calls": [5]}]}`, "invalid_value", "messages[0].tool_calls",
			"not a call"},
		{chats, `{` + messages + `, "max_tokens": 1, "max_completion_tokens": 1}`, "invalid_value", "max_tokens",
			"one of them"},
		{chats, `{` + messages + `, "top_logprobs": 1}`, "invalid_value", "top_logprobs", "goes with logprobs"},
		{chats, `{` + messages + `, "logprobs": true, "top_logprobs": 21}`, "invalid_value", "top_logprobs", "0 to 20"},
		{chats, `{` + messages + `, "response_format": {"type": "xml"}}`, "unsupported_parameter",
			"response_format", `"xml" is not supported; want text, json_object, json_schema`},
		{chats, `{` + messages + `, "response_format": {"type": "json_object", "schema": {}}}`, "unknown_parameter",
			"response_format.schema", `no field "response_format.schema"`},
		{chats, `{` + messages + `, "response_format": {"type": "json_object"}, "tools": [{"name": "f"}],
			"ignore_eos": true}`, "unsupported_parameter", "ignore_eos", "where it is whole"},
		{chats, `{` + messages + `, "response_format": {"type": "json_object"}, "ignore_eos": true}`,
			"unsupported_parameter", "ignore_eos", "where it is whole"},
		{chats, `{` + messages + `, "response_format": {"type": "json_schema"}}`, "invalid_value",
			"response_format.json_schema", "not an object"},
		{chats, `{` + messages + `, "response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}`,
			"invalid_value", "response_format.json_schema.schema", "has no schema"},
		{chats, `{` + messages + `, "response_format": {"type": "json_schema", "json_schema": {"strict": 1,
			"schema": {}}}}`,
			"invalid_value", "response_format.json_schema.strict", "true or false"},
		{chats, `{` + messages + `, "response_format": {"type": "json_schema", "json_schema": {"schema": {
			"type": "object", "properties": {"a": {"if": true}}}}}}`, "unsupported_schema",
			"response_format.json_schema.schema",
			`#/properties/a has the keyword "if", which is not supported`},
		{chats, `{` + messages + `, "response_format": {"type": "json_schema", "json_schema": {"schema": {
			"type": "array", "maxItems": 1e9}}}}`, "schema_too_large", "response_format.json_schema.schema",
			`#/maxItems is not a whole number from 0 to 1000`},
		{chats, `{` + messages + `, "response_format": "text"}`, "invalid_value", "response_format", "not an object"},
		{chats, `{` + messages + `, "response_format": {}}`, "invalid_value", "response_format.type", "a string"},
		{chats, `{` + messages + `, "modalities": ["audio"]}`, "unsupported_parameter", "modalities", `["text"]`},
		{chats, `{` + messages + `, "functions": []}`, "unsupported_parameter", "functions", "want none"},
		{chats, `{` + messages + `, "tools": [5]}`, "invalid_value", "tools", "not an object"},
		{chats, `{` + messages + `, "tool_choice": "required"}`, "invalid_value", "tool_choice", "goes with tools"},
		{chats, `{` + messages + `, "tool_choice": "any"}`, "unsupported_parameter", "tool_choice",
			"none, auto, required"},
		{chats, `{` + messages + `, "tool_choice": {"type": "function"}}`, "unsupported_parameter", "tool_choice",
			"none, auto, required"},
		{chats, `{` + withTools + `, "tool_choice": {"type": "function", "function": {"name": "clock"}}}`,
			"invalid_value", "tool_choice", `names "clock", which is not one of tools`},
		{chats, `{` + withTools + `, "tool_choice": "required", "ignore_eos": true}`, "unsupported_parameter",
			"ignore_eos", "where it is whole"},
		{chats, `{` + messages + `, "tool_choice": "required", "tools": [{"type": "function", "function": {"name": "f",
			"parameters": {"type": "object", "properties": {"a": {"if": true}}}}}]}`, "unsupported_schema",
			"tools", `parameters of "f":/properties/a has the keyword "if"`},
		{chats, `{` + messages + `, "tools": [{"type": "custom", "custom": {"name": "f"}}]}`, "unsupported_parameter",
			"tools", "want function"},
		{chats, `{` + messages + `, "reasoning_effort": "low"}`, "unsupported_parameter", "reasoning_effort",
			"knows no reasoning_effort"},
		{chats, `{` + messages + `, "documents": [{}]}`, "unsupported_parameter", "documents", "knows no documents"},
		{chats, `{` + messages + `, "chat_template_kwargs": {"speed": 1}}`, "unsupported_parameter",
			"chat_template_kwargs.speed", "knows no speed"},
		{chats, `{` + messages + `, "chat_template_kwargs": {"messages": []}}`, "invalid_value",
			"chat_template_kwargs.messages", "separately"},
		{chats, `{` + messages + `, "chat_template_kwargs": []}`, "invalid_value", "chat_template_kwargs", "an object"},
		{"/tokenize", `{}`, "invalid_value", "prompt", "one of prompt and messages"},
		{"/tokenize", `{"prompt": "x", ` + messages + `}`, "invalid_value", "prompt", "one of prompt and messages"},
		{"/tokenize", `{"prompt": 5}`, "invalid_value", "prompt", "a string"},
		{"/tokenize", `{"prompt": "x", "add_special_tokens": 1}`,
			"invalid_value", "add_special_tokens", "true or false"},
		{"/detokenize", `{}`, "invalid_value", "tokens", "a list of ids"},
		{"/detokenize", `{"tokens": [4096]}`, "invalid_value", "tokens", "from 0 to 4095"},
		{"/detokenize", `{"tokens": [null]}`, "invalid_value", "tokens", "a list of ids"},
		{"/detokenize", `{"tokens": "x"}`, "invalid_value", "tokens", "a list of ids"},
	} {
		status, body := s.post(t, c.path, c.body)
		require.GreaterOrEqual(t, status, 400, "%s %s", c.path, c.body)
		require.Less(t, status, 500, c.body)
		f := faultOf(t, body)
		require.Equal(t, "invalid_request_error", f.Type)
		require.Equal(t, c.code, f.Code, "%s: %s", c.body, f.Message)
		require.Equal(t, c.param, f.Param, "%s: %s", c.body, f.Message)
		require.Contains(t, f.Message, c.want, c.body)
	}
	_, steps := e.load()
	require.Zero(t, steps, "nothing was decoded")
}

// What clients send routinely, or what says nothing, is accepted.
func TestAccepted(t *testing.T) {
	s := serve(t, says(t, "x"))
	for _, fields := range []string{
		`"user": "u", "store": false, "metadata": {"a": "b"}, "service_tier": "auto"`,
		`"n": 1, "seed": 7, "temperature": 0, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0.0`,
		`"stop": null, "logit_bias": {}, "max_tokens": 3.0, "stream": false, "stream_options": null`,
		`"tools": [], "tool_choice": "auto", "response_format": {"type": "text"}, "modalities": ["text"]`,
		`"logprobs": false, "top_logprobs": null, "parallel_tool_calls": true, "max_completion_tokens": 4`,
		`"chat_template_kwargs": {"thinking": true}, "parallel_tool_calls": false`,
	} {
		status, body := s.post(t, "/v1/chat/completions",
			`{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}], `+fields+`}`)
		require.Equal(t, 200, status, "%s: %s", fields, body)
	}
}

func TestBodies(t *testing.T) {
	s := newTest(says(t, "x"), nil)
	s.maxBody = 100
	s.start(t)
	status, body := s.post(t, "/v1/completions", `{"prompt": "`+strings.Repeat("x", 100)+`"}`)
	require.Equal(t, 413, status)
	require.Equal(t, "body_too_large", faultOf(t, body).Code)
	require.Contains(t, body, "more than 100 bytes")
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; x"} {
		status, _, body = s.send(t, http.MethodPost, "/v1/completions", `{"prompt": "x"}`,
			http.Header{"Content-Type": {kind}})
		require.Equal(t, 415, status, kind)
		require.Equal(t, "invalid_content_type", faultOf(t, body).Code)
	}
	status, _, _ = s.send(t, http.MethodPost, "/v1/completions", `{"prompt": "x"}`,
		http.Header{"Content-Type": {"application/json; charset=utf-8"}})
	require.Equal(t, 200, status)
}

func TestRoutes(t *testing.T) {
	s := serve(t, says(t, "x"))
	status, header, body := s.send(t, http.MethodGet, "/v1/chat/completions", "", nil)
	require.Equal(t, 405, status)
	require.Equal(t, "POST", header.Get("Allow"))
	require.Equal(t, "method_not_allowed", faultOf(t, body).Code)
	for _, path := range []string{"/v1", "/v2/models", "/v1/responses/resp_1", "/favicon.ico", "/..%2f"} {
		status, _, body = s.send(t, http.MethodGet, path, "", nil)
		require.Equal(t, 404, status, path)
		require.Equal(t, "not_found", faultOf(t, body).Code)
	}
	status, _, body = s.send(t, http.MethodGet, "/v1/models", "", nil)
	require.Equal(t, 200, status)
	const card = `{"id": "m", "object": "model", "created": 1700000000, "owned_by": "amkc", "max_model_len": 256,
		"chat": true, "thinking_switch": "thinking", "defaults": {"temperature": 0, "top_p": 1}}`
	require.JSONEq(t, `{"object": "list", "data": [`+card+`]}`, body)
	status, _, body = s.send(t, http.MethodGet, "/v1/models/m", "", nil)
	require.Equal(t, 200, status)
	require.JSONEq(t, card, body)
	status, _, body = s.send(t, http.MethodGet, "/v1/models/a/b", "", nil)
	require.Equal(t, 404, status)
	require.Equal(t, "model_not_found", faultOf(t, body).Code)
	status, _, body = s.send(t, http.MethodGet, "/health", "", nil)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"status": "ok", "running": 0, "waiting": 0}`, body)
}

func TestTokens(t *testing.T) {
	s := serve(t, says(t, "x"))
	ids, err := json.Marshal(append([]int{0}, idsOf(t, "wörld")...))
	require.NoError(t, err)
	n := len(idsOf(t, "wörld"))
	status, body := s.post(t, "/tokenize", `{"prompt": "wörld"}`)
	require.Equal(t, 200, status)
	var got struct {
		Count, MaxLen int
		Tokens        []int
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, n+1, got.Count)
	require.Equal(t, append([]int{0}, idsOf(t, "wörld")...), got.Tokens)
	status, body = s.post(t, "/detokenize", `{"tokens": `+string(ids)+`}`)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"prompt": "<|begin_of_text|>wörld"}`, body)

	_, body = s.post(t, "/tokenize", `{"prompt": "<|begin_of_text|>wörld"}`)
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, n+1, got.Count, "one begin token is enough")

	_, body = s.post(t, "/tokenize", `{"prompt": "", "add_special_tokens": false}`)
	require.JSONEq(t, `{"count": 0, "max_model_len": 256, "tokens": []}`, body)
	_, body = s.post(t, "/tokenize", `{"messages": [{"role": "user", "content": "a"}, {"role": "developer",
		"content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}]}`)
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, idsOf(t, "<|user|>a<|system|>b\nc<|assistant|>"), got.Tokens)
}

// Without a template there are no messages, and that is not a secret.
func TestNoTemplate(t *testing.T) {
	s := newTest(says(t, "x"), func(c *Config) { c.Chat = nil }).start(t)
	status, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}]}`)
	require.Equal(t, 400, status)
	require.Equal(t, "no_chat_template", faultOf(t, body).Code)
	require.Contains(t, body, "/v1/completions")
	status, _ = s.post(t, "/v1/completions", `{"prompt": "x"}`)
	require.Equal(t, 200, status)
}

// A template that refuses a conversation says why.
func TestTemplateRefuses(t *testing.T) {
	refuses := format(`{{ raise_exception('no system messages') }}`)
	s := newTest(says(t, "x"), func(c *Config) { c.Chat = refuses }).start(t)
	status, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}]}`)
	require.Equal(t, 400, status)
	require.Contains(t, faultOf(t, body).Message, "no system messages")
}
