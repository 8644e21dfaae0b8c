package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// Whatever a body of the Messages API holds, there is an answer or a refusal in the form of Anthropic's errors, and the
// server goes on.
func FuzzMessages(f *testing.F) {
	s := newTest(newScripted(hashed), func(c *Config) {
		c.Chat = format(chatML + "{% if is_error %}{% endif %}")
		c.Log = slog.New(slog.DiscardHandler)
	})
	ctx, stop := context.WithCancel(context.Background())
	go s.scheduler.run(ctx)
	f.Cleanup(stop)
	handler := s.Handler()
	for _, body := range []string{
		`{"model": "m", "max_tokens": 9, "system": "a", "messages": [{"role": "user", "content": "b"}], "stream": true,
			"stop_sequences": ["a", "b"], "temperature": 1, "top_p": 0.5, "top_k": 5, "metadata": {"user_id": "u"}}`,
		`{"max_tokens": 9, "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
			"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "citations": []}]},
			{"role": "assistant",
			"content": [{"type": "thinking", "thinking": "b", "signature": ""}, {"type": "text", "text": "c"},
			{"type": "tool_use", "id": "1", "name": "f", "input": {"a": [1]}}]}, {"role": "user", "content": [{"type":
			"tool_result", "tool_use_id": "1", "is_error": true, "content": [{"type": "text", "text": "7"}]}]}]}`,
		`{"max_tokens": 40, "messages": [{"role": "user", "content": "a"}], "tools": [{"name": "f", "description": "d",
			"input_schema": {"type": "object"}, "strict": true, "type": "custom"}], "tool_choice": {"type": "tool",
			"name": "f", "disable_parallel_tool_use": true}, "stream": true}`,
		`{"max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b "}],
			"thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"}, "min_tokens": 3}`,
		`{"max_tokens": 5, "messages": [{"role": "assistant", "content": []}]}`,
		`{"max_tokens": 9, "messages": [{"role": "user", "content": "a"}], "thinking": {"type": "disabled"},
			"output_config": {"format": {"type": "json_schema", "schema": {"const": 1}}}, "stop_token_ids": [5]}`,
		`{"messages": [{"role": "user", "content": "a"}], "tools": [{"name": "f"}], "tool_choice": {"type": "any"}}`,
	} {
		f.Add(false, body)
		f.Add(true, body)
	}
	f.Fuzz(func(t *testing.T, counts bool, body string) {
		defer watch.Execution()()
		path := messagesPath
		if counts {
			path = countPath
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		answer := w.Body.String()
		switch {
		case w.Code >= 500:
			t.Fatalf("status %d: %s", w.Code, answer)
		case w.Code != http.StatusOK:
			require.GreaterOrEqual(t, w.Code, 400)
			anthropicFault(t, answer)
		case strings.HasPrefix(answer, "event: "):
			types, m := added(t, answer)
			require.Equal(t, "message_stop", types[len(types)-1])
			require.NotNil(t, m.StopReason)
		default:
			require.True(t, json.Valid([]byte(answer)), answer)
		}
	})
}

// Whatever a body holds, there is an answer or a refusal in the form of OpenAI's errors, and the server goes on.
func FuzzRequest(f *testing.F) {
	s := newTest(newScripted(hashed), nil)
	ctx, stop := context.WithCancel(context.Background())
	go s.scheduler.run(ctx)
	f.Cleanup(stop)
	handler := s.Handler()
	paths := []string{"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/v1/embeddings",
		responsesPath}
	for i, bodies := range [][]string{{
		`{"model": "m", "prompt": "a", "max_tokens": 5, "stream": true, "stream_options": {"include_usage": true}}`,
		`{"prompt": [5, 6], "stop": ["a", "b"], "logprobs": 3, "logit_bias": {"7": -100}, "seed": 1,
			"ignore_eos": true}`,
		`{"prompt": [5], "temperature": 1.5, "top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1,
			"presence_penalty": -2, "frequency_penalty": 2, "seed": -1, "max_tokens": 9}`,
		`{"prompt": [[5]], "echo": true, "n": 1, "best_of": 1, "suffix": "", "temperature": 0, "top_p": 0.5}`,
		`{"prompt": ["a", [5, 6]], "echo": true, "n": 3, "best_of": 3, "max_tokens": 4, "stream": true, "seed": 2}`,
		`{"prompt": ["a", "b"], "n": 2, "logprobs": 2, "max_tokens": 4}`,
		`{"prompt": [[5, 6], "a b"], "echo": true, "logprobs": 1, "max_tokens": 0}`,
	}, {
		`{"messages": [{"role": "user", "content": "a"}], "logprobs": true, "top_logprobs": 2, "stop": "x", "n": 2}`,
		`{"messages": [{"role": "developer", "content": [{"type": "text", "text": "a"}]}, {"role": "assistant",
			"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
			{"role": "tool", "content": "7"}], "tools": [{"name": "f"}], "tool_choice": "auto", "stream": true}`,
		`{"messages": [{"role": "user", "content": ""}], "max_tokens": 40, "tool_choice": "required", "tools": [{"type":
			"function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"const": 1}}}}},
			{"function": {"name": "g"}}]}`,
		`{"messages": [{"role": "user", "content": ""}], "max_tokens": 9, "tools": [{"function": {"name": "f"}}],
			"tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false}`,
		`{"messages": [{"role": "user", "content": ""}], "max_tokens": 40, "n": 2, "tools": [{"type": "function",
			"function": {"name": "f", "strict": true, "parameters": {"type": "object", "properties": {"a": {"const":
			1}}}}}, {"function": {"name": "g", "strict": false}}], "parallel_tool_calls": false}`,
		`{"messages": [{"role": "user", "content": ""}], "max_tokens": 9, "reasoning_format": "none", "stream": true,
			"chat_template_kwargs": {"thinking": true}, "separate_reasoning": false, "include_reasoning": true}`,
		`{"messages": [{"role": "assistant", "content": "", "reasoning_content": "a"}], "reasoning_effort": "low"}`,
		`{"messages": [{"role": "user", "content": ""}], "response_format": {"type": "text"}, "modalities": ["text"],
			"chat_template_kwargs": {"thinking": true}, "max_completion_tokens": 3, "documents": []}`,
		`{"messages": [{"role": "user", "content": ""}], "response_format": {"type": "json_object"}, "max_tokens": 9}`,
		`{"messages": [{"role": "user", "content": ""}], "max_tokens": 9, "response_format": {"type": "json_schema",
			"json_schema": {"name": "x", "strict": true, "schema": {"type": "array", "items": {"const": 1}}}}}`,
	}, {
		`{"prompt": "wörld", "add_special_tokens": false}`, `{"messages": [{"role": "user", "content": "a"}]}`,
	}, {
		`{"tokens": [0, 5, 4095]}`,
	}, {
		`{"input": "a", "encoding_format": "base64", "dimensions": 2, "user": "u"}`, `{"input": ["a", "b"]}`,
		`{"input": [5, 6], "model": "m", "encoding_format": "float"}`, `{"input": [[5], [6, 7]]}`,
	}, {
		`{"model": "m", "instructions": "a", "input": "b", "max_output_tokens": 9, "stream": true, "store": false,
			"stream_options": {"include_obfuscation": false}, "metadata": {"a": "b"}, "truncation": "disabled"}`,
		`{"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}, {"type": "reasoning",
			"summary": [], "content": [{"type": "reasoning_text", "text": "b"}]}, {"type": "function_call", "call_id":
			"1", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "1", "output": "7"}],
			"max_output_tokens": 9}`,
		`{"input": "", "max_output_tokens": 40, "tools": [{"type": "function", "name": "f", "strict": true,
			"parameters": {"type": "object"}}], "tool_choice": {"type": "function", "name": "f"},
			"parallel_tool_calls": false, "stream": true}`,
		`{"input": "", "max_output_tokens": 40, "tools": [{"type": "function", "name": "f", "strict": true}]}`,
		`{"input": "", "max_output_tokens": 9, "text": {"format": {"type": "json_schema", "name": "n", "schema":
			{"const": 1}}}, "reasoning": {"effort": null}, "include": ["message.output_text.logprobs"],
			"background": false, "top_logprobs": 2}`,
	}} {
		for _, body := range bodies {
			f.Add(uint8(i), body)
		}
	}
	f.Fuzz(func(t *testing.T, path uint8, body string) {
		defer watch.Execution()()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, paths[int(path)%len(paths)], strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		answer := w.Body.String()
		switch {
		case w.Code >= 500:
			t.Fatalf("status %d: %s\n%s", w.Code, answer, s.log)
		case w.Code != http.StatusOK:
			require.GreaterOrEqual(t, w.Code, 400)
			require.Equal(t, kindRequest, faultOf(t, answer).Type)
		case strings.HasPrefix(answer, "event: "):
			types, last := told(t, answer)
			require.Equal(t, last.Status, types[len(types)-1])
			require.NotNil(t, last.Usage)
		case strings.HasPrefix(answer, "data: "):
			require.True(t, strings.HasSuffix(answer, "\n\ndata: [DONE]\n\n"), answer)
			for _, event := range strings.Split(strings.TrimSuffix(answer, "\n\ndata: [DONE]\n\n"), "\n\n") {
				require.True(t, json.Valid([]byte(strings.TrimPrefix(event, "data: "))), event)
			}
		default:
			require.True(t, json.Valid([]byte(answer)), answer)
		}
		s.log.mu.Lock()
		s.log.text.Reset()
		s.log.mu.Unlock()
	})
}
