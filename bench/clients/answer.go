package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"amkc/runtime/infile"
)

// An Answer is what has to be the same.
type Answer struct {
	Text     string // of all choices, calls of tools included; of an embedding its numbers
	Finish   string
	LogProbs string // of the tokens and of the likeliest ones, if they were asked for
}

// readAll reads the body of an answer, which is short.
func readAll(body io.Reader) ([]byte, error) {
	return infile.ReadStream(body, "answer", infile.Kind{Name: "an answer", Max: 64 << 20})
}

// A message is what a part of an answer may say: a whole one, or an event of a stream.
type message struct {
	Choices []struct {
		Index          int
		Text           string
		Message, Delta said
		Finish         *string `json:"finish_reason"`
		LogProbs       *struct {
			Tokens  []json.Number     `json:"token_logprobs"` // of completions
			Top     []json.RawMessage `json:"top_logprobs"`
			Content []json.RawMessage // of chat completions
		}
	}
	Data []struct{ Embedding json.RawMessage }

	// of responses and messages, whole ones and events
	Type, Status string
	Delta        json.RawMessage
	LogProbs     []token // of an event
	Output       []struct {
		Content []struct {
			Text     string
			LogProbs []token
		}
	}
	Response struct{ Status string }
	Content  []block
	Block    block  `json:"content_block"`
	Stop     string `json:"stop_reason"`
}

// said is a part of a chat.
type said struct {
	Content string
	Calls   []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// text is what it says: calls by their names and arguments, as they stand in the answer.
func (s said) text() string {
	text := s.Content
	for _, c := range s.Calls {
		if c.Function.Name != "" { // a delta that continues a call has none
			text += callMark + c.Function.Name
		}
		text += c.Function.Arguments
	}
	return text
}

// callMark is put before each call.
const callMark = "\x01"

// A block is one of messages, or the beginning of one, which has no input yet.
type block struct {
	Type, Text, Name string
	Input            json.RawMessage
}

func (b block) text() (string, error) {
	if b.Type != "tool_use" {
		return b.Text, nil
	}
	input, err := compact(string(b.Input))
	return callMark + b.Name + input, err
}

// compact is an object without spaces, and nothing where it is empty: a stream begins with that.
func compact(object string) (string, error) {
	var b bytes.Buffer
	if object == "{}" {
		return "", nil
	}
	err := json.Compact(&b, []byte(object))
	return b.String(), err
}

// A token is one of a response, with the likeliest ones in its place.
type token struct {
	Token   string
	LogProb json.Number
	Top     []struct {
		Token   string
		LogProb json.Number
	} `json:"top_logprobs"`
}

// An answering is an answer as it comes, by the index of its choices.
type answering []Answer

// add appends what a message has.
func (all *answering) add(m message) error {
	choice := func(i int) (*Answer, error) {
		if i < 0 || i > 1000 {
			return nil, fmt.Errorf("a choice has the index %d", i)
		}
		for len(*all) <= i {
			*all = append(*all, Answer{})
		}
		a := &(*all)[i]
		if a.Finish != "" {
			return nil, errors.New("something follows the end")
		}
		return a, nil
	}
	for _, c := range m.Choices {
		a, err := choice(c.Index)
		if err != nil {
			return err
		}
		a.Text += c.Text + c.Message.text() + c.Delta.text()
		if c.Finish != nil {
			a.Finish = *c.Finish
		}
		if l := c.LogProbs; l != nil {
			for i, p := range l.Tokens {
				a.LogProbs += p.String() + " " + string(l.Top[i]) + "\n"
			}
			for _, p := range l.Content {
				a.LogProbs += string(p) + "\n"
			}
		}
	}
	for i, d := range m.Data {
		a, err := choice(i)
		if err != nil {
			return err
		}
		a.Text, a.Finish = string(d.Embedding), "embedding"
	}
	text, status := "", m.Status+m.Stop
	var tokens []token
	for _, item := range m.Output {
		for _, part := range item.Content {
			text += part.Text
			tokens = append(tokens, part.LogProbs...)
		}
	}
	for _, b := range append(m.Content, m.Block) {
		part, err := b.text()
		if err != nil {
			return err
		}
		text += part
	}
	switch m.Type {
	case "response.output_text.delta":
		tokens = m.LogProbs
		if err := json.Unmarshal(m.Delta, &text); err != nil {
			return err
		}
	case "content_block_delta", "message_delta":
		var delta struct {
			Text  string
			Input string `json:"partial_json"`
			Stop  string `json:"stop_reason"`
		}
		if err := json.Unmarshal(m.Delta, &delta); err != nil {
			return err
		}
		if text, status = delta.Text, delta.Stop; json.Valid([]byte(delta.Input)) {
			text, _ = compact(delta.Input) // but of a call that was cut, which is {} in a whole answer
		}
	case "response.completed", "response.incomplete":
		status = m.Response.Status
	}
	if text == "" && status == "" && len(tokens) == 0 {
		return nil
	}
	a, err := choice(0)
	if err != nil {
		return err
	}
	a.Text += text
	for _, t := range tokens {
		a.LogProbs += fmt.Sprintln(t)
	}
	a.Finish = status
	return nil
}

// joined is an answer with all of its choices.
func (all answering) joined() (one Answer, err error) {
	if len(all) == 0 {
		return one, errors.New("there is no choice")
	}
	for i, a := range all {
		if a.Finish == "" {
			return one, fmt.Errorf("choice %d has no end", i)
		}
		if i > 0 {
			one.Text += "\x00"
			one.Finish += " "
			one.LogProbs += "\x00"
		}
		one.Text += a.Text
		one.Finish += a.Finish
		one.LogProbs += a.LogProbs
	}
	return one, nil
}

// read reads the body of an answer.
func read(body io.Reader, path string, stream bool) (Answer, error) {
	text, err := readAll(body)
	switch {
	case err != nil:
		return Answer{}, err
	case stream && (path == responses || path == messages):
		return readEvents(string(text))
	case stream:
		return ReadStream(string(text))
	}
	var all answering
	var whole message
	if err = json.Unmarshal(text, &whole); err == nil {
		err = all.add(whole)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("%q: %w", text, err)
	}
	return all.joined()
}

// ReadStream joins the texts of a stream of completions.
func ReadStream(stream string) (Answer, error) {
	rest, ended := strings.CutSuffix(stream, "data: [DONE]\n\n")
	if !ended {
		return Answer{}, fmt.Errorf("the stream does not end with [DONE]: %q", stream)
	}
	return readEvents(rest)
}

// readEvents joins what the events of a stream have.
func readEvents(stream string) (Answer, error) {
	var all answering
	for _, event := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ":") { // a comment: a ping, or how much of a prompt is read
			continue
		}
		_, data, _ := strings.Cut("\n"+event, "\ndata: ")
		var part message
		err := json.Unmarshal([]byte(data), &part)
		if err == nil {
			err = all.add(part)
		}
		if err != nil {
			return Answer{}, fmt.Errorf("%q: %w", event, err)
		}
	}
	return all.joined()
}

// counts are what a server says of itself.
type counts struct {
	statuses map[string]int // requests for answers, by status
	busy     int            // requests that are being decoded or wait
}

var (
	answered = regexp.MustCompile(`amkc_http_requests_total\{path="(\S+)",status="(\d+)"\} (\d+)`)
	busy     = regexp.MustCompile(`amkc_requests_(?:running|waiting) (\d+)`)
)

// counted reads the metrics of a server.
func counted(ctx context.Context, url string) (c counts, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return c, err
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return c, err
	}
	defer answer.Body.Close()
	text, err := readAll(answer.Body)
	if err != nil {
		return c, err
	}
	c.statuses = map[string]int{}
	for _, m := range answered.FindAllSubmatch(text, -1) {
		if slices.Contains(paths, string(m[1])) {
			n, _ := strconv.Atoi(string(m[3]))
			c.statuses[string(m[2])] += n
		}
	}
	gauges := busy.FindAllSubmatch(text, -1)
	if len(gauges) != 2 {
		return c, fmt.Errorf("%s/metrics does not say what runs and what waits", url)
	}
	for _, m := range gauges {
		n, _ := strconv.Atoi(string(m[1]))
		c.busy += n
	}
	return c, nil
}

// Held is what a process holds, with a server in it.
type Held struct {
	Goroutines int   `json:"goroutines"`
	Heap       int64 `json:"heap"`       // bytes that are reachable
	Files      int   `json:"open_files"` // connections included; 0 where /proc does not say
}

// Hold takes stock.
func Hold() Held {
	runtime.GC()
	runtime.GC() // what pools have let go at the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := infile.List("/proc/self/fd")
	return Held{runtime.NumGoroutine(), int64(m.HeapAlloc), len(files)}
}

// mostGrowth is by how much the heap may differ, in bytes: a kB for each of a thousand requests, or what is made late.
const mostGrowth = 1 << 20

// Left says what has remained since the process held less, or nothing. What ends on its own a little later is not
// counted.
func (since Held) Left() (now Held, left string) {
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now, left = Hold(), ""
		switch {
		case now.Goroutines > since.Goroutines:
			left = fmt.Sprintf("there are %d goroutines, and were %d", now.Goroutines, since.Goroutines)
		case now.Files > since.Files:
			left = fmt.Sprintf("there are %d open files, and were %d", now.Files, since.Files)
		case now.Heap > since.Heap+mostGrowth:
			left = fmt.Sprintf("the heap has grown from %d to %d bytes", since.Heap, now.Heap)
		}
		if left == "" || time.Now().After(until) {
			return now, left
		}
	}
}
