package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// StopIDs reads the model's end-of-sequence ids: eos_token_id, a number or a list, of generation_config.json and of
// config.json, without duplicates. Generation ends after any of them. A file that is absent contributes none.
func StopIDs(dir string) ([]int, error) {
	var all []int
	for _, name := range []string{GenConfigFile, ConfigFile} {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids, err := eosOf(data)
		if err != nil {
			return nil, &BuildError{Path: path, What: "eos_token_id cannot be read", Remedy: "it must be an id, a list of ids, or " +
				"null; or use --ignore-eos", Err: err}
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func eosOf(data []byte) ([]int, error) {
	var config struct {
		EOS json.RawMessage `json:"eos_token_id"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	if len(config.EOS) == 0 || string(config.EOS) == "null" {
		return nil, nil
	}
	var one int
	var many []int
	if json.Unmarshal(config.EOS, &one) == nil {
		many = []int{one}
	} else if err := json.Unmarshal(config.EOS, &many); err != nil {
		return nil, err
	}
	for _, id := range many {
		if id < 0 {
			return nil, fmt.Errorf("it is %d", id)
		}
	}
	return many, nil
}
