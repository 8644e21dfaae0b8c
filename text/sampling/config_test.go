package sampling

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

func TestReadConfig(t *testing.T) {
	drawn := func(change func(*Options)) Options {
		o := Greedy()
		o.Temperature = 1
		if change != nil {
			change(&o)
		}
		return o
	}
	for text, want := range map[string]Options{
		`{}`: drawn(nil),
		// as Qwen3, Llama 3.1, Gemma 3 and GPT-2 publish it
		`{"bos_token_id": 151643, "do_sample": true, "eos_token_id": [151645, 151643], "pad_token_id": 151643,
			"temperature": 0.6, "top_k": 20, "top_p": 0.95, "transformers_version": "4.51.0"}`: drawn(func(o *Options) {
			o.Temperature, o.TopK, o.TopP = 0.6, 20, 0.95
		}),
		`{"bos_token_id": 128000, "do_sample": true, "eos_token_id": [128001],
			"temperature": 0.6, "top_p": 0.9}`: drawn(func(o *Options) { o.Temperature, o.TopP = 0.6, 0.9 }),
		`{"cache_implementation": "hybrid", "do_sample": true, "top_k": 64, "top_p": 0.95}`: drawn(func(o *Options) {
			o.TopK, o.TopP = 64, 0.95
		}),
		`{"_from_model_config": true, "eos_token_id": 50256}`: drawn(nil),

		`{"do_sample": false, "temperature": 0.7, "min_p": 0.1}`: drawn(func(o *Options) {
			o.Temperature, o.MinP = 0, 0.1
		}),
		`{"repetition_penalty": 1.05, "top_k": null, "num_beams": 1.0}`: drawn(func(o *Options) {
			o.RepetitionPenalty = 1.05
		}),
		`{"typical_p": 1.0, "epsilon_cutoff": 0.0, "bad_words_ids": [], "sequence_bias": {}}`: drawn(nil),
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), []byte(text), 0o666))
		o, err := ReadConfig(dir)
		require.NoError(t, err, text)
		require.Equal(t, want, o, text)
	}
	o, err := ReadConfig(t.TempDir())
	require.NoError(t, err)
	require.Equal(t, drawn(nil), o, "no file is an empty one")
}

func TestConfigsThatCannotBeFollowed(t *testing.T) {
	for text, want := range map[string]string{
		`{`:    "line 1, column 2: the text ends too early",
		`[]`:   "it is an array; want an object",
		`null`: "it is null; want an object",

		`{"temperature": "x"}`:     `temperature is "x"; want 0, or a number from 1e-06 to 1e+06`,
		`{"temperature": -1}`:      "temperature is -1; want 0, or a number from 1e-06 to 1e+06",
		`{"top_k": 2.5}`:           "top_k is 2.5; want a whole number from 0 to 2147483647",
		`{"top_p": 1e999}`:         "top_p is 1e999; want a number from 0 to 1",
		`{"do_sample": 1}`:         "do_sample is 1; want true or false",
		`{"num_beams": 4}`:         "num_beams is 4, which is not supported",
		`{"typical_p": 0.9}`:       "typical_p is 0.9, which is not supported",
		`{"bad_words_ids": [[1]]}`: "bad_words_ids is a list of 1, which is not supported",
		`{"\u001b[2J": true}`:      `"\x1b[2J" is not a field that is known`,

		`{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}`: `"a" is not a field that is known; ` +
			`"b" is not a field that is known; "c" is not a field that is known; ` +
			`"d" is not a field that is known; "e" is not a field that is known; 2 more`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, ConfigFile)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		_, err := ReadConfig(dir)
		var fault *ConfigError
		require.ErrorAs(t, err, &fault, text)
		require.Equal(t, path+": it cannot be followed: "+want, err.Error())
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ConfigFile), 0o777))
	_, err := ReadConfig(dir)
	require.ErrorContains(t, err, "it cannot be read")
}

func FuzzConfig(f *testing.F) {
	for _, s := range []string{`{}`, `{"temperature": 0.6, "top_k": 20, "top_p": 0.95, "do_sample": true}`,
		`{"repetition_penalty": 1.1, "min_p": 0.05, "eos_token_id": [1, 2]}`, `{"num_beams": 4, "x": {"y": [null]}}`,
		`{"temperature": 1e400}`, `{"top_k": -0}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		o, err := parseConfig(data)
		if err != nil {
			require.LessOrEqual(t, len(err.Error()), 1000)
			return
		}
		require.NoError(t, o.Check(1), "what is read is accepted")
		s, err := New(o, 3, nil)
		require.NoError(t, err)
		_, err = s.Next([]float32{1, 2, 3}, nil)
		require.NoError(t, err)
	})
}
