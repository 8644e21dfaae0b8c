package sampling

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"amkc/runtime/infile"
)

// ConfigFile is the file with the sampling options of a model.
const ConfigFile = "generation_config.json"

// A ConfigError is a fault of a generation_config.json.
type ConfigError struct {
	Path string
	What string
	Err  error
}

func (e *ConfigError) Error() string {
	if e.Err != nil {
		return e.Path + ": " + e.What + ": " + infile.Reason(e.Err)
	}
	return e.Path + ": " + e.What
}

func (e *ConfigError) Unwrap() error { return e.Err }

// ReadConfig reads the file in the directory of a model or a build: it returns [Greedy] with the options of the file.
// The temperature is 1 by default, also without a file, and 0 if do_sample is false. Errors are *ConfigError. They
// refuse unsupported fields that would change the choice of tokens.
func ReadConfig(dir string) (Options, error) {
	path := filepath.Join(dir, ConfigFile)
	data, err := infile.Read(path, infile.ModelConfig)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{}"), nil
	}
	if err != nil {
		return Options{}, &ConfigError{path, "it cannot be read", err}
	}
	o, err := parseConfig(data)
	if err != nil {
		return Options{}, &ConfigError{path, "it cannot be followed", err}
	}
	return o, nil
}

// configSettings are the settings that transformers has, under the same names but for the dashes.
var configSettings = slices.DeleteFunc(slices.Clone(settings), func(s setting) bool {
	return s.name == "presence-penalty" || s.name == "frequency-penalty"
})

// parseConfig reads the text of a file.
func parseConfig(data []byte) (Options, error) {
	var fields map[string]any
	if err := infile.Unmarshal(data, &fields); err != nil {
		return Options{}, err
	}
	if fields == nil {
		return Options{}, errors.New("it is null; want an object")
	}
	o, sample := Greedy(), true
	o.Temperature = 1
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v := fields[name]
		idle, isKnown := unmodelled[name]
		i := slices.IndexFunc(configSettings, func(s setting) bool {
			return strings.ReplaceAll(s.name, "-", "_") == name
		})
		switch {
		case v == nil || slices.Contains(unrelated, name): // null is the same as no such field
		case name == "do_sample":
			if v != true && v != false {
				faults = append(faults, fmt.Sprintf("do_sample is %s; want true or false", inShort(v)))
			}
			sample = v == true
		case i >= 0:
			x, isNumber := float(v)
			if !isNumber {
				x = math.NaN()
			}
			if fault := configSettings[i].fault(x); fault != "" {
				faults = append(faults, fmt.Sprintf("%s is %s; %s", name, inShort(v), fault))
			}
			configSettings[i].set(&o, x)
		case isKnown && idle != nil && idle(v):
		case isKnown:
			faults = append(faults, fmt.Sprintf("%s is %s, which is not supported", name, inShort(v)))
		default:
			faults = append(faults, fmt.Sprintf("%.40q is not a field that is known", name))
		}
	}
	const most = 5
	if n := len(faults); n > most {
		faults = append(faults[:most], fmt.Sprintf("%d more", n-most))
	}
	if faults != nil {
		return Options{}, errors.New(strings.Join(faults, "; "))
	}
	if !sample {
		o.Temperature = 0
	}
	return o, nil
}

func float(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	x, err := n.Float64()
	return x, err == nil
}

// unmodelled are the fields that change which tokens are chosen, or when a text ends, and that are not modelled, with
// the values at which they do not; nil: null alone.
var unmodelled = map[string]func(v any) bool{
	"typical_p":      func(v any) bool { x, ok := float(v); return ok && x >= 1 },
	"epsilon_cutoff": outside01, "eta_cutoff": outside01, "top_h": nil,

	"num_beams": is(1), "num_beam_groups": is(1), "diversity_penalty": is(0), "penalty_alpha": is(0),
	"dola_layers": nil, "constraints": nil, "force_words_ids": empty, "num_return_sequences": is(1),
	"guidance_scale": is(1),

	"no_repeat_ngram_size": is(0), "encoder_no_repeat_ngram_size": is(0), "encoder_repetition_penalty": is(1),
	"bad_words_ids": empty, "sequence_bias": empty, "suppress_tokens": empty, "begin_suppress_tokens": empty,
	"forced_bos_token_id": nil, "forced_eos_token_id": nil, "exponential_decay_length_penalty": nil,
	"remove_invalid_values": isFalse, "token_healing": isFalse, "watermarking_config": nil,

	"min_length": is(0), "min_new_tokens": is(0), "max_time": nil, "stop_strings": empty,
}

// unrelated are the fields that change no choice: lengths, which --max-tokens is for, ends, which are read elsewhere,
// what of beams has no effect without them, and how transformers computes, and what it returns. Drafts change how fast
// a text comes.
var unrelated = []string{
	"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "max_length", "max_new_tokens",
	"length_penalty", "early_stopping", "low_memory", "renormalize_logits",
	"use_cache", "cache_implementation", "cache_config", "max_cache_len", "return_legacy_cache", "prefill_chunk_size",
	"compile_config", "disable_compile", "continuous_batching_config",
	"output_attentions", "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate",
	"is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
	"assistant_early_exit", "assistant_lookbehind", "target_lookbehind", "assistant_ensemble_weight",
	"prompt_lookup_num_tokens", "max_matching_ngram_size", "speculation_type", "use_mtp",
	"_from_model_config", "_commit_hash", "transformers_version",
}

func is(idle float64) func(any) bool {
	return func(v any) bool { x, ok := float(v); return ok && x == idle }
}

func outside01(v any) bool { x, ok := float(v); return ok && (x <= 0 || x >= 1) }

func isFalse(v any) bool { return v == false }

func empty(v any) bool {
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	return isList && len(list) == 0 || isObject && len(object) == 0
}

// inShort is a JSON value for a message.
func inShort(v any) string {
	switch v := v.(type) {
	case json.Number:
		return fmt.Sprintf("%.20s", v.String())
	case bool:
		return fmt.Sprint(v)
	case string:
		return fmt.Sprintf("%.20q", v)
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	}
	return "an object"
}
