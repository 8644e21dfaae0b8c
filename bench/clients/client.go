package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// A client asks one thing after the other.
type client struct {
	plan Plan
	url  string
	http *http.Client
	rng  *rand.Rand
	want []Answer // of each of questions

	answered, cancelled, bad, busy, differing int
	difference                                string
	first, whole                              []time.Duration // of those answered, with waits for room in the queue
}

const (
	completions = "/v1/completions"
	chats       = "/v1/chat/completions"
	responses   = "/v1/responses"
	messages    = "/v1/messages"
	embeddings  = "/v1/embeddings"
)

// paths are those that are asked.
var paths = []string{completions, chats, responses, messages, embeddings}

// A question is a request without its braces.
type question struct{ path, fields string }

func (q question) body(stream bool) string {
	if stream {
		return `{"stream": true, ` + q.fields + "}"
	}
	return "{" + q.fields + "}"
}

// Kinds of questions, and how many there are.
const (
	kinds     = 17
	questions = 3 * kinds
)

// MostAnswers is how many answers a question asks for at most, each of which takes a place in the queue.
const MostAnswers = 4

// question is one of some requests, which differ in all that a request may say.
func (p Plan) question(i int) question {
	n := 4 + i%4*(p.Prompt-4)/3
	ids := make([]string, n)
	for k := range ids {
		ids[k] = fmt.Sprint(256 + (i%3*k+17*k*k)%768) // some begin alike
	}
	ids[n-1] = fmt.Sprint(500 + i)
	prompt := "[" + strings.Join(ids, ", ") + "]"
	most := 1 + i%7*(p.Tokens-1)/6
	fields := fmt.Sprintf(`"prompt": %s, "max_tokens": %d`, prompt, most)
	said := fmt.Sprintf(`"%c%d"`, 'a'+i%3, i%7)
	chat := fmt.Sprintf(`"messages": [{"role": "user", "content": %s}], "max_tokens": %d`, said, most)
	switch i % kinds {
	case 1:
		fields += `, "logit_bias": {"198": 5, "12": -3}, "seed": 7`
	case 2:
		fields += `, "stop": ["e", " d"], "temperature": 1.5, "top_p": 0.9, "seed": -3`
	case 3:
		fields += `, "logprobs": 2, "temperature": 0.7, "repetition_penalty": 1.2, "seed": 11`
	case 4:
		fields += `, "ignore_eos": true, "temperature": 0`
	case 5:
		return question{embeddings, `"input": ` + prompt}
	case 6:
		fields += `, "n": 3, "logprobs": 1, "temperature": 1.1, "seed": 2`
	case 7:
		fields = fmt.Sprintf(`"prompt": [%s, %s], "max_tokens": %d, "n": 2, "temperature": 0.9, "seed": 4`, prompt,
			said, most)
	case 8:
		return question{chats, chat + `, "logprobs": true, "top_logprobs": 3, "temperature": 0`}
	case 9:
		return question{chats, chat + `, "n": 2, "temperature": 1.3, "presence_penalty": 0.5, "seed": 6`}
	case 10:
		fields = fmt.Sprintf(`"input": %s, "max_output_tokens": %d, "temperature": 0.8, "seed": 8`, said, most)
		if i/kinds == 1 {
			fields += `, "include": ["message.output_text.logprobs"], "top_logprobs": 2`
		}
		return question{responses, fields}
	case 11:
		fields = fmt.Sprintf(`"prompt": [%s, %s], "max_tokens": %d, "temperature": 0, "echo": true, "logprobs": 1`,
			prompt, said, i%3)
	case 13:
		fields = chat + `, "temperature": 0.6, "seed": 9`
		if i/kinds == 1 {
			fields += fmt.Sprintf(`, "min_tokens": %d, "stop_token_ids": [271, 300]`, most)
		}
		return question{messages, fields}
	case formKind:
		return question{chats, chat + formed(i/kinds)}
	case toolKind:
		return question{chats, chat + formed(i/kinds) + `, "tools": [{"type": "function", "function": ` +
			`{"name": "f", "strict": true, "parameters": ` + toolSchema + `}}]`}
	case 15:
		return question{messages, chat + `, "temperature": 0.9, "seed": 14, "tools": [{"name": "f", ` +
			`"input_schema": ` + toolSchema + `}], "tool_choice": {"type": "any"}`}
	case 16:
		return question{chats, chat + `, "temperature": 1.5, "seed": 15, "stop": ["e", "in", "\n"]`}
	default:
		fields += `, "temperature": 0.8, "seed": 5`
	}
	return question{completions, fields}
}

// mistakes are requests that are JSON and no good.
var mistakes = map[string][]string{
	completions: {`{}`, `{"prompt": {}}`, `{"prompt": [-1]}`, `{"prompt": [5], "max_tokens": -1}`,
		`{"prompt": [5], "temperature": "warm"}`, `{"prompt": [5], "no_such_field": 1}`},
	chats: {`{}`, `{"messages": []}`, `{"messages": [{"role": "user", "content": "` + large + `"}]}`,
		`{"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_schema", "json_schema": ` +
			`{"name": "a", "schema": {"type": "none"}}}}`,
		`{"messages": [{"role": "user", "content": "a"}], "n": 0}`},
	responses:  {`{}`, `{"input": [{"role": "nobody", "content": "a"}]}`, `{"input": "a", "conversation": "b"}`},
	messages:   {`{}`, `{"max_tokens": 1, "messages": []}`, `{"messages": [{"role": "user", "content": "a"}]}`},
	embeddings: {`{}`, `{"input": 1.5}`, `{"input": [5], "dimensions": 0}`, `{"input": [5], "temperature": 1}`},
}

// large is a text that no context has room for, of half a megabyte.
var large = strings.Repeat("word ", 100_000)

// Kinds of requests, of ten.
const (
	cut      = 0 // its end is missing
	mistaken = 1
	leaving  = 2 // the client goes away
)

// ask sends a random request, as often as it takes. An error is an answer that there should not be.
func (c *client) ask(ctx context.Context) error {
	i := c.rng.IntN(questions)
	q := c.plan.question(i)
	stream := q.path != embeddings && c.rng.IntN(2) == 0
	body := q.body(stream)
	kind := c.rng.IntN(10)
	switch kind {
	case cut:
		body = body[:c.rng.IntN(len(body))]
	case mistaken:
		body = mistakes[q.path][c.rng.IntN(len(mistakes[q.path]))]
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if kind == leaving && c.rng.IntN(2) == 0 {
		time.AfterFunc(time.Duration(c.rng.IntN(2000))*time.Microsecond, leave)
	}
	begun := time.Now()
	r, err := c.send(ctx, q.path, body)
	first := time.Since(begun)
	if kind == leaving && (err == nil && r.StatusCode == http.StatusOK || errors.Is(err, context.Canceled)) {
		c.cancelled++
		if err == nil { // after a part of the answer
			_, _ = io.CopyN(io.Discard, r.Body, c.rng.Int64N(300))
			r.Body.Close()
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Body.Close()
	switch bad := kind == cut || kind == mistaken; {
	case bad && r.StatusCode == http.StatusBadRequest:
		c.bad++
		_, err := io.Copy(io.Discard, r.Body)
		return err
	case bad || r.StatusCode != http.StatusOK:
		text, _ := readAll(r.Body)
		return fmt.Errorf("%s %s: status %d: %s", q.path, body, r.StatusCode, text)
	}
	got, err := read(r.Body, q.path, stream)
	if err != nil {
		return fmt.Errorf("%s %s: %w", q.path, body, err)
	}
	c.answered++
	c.first, c.whole = append(c.first, first), append(c.whole, time.Since(begun))
	if want := c.want[i]; got != want {
		c.differing++
		if c.difference == "" {
			c.difference = fmt.Sprintf("%s %s: %q, alone it is %q", q.path, body, got, want)
		}
	}
	return nil
}

// send sends a body, again and again while the queue is full.
func (c *client) send(ctx context.Context, path, body string) (*http.Response, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := c.http.Do(r)
		if err != nil || answer.StatusCode != http.StatusTooManyRequests {
			return answer, err
		}
		c.busy++
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
