package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ProgramFile is the proved program of a build, of which a host needs the knobs alone.
const ProgramFile = "program.json"

// Provenance is where a build comes from, as far as a measurement of it depends on that. Empty: the build does not say.
type Provenance struct {
	AMKC       string  `json:"amkc,omitempty"` // version of the compiler
	NVCC       string  `json:"nvcc,omitempty"`
	Go         string  `json:"go,omitempty"`
	RandomSeed *uint64 `json:"random_seed,omitempty"` // weights were invented from it
	Weights    string  `json:"weights_sha256,omitempty"`
	Program    string  `json:"program_sha256,omitempty"`
	Knobs      []Knob  `json:"knobs,omitempty"`
}

// A Knob is one field of the schedule's config: "tiling.ring.chunk_bytes", "16384".
type Knob struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a number, a word, or JSON
}

// ReadProvenance reads it from the manifest and the program in a build directory. A build without the program has no knobs
// to tell.
func ReadProvenance(dir string) (*Provenance, error) {
	var m struct {
		Compiler  struct{ Version string }
		Toolchain struct{ NVCC, Go string }
		Source    struct {
			RandomSeed *uint64 `json:"random_seed"`
		}
		Weights struct{ SHA256 string }
		Files   map[string]string
	}
	if err := readJSON(filepath.Join(dir, ManifestFile), &m); err != nil {
		return nil, err
	}
	p := &Provenance{AMKC: m.Compiler.Version, NVCC: m.Toolchain.NVCC, Go: m.Toolchain.Go, RandomSeed: m.Source.RandomSeed,
		Weights: m.Weights.SHA256, Program: m.Files[ProgramFile]}
	var program struct{ Config map[string]any }
	err := readJSON(filepath.Join(dir, ProgramFile), &program)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	p.Knobs = knobs("", program.Config)
	return p, nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return &BuildError{Path: path, What: "it cannot be read", Remedy: recompile, Err: err}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return &BuildError{Path: path, What: "malformed", Remedy: recompile, Err: err}
	}
	return nil
}

// knobs lists the leaves of a config by path, in alphabetical order.
func knobs(path string, config map[string]any) []Knob {
	var all []Knob
	for _, name := range slices.Sorted(maps.Keys(config)) {
		below := strings.TrimPrefix(path+"."+name, ".")
		switch v := config[name].(type) {
		case map[string]any:
			all = append(all, knobs(below, v)...)
		case []any:
			text, _ := json.Marshal(v) // it was JSON a moment ago
			all = append(all, Knob{below, string(text)})
		default:
			all = append(all, Knob{below, fmt.Sprint(v)})
		}
	}
	return all
}
