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
	"strings"

	"amkc/runtime/infile"
	"amkc/runtime/printable"
	"amkc/runtime/shape"
)

// Names of the files of a build that a host reads.
const (
	ManifestFile  = "amkc.manifest.json"
	FatbinFile    = "megakernel.fatbin"
	MeasureFile   = "measure.fatbin"   // only a measurement needs it
	ReferenceFile = "reference.fatbin" // only a check needs it
	PromptFile    = "prompt.fatbin"    // of builds that read prompts by passes of hundreds of tokens
	WeightsFile   = "weights.safetensors"
	ConfigFile    = "config.json"
	GenConfigFile = "generation_config.json"
	TokenizerFile = "tokenizer.json"
	HeaderFile    = "library/amk.h"     // C header of the library
	LibraryFile   = "library/libamk.so" // built by make

	// WorkDir holds files not yet moved into place, while amkc writes a build or after it was killed.
	WorkDir = ".amkc-partial"
)

// Facts is what a host needs to know about a build besides [Info]: the object under the key "facts" of the manifest.
//
// Stages are identified by labels made of layer and role: "L{i}.qkv" in a loop over the layers, "L03.qkv" for a known
// layer, "lm_head" outside of layers.
type Facts struct {
	Model    Model     `json:"model"`
	Target   Target    `json:"target"`
	CUDA     int       `json:"cuda"`   // version of the toolkit that made the fatbin, 13000 for 13.0; 0: not known
	Stages   []string  `json:"stages"` // labels in the order of schedule.h, as stall records number them
	Variants []Variant `json:"variants"`
	Traffic  Traffic   `json:"traffic"`
	// Passes of several tokens: of several rows, by their number, then of a row of each of several sequences, at most
	// one, and then of several rows of each of as many, at most one. A build may have none.
	Passes []PassFacts `json:"passes,omitempty"`
	// Layers are those of the model where they differ in heads or states; Model has the most of each size then.
	Layers []Layer `json:"layers,omitempty"`
	Prompt int     `json:"prompt,omitempty"` // tokens of a pass over a prompt at most; 0: there is no such kernel
	// Ranks are the GPUs that run the build together; 0: one. What is said of the model is said of what a GPU has of it
	// then, but for the vocabulary, and Traffic is that of one.
	Ranks int `json:"ranks,omitempty"`
	// Invented are matrices that weights.safetensors does not have.
	Invented *Invented `json:"invented,omitempty"`
}

// PassFacts are those of a kernel for passes of several tokens. Its files are in a directory of their own,
// [shape.Pass.Dir].
type PassFacts struct {
	shape.Pass
	Stages []string `json:"stages"` // as those of [Facts]
}

// Sequences is the number of sequences of a pass of the build, at least 1.
func (f *Facts) Sequences() int {
	var most shape.Pass
	for _, p := range f.Passes {
		most = most.Most(p.Pass)
	}
	return most.NumSequences()
}

// NumRanks is the number of GPUs that run the build together, at least 1.
func (f *Facts) NumRanks() int { return max(1, f.Ranks) }

// VerifiesDrafts reports whether the build has a kernel that verifies drafts: of one sequence, or of several at a time.
func (f *Facts) VerifiesDrafts(several bool) bool {
	return slices.ContainsFunc(f.Passes, func(p PassFacts) bool {
		return p.NumRows() > 1 && (p.NumSequences() > 1) == several
	})
}

// Model describes the compiled checkpoint, with the keys of the program's `model` line. Rotated follows from its ops.
type Model struct {
	Name         string  `json:"name"`
	Architecture string  `json:"architecture"`    // LlamaForCausalLM
	DType        string  `json:"dtype"`           // BF16, F16 or F32
	Cache        string  `json:"cache,omitempty"` // I8: K and V are kept as integers with scales; none: as DType
	Layers       int     `json:"layers"`
	Hidden       int     `json:"hidden"`
	Intermediate int     `json:"intermediate"`
	Heads        int     `json:"heads"`
	KVHeads      int     `json:"kv_heads"`
	HeadDim      int     `json:"head_dim"`
	Rotated      int     `json:"rotated,omitempty"` // elements of a head that are rotated, where others are not
	Vocab        int     `json:"vocab"`
	MaxSeq       int     `json:"max_seq"`
	CacheBlock   int     `json:"cache_block"` // bytes of K and V of 16 positions of a kv head, as they are in the cache
	Tied         bool    `json:"tied"`
	Eps          float64 `json:"eps"`
}

// Types are the element types, in words.
func (m *Model) Types() string {
	if m.Cache != "" {
		return m.DType + ", a cache of " + m.Cache
	}
	return m.DType
}

// Target is the GPU compiled for.
type Target struct {
	Name string `json:"name"` // h200
	Arch string `json:"arch"` // sm_90a
	SMs  int    `json:"sms"`
}

// Variant is an interval of positions with a schedule of its own, both ends included.
type Variant struct {
	Name string `json:"name"`
	Lo   int    `json:"lo"`
	Hi   int    `json:"hi"`

	// Exchanges are what a step of the variant publishes from SM to SM, in order.
	Exchanges []Exchange `json:"exchanges"`
}

// Exchange is a vector that one stage publishes to the next. Exchanges of a loop are adjacent and list their layers, in
// order of the rounds.
type Exchange struct {
	Stage    string `json:"stage"`    // label of the stage that publishes it
	Number   int    `json:"number"`   // of that stage in Facts.Stages, where those of several variants share labels
	Elements int    `json:"elements"` // 0 for the end of the step, which publishes no vector

	Scores bool `json:"scores,omitempty"` // experts are chosen by them

	// Parts is how many vectors of Elements/Parts each add up to the stage's result; 0: it is published as one.
	Parts int `json:"parts,omitempty"`

	First  int   `json:"first,omitempty"`
	Layers int   `json:"layers,omitempty"` // rounds; 0: once, in no loop
	Step   int   `json:"step,omitempty"`   // from the layer of one round to that of the next; 0 means 1
	Loop   int   `json:"loop,omitempty"`   // of several loops of a step, which one, from 0
	Rounds []int `json:"rounds,omitempty"` // that have it, from 0; none: all
}

// Traffic is what one step reads from GPU memory, in bytes.
type Traffic struct {
	Weights int64       `json:"weights"`          // every step
	Cache   []CacheRows `json:"cache"`            // rows of the KV cache, of layers that see as many
	States  int64       `json:"states,omitempty"` // all that recurrent layers keep, which it writes too
}

// CacheRows are the rows of the KV cache that a step reads: one for each visible earlier position.
type CacheRows struct {
	Bytes  int64 `json:"bytes"`            // of a row: K and V of these layers
	Window int   `json:"window,omitempty"` // positions that a step sees, its own among them; 0: all
}

// Seen returns the number of earlier positions visible at a position.
func (r *CacheRows) Seen(position int) int {
	if r.Window > 0 {
		return min(position, r.Window-1)
	}
	return position
}

// CacheBytes is what a step reads of the KV cache, and of states, as the mean of n steps from a position on.
func (t *Traffic) CacheBytes(position, steps int) float64 {
	total := float64(t.States) * float64(steps)
	for i := range steps {
		for k := range t.Cache {
			r := &t.Cache[k]
			total += float64(r.Bytes) * float64(r.Seen(position+i))
		}
	}
	return total / float64(max(1, steps))
}

// ReadFacts reads the manifest of a build directory. It needs no GPU, and nothing else in the directory.
func ReadFacts(dir string) (*Facts, error) {
	path := filepath.Join(dir, ManifestFile)
	data, err := infile.Read(path, infile.Manifest)
	if err != nil {
		return nil, notABuild(dir, err)
	}
	var m struct {
		Format int    `json:"format"`
		Facts  *Facts `json:"facts"`
	}
	if err := infile.Unmarshal(data, &m); err != nil {
		return nil, &BuildError{Path: path, What: "malformed", Remedy: recompile, Err: err}
	}
	if m.Format != ManifestFormat {
		return nil, &BuildError{Path: path, What: fmt.Sprintf("it has format %d, and this program reads format %d",
			m.Format, ManifestFormat), Remedy: recompile}
	}
	if m.Facts == nil {
		return nil, &BuildError{Path: path, What: `it has no "facts"`, Remedy: recompile}
	}
	if what := m.Facts.incomplete(); what != "" {
		return nil, &BuildError{Path: path, What: what, Remedy: recompile}
	}
	return m.Facts, nil
}

// ManifestFormat is the version of the manifest's schema. A change of the scheme of generated names bumps it too.
const ManifestFormat = 1

const recompile = "compile the model again with amkc"

// notABuild explains a manifest that cannot be read; the likeliest cause is a directory that is something else.
func notABuild(dir string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return &BuildError{Path: filepath.Join(dir, ManifestFile), What: "it cannot be read", Err: err}
	}
	if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		return &BuildError{Path: dir, What: "no such directory",
			Remedy: "name a local directory that amkc wrote; a model on a hub " +
				"must be downloaded and compiled first (amkc MODEL -o DIR)"}
	}
	if _, statErr := os.Lstat(filepath.Join(dir, WorkDir)); statErr == nil {
		return &BuildError{Path: dir, What: "no complete build: amkc is writing it, or was interrupted",
			Remedy: "wait, or run the same amkc MODEL -o DIR again"}
	}
	remedy := "name the directory that amkc wrote"
	if _, statErr := os.Stat(filepath.Join(dir, ConfigFile)); statErr == nil {
		remedy = "this looks like a model: compile it first (amkc MODEL -o DIR)"
	}
	return &BuildError{Path: dir, What: "not a build of amkc: there is no " + ManifestFile, Remedy: remedy}
}

// maxName is the longest name of a program, in bytes.
const maxName = 255

// names are the strings of the facts.
func (f *Facts) names() []string {
	all := append([]string{f.Model.Name, f.Model.Architecture, f.Model.DType, f.Target.Name, f.Target.Arch},
		f.Stages...)
	for _, p := range f.Passes {
		all = append(all, p.Stages...)
	}
	for _, v := range f.Variants {
		all = append(all, v.Name)
		for _, e := range v.Exchanges {
			all = append(all, e.Stage)
		}
	}
	return all
}

// incomplete says which fact is missing or absurd, and is empty when all are usable.
func (f *Facts) incomplete() string {
	for _, v := range []struct {
		name  string
		value int
	}{
		{"model.layers", f.Model.Layers}, {"model.hidden", f.Model.Hidden}, {"model.vocab", f.Model.Vocab},
		{"model.max_seq", f.Model.MaxSeq}, {"target.sms", f.Target.SMs}, {"traffic.weights", int(f.Traffic.Weights)},
	} {
		if v.value <= 0 {
			return fmt.Sprintf("facts.%s is %d, and must be positive", v.name, v.value)
		}
	}
	var before shape.Pass
	for i, p := range f.Passes {
		if !p.HasKernel() || !p.Follows(before) {
			return fmt.Sprintf("facts.passes has one of %v as its number %d; passes have 2 to %d rows, by their "+
				"number, and after them one may have a row of each of several sequences, and one several rows of "+
				"each of as many, of %d tokens at most", p, i+1, shape.MaxTokens, shape.MaxTokens)
		}
		before = p.Pass
	}
	if n := f.Ranks; n != 0 && (n < 2 || n > maxRanks || n&(n-1) != 0 || f.Model.Vocab%n != 0 ||
		len(f.Passes) > 0 || f.Prompt > 0) {
		return fmt.Sprintf("facts.ranks is %d; 2, 4 and 8 are possible, with equal shares of the vocabulary, and "+
			"without kernels for passes of several tokens", n)
	}
	for _, name := range f.names() {
		if name != printable.Line(name) || len(name) > maxName {
			return fmt.Sprintf("a name in its facts is %.40q, and must be a line of at most %d printable bytes", name,
				maxName)
		}
	}
	if wrong := f.wrongLayers(); wrong != "" {
		return wrong
	}
	if elementBytes(f.Model.DType) == 0 {
		return fmt.Sprintf("facts.model.dtype is %q; BF16, F16 and F32 are known", f.Model.DType)
	}
	if f.Model.Cache != "" && f.Model.Cache != integerCache {
		return fmt.Sprintf("facts.model.cache is %q; %s is known, or none", f.Model.Cache, integerCache)
	}
	return ""
}

// integerCache is the type of a cache of integers.
const integerCache = "I8"

// elementBytes is the size of one element of a type, 0 for unknown ones.
func elementBytes(dtype string) int {
	switch dtype {
	case "BF16", "F16":
		return 2
	case "F32":
		return 4
	}
	return 0
}

// ProgramFile is the proved program of a build. A host needs only its knobs.
const ProgramFile = "program.json"

// Provenance is the origin of a build, as far as a measurement depends on it. Fields that the build does not state are
// empty.
type Provenance struct {
	AMKC       string   `json:"amkc,omitempty"` // version of the compiler
	Commit     string   `json:"commit,omitempty"`
	ABI        int      `json:"runtime_abi,omitempty"`
	Model      string   `json:"model,omitempty"` // as a hub knows it, or the name of its directory
	Revision   string   `json:"revision,omitempty"`
	Checkpoint string   `json:"checkpoint_sha256,omitempty"`
	Adapters   []string `json:"adapters,omitempty"` // that were merged into it, in order: names with digests
	Options    []string `json:"options,omitempty"`
	NVCC       string   `json:"nvcc,omitempty"`
	Go         string   `json:"go,omitempty"`
	RandomSeed *uint64  `json:"random_seed,omitempty"` // weights were invented from it
	Weights    string   `json:"weights_sha256,omitempty"`
	Program    string   `json:"program_sha256,omitempty"`
	Knobs      []Knob   `json:"knobs,omitempty"`
}

// A Knob is one field of the schedule's config: "tiling.ring.chunk_bytes", "16384".
type Knob struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a number, a word, or JSON
}

// ReadProvenance reads it from the manifest and the program in a build directory. A build without the program has no
// knobs. Its strings are shown on pages and terminals, so they are made printable here.
func ReadProvenance(dir string) (*Provenance, error) {
	var m struct {
		Compiler struct {
			Version, Commit string
			RuntimeABI      int `json:"runtime_abi"`
		}
		Toolchain struct{ NVCC, Go string }
		Source    struct {
			Model, Revision, Checkpoint string
			Options                     []string
			RandomSeed                  *uint64 `json:"random_seed"`
			Adapters                    []struct{ Name, Revision, Weights string }
		}
		Weights struct{ SHA256 string }
		Files   map[string]string
	}
	if err := readJSON(filepath.Join(dir, ManifestFile), infile.Manifest, &m); err != nil {
		return nil, err
	}
	p := &Provenance{AMKC: printable.Clip(m.Compiler.Version), Commit: printable.Clip(m.Compiler.Commit),
		ABI: m.Compiler.RuntimeABI, Model: printable.Clip(m.Source.Model), Revision: printable.Clip(m.Source.Revision),
		Checkpoint: printable.Clip(m.Source.Checkpoint), NVCC: printable.Clip(m.Toolchain.NVCC),
		Go:         printable.Clip(m.Toolchain.Go),
		RandomSeed: m.Source.RandomSeed, Weights: printable.Clip(m.Weights.SHA256),
		Program: printable.Clip(m.Files[ProgramFile])}
	for _, option := range m.Source.Options {
		p.Options = append(p.Options, printable.Clip(option))
	}
	for _, a := range m.Source.Adapters {
		name := a.Name
		if a.Revision != "" {
			name += " at revision " + a.Revision
		}
		p.Adapters = append(p.Adapters, printable.Clip(name)+", SHA-256 "+printable.Clip(a.Weights))
	}
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

// Files lists the files that a build is made of, by path from its directory, sorted: those that the manifest names,
// those that make makes of them, and the manifest. They need not exist. If the manifest cannot be read, Files lists the
// files that every build has.
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

// FileAt returns the file of a build that a path refers to, directly or by a link, or "".
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
