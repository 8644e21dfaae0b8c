package serve

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/text/chat"
	"amkc/text/jinja"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

const fixture = "../../testdata/models/pycoder-5m"

// words is the tokenizer of the fixture: 4096 tokens, 0 begins a text and 1 ends it.
var words = sync.OnceValue(func() *tokenizer.Tokenizer {
	text, err := os.ReadFile(fixture + "/tokenizer.json")
	if err != nil {
		panic(err)
	}
	tok, err := tokenizer.Load(text)
	if err != nil {
		panic(err)
	}
	return tok
})

const (
	vocab = 4096
	eos   = 1
)

func idsOf(t testing.TB, text string) []int {
	ids, err := words().Encode(text, false)
	require.NoError(t, err)
	return ids
}

// A scripted engine says what a test wants, for several sequences at a time.
type scripted struct {
	limits Limits
	next   func(prompt, out []int) int // the token after those
	gate   chan struct{}               // nil, or each step takes one
	fail   func() error                // nil, or what a step ends with
	masks  bool                        // it chooses among allowed tokens
	none   func(prompt []int) bool     // nil, or which prompts' logits leave no token

	mu      sync.Mutex
	running map[Sequence]*sequence
	most    int // that ran at a time
	steps   int
	holds   int // calls of Hold
}

type sequence struct {
	prompt, out []int
	unread      int
	options     Options
	held        bool
}

func newScripted(next func(prompt, out []int) int) *scripted {
	return &scripted{limits: Limits{Vocab: vocab, MaxSeq: 256, Hidden: 3, Sequences: 1}, next: next,
		running: map[Sequence]*sequence{}}
}

// says ends every answer with the same text.
func says(t testing.TB, text string) *scripted {
	ids := append(idsOf(t, text), eos)
	return newScripted(func(_, out []int) int { return ids[min(len(out), len(ids)-1)] })
}

// hashed says what depends on everything before.
func hashed(prompt, out []int) int {
	h := fnv.New32a()
	for _, id := range slices.Concat(prompt, out) {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(id)))
	}
	if token := int(h.Sum32() % 97); token > 2 {
		return 200 + token*13
	}
	return eos
}

func (e *scripted) Limits() Limits { return e.limits }

// Chooses: with logits an engine of several sequences does, and one of a single sequence leaves it to the server.
func (e *scripted) Chooses(o *sampling.Options, masked, logits bool) bool {
	return (!masked || e.masks) && (!logits || e.limits.Sequences > 1) && !o.NeedLogits()
}

func (e *scripted) Hold(s Sequence, held bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[s].held = held
	e.holds++
}

func (e *scripted) Allow(s Sequence, allowed sampling.Mask) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[s].options.Allowed = slices.Clone(allowed)
}

func (e *scripted) Admit(prompt []int, o Options) (Sequence, int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := Sequence(0); ; s++ {
		if e.running[s] == nil {
			e.running[s] = &sequence{prompt: slices.Clone(prompt), unread: len(prompt), options: o}
			e.most = max(e.most, len(e.running))
			return s, 0, nil
		}
	}
}

func (e *scripted) Step(ctx context.Context) ([]Event, error) {
	if e.gate != nil {
		select {
		case <-e.gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.steps++
	if e.fail != nil {
		if err := e.fail(); err != nil {
			return nil, err
		}
	}
	var events []Event
	for _, id := range slices.Sorted(maps.Keys(e.running)) {
		s := e.running[id]
		if s.held {
			continue
		}
		read := len(s.prompt) - s.unread
		if s.unread -= min(s.unread, 50); s.options.Echo {
			for i := read + 1; i < min(len(s.prompt)-s.unread+1, len(s.prompt)); i++ {
				events = append(events, Event{Sequence: id, Token: s.prompt[i], Given: true,
					Logits: logitsOf(e.next(s.prompt[:i], nil))})
			}
		}
		if s.unread > 0 {
			continue
		}
		if s.options.State {
			events = append(events, Event{Sequence: id, State: stateOf(s.prompt)})
			continue
		}
		if e.none != nil && e.none(s.prompt) {
			events = append(events, Event{Sequence: id, Err: &sampling.LogitsError{What: "the secret cause"}})
			continue
		}
		event := Event{Sequence: id, Token: e.next(s.prompt, s.out)}
		if s.options.Logits {
			event.Logits = logitsOf(event.Token)
		}
		if mask := s.options.Allowed; mask != nil { // for one token
			for mask[event.Token/64]>>(event.Token%64)&1 == 0 {
				event.Token = (event.Token + 1) % e.limits.Vocab
			}
			s.options.Allowed = make(sampling.Mask, len(mask))
		}
		s.out = append(s.out, event.Token)
		events = append(events, event)
	}
	return events, nil
}

// stateOf is a hidden state of length 13, whose direction is that of the first token.
func stateOf(prompt []int) []float32 {
	state := []float32{3, 4, 12}
	for range prompt[0] % 3 {
		state = append(state[1:], state[0])
	}
	return state
}

// logitsOf are such that a token is followed by the one after it, and so on.
func logitsOf(token int) []float32 {
	logits := make([]float32, vocab)
	for i := range logits {
		logits[(token+i)%vocab] = 5 - float32(i)/64
	}
	return logits
}

func (e *scripted) Unread(s Sequence) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[s].unread
}

func (e *scripted) Replace(s Sequence, token int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.running[s].out
	out[len(out)-1] = token
}

func (e *scripted) Retire(s Sequence) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, s)
}

func (e *scripted) load() (running, steps int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running), e.steps
}

// chatML is a template with tools in the form of Hermes.
const chatML = `{%- if tools %}<|system|>Tools:
{%- for tool in tools %} {{ tool | tojson }}{% endfor %}
Answer with <tool_call>{"name": ..., "arguments": ...}</tool_call>
{% endif %}
{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}
{%- for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}
{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% if thinking %}<think>{% endif %}{% endif %}`

func format(template string) *chat.Format {
	return chat.New(map[string]string{"default": template}, &jinja.Dict{})
}

// A testServer is a server that is running, with ids and times that are always the same.
type testServer struct {
	*Server
	url string
	log *lines
}

// A lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newTest makes a server that is not running. change, which may be nil, may set anything of it.
func newTest(e Engine, change func(*Config)) *testServer {
	log := &lines{}
	c := Config{Model: "m", Engine: e, Tokenizer: words(), Chat: format(chatML), EOS: []int{eos}, Queue: 64,
		Sampling: sampling.Greedy(),
		Log:      slog.New(slog.NewTextHandler(log, nil))}
	if change != nil {
		change(&c)
	}
	s := New(c)
	s.started = time.Unix(1700000000, 0)
	s.now = func() time.Time { return time.Unix(1700000000, 0) }
	n := 0
	var mu sync.Mutex
	s.newID = func(prefix string) string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return prefix + strconv.Itoa(n)
	}
	return &testServer{Server: s, log: log}
}

// start runs a server until the test ends.
func (s *testServer) start(t testing.TB) *testServer {
	h := httptest.NewServer(s.Handler())
	s.url = h.URL
	t.Cleanup(h.Close)
	return s.run(t)
}

// run decodes until the test ends.
func (s *testServer) run(t testing.TB) *testServer {
	ctx, stop := context.WithCancel(context.Background())
	go s.scheduler.run(ctx)
	t.Cleanup(func() {
		stop()
		<-s.scheduler.done
	})
	return s
}

func serve(t testing.TB, e Engine) *testServer { return newTest(e, nil).start(t) }

// post sends a body and returns the answer.
func (s *testServer) post(t testing.TB, path, body string) (status int, answer string) {
	t.Helper()
	status, _, answer = s.send(t, http.MethodPost, path, body, nil)
	return status, answer
}

func (s *testServer) send(t testing.TB, method, path, body string, header http.Header) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, answer.Header, string(text)
}
