// Package serve serves one model over HTTP, in the forms of OpenAI's API and of Anthropic's: chat completions,
// responses, messages, completions, embeddings, the list of models, tokenization, health and metrics. [New] makes a
// server of an [Engine], a tokenizer and a chat template; [Server.Take] gives it a [Port], and [Server.Serve] runs it
// until its context ends.
//
// A request is parsed, rendered and encoded on its own goroutine. Only a few of these run at a time, which bounds the
// cost of requests before admission. Then it waits in a bounded queue for the scheduler. Only the scheduler's goroutine
// calls the engine: it chooses tokens, decodes text and looks for stop strings, so that nothing is decoded after the
// end of an answer. Results go through an outbox to the request's goroutine, so a slow client does not delay others.
// Log-probabilities, and the masks of answers with a grammar, are computed concurrently with the next step. A client
// that goes away ends its sequences before the next step.
//
// A field of a request that would change the answer is honoured or refused by name, never ignored. Logs and metrics
// contain no text of prompts or answers, and neither do errors of other requests.
//
// The package imports the standard library, text/chat, text/grammar, runtime/infile, text/jinja,
// text/reply, text/sampling, text/stopping and text/tokenizer, and must not import any other package of
// amkc.
package serve

import (
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"amkc/text/chat"
	"amkc/text/grammar"
	"amkc/text/reply"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// A Config configures a server.
type Config struct {
	Model     string   // the name that requests call it by
	Aliases   []string // other names for it
	Engine    Engine
	Tokenizer *tokenizer.Tokenizer
	Chat      *chat.Format     // nil: messages are refused
	EOS       []int            // tokens after which a text ends
	Sampling  sampling.Options // defaults of requests
	APIKey    string           // required for /v1, /tokenize and /detokenize; empty: none
	Origins   []string         // whose pages may use the server, or AnyOrigin; none: its own alone
	Queue     int              // answers that may wait for the engine, from 0
	Log       *slog.Logger
}

// A Server answers requests.
type Server struct {
	called    []string // names that requests call the model by, its own first
	engine    Engine
	tokenizer *tokenizer.Tokenizer
	chat      *chat.Format
	reply     *reply.Format          // how the model writes thoughts and calls
	shown     func(tools bool) []int // special tokens that belong to those
	specials  func() map[int]string  // what all of them look like
	thinks    func() string          // the variable of the template that turns thinking on and off; empty: none
	eos       []int

	vocabulary func() (*grammar.Vocabulary, error) // bytes of tokens, found when they are first needed
	grammars   grammars
	intake     *intake       // of what comes before the queue
	maskRoom   chan struct{} // a semaphore for mask workers
	scoring    chan struct{} // and one for tokens whose log-probabilities are computed
	sampling   sampling.Options
	key        *secret
	origins    []string
	local      bool // only this machine reaches the server, and requests need no key
	log        *slog.Logger
	scheduler  *scheduler
	port       *Port // nil: none is taken
	metrics    *metrics
	hints      sync.Map // names of fields that the log has been told of
	started    time.Time

	maxBody      int64
	maxRows      int           // of logits that may wait for log-probabilities, of a sequence
	pingEvery    time.Duration // of a stream with nothing to say
	writeTimeout time.Duration // of each part of an answer
	now          func() time.Time
	newID        func(prefix string) string
}

// Times and sizes that a request may take. A prompt of 128k tokens has some half a megabyte.
const (
	maxBody       = 8 << 20
	maxRowBytes   = 16 << 20 // of logits of a sequence that wait for log-probabilities
	maxHeader     = 64 << 10
	pingEvery     = 10 * time.Second
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
)

// New returns a server whose scheduler is not running yet: [Server.Serve] starts it.
func New(c Config) *Server {
	s := &Server{called: names(c.Model, c.Aliases), engine: c.Engine, tokenizer: c.Tokenizer, chat: c.Chat,
		eos: c.EOS, sampling: c.Sampling,
		key: newSecret(c.APIKey), origins: c.Origins, log: c.Log, metrics: newMetrics(), started: time.Now(),
		maxBody: maxBody, maxRows: max(2, maxRowBytes/(4*c.Engine.Limits().Vocab)), pingEvery: pingEvery,
		writeTimeout: writeTimeout, now: time.Now, newID: newID,
		maskRoom: make(chan struct{}, background()), scoring: make(chan struct{}, background())}
	if c.Chat != nil {
		s.reply = reply.Of(c.Chat)
		with := sync.OnceValue(func() []int { return s.reply.Shown(s.tokenizer, true) })
		without := sync.OnceValue(func() []int { return s.reply.Shown(s.tokenizer, false) })
		s.shown = func(tools bool) []int {
			if tools {
				return with()
			}
			return without()
		}
		s.specials = sync.OnceValue(s.specialTexts)
		s.thinks = sync.OnceValue(s.thinkingSwitch)
	}
	s.vocabulary = sync.OnceValues(func() (*grammar.Vocabulary, error) {
		return grammar.FromTokenizer(s.engine.Limits().Vocab, s.tokenizer, s.eos)
	})
	s.scheduler = newScheduler(c.Engine, c.Queue, c.Log, func() time.Time { return s.now() })
	s.intake = newIntake(maxBody, max(2, background()), max(DefaultQueue, s.scheduler.most()))
	return s
}

// names are those of the model, each once.
func names(own string, others []string) []string {
	all := []string{own}
	for _, name := range others {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// background is the number of requests processed while the engine runs: half of the processors are left to it.
func background() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// A route is a path with what answers it.
type route struct {
	path   string
	method string
	open   bool // without the API key
	answer http.HandlerFunc
}

func (s *Server) routes() []route {
	return []route{
		{"/v1/chat/completions", http.MethodPost, false, s.chatCompletions},
		{"/v1/responses", http.MethodPost, false, s.responses},
		{messagesPath, http.MethodPost, false, s.createMessage},
		{messagesPath + "/count_tokens", http.MethodPost, false, s.countTokens},
		{"/v1/completions", http.MethodPost, false, s.completions},
		{"/v1/embeddings", http.MethodPost, false, s.embeddings},
		{"/v1/models", http.MethodGet, false, s.models},
		{"/v1/models/{model...}", http.MethodGet, false, s.oneModel},
		{"/tokenize", http.MethodPost, false, s.tokenize},
		{"/detokenize", http.MethodPost, false, s.detokenize},
		{"/health", http.MethodGet, true, s.health},
		{"/metrics", http.MethodGet, true, s.showMetrics},
		{"/{$}", http.MethodGet, true, s.page},
	}
}

// Handler returns the HTTP handler of the server.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.path, s.watched(r.path, s.guarded(r)))
	}
	mux.Handle("/", s.watched("other", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, &apiError{status: http.StatusNotFound, kind: kindRequest, code: "not_found",
			message: "there is nothing at this path; docs/serving.md lists what is"})
	})))
	return mux
}
