// Package sampling turns the logits of a position into a token: penalties, bias and masks, then the filters of
// transformers in their order, then a draw from the remaining tokens. docs/sampling.md is its specification, to the
// bit, and a kernel that chooses tokens is compared with this package.
//
// A choice depends on the logits, the options, the ids before it, and its position in the sequence. It does not depend
// on other sequences, or on the division of the text into passes.
//
// The package is copied into every emitted launcher. It imports the standard library and runtime/infile, and must not
// import any other package of amkc.
package sampling

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Options are the parameters of a choice. [Greedy] returns options that change nothing; the zero value is not valid.
type Options struct {
	Temperature float64 // that logits are divided by; 0: the largest is chosen, and nothing is drawn
	TopK        int     // keep the K largest, and what equals the last of them; 0: all
	TopP        float64 // keep the most probable tokens that have this share together, from 0 to 1; 1: all
	MinP        float64 // keep what is at least this times as probable as the most probable one, from 0 to 1; 0: all

	RepetitionPenalty float64 // divides logits above 0, and multiplies others, of ids of prompt and output; 1: none
	PresencePenalty   float64 // is taken off the logits of ids of the output; 0: none
	FrequencyPenalty  float64 // is taken off the same for each time that the output has the id; 0: none

	Bias map[int]float64 // added to logits, by id; -Inf: never

	Seed     uint64 // of all draws of a sequence
	LogProbs int    // how many of the most probable ids come with a choice; negative: no log-probabilities at all
}

// Greedy returns the options that choose the largest logit of the model.
func Greedy() Options { return Options{TopP: 1, RepetitionPenalty: 1, LogProbs: -1} }

// limit bounds temperatures, penalties and biases, so that no float32 leaves the range of float64 by them.
const limit = 1e6

// A setting is an option that is a number, as a command line calls it.
type setting struct {
	name   string
	lo, hi float64
	idle   float64 // the value at which nothing changes
	get    func(*Options) float64
	set    func(*Options, float64)
}

// settings lists them in the order in which they take effect.
var settings = []setting{
	number("repetition-penalty", 1/limit, limit, 1, func(o *Options) *float64 { return &o.RepetitionPenalty }),
	number("frequency-penalty", -limit, limit, 0, func(o *Options) *float64 { return &o.FrequencyPenalty }),
	number("presence-penalty", -limit, limit, 0, func(o *Options) *float64 { return &o.PresencePenalty }),
	number("temperature", 0, limit, 0, func(o *Options) *float64 { return &o.Temperature }),
	{"top-k", 0, math.MaxInt32, 0, func(o *Options) float64 { return float64(o.TopK) },
		func(o *Options, x float64) { o.TopK = int(x) }},
	number("top-p", 0, 1, 1, func(o *Options) *float64 { return &o.TopP }),
	number("min-p", 0, 1, 0, func(o *Options) *float64 { return &o.MinP }),
}

func number(name string, lo, hi, idle float64, field func(*Options) *float64) setting {
	return setting{name, lo, hi, idle, func(o *Options) float64 { return *field(o) },
		func(o *Options, x float64) { *field(o) = x }}
}

// fault says what would be accepted in place of x, or nothing if x is. A temperature close to 0 would take sums of
// scores and noise beyond what float64 tells apart.
func (s *setting) fault(x float64) string {
	switch {
	case s.name == "top-k" && !(x >= s.lo && x <= s.hi && x == math.Trunc(x)):
		return fmt.Sprintf("want a whole number from 0 to %d", math.MaxInt32)
	case s.name == "temperature" && !(x == 0 || x >= 1/limit && x <= limit):
		return fmt.Sprintf("want 0, or a number from %v to %v", 1/limit, limit)
	case !(x >= s.lo && x <= s.hi):
		return fmt.Sprintf("want a number from %v to %v", s.lo, s.hi)
	}
	return ""
}

// biasFault is the same for a bias.
func biasFault(b float64) string {
	if !(b >= -limit && b <= limit) && !math.IsInf(b, -1) {
		return fmt.Sprintf("want a number from %v to %v, or -inf", -limit, limit)
	}
	return ""
}

// Check returns an error for an option that is out of range, with the accepted values. vocab is the number of tokens of
// the model. Errors are *OptionError.
func (o *Options) Check(vocab int) error {
	for _, s := range settings {
		if x := s.get(o); s.fault(x) != "" {
			return &OptionError{s.name, fmt.Sprintf("%v; %s", x, s.fault(x))}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.Bias)) {
		if id < 0 || id >= vocab {
			return &OptionError{"logit-bias", fmt.Sprintf("for token %d; want ids from 0 to %d", id, vocab-1)}
		}
		if b := o.Bias[id]; biasFault(b) != "" {
			return &OptionError{"logit-bias", fmt.Sprintf("%v for token %d; %s", b, id, biasFault(b))}
		}
	}
	if o.LogProbs > vocab {
		return &OptionError{"logprobs", fmt.Sprintf("%d; want at most %d, as many as the model has tokens", o.LogProbs,
			vocab)}
	}
	return nil
}

// An OptionError names an invalid option, and the accepted values.
type OptionError struct{ Option, What string }

func (e *OptionError) Error() string { return e.Option + " is " + e.What }

// NeedLogits reports whether the options ask for more than the largest logit, the lowest id among equals, which a
// kernel finds on its own.
func (o *Options) NeedLogits() bool {
	return o.Temperature != 0 || o.RepetitionPenalty != 1 || o.PresencePenalty != 0 || o.FrequencyPenalty != 0 ||
		len(o.Bias) > 0 || o.LogProbs >= 0
}

// ByKernel reports whether a kernel can choose a token by the options, the same one as a [Sampler]. With
// log-probabilities tokens are chosen from logits on the host.
func (o *Options) ByKernel() bool { return o.LogProbs < 0 }

// Plain reports whether the options ask for no more than the largest logit, or a draw from all tokens with a
// temperature, which the op SAMPLE of a program chooses by.
func (o *Options) Plain() bool {
	of := *o
	of.Temperature = 0
	return !of.NeedLogits() && (o.Temperature == 0 || o.TopK == 0 && o.TopP == 1 && o.MinP == 0)
}

// String lists the effects of the options, in the order in which they apply.
func (o *Options) String() string {
	var parts []string
	if len(o.Bias) > 0 {
		parts = append(parts, fmt.Sprintf("logit-bias of %d", len(o.Bias)))
	}
	for _, s := range settings {
		x := s.get(o)
		if s.name == "temperature" && x == 0 {
			return strings.Join(append(parts, "greedy"), ", ")
		}
		if x != s.idle {
			parts = append(parts, fmt.Sprintf("%s %v", s.name, x))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", o.Seed)), ", ")
}
