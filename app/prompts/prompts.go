// Package prompts completes many prompts: those of a file with a JSON object in each line. An engine decodes as many of
// them at a time as it can, and each gives what it gives alone; results come in the order of the file. It must not know
// where an engine decodes.
package prompts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/app/serve"
	"amkc/runtime/infile"
	"amkc/text/tokenizer"
)

// A Prompt is a line of a file.
type Prompt struct {
	Text      *string `json:"prompt"`     // or
	IDs       []int   `json:"ids"`        // of tokens
	MaxTokens int     `json:"max_tokens"` // to decode; 0: as many as are decoded where nothing is said

	Line int `json:"-"` // from 1
}

// A LineError says what is wrong with a line of a file.
type LineError struct {
	Line int
	What string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// keys are those of a Prompt.
var keys = []string{"ids", "max_tokens", "prompt"}

// Parse reads the lines of a file, each with a prompt: {"prompt": "...", "max_tokens": 8} or {"ids": [1, 2, 3]}. Errors
// are *LineError.
func Parse(data []byte) ([]Prompt, error) {
	var all []Prompt
	lines := bytes.Split(data, []byte("\n"))
	if last := len(lines) - 1; len(bytes.TrimSpace(lines[last])) == 0 {
		lines = lines[:last] // of a file that ends with a line break
	}
	for i, line := range lines {
		p, err := parseLine(line)
		if err != nil {
			return nil, &LineError{i + 1, err.Error()}
		}
		p.Line = i + 1
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, &LineError{1, "there is no prompt; want a line for each, as {\"prompt\": \"...\"}"}
	}
	return all, nil
}

func parseLine(line []byte) (p Prompt, err error) {
	const want = `want an object with "prompt" or "ids", and "max_tokens" if it is to have a bound of its own`
	if len(bytes.TrimSpace(line)) == 0 {
		return p, fmt.Errorf("it is empty; %s", want)
	}
	var fields map[string]json.RawMessage
	var bad *infile.JSONError
	switch err := infile.Unmarshal(line, &fields); {
	case errors.As(err, &bad) && bad.Line > 0:
		return p, fmt.Errorf("column %d: %s", bad.Column, bad.What)
	case err != nil:
		return p, fmt.Errorf("%s; %s", infile.Reason(err), want)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(keys, key) {
			return p, fmt.Errorf("%q is not known; %s", clip(key), want)
		}
	}
	if err := infile.Unmarshal(line, &p); err != nil {
		return p, fmt.Errorf("%s", infile.Reason(err))
	}
	_, bounded := fields["max_tokens"]
	switch {
	case (p.Text == nil) == (p.IDs == nil):
		return p, fmt.Errorf(`it has both of "prompt" and "ids", or neither; %s`, want)
	case p.IDs != nil && len(p.IDs) == 0:
		return p, fmt.Errorf(`"ids" is empty; want ids of tokens`)
	case bounded && p.MaxTokens < 1:
		return p, fmt.Errorf(`"max_tokens" is %d; want 1 or more`, p.MaxTokens)
	}
	return p, nil
}

// clip shortens what is quoted of a file.
func clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// A Job is a prompt as an engine takes it.
type Job struct {
	Line int
	IDs  []int
	Most int // tokens after it
}

// Jobs encodes prompts. Where one says nothing of it, up to `most` tokens are decoded, less where positions end sooner.
// The tokenizer may be nil where all prompts have ids; the error says then why there is none. Other errors are
// *LineError: a prompt that cannot be encoded, or that an engine cannot hold.
func Jobs(all []Prompt, tok *tokenizer.Tokenizer, missing error, most int, limits serve.Limits) ([]Job, error) {
	jobs := make([]Job, len(all))
	for i, p := range all {
		ids := p.IDs
		if p.Text != nil {
			if tok == nil {
				return nil, missing
			}
			var err error
			if ids, _, err = tok.EncodePrompt(*p.Text); err != nil {
				return nil, &LineError{p.Line, strings.TrimPrefix(err.Error(), "tokenizer: ")}
			}
		}
		room := limits.MaxSeq - len(ids) + 1 // the last token that is chosen takes no position
		bad := slices.IndexFunc(ids, func(id int) bool { return id < 0 || id >= limits.Vocab })
		switch {
		case len(ids) == 0:
			return nil, &LineError{p.Line, "the prompt has no tokens; want some text, or ids"}
		case bad >= 0:
			return nil, &LineError{p.Line, fmt.Sprintf("token %d is not in the vocabulary of %d", ids[bad],
				limits.Vocab)}
		case room < max(1, p.MaxTokens):
			return nil, &LineError{p.Line, fmt.Sprintf("%d tokens and %d after them do not fit the %d positions",
				len(ids), max(1, p.MaxTokens), limits.MaxSeq)}
		}
		jobs[i] = Job{Line: p.Line, IDs: ids, Most: p.MaxTokens}
		if p.MaxTokens == 0 {
			jobs[i].Most = min(most, room)
		}
	}
	return jobs, nil
}
