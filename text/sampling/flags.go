package sampling

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Flags are the options on a command line. The zero value is ready to use.
type Flags struct {
	Sample bool // choose as the model's generation_config.json says where no flag says otherwise; it has to say: draw
	Follow bool // choose as it says, whatever that is, unless Greedy
	Greedy bool // with Follow: do not read it, and choose the largest logit
	// Fault is set by Options where it cannot follow the file. Tokens are drawn at temperature 1 then.
	Fault error

	changes []func(*Options) // in the order of the command line
	given   map[string]bool
}

// A Flag is the value of one flag, for package flag and similar packages.
type Flag struct {
	Name, Doc string // the name of the value in Doc is in backquotes
	kind      string
	flags     *Flags
	read      func(text string) (func(*Options), error)
}

// String returns "": no flag has a default to print.
func (*Flag) String() string { return "" }

// Type is "number", "int", or "string" for a value that may be negative or is not a number.
func (f *Flag) Type() string { return f.kind }

// Set reads a value from the command line.
func (f *Flag) Set(text string) error {
	change, err := f.read(strings.TrimSpace(text))
	if err != nil {
		return err
	}
	if f.flags.given == nil {
		f.flags.given = map[string]bool{}
	}
	f.flags.given[f.Name] = true
	f.flags.changes = append(f.flags.changes, change)
	return nil
}

// SampleDoc describes the flag --sample, which is a bool: Flags.Sample.
const SampleDoc = "draw tokens as the model's generation_config.json says; other flags change that"

// GreedyDoc describes the flag --greedy, which is a bool: Flags.Greedy.
const GreedyDoc = "choose the most probable token each time, whatever the model's generation_config.json says"

// docs describe the flags of settings. Those of a kind "string" may be below 0.
var docs = map[string][2]string{
	"temperature":        {"number", "draw tokens, with logits divided by `T`; 0: choose the largest"},
	"top-k":              {"int", "draw from the `K` most probable tokens, and what equals the last; 0: from all"},
	"top-p":              {"number", "draw from the most probable tokens that have the share `P` together"},
	"min-p":              {"number", "draw from tokens at least `P` times as probable as the most probable one"},
	"repetition-penalty": {"number", "divide by `R` the logits of tokens seen so far if above 0; multiply if below"},
	"presence-penalty":   {"string", "take `X` off the logits of tokens of the output"},
	"frequency-penalty":  {"string", "take `X` off the logits of tokens of the output, once for each time"},
}

// Values returns the flags that take a value.
func (f *Flags) Values() []*Flag {
	var flags []*Flag
	for _, s := range settings {
		flags = append(flags, &Flag{s.name, docs[s.name][1], docs[s.name][0], f, s.flag})
	}
	return append(flags,
		&Flag{"logit-bias", "add to the logit of a token, `ID:VALUE`; -inf is never; may be repeated", "string", f,
			bias},
		&Flag{"seed", "draw with the random numbers of seed `N`; default: another one each time", "int", f,
			whole(math.MaxUint64, func(o *Options, n uint64) { o.Seed = n })},
		&Flag{"logprobs", "with --json: the log-probability of each token, and the `N` most probable ones", "int", f,
			whole(math.MaxInt32, func(o *Options, n uint64) { o.LogProbs = int(n) })})
}

// flag reads the value of a setting.
func (s *setting) flag(text string) (func(*Options), error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		x = math.NaN()
	}
	if fault := s.fault(x); fault != "" {
		return nil, errors.New(fault)
	}
	return func(o *Options) { s.set(o, x) }, nil
}

func whole(hi uint64, set func(*Options, uint64)) func(string) (func(*Options), error) {
	return func(text string) (func(*Options), error) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n > hi {
			return nil, fmt.Errorf("want a whole number from 0 to %d", hi)
		}
		return func(o *Options) { set(o, n) }, nil
	}
}

func bias(text string) (func(*Options), error) {
	left, right, _ := strings.Cut(text, ":")
	id, err := strconv.ParseUint(left, 10, 31)
	if err != nil {
		return nil, errors.New("want ID:VALUE, as 198:-5 or 198:-inf")
	}
	value, err := strconv.ParseFloat(right, 64)
	if err != nil {
		value = math.NaN()
	}
	if fault := biasFault(value); fault != "" {
		return nil, fmt.Errorf("want ID:VALUE, as 198:-5 or 198:-inf; of the value, %s", fault)
	}
	return func(o *Options) {
		if o.Bias == nil {
			o.Bias = map[int]float64{}
		}
		o.Bias[int(id)] = value
	}, nil
}

// A UsageError reports flags that cannot be combined, and the accepted combination.
type UsageError struct{ What string }

func (e *UsageError) Error() string { return e.What }

// Options returns the options that the flags select, for the model or build in a directory: greedy decoding, unless
// there is a temperature, Sample or Follow. A draw without a seed gets a random one. Errors are *UsageError and
// *ConfigError.
func (f *Flags) Options(dir string) (Options, error) {
	o, instead := Greedy(), "--temperature T or --sample too"
	var err error
	switch {
	case f.Greedy && f.given["temperature"]:
		return o, &UsageError{"--greedy and --temperature exclude each other; want one of them"}
	case f.Greedy:
		instead = "no --greedy"
	case f.Follow:
		instead = "--temperature T too: " + ConfigFile + " of the model asks for greedy decoding"
		if o, f.Fault = ReadConfig(dir); f.Fault != nil {
			o = Greedy()
			o.Temperature = 1
		}
	case f.Sample:
		if o, err = ReadConfig(dir); err != nil {
			return o, err
		}
		if o.Temperature == 0 && !f.given["temperature"] {
			return o, &UsageError{"--sample: " + ConfigFile + " of the model asks for greedy decoding, by do_sample " +
				"or temperature; want --temperature T too, to draw all the same"}
		}
	}
	if o.Temperature == 0 && !f.given["temperature"] {
		for _, name := range []string{"top-k", "top-p", "min-p", "seed"} {
			if f.given[name] {
				return o, &UsageError{"--" + name + " is for drawing tokens; want " + instead}
			}
		}
	}
	for _, change := range f.changes {
		change(&o)
	}
	if o.Temperature != 0 && !f.given["seed"] {
		var random [8]byte
		_, _ = rand.Read(random[:]) // it does not fail
		o.Seed = uint64(binary.LittleEndian.Uint32(random[:]))
	}
	return o, nil
}

// A Report describes the choice of tokens, in JSON.
type Report struct {
	Sampling string   `json:"sampling"`           // the options
	Seed     *uint64  `json:"seed,omitempty"`     // absent where nothing was drawn
	LogProbs []Choice `json:"logprobs,omitempty"` // of each id; absent unless asked for
}

// Report returns nil for plain greedy decoding.
func (o *Options) Report(choices []Choice) *Report {
	if !o.NeedLogits() {
		return nil
	}
	r := &Report{Sampling: o.String()}
	if o.Temperature != 0 {
		r.Seed = &o.Seed
	}
	if o.LogProbs >= 0 {
		r.LogProbs = choices
	}
	return r
}
