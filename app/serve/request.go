package serve

import (
	"errors"
	"maps"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"amkc/runtime/infile"
	"amkc/text/grammar"
	"amkc/text/sampling"
)

// A request is what chat completions and completions ask for alike.
type request struct {
	model        string // the name that it calls the model by
	stream       bool
	includeUsage bool
	most         int // tokens to decode; negative: not said
	stops        []string
	stopIDs      []int // tokens that end a text besides the model's own
	least        int   // tokens before anything ends a text
	ignoreEOS    bool
	answers      int                 // to each prompt
	echo         bool                // they begin with it
	asWritten    bool                // a thought is a part of the content
	thoughtless  bool                // a thought is left out
	oneCall      bool                // of tools at most
	included     bool                // log-probabilities, in a response
	until        func() answerReader // which reads that call
	seeded       bool                // it has a seed
	options      sampling.Options
	form         *grammar.Grammar // that the answer has to be a text of; nil: any
	formSchema   []byte           // the schema that says so
	shown        []int            // special tokens that the answer's text has
}

// asked is a request that says nothing yet.
func (s *Server) asked() *request {
	return &request{model: s.called[0], options: s.sampling, answers: 1, most: -1}
}

// logprobs reports whether they are wanted.
func (r *request) logprobs() bool { return r.options.LogProbs >= 0 }

// A field reads one field of a request.
type field func(s *Server, r *request, v value) error

// Limits of stop strings, of requests and of command lines.
const (
	MaxStops     = 16
	MaxStopBytes = 1024
)

// Limits of what a request may say.
const (
	maxAnswers = 128
	maxWords   = 64 // of lists whose items are a few words that are known
	maxTopChat = 20
	maxTop     = 5
)

// sharedFields are those that both kinds of completions have.
var sharedFields = map[string]field{
	"model": modelName,
	"stream": func(_ *Server, r *request, v value) (err error) {
		r.stream, err = v.bool()
		return err
	},
	"stream_options": streamOptions,
	"max_tokens": func(_ *Server, r *request, v value) (err error) {
		r.most, err = v.integer(1, math.MaxInt32)
		return err
	},
	"stop": stops,
	"ignore_eos": func(_ *Server, r *request, v value) (err error) {
		r.ignoreEOS, err = v.bool()
		return err
	},
	"stop_token_ids": stopIDs,
	"min_tokens": func(_ *Server, r *request, v value) (err error) {
		r.least, err = v.integer(0, math.MaxInt32)
		return err
	},
	"logit_bias": logitBias,
	"seed": func(_ *Server, r *request, v value) error {
		var seed int64
		err := v.read(&seed, "an integer of 64 bits")
		r.options.Seed, r.seeded = uint64(seed), true
		return err
	},
	"temperature": number(0, 2, temperature),
	"top_p":       number(0, 1, func(o *sampling.Options) *float64 { return &o.TopP }),
	"top_k": func(_ *Server, r *request, v value) error {
		k, err := v.integer(-1, math.MaxInt32)
		r.options.TopK = max(k, 0) // -1 is all to some clients, and 0 to others
		return err
	},
	"min_p":              number(0, 1, func(o *sampling.Options) *float64 { return &o.MinP }),
	"repetition_penalty": number(0.01, 100, func(o *sampling.Options) *float64 { return &o.RepetitionPenalty }),
	"presence_penalty":   number(-2, 2, func(o *sampling.Options) *float64 { return &o.PresencePenalty }),
	"frequency_penalty":  number(-2, 2, func(o *sampling.Options) *float64 { return &o.FrequencyPenalty }),
	"n": func(_ *Server, r *request, v value) (err error) {
		r.answers, err = v.integer(1, maxAnswers)
		return err
	},
	// What clients send routinely and what changes no answer.
	"user": tolerated, "store": tolerated, "metadata": tolerated, "service_tier": tolerated,
	"safety_identifier": tolerated, "prompt_cache_key": tolerated, "prompt_cache_retention": tolerated,
}

// with returns the fields of two tables.
func with(table, more map[string]field) map[string]field {
	all := maps.Clone(table)
	maps.Copy(all, more)
	return all
}

func modelName(s *Server, r *request, v value) (err error) {
	if r.model, err = v.text(); err == nil && !slices.Contains(s.called, r.model) {
		return s.noModel(r.model)
	}
	return err
}

// noModel is what is wrong with a name that is not one of the model's.
func (s *Server) noModel(name string) *apiError {
	var own []string
	for _, name := range s.called {
		own = append(own, strconv.Quote(name))
	}
	return &apiError{status: http.StatusNotFound, kind: kindRequest, code: "model_not_found", param: "model",
		message: "the model " + strconv.Quote(value{}.cut(name)) + " is not served; this server has " +
			strings.Join(own, ", ")}
}

// tolerated is a field that changes no answer.
func tolerated(s *Server, _ *request, v value) error {
	s.hint(v.name)
	return nil
}

// hint tells the log of a field that changes no answer, once for each name. A name is one that the server knows, and
// never a text of a client.
func (s *Server) hint(name string) {
	if _, told := s.hints.LoadOrStore(name, true); !told {
		s.log.Info("requests have a field that changes no answer here", "field", name)
	}
}

func temperature(o *sampling.Options) *float64 { return &o.Temperature }

// number is a field that is an option of sampling.
func number(lo, hi float64, option func(*sampling.Options) *float64) field {
	return func(_ *Server, r *request, v value) (err error) {
		*option(&r.options), err = v.number(lo, hi)
		return err
	}
}

func streamOptions(_ *Server, r *request, v value) error {
	o, err := members(v.raw)
	if err != nil {
		return invalid(v.name, "stream_options is not an object")
	}
	for name, option := range o {
		switch name {
		case "include_usage":
			if r.includeUsage, err = (value{"stream_options.include_usage", option.raw}).bool(); err != nil {
				return err
			}
		case "include_obfuscation": // padding against onlookers, which may be left out
		default:
			return unknown("stream_options." + v.cut(name))
		}
	}
	return nil
}

func stops(_ *Server, r *request, v value) error {
	const want = "a string, or a list of up to 16 that are not empty"
	var one string
	if v.read(&one, want) == nil {
		r.stops = []string{one}
	} else if all, err := list[string](v, MaxStops, want); err != nil {
		return err
	} else {
		r.stops = all
	}
	return r.checkStops(v)
}

func (r *request) checkStops(v value) error {
	for _, stop := range r.stops {
		if stop == "" || len(stop) > MaxStopBytes {
			return invalid(v.name, "a string of %s has %d bytes; want 1 to %d", v.name, len(stop), MaxStopBytes)
		}
	}
	return nil
}

// stopIDs reads tokens that end a text, in front of which it ends.
func stopIDs(s *Server, r *request, v value) (err error) {
	const want = "a list of up to 16 token ids"
	if r.stopIDs, err = list[int](v, MaxStops, want); err != nil {
		return err
	}
	for _, id := range r.stopIDs {
		if vocab := s.engine.Limits().Vocab; id < 0 || id >= vocab {
			return invalid(v.name, "%s has token %d; want ids from 0 to %d", v.name, id, vocab-1)
		}
	}
	return nil
}

// mostBias is as far as a bias goes, and what clients send to forbid or force a token.
const mostBias = 100

func logitBias(s *Server, r *request, v value) error {
	const want = "an object of numbers from -100 to 100 by token ids"
	vocab := s.engine.Limits().Vocab
	if v.commas() >= vocab {
		return invalid(v.name, "logit_bias has more than %d biases, one for each token; want no more", vocab)
	}
	var biases map[string]*float64
	if err := v.read(&biases, want); err != nil {
		return err
	}
	r.options.Bias = map[int]float64{}
	for name, bias := range biases {
		id, err := strconv.Atoi(name)
		if err != nil || bias == nil || *bias < -mostBias || *bias > mostBias {
			return v.unexpected(want)
		}
		if id < 0 || id >= vocab {
			return invalid(v.name, "logit_bias names token %d; want ids from 0 to %d", id, vocab-1)
		}
		r.options.Bias[id] = *bias
	}
	return nil
}

// refusedFields are fields that other servers have and that would change the answer.
var refusedFields = []string{"access_programs", "audio", "background_options", "container", "context_management",
	"diagnostics", "function_call", "functions", "guided_choice", "guided_grammar", "guided_json", "guided_regex",
	"image", "mcp_servers", "moderation", "prompt_cache_options", "prompt_logprobs", "reasoning", "typical_p",
	"verbosity", "web_search_options"}

func unknown(name string) *apiError {
	if name == "prompt_embeds" {
		return unsupported(name, "%s is not supported; want prompt: embeddings instead of tokens are taken by "+
			"the library for C and Python", name)
	}
	if slices.Contains(refusedFields, name) {
		return unsupported(name, "%s is not supported; want none", name)
	}
	e := invalid(name, "there is no field %q", name)
	e.code = "unknown_parameter"
	return e
}

// cut is a name as messages have it, not all of it where it is long.
func (v value) cut(name string) string {
	const most = 128
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}

// read takes the fields that a table has, in the order of their names, and returns the others that are in rest. Any
// other is refused.
func (r *request) read(s *Server, all map[string]value, table map[string]field, rest ...string) (map[string]value,
	error) {
	left := map[string]value{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch read := table[name]; {
		case read != nil:
			if err := read(s, r, all[name]); err != nil {
				return nil, err
			}
		case slices.Contains(rest, name):
			left[name] = all[name]
		default:
			return nil, unknown(all[name].cut(name))
		}
	}
	if _, said := all["stream_options"]; said && !r.stream {
		return nil, invalid("stream_options", "stream_options goes with stream")
	}
	if r.most >= 0 && r.least > r.most {
		return nil, invalid("min_tokens", "min_tokens is %d, and the answer has at most %d tokens; want no more",
			r.least, r.most)
	}
	var wrong *sampling.OptionError
	if err := r.options.Check(s.engine.Limits().Vocab); errors.As(err, &wrong) {
		return nil, invalid(strings.ReplaceAll(wrong.Option, "-", "_"), "%v", wrong)
	}
	return left, nil
}

// body reads what a request has sent, within the time and the size that it may take.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		// also what keeps pages of origins that are not allowed away: a browser asks before it sends this type for them
		return nil, &apiError{status: http.StatusUnsupportedMediaType, kind: kindRequest, code: "invalid_content_type",
			message: "want Content-Type: application/json"}
	}
	held := &heldBody{Reader: http.MaxBytesReader(w, r.Body, s.maxBody), intake: s.intake}
	data, err := infile.ReadStream(held, "body", infile.Kind{Name: "a body", Max: s.maxBody})
	recordOf(r).holds(s.intake, held.held)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, errFull):
		return nil, errFull
	case errors.As(err, &large):
		return nil, &apiError{status: http.StatusRequestEntityTooLarge, kind: kindRequest, code: "body_too_large",
			message: "the body has more than " + strconv.FormatInt(s.maxBody, 10) + " bytes, the most that are read"}
	case err != nil:
		return nil, malformed("it has not come whole")
	}
	// From here on the client may be silent for as long as the answer takes. Not all writers have deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return data, nil
}
