package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"amkc/runtime/infile"
)

// Files lists the files that a build is made of, by path from its directory, sorted: those that the manifest names,
// those that make makes of them, and the manifest. They need not be there. Of a manifest that cannot be read it lists
// the files that every build has.
func Files(dir string) []string {
	names := map[string]bool{ManifestFile: true, WeightsFile: true, ProgramFile: true, ConfigFile: true,
		GenConfigFile: true,
		TokenizerFile: true, LibraryFile: true, FatbinFile: true, MeasureFile: true, ReferenceFile: true}
	var m struct {
		Files, Built map[string]string
		Facts        struct{ Model struct{ Name string } }
	}
	text, err := infile.Read(filepath.Join(dir, ManifestFile), infile.Manifest)
	if err == nil && json.Unmarshal(text, &m) == nil {
		names[m.Facts.Model.Name] = true
		for name := range m.Files {
			names[name] = true
			if base, ok := strings.CutSuffix(name, ".cu"); ok {
				names[base+".fatbin"] = true
			}
		}
		for name := range m.Built {
			names[name] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		return !filepath.IsLocal(filepath.FromSlash(name))
	})
}

// FileAt returns which of the files of a build a path leads to, by a link too, or nothing.
func FileAt(dir, path string) string {
	at, err := os.Stat(path)
	if err != nil {
		return ""
	}
	for _, name := range Files(dir) {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && os.SameFile(at, info) {
			return name
		}
	}
	return ""
}

// StopIDs reads the model's end-of-sequence ids: eos_token_id, a number or a list, of generation_config.json, of
// config.json and of the language model that config.json describes within, without duplicates. Generation ends after
// any of them. A file that is absent contributes none.
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
	if all = slices.Compact(all); len(all) > MaxStops {
		return nil, &BuildError{Path: dir, What: fmt.Sprintf("eos_token_id has %d ids", len(all)),
			Remedy: fmt.Sprintf("the kernel knows %d at most; or use --ignore-eos", MaxStops)}
	}
	return all, nil
}

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

// idsOf returns an id, or those of a list; null is none.
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
