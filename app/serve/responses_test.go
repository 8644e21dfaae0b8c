package serve

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const responsesPath = "/v1/responses"

// flatTools are tools as responses have them.
const flatTools = `"input": "Warm?", "tools": [{"type": "function", "name": "weather", "strict": false,
	"description": "of a place", "parameters": {"type": "object", "properties": {"days": {"type": "integer"}},
	"required": ["days"], "additionalProperties": false}}]`

// answered is a response as it is sent, with what is said of it instead of defaults.
func answered(id, status, output, usage string, said map[string]string) string {
	fields := []string{"id", `"` + id + `"`, "object", `"response"`, "created_at", "1700000000", "completed_at", "null",
		"status", `"` + status + `"`, "background", "false", "error", "null", "incomplete_details", "null",
		"instructions", "null", "max_output_tokens", "null", "metadata", "{}", "model", `"m"`, "output", output,
		"parallel_tool_calls", "true", "previous_response_id", "null",
		"reasoning", `{"effort":null,"summary":null}`, "store", "false", "temperature", "0",
		"text", `{"format":{"type":"text"}}`, "tool_choice", `"auto"`, "tools", "[]", "top_logprobs", "0", "top_p", "1",
		"truncation", `"disabled"`, "usage", usage}
	var b strings.Builder
	for i := 0; i < len(fields); i += 2 {
		value := fields[i+1]
		if other, is := said[fields[i]]; is {
			value = other
		} else if fields[i] == "completed_at" && status == statusCompleted {
			value = "1700000000"
		}
		b.WriteString(`,"` + fields[i] + `":` + value)
	}
	return "{" + b.String()[1:] + "}"
}

// cost is the usage of a response.
func cost(prompt, answer, thought int) string {
	return `{"input_tokens":` + strconv.Itoa(prompt) + `,"input_tokens_details":{"cached_tokens":0,` +
		`"cache_write_tokens":` + strconv.Itoa(prompt) + `},"output_tokens":` + strconv.Itoa(answer) +
		`,"output_tokens_details":{"reasoning_tokens":` + strconv.Itoa(thought) + `},"total_tokens":` +
		strconv.Itoa(prompt+answer) + `}`
}

// events numbers those of a stream, each a type and what follows the number.
func events(all ...string) string {
	var b strings.Builder
	for i := 0; i < len(all); i += 2 {
		b.WriteString("event: " + all[i] + "\ndata: {\"type\":\"" + all[i] + `","sequence_number":` +
			strconv.Itoa(i/2) + "," + all[i+1] + "}\n\n")
	}
	return b.String()
}

// A stream is sent to the letter as OpenAI has documented it, and the whole answer is the response of its last event.
func TestResponseStream(t *testing.T) {
	s := serve(t, says(t, "Hello, wörld"))
	const body = `{"model": "m", "instructions": "Be kind.", "input": "Hi"`
	status, header, got := s.send(t, http.MethodPost, responsesPath, body+`, "stream": true}`, nil)
	require.Equal(t, 200, status)
	require.Equal(t, "text/event-stream", header.Get("Content-Type"))
	said := map[string]string{"instructions": `"Be kind."`}
	const part = `"item_id":"msg_2","content_index":0`
	text := func(text string) string {
		return `{"type":"output_text","text":"` + text + `","annotations":[],"logprobs":[]}`
	}
	item := func(status, content string) string {
		return `{"id":"msg_2","type":"message","status":"` + status + `","role":"assistant","content":[` +
			content + `]}`
	}
	// The order of fields in an event is that of responseEvent.
	at := func(more string) string { return `"output_index":0,` + more }
	begun := `"response":` + answered("resp_1", statusInProgress, "[]", "null", said)
	all := []string{"response.created", begun, "response.in_progress", begun,
		"response.output_item.added", at(`"item":` + item(statusInProgress, "")),
		"response.content_part.added", at(part + `,"part":` + text(""))}
	for _, piece := range pieces(t, "Hello, wörld") {
		all = append(all, "response.output_text.delta", at(part+`,"delta":"`+piece+`","logprobs":[]`))
	}
	whole := item(statusCompleted, text("Hello, wörld"))
	prompt := len(idsOf(t, "<|system|>Be kind.<|user|>Hi<|assistant|>"))
	used := cost(prompt, len(idsOf(t, "Hello, wörld"))+1, 0)
	all = append(all, "response.output_text.done", at(part+`,"text":"Hello, wörld","logprobs":[]`),
		"response.content_part.done", at(part+`,"part":`+text("Hello, wörld")),
		"response.output_item.done", at(`"item":`+whole),
		"response.completed", `"response":`+answered("resp_1", statusCompleted, "["+whole+"]", used, said))
	require.Equal(t, events(all...), got)

	status, got = s.post(t, responsesPath, body+`}`)
	require.Equal(t, 200, status)
	want := answered("resp_1", statusCompleted, "["+whole+"]", used, said)
	require.Equal(t, strings.NewReplacer("resp_1", "resp_3", "msg_2", "msg_4").Replace(want), got)
}

// told are the types of the events of a stream, deltas of one item once, and the response of the last one.
func told(t *testing.T, stream string) (types []string, last response) {
	t.Helper()
	for i, text := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, found := strings.Cut(text, "\ndata: ")
		require.True(t, found, text)
		var e responseEvent
		require.NoError(t, json.Unmarshal([]byte(data), &e), text)
		require.Equal(t, "event: "+e.Type, name)
		require.Equal(t, i, e.Sequence)
		kind := strings.TrimPrefix(e.Type, "response.")
		if len(types) == 0 || types[len(types)-1] != kind {
			types = append(types, kind)
		}
		if e.Response != nil {
			last = *e.Response
		}
	}
	return types, last
}

// same asks for an answer whole and as a stream, and compares them.
func same(t *testing.T, s *testServer, fields string) (types []string, last response) {
	t.Helper()
	status, body := s.post(t, responsesPath, `{`+fields+`, "stream": true}`)
	require.Equal(t, 200, status, body)
	types, last = told(t, body)
	status, body = s.post(t, responsesPath, `{`+fields+`}`)
	require.Equal(t, 200, status, body)
	var whole response
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	require.Len(t, whole.Output, len(last.Output))
	for i, item := range last.Output { // ids are new ones
		whole.Output[i].ID, whole.Output[i].CallID = item.ID, item.CallID
	}
	whole.ID = last.ID
	require.Equal(t, whole, last)
	return types, last
}

// Events of items, in their order.
var (
	messageEvents = []string{"output_item.added", "content_part.added", "output_text.delta", "output_text.done",
		"content_part.done", "output_item.done"}
	thoughtEvents = []string{"output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done",
		"content_part.done", "output_item.done"}
	callEvents = []string{"output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
		"output_item.done"}
)

// streamed is what a stream has around items.
func streamed(last string, items ...[]string) []string {
	all := []string{"created", "in_progress"}
	for _, item := range items {
		all = append(all, item...)
	}
	return append(all, last)
}

// Calls are items of their own, in their place among texts.
func TestResponseCalls(t *testing.T) {
	const call = `<tool_call>{"name": "weather", "arguments": {"days": 2}}</tool_call>`
	s := serve(t, says(t, "Let me see.\n"+call+`<tool_call>{"name": "clock"}</tool_call> Well`))
	types, last := same(t, s, flatTools)
	require.Equal(t, streamed("completed", messageEvents, callEvents, callEvents, messageEvents), types)
	require.Len(t, last.Output, 4)
	require.Equal(t, "Let me see.", (*last.Output[0].Content)[0].Text)
	require.Equal(t, `{"days":2}`, *last.Output[1].Arguments)
	require.Equal(t, "weather", last.Output[1].Name)
	require.True(t, strings.HasPrefix(last.Output[1].CallID, "call_"))
	require.True(t, strings.HasPrefix(last.Output[1].ID, "fc_"))
	require.Equal(t, "clock", last.Output[2].Name)
	require.Equal(t, statusCompleted, last.Output[2].Status)
	require.Equal(t, "Well", strings.TrimSpace((*last.Output[3].Content)[0].Text))

	_, last = same(t, s, flatTools+`, "parallel_tool_calls": false`)
	require.Len(t, last.Output, 2)
	require.False(t, last.Parallel)
	_, last = same(t, s, flatTools+`, "tool_choice": "none"`)
	require.Len(t, last.Output, 1)
	require.Equal(t, `"none"`, string(last.ToolChoice))
}

// A choice that names a tool holds the answer to a call of it.
func TestResponseForcedCalls(t *testing.T) {
	s := serve(t, longer())
	for _, choice := range []string{`"required"`, `{"type": "function", "name": "weather"}`} {
		types, last := same(t, s, flatTools+`, "tool_choice": `+choice+`, "temperature": 2, "seed": 3`)
		require.Equal(t, streamed("completed", callEvents), types)
		var given map[string]any
		require.NoError(t, json.Unmarshal([]byte(*last.Output[0].Arguments), &given))
		require.IsType(t, 1.0, given["days"])
	}
	_, last := same(t, serve(t, says(t, "x")), flatTools+`, "tool_choice": "required", "max_output_tokens": 2`)
	require.Equal(t, statusIncomplete, last.Output[0].Status, "the call is cut")
	require.Equal(t, statusIncomplete, last.Status)
}

// A thought is an item in front of the text, with its tokens counted.
func TestResponseThoughts(t *testing.T) {
	for _, c := range []struct{ answer, thought, text string }{
		{"<think>\nAs so.\n</think>\n\nIt is.", "As so.", "It is."},
		{"<think></think>It is.", "", "It is."},
		{"<think>For long", "For long", ""},
	} {
		s := newTest(says(t, c.answer), func(config *Config) { config.Chat = format(thinks) }).start(t)
		types, last := same(t, s, `"input": "Is it?"`)
		var want [][]string
		if c.thought != "" {
			want = append(want, thoughtEvents)
			item := last.Output[0]
			require.Equal(t, []outputPart{{Type: "reasoning_text", Text: c.thought}}, *item.Content)
			require.Empty(t, *item.Summary)
			thought := last.Usage.OutDetails.Reasoning
			require.Positive(t, thought)
			require.LessOrEqual(t, thought, last.Usage.Output)
			require.Equal(t, c.text != "", thought < last.Usage.Output-1)
		} else {
			require.Zero(t, last.Usage.OutDetails.Reasoning)
		}
		if c.text != "" {
			want = append(want, messageEvents)
			require.Equal(t, c.text, (*last.Output[len(last.Output)-1].Content)[0].Text)
		}
		require.Equal(t, streamed("completed", want...), types)
	}
}

// What max_output_tokens cuts is incomplete; an answer without a token of text has an empty one.
func TestIncompleteResponses(t *testing.T) {
	types, last := same(t, serve(t, newScripted(func(_, _ []int) int { return 300 })),
		`"input": "Hi", "max_output_tokens": 3`)
	require.Equal(t, streamed("incomplete", messageEvents), types)
	require.Equal(t, statusIncomplete, last.Status)
	require.Equal(t, statusIncomplete, last.Output[0].Status)
	require.Equal(t, &incomplete{"max_output_tokens"}, last.Incomplete)
	require.Nil(t, last.Completed)
	require.Equal(t, 3, last.Usage.Output)

	types, last = same(t, serve(t, says(t, "")), `"input": "Hi"`)
	require.Equal(t, streamed("completed", []string{"output_item.added", "content_part.added", "output_text.done",
		"content_part.done", "output_item.done"}), types)
	require.Empty(t, (*last.Output[0].Content)[0].Text)
}

// What the request says holds, and comes back.
func TestResponseEcho(t *testing.T) {
	s := serve(t, longer())
	const format = `{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object","properties":` +
		`{"a":{"const":1}},"required":["a"],"additionalProperties":false}}}`
	_, last := same(t, s, `"input": "Hi", "metadata": {"a": "b"}, "temperature": 1.5, "top_p": 0.5, "seed": 1,
		"max_output_tokens": 99, "text": `+format+`, "user": "u", "store": false, "truncation": "disabled",
		"include": ["reasoning.encrypted_content"], "background": false, "top_logprobs": 0`)
	require.Equal(t, `{"a":"b"}`, string(last.Metadata))
	require.Equal(t, 1.5, last.Temperature)
	require.Equal(t, 0.5, last.TopP)
	require.Equal(t, "99", string(last.Most))
	require.Equal(t, format, string(last.Text))
	require.JSONEq(t, `{"a": 1}`, (*last.Output[0].Content)[0].Text)
}

// A failure after the beginning is the last event; in front of it, a status.
func TestResponseFails(t *testing.T) {
	e := newScripted(hashed)
	left := 3
	e.fail = func() error {
		if left--; left < 0 {
			return errBusy
		}
		return nil
	}
	s := serve(t, e)
	status, got := s.post(t, responsesPath, `{"input": "x", "stream": true}`)
	require.Equal(t, 200, status)
	types, last := told(t, got)
	require.Equal(t, "failed", types[len(types)-1])
	require.Equal(t, statusFailed, last.Status)
	require.Equal(t, "server_error", last.Error.Code)
	require.NotContains(t, got, errBusy.Error())
	status, got = s.post(t, responsesPath, `{"input": "x", "stream": true}`)
	require.Equal(t, 500, status)
	require.Equal(t, "internal_error", faultOf(t, got).Code)

	synctest.Test(t, func(t *testing.T) {
		e.gate = make(chan struct{})
		s := newTest(e, nil).run(t)
		time.AfterFunc(15*time.Second, func() { close(e.gate) })
		status, got := s.answer(t, responsesPath, `{"input": "x", "stream": true}`)
		require.Equal(t, 200, status)
		rest, found := strings.CutPrefix(got, ": ping\n\n")
		require.True(t, found, got)
		types, _ := told(t, rest)
		require.Equal(t, []string{"created", "in_progress", "failed"}, types)
	})
}

// A client that goes away ends the sequence of its stream.
func TestResponseCancellation(t *testing.T) {
	e := newScripted(func(_, _ []int) int { return 300 }) // never ends
	e.limits.MaxSeq = 1 << 30
	s := serve(t, e)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+responsesPath,
		strings.NewReader(`{"input": "x", "stream": true}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "event: response.created\n", line)
	require.NoError(t, answer.Body.Close())
	eventually(t, func() bool {
		running, _ := e.load()
		return running == 0 && strings.Contains(s.log.String(), "finish=cancelled")
	})
}
