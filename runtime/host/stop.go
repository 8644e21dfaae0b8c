package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"amkc/runtime/infile"
)

// StopIDs reads the model's end-of-sequence ids: eos_token_id, a number or a list, of generation_config.json and of
// config.json, without duplicates. Generation ends after any of them. A file that is absent contributes none.
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
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > maxStops {
		return nil, &BuildError{Path: dir, What: fmt.Sprintf("eos_token_id has %d ids", len(all)),
			Remedy: fmt.Sprintf("the kernel knows %d at most; or use --ignore-eos", maxStops)}
	}
	return all, nil
}

// eosOf returns the ids that a configuration names: not negative, and in the 32 bits of the kernel's.
func eosOf(data []byte) ([]int, error) {
	var config struct {
		EOS any `json:"eos_token_id"`
	}
	if err := infile.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	list, isList := config.EOS.([]any)
	switch {
	case config.EOS == nil:
		return nil, nil
	case !isList:
		list = []any{config.EOS}
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
