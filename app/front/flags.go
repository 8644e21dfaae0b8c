package front

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"amkc/app/serve"
	"amkc/runtime/host"
	"amkc/text/sampling"
)

// A Set is one of flags: of package flag, which launchers have, or of pflag. V is what either takes for a value.
type Set[V any] interface {
	Var(value V, name, doc string)
	BoolVar(p *bool, name string, value bool, doc string)
	StringVar(p *string, name, value, doc string)
}

// add adds a flag to a set.
func add[V any](set Set[V], value any, name, doc string) { set.Var(value.(V), name, doc) }

// Run are the flags of run that say what is decoded.
type Run struct {
	Prompt, Messages, Prompts string
	MaxTokens                 int
	IgnoreEOS                 bool
	Stops                     []string
	Sampling                  sampling.Flags
}

// DefineRun adds them. Where no number of tokens is given there are most, less where positions end sooner.
func DefineRun[V any](set Set[V], r *Run, most int) {
	set.StringVar(&r.Prompt, "prompt", "", "continue `TEXT`; - reads it from standard input")
	add(set, NewWord(&r.Messages, ""), "messages",
		"answer the messages of `FILE`, JSON, in the model's chat template; - is stdin")
	add(set, NewWord(&r.Prompts, ""), "prompts",
		"continue the prompts of `FILE`, in lines of JSON: {\"prompt\": \"...\", \"max_tokens\": 8} or "+
			"{\"ids\": [1,2,3]}; - is stdin. Each gives a line of JSON, in their order")
	add(set, NewCount(&r.MaxTokens, most, 1, math.MaxInt32), "max-tokens", "decode at most `N` tokens")
	set.BoolVar(&r.IgnoreEOS, "ignore-eos", false, "go on after a token that ends the text")
	add(set, NewWords(&r.Stops, func(s string) (string, error) {
		if len(s) > serve.MaxStopBytes || len(r.Stops) == serve.MaxStops {
			return "", fmt.Errorf("want up to %d strings of up to %d bytes", serve.MaxStops, serve.MaxStopBytes)
		}
		return s, nil
	}), "stop", "end the text before the string `TEXT`; may be given several times")
	set.BoolVar(&r.Sampling.Sample, "sample", false, sampling.SampleDoc)
	for _, v := range r.Sampling.Values() {
		add(set, v, v.Name, v.Doc)
	}
}

// Serve are the flags of serve that say where and whom a server answers.
type Serve struct {
	Host    string
	Port    int
	Aliases []string
	Origins []string
	APIKey  string
	Queue   int
	Grace   int // seconds
	pause   int // milliseconds
}

// Pause is how long the reading of prompts may make other answers wait between two tokens.
func (s *Serve) Pause() time.Duration { return time.Duration(s.pause) * time.Millisecond }

// DefineServe adds them.
func DefineServe[V any](set Set[V], s *Serve) {
	add(set, NewWord(&s.Host, serve.DefaultHost), "host",
		"listen on the address `HOST`; 0.0.0.0 lets other machines connect")
	add(set, NewCount(&s.Port, serve.DefaultPort, 0, math.MaxUint16), "port",
		"listen on port `N`; 0: on any that is free")
	add(set, NewWords(&s.Aliases, nil), "alias", "let requests call the model `NAME` too; may be given several times")
	add(set, NewWords(&s.Origins, serve.ParseOrigin), "cors",
		"let pages of `ORIGIN` use the server, as https://app.example, or of any with *; may be given several times")
	add(set, NewWord(&s.APIKey, ""), "api-key",
		"answer requests with the key `KEY` alone; default: what "+serve.KeyVariable+" has, which no list of "+
			"processes shows")
	add(set, NewCount(&s.Queue, serve.DefaultQueue, 0, math.MaxInt32), "queue",
		"let up to `N` answers wait, and refuse more")
	add(set, NewCount(&s.Grace, int(serve.DefaultGrace.Seconds()), 0, math.MaxInt32), "grace",
		"on SIGTERM, give requests that were accepted `N` seconds to end")
	add(set, NewCount(&s.pause, int(host.DefaultPause.Milliseconds()), 1, 60_000), "pause",
		"of several answers at a time, read long prompts in parts that let others wait up to `N` ms for a token")
}

// countSuffixes are what may stand after a whole number on the command line. 8k is 8192: contexts and vocabularies
// are counted so.
var countSuffixes = map[string]int{"k": 1 << 10, "m": 1 << 20}

// A Count is the value of a flag that takes a whole number from lo to hi, as 8192 or 8k.
type Count struct {
	value  *int
	lo, hi int
}

// NewCount sets the default, which need not be in the range, and returns the flag's value.
func NewCount(value *int, def, lo, hi int) *Count {
	*value = def
	return &Count{value, lo, hi}
}

func (c *Count) String() string { return strconv.Itoa(*c.value) }
func (c *Count) Type() string   { return "int" }

func (c *Count) Set(s string) error {
	n, err := ParseCount(s, c.lo, c.hi)
	if err == nil {
		*c.value = n
	}
	return err
}

// ParseCount reads a whole number from lo to hi.
func ParseCount(s string, lo, hi int) (int, error) {
	digits, unit := strings.ToLower(strings.TrimSpace(s)), 1
	for suffix, times := range countSuffixes {
		if rest, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = rest, times
			break
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > math.MaxInt/unit || n < math.MinInt/unit || n*unit < lo || n*unit > hi {
		return 0, errors.New(CountWant(lo, hi))
	}
	return n * unit, nil
}

// CountWant says what a count may be; of a range that lies below the suffixes it does not speak of them.
func CountWant(lo, hi int) string {
	want := fmt.Sprintf("want a whole number from %d on", lo)
	if hi < math.MaxInt {
		want = fmt.Sprintf("want a whole number from %d to %d", lo, hi)
	}
	if hi >= 8<<10 {
		want += "; 8k is 8192, 1m is 1048576"
	}
	return want
}

// A Word is the value of a flag that takes any text but none: an empty one is a variable of the shell's that was not
// set.
type Word struct{ value *string }

// NewWord sets the default and returns the flag's value.
func NewWord(value *string, def string) *Word {
	*value = def
	return &Word{value}
}

func (w *Word) String() string { return *w.value }
func (w *Word) Type() string   { return "string" }

func (w *Word) Set(s string) error {
	if s == "" {
		return ErrEmpty
	}
	*w.value = s
	return nil
}

// Words is the value of a flag that may be given several times, and takes any text but none each time.
type Words struct {
	values *[]string
	parse  func(string) (string, error)
}

// NewWords returns the flag's value; there is no default. parse, if not nil, says what a text becomes.
func NewWords(values *[]string, parse func(string) (string, error)) *Words {
	return &Words{values, parse}
}

func (w *Words) String() string {
	if w.values == nil { // of a zero value, which package flag makes
		return ""
	}
	return strings.Join(*w.values, ",")
}

func (w *Words) Type() string { return "string" }

func (w *Words) Set(s string) (err error) {
	if s == "" {
		return ErrEmpty
	}
	if w.parse != nil {
		if s, err = w.parse(s); err != nil {
			return err
		}
	}
	*w.values = append(*w.values, s)
	return nil
}

// ErrEmpty refuses an empty value.
var ErrEmpty = errors.New("want a value that is not empty, or no such flag")
