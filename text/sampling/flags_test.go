package sampling

import (
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parse reads a command line with the flags, and what they ask of a model whose file has this text.
func parse(t *testing.T, config string, args ...string) (Options, error) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), []byte(config), 0o666))
	var f Flags
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.BoolVar(&f.Sample, "sample", false, SampleDoc)
	for _, v := range f.Values() {
		set.Var(v, v.Name, v.Doc)
	}
	if err := set.Parse(args); err != nil {
		return Options{}, err
	}
	return f.Options(dir)
}

func TestFlags(t *testing.T) {
	const config = `{"temperature": 0.6, "top_k": 20, "repetition_penalty": 1.1, "do_sample": true}`
	o, err := parse(t, config)
	require.NoError(t, err)
	require.Equal(t, Greedy(), o, "nobody asks for the file")

	o, err = parse(t, config, "--temperature", "0.9", "--seed", "18446744073709551615", "--logit-bias", "3:-inf",
		"--logit-bias", "4:2.5", "--logprobs", "5", "--presence-penalty", "-0.5", "--frequency-penalty", "0.25")
	require.NoError(t, err)
	require.Equal(t, Options{Temperature: 0.9, TopP: 1, RepetitionPenalty: 1, PresencePenalty: -0.5,
		FrequencyPenalty: 0.25, Bias: map[int]float64{3: math.Inf(-1), 4: 2.5}, Seed: math.MaxUint64, LogProbs: 5}, o)

	o, err = parse(t, config, "--sample", "--top-k", "5", "--seed", "1", "--repetition-penalty", "1")
	require.NoError(t, err)
	require.Equal(t, Options{Temperature: 0.6, TopK: 5, TopP: 1, RepetitionPenalty: 1, Seed: 1, LogProbs: -1}, o)
	require.Equal(t, "temperature 0.6, top-k 5, seed 1", o.String())

	seeds := map[uint64]bool{}
	for range 3 {
		o, err = parse(t, config, "--sample", "--temperature", "2")
		require.NoError(t, err)
		require.Equal(t, 2.0, o.Temperature)
		seeds[o.Seed] = true
	}
	require.Greater(t, len(seeds), 1, "without a seed each run has another")

	o, err = parse(t, config, "--repetition-penalty", "1.2")
	require.NoError(t, err)
	require.Equal(t, "repetition-penalty 1.2, greedy", o.String())

	o, err = parse(t, `{"do_sample": false}`, "--sample", "--temperature", "0.5", "--seed", "3")
	require.NoError(t, err)
	require.Equal(t, 0.5, o.Temperature)
}

// A conversation follows the file without being told, whatever it says, unless it is to be greedy.
func TestFollow(t *testing.T) {
	parse := func(config string, args ...string) (Options, error, error) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), []byte(config), 0o666))
		f := Flags{Follow: true}
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.BoolVar(&f.Greedy, "greedy", false, GreedyDoc)
		for _, v := range f.Values() {
			set.Var(v, v.Name, v.Doc)
		}
		require.NoError(t, set.Parse(args))
		o, err := f.Options(dir)
		return o, f.Fault, err
	}
	for _, c := range []struct {
		config string
		args   []string
		want   string // the options in words, or an error
	}{
		{`{"temperature": 0.6, "top_k": 20}`, []string{"--seed", "1"}, "temperature 0.6, top-k 20, seed 1"},
		{`{"temperature": 0.6, "top_k": 20}`, []string{"--seed", "1", "--top-k", "0", "--temperature", "2"},
			"temperature 2, seed 1"},
		{`{"temperature": 0.6, "top_k": 20}`, []string{"--greedy"}, "greedy"},
		{`{"do_sample": false}`, nil, "greedy"},
		{`{"do_sample": false}`, []string{"--temperature", "0.5", "--seed", "3"}, "temperature 0.5, seed 3"},
		{`{"num_beams": 2}`, []string{"--seed", "1"}, "temperature 1, seed 1; num_beams is 2, which is not supported"},
		{`{"num_beams": 2}`, []string{"--greedy"}, "greedy"},
		{`{"do_sample": false}`, []string{"--top-p", "0.5"}, "--top-p is for drawing tokens; " +
			"want --temperature T too: generation_config.json of the model asks for greedy decoding"},
		{`{}`, []string{"--greedy", "--seed", "1"}, "--seed is for drawing tokens; want no --greedy"},
		{`{}`, []string{"--greedy", "--temperature", "1"}, "--greedy and --temperature exclude each other"},
	} {
		o, fault, err := parse(c.config, c.args...)
		said, beyond, faulty := strings.Cut(c.want, "; num_beams")
		switch {
		case err != nil:
			require.ErrorContains(t, err, c.want)
		case faulty:
			require.ErrorContains(t, fault, "num_beams"+beyond)
			fallthrough
		default:
			require.Equal(t, said, o.String(), "%s %v", c.config, c.args)
			require.Equal(t, faulty, fault != nil)
		}
	}
}

func TestFlagsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"want 0, or a number from 1e-06 to 1e+06", []string{"--temperature", "x"}},
		{"want 0, or a number from 1e-06 to 1e+06", []string{"--temperature", "nan"}},
		{"want a whole number from 0 to 2147483647", []string{"--top-k", "-1"}},
		{"want a number from 0 to 1", []string{"--top-p", "1.01"}},
		{"want a whole number from 0 to 18446744073709551615", []string{"--seed", "1.5"}},
		{"want ID:VALUE, as 198:-5 or 198:-inf", []string{"--logit-bias", "198"}},
		{"want ID:VALUE, as 198:-5 or 198:-inf", []string{"--logit-bias", "x:1"}},
		{"of the value, want a number from -1e+06 to 1e+06, or -inf", []string{"--logit-bias", "1:inf"}},
		{"--seed is for drawing tokens; want --temperature T or --sample too", []string{"--seed", "1"}},
		{"--top-p is for drawing tokens; want --temperature T or --sample too", []string{"--top-p", "0.5"}},
		{"--sample: generation_config.json of the model asks for greedy decoding", []string{"--sample"}},
	} {
		_, err := parse(t, `{"do_sample": false}`, c.args...)
		require.ErrorContains(t, err, c.want, "%v", c.args)
	}
	_, err := parse(t, `{"num_beams": 2}`, "--sample")
	var fault *ConfigError
	require.ErrorAs(t, err, &fault)
	_, err = parse(t, `{"num_beams": 2}`, "--temperature", "1")
	require.NoError(t, err, "without --sample the file is not read")
}
