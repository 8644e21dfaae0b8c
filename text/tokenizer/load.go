package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"amkc/runtime/infile"
)

// Load reads the contents of a tokenizer.json. Its errors are *FormatError and *UnsupportedError. Memory and time are
// linear in len(data). Truncation and padding are ignored: see the package comment.
func Load(data []byte) (*Tokenizer, error) {
	if bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/v1")) {
		return nil, malformed("", "this is a git-lfs pointer instead of the file; fetch it with git lfs pull")
	}
	if !utf8.Valid(data) {
		return nil, malformed("", "not valid UTF-8")
	}
	if len(data) == 0 {
		return nil, malformed("", "is missing")
	}
	var parts map[string]json.RawMessage
	if err := unmarshal(data, "", &parts); err != nil {
		return nil, err
	}
	var version string
	if parts["version"] != nil {
		if err := unmarshal(parts["version"], "version", &version); err != nil {
			return nil, err
		}
		if version != "1.0" {
			return nil, &UnsupportedError{"version", fmt.Sprintf("%q", version), `"1.0"`}
		}
	}
	t := &Tokenizer{shrink: 1}
	err := flatten(parts["normalizer"], "normalizer", "normalizers", t.addNormalizer)
	if err != nil {
		return nil, err
	}
	if err = flatten(parts["pre_tokenizer"], "pre_tokenizer", "pretokenizers", t.addPreTokenizer); err != nil {
		return nil, err
	}
	if t.model, err = loadModel(parts["model"], t.toBytes); err != nil {
		return nil, err
	}
	var added []addedJSON
	if parts["added_tokens"] != nil {
		if err := unmarshal(parts["added_tokens"], "added_tokens", &added); err != nil {
			return nil, err
		}
	}
	if err = t.loadAdded(added); err != nil {
		return nil, err
	}
	post := &postBuilder{t: t}
	if err = flatten(parts["post_processor"], "post_processor", "processors", post.add); err != nil {
		return nil, err
	}
	if err = t.loadDecoder(parts["decoder"]); err != nil {
		return nil, err
	}
	t.covers = t.coverage()
	return t, nil
}

// component is one normalizer, pre-tokenizer, post-processor or decoder before its fields are read.
type component struct {
	kind  string // its "type"
	where string
	raw   json.RawMessage
}

func (c component) fields(into any) error { return unmarshal(c.raw, c.where, into) }

func (c component) unsupported(accepted string) error {
	return &UnsupportedError{c.where, fmt.Sprintf("type %q", c.kind), accepted}
}

// Real files nest Sequence once and hold at most four steps. The bounds keep re-reading of nested raw JSON, and growth
// of text from step to step, linear.
const (
	maxSequenceDepth = 4
	maxSequenceSteps = 16
)

// flatten calls add for each component of raw, in order, looking into Sequence (whose members are the field list).
// Null and absent mean no component.
func flatten(raw json.RawMessage, where, list string, add func(component) error) error {
	steps := 0
	var walk func(raw json.RawMessage, where string, depth int) error
	walk = func(raw json.RawMessage, where string, depth int) error {
		if isNull(raw) {
			return nil
		}
		var head struct {
			Type string `json:"type"`
		}
		if err := unmarshal(raw, where, &head); err != nil {
			return err
		}
		if head.Type == "" {
			return malformed(where, `has no "type"`)
		}
		if head.Type != "Sequence" {
			if steps++; steps > maxSequenceSteps {
				return &UnsupportedError{where, "a longer sequence", fmt.Sprintf("at most %d steps", maxSequenceSteps)}
			}
			return add(component{head.Type, where, raw})
		}
		if depth == maxSequenceDepth {
			return &UnsupportedError{where, "a deeper Sequence",
				fmt.Sprintf("Sequence nested at most %d deep", maxSequenceDepth)}
		}
		var lists map[string]json.RawMessage
		if err := unmarshal(raw, where, &lists); err != nil {
			return err
		}
		where += "." + list
		var members []json.RawMessage
		if err := unmarshal(lists[list], where, &members); err != nil {
			return err
		}
		for i, m := range members {
			if err := walk(m, fmt.Sprintf("%s[%d]", where, i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(raw, where, 0)
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// unmarshal is json.Unmarshal with the error placed in the file. Absent input is an error of its own.
func unmarshal(raw []byte, where string, into any) error {
	if len(raw) == 0 {
		return malformed(where, "is missing")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return malformed(where, "%v", infile.InJSON(raw, err))
	}
	return nil
}

// oneRune returns the only character of s.
func oneRune(s string) (rune, bool) {
	r, size := utf8.DecodeRuneInString(s)
	return r, size == len(s) && size > 0
}
