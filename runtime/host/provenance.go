package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"amkc/runtime/infile"
	"amkc/runtime/printable"
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

// ReadProvenance reads it from the manifest and the program in a build directory. A build without the program has no
// knobs to tell. Its strings are shown on pages and terminals, and are made printable here.
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
	if err := readJSON(filepath.Join(dir, ManifestFile), infile.Manifest, &m); err != nil {
		return nil, err
	}
	p := &Provenance{AMKC: printable.Clip(m.Compiler.Version), NVCC: printable.Clip(m.Toolchain.NVCC),
		Go:         printable.Clip(m.Toolchain.Go),
		RandomSeed: m.Source.RandomSeed, Weights: printable.Clip(m.Weights.SHA256),
		Program: printable.Clip(m.Files[ProgramFile])}
	var program struct{ Config map[string]any }
	err := readJSON(filepath.Join(dir, ProgramFile), infile.Program, &program)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	p.Knobs = knobs("", program.Config)
	return p, nil
}

func readJSON(path string, kind infile.Kind, into any) error {
	data, err := infile.Read(path, kind)
	if err != nil {
		return &BuildError{Path: path, What: "it cannot be read", Remedy: recompile, Err: err}
	}
	if err := infile.Unmarshal(data, into); err != nil {
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
			all = append(all, Knob{printable.Clip(below), printable.Clip(string(text))})
		default:
			all = append(all, Knob{printable.Clip(below), printable.Clip(fmt.Sprint(v))})
		}
	}
	return all
}
