package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"amkc/runtime/infile"
	"amkc/text/chat"
)

// StopIDs reads the ids after which a text ends, without duplicates: eos_token_id, a number or a list, of
// generation_config.json, of config.json and of the language model that config.json describes within, and the eos_token
// of the tokenizer. A fine-tuned model often has the end of its turns only in its tokenizer. A file that is absent
// contributes none.
func StopIDs(dir string) ([]int, error) {
	var all []int
	for _, name := range []string{GenConfigFile, ConfigFile} {
		path := filepath.Join(dir, name)
		data, err := infile.Read(path, infile.ModelConfig)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &BuildError{Path: path, What: "it cannot be read", Err: err}
		}
		ids, err := eosOf(data)
		if err != nil {
			return nil, &BuildError{Path: path, What: "eos_token_id cannot be read",
				Remedy: "want an id, a list of ids, or " +
					"null; or use --ignore-eos", Err: err}
		}
		all = append(all, ids...)
	}
	if _, id, ok := TokenizerStop(dir); ok {
		all = append(all, id)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > MaxStops {
		return nil, &BuildError{Path: dir, What: fmt.Sprintf("eos_token_id has %d ids", len(all)),
			Remedy: fmt.Sprintf("the kernel knows %d at most; or use --ignore-eos", MaxStops)}
	}
	return all, nil
}

// TokenizerStop reads the eos_token of a tokenizer and its id; not ok: the tokenizer does not have the token. The text
// is empty if no token is named, or if the files cannot be read, which callers that need text report as an error.
func TokenizerStop(dir string) (text string, id int, ok bool) {
	text, listed, err := chat.Special(dir, "eos_token")
	if err != nil || text == "" {
		return "", 0, false
	}
	data, err := infile.Read(filepath.Join(dir, TokenizerFile), infile.Tokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		id, ok = listed[text]
		return text, id, ok && isStop(id)
	}
	var tokens struct {
		Added []struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
		Model struct {
			Vocab json.RawMessage `json:"vocab"`
		} `json:"model"`
	}
	if err != nil || infile.Unmarshal(data, &tokens) != nil {
		return "", 0, false
	}
	for _, t := range tokens.Added {
		if t.Content == text {
			return text, t.ID, isStop(t.ID)
		}
	}
	var vocabulary map[string]int
	if infile.Unmarshal(tokens.Model.Vocab, &vocabulary) != nil {
		return text, 0, false
	}
	id, ok = vocabulary[text]
	return text, id, ok && isStop(id)
}

// isStop reports whether an id is one of the 32 bits of the kernel's.
func isStop(id int) bool { return id >= 0 && id <= math.MaxInt32 }

// eosOf returns the ids that a configuration names: not negative, and in the 32 bits of the kernel's.
func eosOf(data []byte) ([]int, error) {
	var config struct {
		EOS  any `json:"eos_token_id"`
		Text any `json:"text_config"` // of a model of several parts
	}
	if err := infile.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	ids, err := idsOf(config.EOS)
	if text, ok := config.Text.(map[string]any); ok && err == nil {
		var more []int
		more, err = idsOf(text["eos_token_id"])
		ids = append(ids, more...)
	}
	return ids, err
}

// idsOf returns an id, or those of a list; none for null.
func idsOf(v any) ([]int, error) {
	list, isList := v.([]any)
	switch {
	case v == nil:
		return nil, nil
	case !isList:
		list = []any{v}
	}
	ids := make([]int, len(list))
	for i, v := range list {
		number, _ := v.(json.Number)
		id, err := strconv.ParseUint(number.String(), 10, 31)
		if err != nil {
			at := "it"
			if isList {
				at = fmt.Sprintf("number %d of the list", i+1)
			}
			return nil, fmt.Errorf("%s is %s", at, inShort(v))
		}
		ids[i] = int(id)
	}
	return ids, nil
}

// inShort is a JSON value for a message.
func inShort(v any) string {
	const most = 40
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "no JSON value"
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
