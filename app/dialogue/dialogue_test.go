package dialogue_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/app/dialogue"
	"amkc/runtime/host"
	"amkc/text/chat"
	"amkc/text/jinja"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// template writes messages between special tokens, so that nothing of them is merged with its neighbours.
const template = "{% for m in messages %}{{ m.role }}<|begin_of_text|>{{ m.content }}<|end_of_text|>{% endfor %}" +
	"{% if add_generation_prompt %}assistant<|begin_of_text|>{% endif %}"

// prompted is what the template makes of a message, with the start of the answer.
func prompted(text string) string {
	return "user<|begin_of_text|>" + text + "<|end_of_text|>assistant<|begin_of_text|>"
}

const vocab, stop = 4096, 1

// A scripted decoder writes the answers it was given, one a turn, and keeps what its cache would hold.
type scripted struct {
	tok      *tokenizer.Tokenizer
	answers  []string
	cache    []int
	fed      [][]int // the ids that were decoded of each turn's prompt
	prompt   []int   // of this turn, as far as it was decoded
	rest     []int   // of the answer
	onToken  func(ctx context.Context, n int)
	fail     error
	position int
}

func (s *scripted) Position() int { return s.position }

func (s *scripted) Rewind(position int) error {
	if position > s.position {
		return errors.New("too far")
	}
	s.position, s.cache, s.rest = position, s.cache[:position], nil
	return nil
}

func (s *scripted) Feed(ctx context.Context, ids []int, onLogits func(int, []float32) error) (int, error) {
	if err := s.decode(ctx, ids); err != nil || onLogits == nil {
		return 0, err // what would be chosen after a part of a prompt is nobody's business
	}
	logits := make([]float32, vocab)
	next := s.choose()
	logits[next] = 50
	return next, onLogits(s.position-1, logits)
}

func (s *scripted) decode(ctx context.Context, ids []int) error {
	if err := errors.Join(s.fail, context.Cause(ctx)); err != nil {
		return err
	}
	if s.rest == nil {
		s.prompt = append(s.prompt, ids...)
	}
	s.cache = append(s.cache, ids...)
	s.position += len(ids)
	return nil
}

func (s *scripted) choose() int {
	if s.rest == nil {
		s.fed, s.prompt = append(s.fed, s.prompt), nil
		answer, _ := s.tok.Encode(s.answers[0], false)
		s.answers, s.rest = s.answers[1:], append(answer, stop)
	}
	next := s.rest[0]
	s.rest = s.rest[1:]
	return next
}

func (s *scripted) Complete(ctx context.Context, prompt []int, n int, stops []int,
	emit func(int) error) (done host.Completion, err error) {
	for ids := prompt; len(done.IDs) < n && !done.Stopped; ids = done.IDs[len(done.IDs)-1:] {
		if err := s.decode(ctx, ids); err != nil {
			return done, err
		}
		next := s.choose()
		done.IDs = append(done.IDs, next)
		done.Stopped = slices.Contains(stops, next)
		if s.onToken != nil {
			s.onToken(ctx, len(done.IDs))
		}
		if err := emit(next); err != nil {
			return done, err
		}
	}
	return done, nil
}

func load(t testing.TB) *tokenizer.Tokenizer {
	text, err := os.ReadFile("../../testdata/models/pycoder-5m/tokenizer.json")
	require.NoError(t, err)
	tok, err := tokenizer.Load(text)
	require.NoError(t, err)
	return tok
}

// conversation is a dialogue with its streams, which tests change before it runs.
type conversation struct {
	dialogue.Config
	scripted
	maxSeq int
	source string // of the template; empty: there is none
	out    bytes.Buffer
	errs   bytes.Buffer
}

func newConversation(t testing.TB, in string, answers ...string) *conversation {
	c := &conversation{maxSeq: 1000, source: template}
	c.scripted = scripted{tok: load(t), answers: answers}
	c.Config = dialogue.Config{Tokenizer: c.tok, Stops: []int{stop}, Sampling: sampling.Greedy(),
		Now: time.Unix(0, 0), In: strings.NewReader(in), Out: &c.out, Err: &c.errs}
	return c
}

func (c *conversation) run(ctx context.Context) error {
	if c.source != "" {
		c.Format = chat.New(map[string]string{"default": c.source}, nil)
	}
	d, err := dialogue.New(c.Config)
	if err != nil {
		return err
	}
	return d.Run(ctx, &c.scripted, vocab, c.maxSeq)
}

func (c *conversation) ids(t *testing.T, text string) []int {
	ids, err := c.tok.Encode(text, false)
	require.NoError(t, err)
	return ids
}

// Lines of a pipe are messages, and answers come back, a line each. Of a turn only what is new is decoded.
func TestConversation(t *testing.T) {
	c := newConversation(t, "hi\n\n  again \nlast", "return x", "def f():\n", "")
	c.Stats = true
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, "return x\ndef f():\n\n", c.out.String())
	require.Equal(t, [][]int{
		c.ids(t, prompted("hi")),
		c.ids(t, "<|end_of_text|>"+prompted("again")),
		c.ids(t, "<|end_of_text|>"+prompted("last")),
	}, c.fed)
	lines := strings.Split(c.errs.String(), "\n")
	require.Regexp(t, `^0 tokens kept, \d+ read at [\d.]+ per second, \d+ written at [\d.]+ per second$`, lines[0])
	require.Regexp(t, `^[1-9]\d* tokens kept, \d+ read`, lines[1])
	require.Regexp(t, `, 1 written$`, lines[2])

	// Sampled tokens come by another way.
	s := newConversation(t, "hi\nagain", "return x", "def f():\n")
	s.Sampling.Temperature, s.Sampling.Seed = 0.5, 3
	require.NoError(t, s.run(t.Context()))
	require.Equal(t, "return x\ndef f():\n", s.out.String())
	require.Equal(t, c.fed[:2], s.fed)
}

// Whatever the template does with what was said, the cache holds the prompt of the last turn and the answer, as if all
// of it had been decoded again.
func TestCacheIsThatOfThePrompt(t *testing.T) {
	for _, source := range []string{template,
		"{{ messages | length }} {% for m in messages %}{{ m.content }}<|end_of_text|>{% endfor %}", // starts over
		"{% for m in messages %}{{ m.content | upper }}{% if loop.last %}!{% endif %}<|end_of_text|>{% endfor %}" +
			"hello", // changes answers
		"hello{{ messages[-1].content }}<|end_of_text|>"} { // forgets
		c := newConversation(t, "hi\nthere\n/clear\nhi\nyou\n", "one", "two", "three", "four")
		c.source = source
		require.NoError(t, c.run(t.Context()))
		require.Equal(t, "one\ntwo\nthree\nfour\n", c.out.String())
		format := chat.New(map[string]string{"default": source}, nil)
		last, err := chat.Parse([]byte(`[{"role":"user","content":"hi"},{"role":"assistant","content":"three"},` +
			`{"role":"user","content":"you"}]`))
		require.NoError(t, err)
		want, err := format.Render(last, chat.Options{})
		require.NoError(t, err)
		require.Equal(t, slices.Concat(c.ids(t, want), c.ids(t, "four")), c.cache)
	}
}

// The template finds what was thought apart from what was said.
func TestThoughts(t *testing.T) {
	c := newConversation(t, "hi\nagain", "<think>so</think>x", "y")
	c.source = "{% for m in messages %}{{ m.content }}" +
		"{{ '(' + m.reasoning_content + '</think>)' if m.reasoning_content }}<|end_of_text|>{% endfor %}"
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, "<think>so</think>x\ny\n", c.out.String())
	want := "hi<|end_of_text|>x(so</think>)<|end_of_text|>again<|end_of_text|>"
	require.Equal(t, c.ids(t, want+"y"), c.cache)
}

func TestRefusals(t *testing.T) {
	for _, r := range []struct{ source, system, says string }{
		{"{{ raise_exception('never') }}", "", "does not format a conversation: line 1: never"},
		{"{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ messages[0].content }}",
			"be short",
			"does not format a conversation with a system message: line 1: no system"},
		{"{{ messages[-1].content }}", "be short", "leaves system messages out"},
		{"{{ messages | length }}", "", "leaves out what the user says"},
	} {
		c := newConversation(t, "hi\n")
		c.source, c.System = r.source, r.system
		err := c.run(t.Context())
		var refused *dialogue.Error
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, r.says)
	}
	c := newConversation(t, "hi\n", "yes")
	c.System = " be short\n"
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, c.ids(t, "system<|begin_of_text|> be short\n<|end_of_text|>"+prompted("hi")), c.fed[0])
}

// What cannot be answered ends a conversation in a pipe, and is said to somebody who sits there.
func TestFaults(t *testing.T) {
	for line, says := range map[string]string{
		"/cler":  "there is no command /cler; want one of /help, /clear, /think, /no-think, /stats, /exit",
		"a\xffb": "the message cannot be encoded: text is not valid UTF-8",
		"a long " + strings.Repeat("story ", 300): "the context is too small: the message takes",
	} {
		c := newConversation(t, line+"\nhi\n", "yes")
		c.maxSeq = 100
		require.ErrorContains(t, c.run(t.Context()), says)
		require.Empty(t, c.out.String())

		c = newConversation(t, line+"\nhi\n/stats\n", "yes")
		c.maxSeq, c.Interactive = 100, true
		require.NoError(t, c.run(t.Context()))
		require.Contains(t, c.errs.String(), says)
		require.Contains(t, c.errs.String(), "0 tokens kept")
		require.Equal(t, "> > yes\n> > ", c.out.String())
	}
	c := newConversation(t, "/etc/passwd is a file\n", "yes") // no command
	require.NoError(t, c.run(t.Context()))
	c = newConversation(t, strings.Repeat("x", 5<<20)+"\n")
	require.ErrorContains(t, c.run(t.Context()), "a line is longer than 4 MiB")
	c = newConversation(t, "hi\n", "yes")
	c.fail = errors.New("the GPU is gone")
	require.ErrorIs(t, c.run(t.Context()), c.fail)
	c = newConversation(t, "/stats\n")
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, "nothing has been answered yet\n", c.errs.String())
}

// An answer that has no room ends with a word, and so does one that was to be short.
func TestCutAnswers(t *testing.T) {
	c := newConversation(t, "hi\n", strings.Repeat("x ", 100))
	prompt := len(c.ids(t, prompted("hi")))
	c.maxSeq = prompt + 4
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, "the answer was cut: the context of "+strconv.Itoa(c.maxSeq)+
		" positions is full; /clear starts over\n", c.errs.String())
	require.Equal(t, c.maxSeq, c.position, "the last token takes no position")

	c = newConversation(t, "hi\n", strings.Repeat("x ", 100))
	c.MaxTokens = 3
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, "the answer was cut after 3 tokens (--max-tokens)\n", c.errs.String())

	c = newConversation(t, "hi\n", strings.Repeat("x ", 100))
	c.MaxTokens, c.Stats, c.Quiet = 3, true, true
	require.NoError(t, c.run(t.Context()))
	require.Empty(t, c.errs.String())
}

// When the context is full the oldest turns are dropped until half of it is free, and the system message stays. What
// remains is the whole conversation from then on.
func TestOldestTurnsAreDropped(t *testing.T) {
	said := func(from, to int, last string) string { // the prompt of the turns from and before to, and of a message
		text := "system<|begin_of_text|>be short<|end_of_text|>"
		for i := from; i < to; i++ {
			text += prompted(strconv.Itoa(i)) + "yes<|end_of_text|>"
		}
		return text + prompted(last)
	}
	in, answers := "", []string{}
	for i := range 10 {
		in += strconv.Itoa(i) + "\n"
		answers = append(answers, "yes")
	}
	c := newConversation(t, in, answers...)
	c.System = "be short"
	turn := len(c.ids(t, said(0, 1, "1"))) - len(c.ids(t, said(0, 0, "1")))
	c.maxSeq = 8 * turn // a quarter is two turns, and the message with its frame and the system message take less
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, strings.Repeat("yes\n", 10), c.out.String())
	var cut int // the turn before which the first ones were dropped
	for cut = 1; len(c.ids(t, said(0, cut, "1")))+c.maxSeq/4 <= c.maxSeq; cut++ {
	}
	from := 0
	for len(c.ids(t, said(from, cut, strconv.Itoa(cut)))) > c.maxSeq/2 {
		from++
	}
	require.Greater(t, from, 1)
	require.Less(t, from, cut, "something is kept")
	require.Contains(t, c.errs.String(), "the context of "+strconv.Itoa(c.maxSeq)+" positions is full: the oldest "+
		strconv.Itoa(2*from)+" messages are no longer in it\n")
	system := c.ids(t, "system<|begin_of_text|>be short<|end_of_text|>user<|begin_of_text|>")
	shown := c.ids(t, said(from, cut, strconv.Itoa(cut)))
	require.Equal(t, shown[len(system):], c.fed[cut], "of the new prompt the system message was in the cache")

	// A message that has room alone is answered, whatever goes for it.
	c = newConversation(t, "hi\n"+strings.Repeat("a ", 60)+"\n", "yes", "no")
	c.maxSeq = 90
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, "yes\nno\n", c.out.String())
	require.Contains(t, c.errs.String(), "the oldest 2 messages are no longer in it\n")
}

// Thinking is turned on and off by the variable that the template has for it, on the command line and in between.
func TestThinking(t *testing.T) {
	on, off := true, false
	for _, name := range []string{"enable_thinking", "thinking"} {
		source := "{% for m in messages %}{{ m.content }}<|end_of_text|>{% endfor %}" +
			"{{ '<think></think>' if " + name + " is defined and not " + name + " else '<think>' }}"
		for _, think := range []*bool{nil, &on, &off} {
			c := newConversation(t, "hi\n/think\nhi\n/no-think\nhi\n", "yes", "yes", "yes")
			c.source, c.Think = source, think
			require.NoError(t, c.run(t.Context()))
			for i, want := range []string{"<think>", "<think>", "<think></think>"} {
				if i == 0 && think == &off {
					want = "<think></think>"
				}
				read := c.tok.Decode(c.fed[i], false)
				require.Equal(t, "hi<|end_of_text|>"+want, read[len(read)-len("hi<|end_of_text|>"+want):])
			}
		}
	}
	c := newConversation(t, "/think\n", "yes")
	require.ErrorContains(t, c.run(t.Context()), "the chat template of the model has no switch for thinking")
	c = newConversation(t, "hi\n", "yes")
	c.source, c.Think = "{# thinking #}"+template, &off // a comment is no switch
	require.ErrorContains(t, c.run(t.Context()), "no switch for thinking; want neither --think nor --no-think")
}

// Further variables reach the template, which has to know them.
func TestVariables(t *testing.T) {
	c := newConversation(t, "hi\n", "yes")
	c.source = "{{ tone }}" + template
	var err error
	c.Variables, err = chat.ParseVariables([]byte(`{"tone": "loud"}`))
	require.NoError(t, err)
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, c.ids(t, "loud"+prompted("hi")), c.fed[0])
	c.source = template
	require.ErrorContains(t, c.run(t.Context()), `the chat template of the model has no variable "tone"`)
}

// Without a template the conversation is a text, which the model continues, and every message begins a line of it.
func TestWithoutATemplate(t *testing.T) {
	c := newConversation(t, "  def f():  \nx = 1\n/clear\nimport os\n", "\n    pass", " + 2\n", "yes")
	c.source = ""
	require.NoError(t, c.run(t.Context()))
	require.Equal(t, "\n    pass\n + 2\nyes\n", c.out.String())
	require.Equal(t, "the model has no chat template: it continues what you type, by up to 256 tokens (--max-tokens)\n",
		c.errs.String())
	whole := func(text string) []int {
		ids, err := c.tok.Encode(text, true)
		require.NoError(t, err)
		return ids
	}
	require.Equal(t, whole("  def f():"), c.fed[0])
	require.Equal(t, whole("import os"), append(whole("")[:1:1], c.fed[2]...))
	require.Contains(t, "  def f():\n    pass\nx = 1", c.tok.Decode(c.fed[1], false))
	require.True(t, strings.HasSuffix(c.tok.Decode(c.fed[1], false), "x = 1"))

	long := newConversation(t, "x\n", strings.Repeat("x ", 300))
	long.source = ""
	require.NoError(t, long.run(t.Context()))
	require.Contains(t, long.errs.String(), "the answer was cut after 256 tokens (--max-tokens)\n")
	think := true
	for want, change := range map[string]func(*dialogue.Config){
		"and so no system message":      func(o *dialogue.Config) { o.System = "be short" },
		"and so no switch for thinking": func(o *dialogue.Config) { o.Think = &think },
		"and so no variables":           func(o *dialogue.Config) { o.Variables = &jinja.Dict{} },
	} {
		c := newConversation(t, "x\n")
		c.source = ""
		change(&c.Config)
		require.ErrorContains(t, c.run(t.Context()), want)
	}
}

// What a command is and does is listed, of thinking only where there is a switch for it, and /exit ends.
func TestCommands(t *testing.T) {
	c := newConversation(t, "/help\n/exit\nhi\n", "yes")
	require.NoError(t, c.run(t.Context()))
	require.Empty(t, c.out.String())
	for _, name := range []string{"/help ", "/clear ", "/stats ", "/exit "} {
		require.Contains(t, c.errs.String(), name)
	}
	require.NotContains(t, c.errs.String(), "think")
	c = newConversation(t, "/help\n", "yes")
	c.source = "{{ 1 if enable_thinking }}" + template
	require.NoError(t, c.run(t.Context()))
	require.Contains(t, c.errs.String(), "/no-think ")
}

// An editor has its own prompt. Ctrl-C drops what is typed, and the second one with nothing typed ends.
func TestEditor(t *testing.T) {
	for _, steps := range [][]read{
		{{text: "one\ntwo"}, {err: io.EOF}},
		{{text: "dropped", err: context.Canceled}, {err: context.Canceled}, {text: "dropped", err: context.Canceled},
			{err: context.Canceled}, {text: "one\ntwo"}, {err: context.Canceled}, {err: context.Canceled}},
		{{text: "one\ntwo"}, {err: errors.New("the terminal is gone")}},
	} {
		c := newConversation(t, "nothing", "yes")
		c.Editor, c.Interactive = &typing{steps: steps}, true
		err := c.run(t.Context())
		if want := steps[len(steps)-1].err; errors.Is(want, io.EOF) || errors.Is(want, context.Canceled) {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, want)
		}
		require.Equal(t, "yes\n", c.out.String())
		require.Equal(t, c.ids(t, prompted("one\ntwo")), c.fed[0])
	}
	// A terminal in which nobody waits for a message any more is put back.
	ctx, cancel := context.WithCancel(t.Context())
	c := newConversation(t, "")
	e := &typing{waits: cancel}
	c.Editor, c.Interactive = e, true
	require.ErrorIs(t, c.run(ctx), context.Canceled)
	require.True(t, e.restored)
}

type read struct {
	text string
	err  error
}

// typing is an editor in which steps were typed, and which then waits.
type typing struct {
	steps    []read
	waits    func()
	restored bool
}

func (e *typing) Read() (string, error) {
	if len(e.steps) == 0 {
		e.waits()
		select {}
	}
	step := e.steps[0]
	e.steps = e.steps[1:]
	return step.text, step.err
}

func (e *typing) Restore() { e.restored = true }

// asking has a value when the prompt is printed.
type asking chan bool

func (a asking) Write(p []byte) (int, error) {
	if string(p) == "> " {
		a <- true
	}
	return len(p), nil
}

// Ctrl-C stops an answer, and what was written stays said; at the prompt the second one in a row ends.
func TestInterrupts(t *testing.T) {
	interrupts := make(chan os.Signal)
	c := newConversation(t, "", strings.Repeat("word ", 50), "short")
	in, typed := io.Pipe()
	defer in.Close()
	c.In, c.Interrupts, c.Interactive = in, interrupts, true
	c.onToken = func(ctx context.Context, n int) {
		if n == 5 && len(c.answers) == 1 {
			interrupts <- os.Interrupt
			<-ctx.Done()
		}
	}
	asked := make(asking, 1)
	c.Out = io.MultiWriter(&c.out, asked)
	go func() {
		for _, line := range []string{"one\n", "two\n", "", "/stats\n", "", ""} {
			<-asked
			if line == "" {
				interrupts <- os.Interrupt
			} else {
				io.WriteString(typed, line)
			}
		}
	}()
	require.NoError(t, c.run(t.Context()))
	require.Contains(t, c.errs.String(), "stopped\n")
	require.Equal(t, 2, strings.Count(c.errs.String(), "Ctrl-C again, or Ctrl-D, ends the conversation"))
	answer, _, _ := strings.Cut(strings.TrimPrefix(c.out.String(), "> "), "\n")
	require.True(t, strings.HasPrefix(answer, "word word"))
	require.Less(t, len(answer), 100)
	require.Contains(t, c.out.String(), "\n> short\n> ")
	require.Contains(t, c.tok.Decode(c.cache, false), answer+"<|end_of_text|>"+prompted("two")+"short")

	// In a pipe nobody sits at a prompt, and a Ctrl-C is meant for all of it.
	c = newConversation(t, "one\ntwo\n", strings.Repeat("word ", 50), "short")
	again := make(chan os.Signal)
	c.Interrupts = again
	c.onToken = func(_ context.Context, n int) {
		if n == 5 {
			again <- os.Interrupt
		}
	}
	require.ErrorIs(t, c.run(t.Context()), context.Canceled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c = newConversation(t, "")
	c.In, c.Interactive = in, true
	require.ErrorIs(t, c.run(ctx), context.Canceled)
}
