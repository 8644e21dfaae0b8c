// Package library runs a model inside another program: it encodes and decodes text, computes logits, and generates
// texts token by token. [Open] opens a build on a GPU; package capi exports it to C, and the Python package of a build
// to Python. docs/library.md is its manual.
//
// A [Model] may be used from several threads; their calls run one at a time. It has one cache. Several texts of a model
// may be open: one that is continued after another is decoded again from the first token in which the two differ.
//
// The package is copied into every launcher. It imports the standard library, text/chat, text/grammar, runtime/host,
// runtime/infile, runtime/outfile, text/sampling, text/stopping and text/tokenizer, and must not import any other
// package of amkc.
package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
	"amkc/text/chat"
	"amkc/text/grammar"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// A Decoder decodes consecutive positions: a session on a GPU, or the reference VM.
type Decoder interface {
	// Decode is [host.Session.Decode].
	Decode(ctx context.Context, in host.Input, want host.Outputs) (next int, err error)
	// Position is that of the next token; the cache holds the rows before it.
	Position() int
	// Rewind makes an earlier position the next, and keeps what has been decoded before it.
	Rewind(position int) error
	Close() error
}

// A generator is a decoder that goes on on its own for several tokens.
type generator interface {
	Generate(ctx context.Context, token, n int, stops []int, emit func(id int) error) ([]int, error)
}

// A keeper is a decoder whose cache can be written to a file and read again.
type keeper interface {
	SavePrefix(w io.Writer, ids []int) error
	LoadPrefix(ctx context.Context, path string) ([]int, error)
}

// A reporter is a decoder that says how much of a long input has been decoded.
type reporter interface{ SetProgress(p host.Progress) }

// Parts are the parts of a model.
type Parts struct {
	Decoder Decoder
	Name    string
	Vocab   int // ids go from 0 to Vocab-1
	MaxSeq  int // positions of a text
	Hidden  int // elements of an embedding, and of a hidden state
}

// A Model is a build, or a model on the reference VM, that has been opened.
type Model struct {
	parts Parts
	dir   string
	eos   []int

	tokenizer *tokenizer.Tokenizer // nil: none, for the reason alongside it
	noText    error
	chat      *chat.Format // nil: none, for the reason alongside it
	noChat    error

	vocabulary func() (*grammar.Vocabulary, error) // bytes of tokens, found when they are first needed

	mu     sync.Mutex
	closed bool
	cached []place   // whose rows the cache has
	watch  Watcher   // nil: nobody is told
	logits []float32 // of the last token
}

// An InputError says what is wrong with a request.
type InputError struct{ What string }

func (e *InputError) Error() string { return e.What }

func inputf(format string, args ...any) error { return &InputError{fmt.Sprintf(format, args...)} }

// errClosed is the error of whatever is asked of a model after its end.
var errClosed = &InputError{"the model is closed"}

// Open opens a build directory on a GPU. Errors are those of [host.Open].
func Open(dir string, gpu int) (*Model, error) {
	s, err := host.Open(context.Background(), dir, host.Options{GPU: gpu})
	if err != nil {
		return nil, err
	}
	facts := s.Facts().Model
	return New(dir, Parts{s, facts.Name, facts.Vocab, facts.MaxSeq, facts.Hidden})
}

// New makes a model of its parts and of the text files in its directory. It owns the decoder, which [Model.Close]
// closes, as New does on an error. A tokenizer and chat templates may be missing: methods that need them return an
// error.
func New(dir string, parts Parts) (*Model, error) {
	m := &Model{parts: parts, dir: dir}
	var err error
	if m.eos, err = host.StopIDs(dir); err != nil {
		return nil, errors.Join(err, parts.Decoder.Close())
	}
	m.tokenizer, m.noText = ReadTokenizer(dir)
	m.chat, m.noChat = chat.Load(dir)
	m.vocabulary = sync.OnceValues(func() (*grammar.Vocabulary, error) {
		if m.tokenizer == nil {
			return nil, m.noText
		}
		return grammar.FromTokenizer(parts.Vocab, m.tokenizer, m.eos)
	})
	return m, nil
}

// ReadTokenizer reads the tokenizer of a build; the error says why there is none.
func ReadTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	path := filepath.Join(dir, host.TokenizerFile)
	data, err := infile.Read(path, infile.Tokenizer)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &host.BuildError{Path: path, What: "the model came without a tokenizer"}
	case err != nil:
		return nil, &host.BuildError{Path: path, What: "it cannot be read", Err: err}
	}
	return tokenizer.Load(data)
}

// Close frees the GPU. Closing twice is harmless.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	return m.parts.Decoder.Close()
}

// Name returns the name of the model.
func (m *Model) Name() string { return m.parts.Name }

// Vocab is the number of tokens of the model: ids are 0 to Vocab-1.
func (m *Model) Vocab() int { return m.parts.Vocab }

// MaxSeq is the maximum number of positions of a text.
func (m *Model) MaxSeq() int { return m.parts.MaxSeq }

// Hidden is the number of elements of an embedding and of a hidden state.
func (m *Model) Hidden() int { return m.parts.Hidden }

// EOS are the ids after which a text ends.
func (m *Model) EOS() []int { return slices.Clone(m.eos) }

// Encode returns the ids of a text. With special they are those of a prompt: the begin token is put in front unless the
// text begins with it.
func (m *Model) Encode(text string, special bool) (ids []int, err error) {
	if m.tokenizer == nil {
		return nil, m.noText
	}
	if special {
		ids, _, err = m.tokenizer.EncodePrompt(text)
	} else {
		ids, err = m.tokenizer.Encode(text, false)
	}
	if err != nil {
		return nil, inputf("the text cannot be encoded: it is not valid UTF-8")
	}
	return ids, nil
}

// Decode returns the text of ids, special tokens among them if special. Bytes that are not UTF-8 become U+FFFD.
func (m *Model) Decode(ids []int, special bool) (string, error) {
	if m.tokenizer == nil {
		return "", m.noText
	}
	if err := m.valid(ids); err != nil {
		return "", err
	}
	return m.tokenizer.Decode(ids, !special), nil
}

// Chat returns the prompt that the model's chat template makes of a conversation in JSON: a list of messages, or an
// object with messages, tools and whatever else [chat.Parse] reads.
func (m *Model) Chat(conversation []byte) ([]int, error) {
	switch {
	case m.tokenizer == nil:
		return nil, m.noText
	case errors.Is(m.noChat, chat.ErrNone):
		return nil, inputf("%s: the model came without a chat template; give a whole prompt", m.dir)
	case m.noChat != nil:
		return nil, inputf("%s: the chat template cannot be used: %v", m.dir, infile.Reason(m.noChat))
	}
	c, err := chat.Parse(conversation)
	if err == nil {
		err = c.OnlyText()
	}
	if err != nil {
		return nil, inputf("the messages cannot be read: %v", err)
	}
	text, err := m.chat.Render(c, chat.Options{Now: time.Now()})
	if err != nil {
		return nil, inputf("the chat template does not format the messages: %v", err)
	}
	return m.Encode(text, false)
}

// Sampling returns the sampling options of the model's generation_config.json.
func (m *Model) Sampling() (sampling.Options, error) { return sampling.ReadConfig(m.dir) }

// Schema compiles a JSON schema for [Options]. An empty one accepts all JSON objects.
func (m *Model) Schema(schema string) (*grammar.Grammar, error) {
	v, err := m.vocabulary()
	switch {
	case errors.Is(err, grammar.ErrVocabulary):
		return nil, inputf("texts cannot be constrained to a schema: %v", err)
	case err != nil:
		return nil, err
	case schema == "":
		return grammar.Object(v), nil
	}
	g, err := grammar.Schema(v, []byte(schema))
	if err != nil {
		return nil, inputf("the schema: %v", infile.Reason(err))
	}
	return g, nil
}

// Outputs decodes a prompt from position 0, except for the part that is in the cache, and calls back with the wanted
// outputs of each of its last rows, counted from 0.
func (m *Model) Outputs(p Prompt, rows int, want host.Outputs) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.sequence(p)
	switch {
	case err != nil:
		return err
	case rows < 1 || rows > len(p.IDs):
		return inputf("outputs of the last %d of %d positions were asked for; want 1 to %d", rows, len(p.IDs),
			len(p.IDs))
	}
	_, err = m.reach(t, rows, want)
	return err
}

// A Watcher is told how many of the tokens that a call decodes have been decoded, from 0 on. The call ends with an
// [InputError] if it returns false. It must not call the model.
type Watcher func(done, total int) (goOn bool)

// Watch has w told while long prompts are decoded, from the next call on: by a decoder that reports it, as a session
// does before the first launch and after each. nil ends it. What a call has decoded before it ends stays in the cache.
func (m *Model) Watch(w Watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watch = w
}

// watched is a context for a call of the decoder, which the watcher may end. stopped is the error of that, if it did.
func (m *Model) watched() (ctx context.Context, stopped func() error) {
	r, can := m.parts.Decoder.(reporter)
	if m.watch == nil || !can {
		return context.Background(), func() error { return nil }
	}
	var end error
	ctx, cancel := context.WithCancel(context.Background())
	r.SetProgress(func(_ string, done, total int64) {
		if end == nil && !m.watch(int(done), int(total)) {
			end = inputf("the prompt was not decoded further: it was stopped after %d of %d tokens", done, total)
			cancel()
		}
	})
	return ctx, func() error {
		cancel()
		r.SetProgress(nil)
		return end
	}
}

// SavePrefix decodes ids, less what the cache has of them, and writes what they leave in the cache to a file, for
// [Model.LoadPrefix] of the same build. Embeddings are not saved.
func (m *Model) SavePrefix(ids []int, path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, can := m.parts.Decoder.(keeper)
	if !can {
		return errNoPrefix
	}
	if slices.Contains(ids, Embedding) {
		return inputf("a prefix with embeddings was to be saved; want token ids alone")
	}
	t, err := m.sequence(Prompt{IDs: ids})
	if err != nil {
		return err
	}
	if own := host.FileAt(m.dir, path); own != "" {
		return inputf("%s is %s of the build; want another file", path, own)
	}
	if !m.knows(t.places) {
		sampling.Delegate(m.parts.Decoder, new(sampling.Greedy()), sampling.Text{}) // nothing is drawn after them
		if _, err := m.reach(t, 0, host.Outputs{}); err != nil {
			return err
		}
	}
	return outfile.Write(path, func(w io.Writer) error { return k.SavePrefix(w, ids) })
}

// LoadPrefix loads a prefix into the cache and returns its ids: of texts that begin with them, only the rest is
// decoded.
func (m *Model) LoadPrefix(path string) ([]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	k, can := m.parts.Decoder.(keeper)
	if !can {
		return nil, errNoPrefix
	}
	m.cached = nil
	ids, err := k.LoadPrefix(context.Background(), path)
	for _, id := range ids {
		m.cached = append(m.cached, place{id: id})
	}
	return ids, err
}

var errNoPrefix = &InputError{"prefixes are saved and loaded on a GPU; this is the reference VM"}

func (m *Model) valid(ids []int) error {
	for _, id := range ids {
		if id < 0 || id >= m.parts.Vocab {
			return inputf("token id %d: the model has ids 0 to %d", id, m.parts.Vocab-1)
		}
	}
	return nil
}

// restart forgets the cache after a failure.
func (m *Model) restart() {
	m.cached = nil
	_ = m.parts.Decoder.Rewind(0) // position 0 can always be gone back to
}
