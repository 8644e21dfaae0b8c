package serve

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// chunk is an event with a choice.
func chunk(delta, finish string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[` +
		`{"index":0,"delta":{` + delta + `},"logprobs":null,"finish_reason":` + finish + `}]}` + "\n\n"
}

// A stream is sent to the letter as clients of OpenAI's API expect it: the role first, then pieces, then an empty delta
// with the reason of the end, then [DONE].
func TestChatStream(t *testing.T) {
	s := serve(t, says(t, "Hello, wörld"))
	status, header, got := s.send(t, http.MethodPost, "/v1/chat/completions",
		`{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": true}`, nil)
	require.Equal(t, 200, status)
	require.Equal(t, "text/event-stream", header.Get("Content-Type"))
	require.Equal(t, "no-store", header.Get("Cache-Control"))
	want := chunk(`"role":"assistant","content":""`, "null")
	for _, piece := range pieces(t, "Hello, wörld") {
		want += chunk(`"content":"`+piece+`"`, "null")
	}
	want += chunk("", `"stop"`) + "data: [DONE]\n\n"
	require.Equal(t, want, got)
}

// pieces is a text as its tokens complete characters.
func pieces(t *testing.T, text string) (all []string) {
	d := words().NewDecoder(true)
	for _, id := range idsOf(t, text) {
		if piece := d.Push(id); piece != "" {
			all = append(all, piece)
		}
	}
	require.Equal(t, text, strings.Join(all, ""))
	require.Greater(t, len(all), 1)
	return all
}

// With include_usage every chunk has usage null, and one without choices has it.
func TestStreamUsage(t *testing.T) {
	s := serve(t, says(t, "ab"))
	status, got := s.post(t, "/v1/completions",
		`{"prompt": [5, 6, 7], "max_tokens": 1, "stream": true, "stream_options": {"include_usage": true}}`)
	require.Equal(t, 200, status)
	const head = `data: {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[`
	first := words().Decode(idsOf(t, "ab")[:1], true)
	require.Equal(t, head+`{"index":0,"text":"`+first+`","logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n"+
		head+`{"index":0,"text":"","logprobs":null,"finish_reason":"length"}],"usage":null}`+"\n\n"+
		head+`],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,`+
		`"prompt_tokens_details":{"cached_tokens":0}}}`+"\n\ndata: [DONE]\n\n", got)
}

// While nothing comes there are comments, which clients skip.
func TestStreamPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := says(t, "a")
		e.gate = make(chan struct{})
		s := newTest(e, nil).run(t)
		time.AfterFunc(25*time.Second, func() { close(e.gate) })
		status, got := s.answer(t, "/v1/completions", `{"prompt": "x", "stream": true}`)
		require.Equal(t, 200, status)
		rest, found := strings.CutPrefix(got, ": ping\n\n: ping\n\n")
		require.True(t, found, got)
		require.NotContains(t, rest, "ping")
		require.True(t, strings.HasPrefix(rest, `data: {"id":"cmpl-1"`), rest)
		require.True(t, strings.HasSuffix(rest, "data: [DONE]\n\n"), rest)
	})
}

// While a long prompt is read, comments say how far that is, each second, and not again while nothing changes.
func TestStreamOfALongPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := says(t, "a")
		e.gate = make(chan struct{})
		s := newTest(e, nil).run(t)
		go func() {
			for range 3 {
				time.Sleep(400 * time.Millisecond)
				e.gate <- struct{}{}
			}
			time.Sleep(20 * time.Second)
			close(e.gate)
		}()
		prompt := "[" + strings.Repeat("5, ", 199) + "5]"
		status, got := s.answer(t, "/v1/completions", `{"prompt": `+prompt+`, "stream": true}`)
		require.Equal(t, 200, status)
		rest, found := strings.CutPrefix(got, ": 100 of 200 tokens of the prompt are read\n\n"+
			": 150 of 200 tokens of the prompt are read\n\n: ping\n\n")
		require.True(t, found, got)
		require.NotContains(t, rest, "are read")
		require.Contains(t, rest, `data: {"id":"cmpl-1"`)
	})
}

// So there are while a call comes of which nothing can be said yet.
func TestStreamPingsInsideOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := says(t, `a<tool_call>{"name": "weather", "arguments": {"place": "`+strings.Repeat("Bern, ", 12)+
			`"}}</tool_call>`)
		e.gate = make(chan struct{})
		s := newTest(e, nil).run(t)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for ctx.Err() == nil { // a token of the call comes more often than a ping would
				select {
				case e.gate <- struct{}{}:
					time.Sleep(time.Second)
				case <-ctx.Done():
				}
			}
		}()
		status, got := s.answer(t, "/v1/chat/completions", `{`+withTools+`, "stream": true}`)
		require.Equal(t, 200, status)
		_, rest, found := strings.Cut(got, `"content":"a"`)
		require.True(t, found, got)
		between, _, found := strings.Cut(rest, `"tool_calls"`)
		require.True(t, found, got)
		require.Contains(t, between, ": ping\n\n")
		stop()
		<-stopped
	})
}

// An error after the beginning is an event, and no [DONE] follows it.
func TestStreamError(t *testing.T) {
	e := newScripted(hashed)
	left := 3
	e.fail = func() error {
		if left--; left < 0 {
			return errBusy
		}
		return nil
	}
	s := serve(t, e)
	status, got := s.post(t, "/v1/completions", `{"prompt": "x", "stream": true}`)
	require.Equal(t, 200, status)
	events := strings.Split(strings.TrimSuffix(got, "\n\n"), "\n\n")
	require.JSONEq(t, `{"error": {
		"message": "the server failed to answer; its log says more under the id of this request",
		"type": "server_error", "param": null, "code": "internal_error"}}`,
		strings.TrimPrefix(events[len(events)-1], "data: "))
	require.NotContains(t, got, "[DONE]")
	// before it begins, it is a status
	status, got = s.post(t, "/v1/completions", `{"prompt": "x", "stream": true}`)
	require.Equal(t, 500, status, got)
	require.Contains(t, s.log.String(), errBusy.Error())
	require.NotContains(t, got, errBusy.Error())
}

// A whole answer has the same text as the stream.
func TestWholeAnswers(t *testing.T) {
	s := serve(t, says(t, "Hello <b>"))
	status, got := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "Hi"}]}`)
	require.Equal(t, 200, status)
	prompt := len(idsOf(t, "<|user|>Hi<|assistant|>"))
	answer := len(idsOf(t, "Hello <b>")) + 1 // and the end
	require.JSONEq(t, `{"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "m",
		"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello <b>", "refusal": null},
			"logprobs": null, "finish_reason": "stop"}],
		"usage": `+usageJSON(prompt, answer)+`}`, got)
	require.Contains(t, got, "<b>", "only HTML minds")

	status, got = s.post(t, "/v1/completions", `{"prompt": "Hi", "echo": true, "max_tokens": 20}`)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"id": "cmpl-2", "object": "text_completion", "created": 1700000000, "model": "m",
		"choices": [{"index": 0, "text": "HiHello <b>", "logprobs": null, "finish_reason": "stop"}],
		"usage": `+usageJSON(1+len(idsOf(t, "Hi")), answer)+`}`, got)
}
