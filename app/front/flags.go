package front

import (
	"math"

	"amkc/app/serve"
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

// DefineSampling adds the flags that say how tokens are chosen; what prints no log-probabilities has no flag for them.
func DefineSampling[V any](set Set[V], f *sampling.Flags, logProbs bool) {
	set.BoolVar(&f.Sample, "sample", false, sampling.SampleDoc)
	for _, v := range f.Values() {
		if v.Name != "logprobs" || logProbs {
			add(set, v, v.Name, v.Doc)
		}
	}
}

// Run are the flags of run that say what is decoded.
type Run struct {
	Prompt, Messages, Prompts string
	MaxTokens                 int
	IgnoreEOS                 bool
	Sampling                  sampling.Flags
}

// DefineRun adds them. Where no number of tokens is given there are most, less where positions end sooner.
func DefineRun[V any](set Set[V], r *Run, most int) {
	set.StringVar(&r.Prompt, "prompt", "", "decode after `TEXT`; - reads it from standard input")
	add(set, NewWord(&r.Messages, ""), "messages",
		"answer the messages of `FILE`, JSON, in the model's chat template; - is stdin")
	add(set, NewWord(&r.Prompts, ""), "prompts",
		"decode after the prompts of `FILE`, in lines of JSON: {\"prompt\": \"...\", \"max_tokens\": 8} or "+
			"{\"ids\": [1,2,3]}; - is stdin. Each gives a line of JSON, in their order")
	add(set, NewCount(&r.MaxTokens, most, 1, math.MaxInt32), "max-tokens", "decode at most `N` tokens")
	set.BoolVar(&r.IgnoreEOS, "ignore-eos", false, "go on after a token that ends the text")
	DefineSampling(set, &r.Sampling, true)
}

// Serve are the flags of serve that say where and whom a server answers.
type Serve struct {
	Host   string
	Port   int
	APIKey string
	Queue  int
}

// DefineServe adds them.
func DefineServe[V any](set Set[V], s *Serve) {
	add(set, NewWord(&s.Host, serve.DefaultHost), "host",
		"answer at the address `HOST`, which other machines reach unless it is this one's own")
	add(set, NewCount(&s.Port, serve.DefaultPort, 0, math.MaxUint16), "port",
		"answer at port `N`; 0: at any that is free")
	add(set, NewWord(&s.APIKey, ""), "api-key",
		"answer requests with the key `KEY` alone; default: what "+serve.KeyVariable+" has, which no list of "+
			"processes shows")
	add(set, NewCount(&s.Queue, serve.DefaultQueue, 0, math.MaxInt32), "queue",
		"let up to `N` answers wait, and refuse more")
}
