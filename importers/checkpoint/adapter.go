package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

const (
	adapterConfig  = "adapter_config.json"
	adapterTensors = "adapter_model.safetensors"
)

// adapterWeights are the files that PEFT stores the weights of an adapter in.
var adapterWeights = []string{adapterTensors, "adapter_model.bin"}

// hasAdapter reports whether a directory has the configuration of an adapter that is not one of those that are merged.
func hasAdapter(dir string, merged []string) bool {
	if !isThere(dir, adapterConfig) {
		return false
	}
	here, err := os.Stat(dir)
	return err != nil || !slices.ContainsFunc(merged, func(path string) bool {
		other, err := os.Stat(path)
		return err == nil && os.SameFile(here, other)
	})
}

// refuseAdapter refuses a directory with an adapter that is not merged: transformers applies it to the model in the
// same directory, so without it the model is another one. It returns nil if the directory has none.
func refuseAdapter(dir string, merged []string) *diag.Diagnostic {
	if !hasAdapter(dir, merged) {
		return nil
	}
	what, how := "an adapter alone, without the model that it belongs to", "give its model, with --adapter and this "+
		"directory"
	if isThere(dir, "config.json") {
		what, how = "an adapter next to the model, which transformers would apply to it", "give the directory with "+
			"--adapter too"
	}
	return diag.Errorf(codeAdapter, dir, "%s says that this is %s; %s, or merge the adapter into its model first "+
		"(PEFT's merge_and_unload), save the result and give that directory", adapterConfig, what, how).
		With("a model that is meant without the adapter: move the adapter's files out of its directory")
}

// refuseAdapterOfGGUF is refuseAdapter of a directory that stands for its one GGUF file.
func refuseAdapterOfGGUF(dir, file string) *diag.Diagnostic {
	if !hasAdapter(dir, nil) {
		return nil
	}
	return diag.Errorf(codeAdapter, dir, "%s says that this is an adapter next to the model, which transformers would "+
		"apply to it; give %s, with --adapter and this directory if the adapter is meant", adapterConfig,
		filepath.Base(file)).With("blocks of GGUF files that are quantised take no adapter: give the model in 16 bits")
}

// ignoredAdapter warns of an adapter next to a GGUF file that was given itself; nil if there is none, or it is merged.
func ignoredAdapter(path string, merged []string) *diag.Diagnostic {
	dir := filepath.Dir(path)
	if !hasAdapter(dir, merged) {
		return nil
	}
	return diag.Warningf(codeAdapter, path, "%s says that there is an adapter next to the file, which is not merged; "+
		"--adapter %s merges it", adapterConfig, dir)
}

// onlyAdapter says of a directory without the weights of a model that it holds those of an adapter, or returns nil.
func onlyAdapter(dir string) *diag.Diagnostic {
	for _, name := range adapterWeights {
		if isThere(dir, name) {
			return diag.Errorf(codeAdapter, dir,
				"%s is an adapter, and the model that it belongs to is not here; give its model, with --adapter and "+
					"this directory, or merge the adapter into its model first (PEFT's merge_and_unload), save the "+
					"result and give that directory", name)
		}
	}
	return nil
}

// AdapterFiles are the paths of the files of an adapter.
func AdapterFiles(dir string) []string {
	return []string{filepath.Join(dir, adapterConfig), filepath.Join(dir, adapterTensors)}
}

// An adapter is a change to the weights of a model, as PEFT stores a LoRA.
type adapter struct {
	dir  string
	doc  *Document
	file *File

	rank           int
	alpha          float64
	ranks, alphas  []pattern
	stabilised     bool // the scale is alpha/√rank instead of alpha/rank
	dora           bool
	targets, whole []string // modules that are changed, and those that are stored whole, as far as they are listed
}

// A pattern is what the configuration says of the modules whose names end in a match.
type pattern struct {
	match *regexp.Regexp
	name  string
	value float64
}

// openAdapter reads the configuration of an adapter, and opens its weights. Errors: AMK1038 for what is not modelled,
// AMK1006 to AMK1019 for the files.
func openAdapter(dir string) (*adapter, *diag.Diagnostic) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, diag.Errorf(codeAdapterConfig, dir, "there is no such directory; --adapter takes that of an "+
			"adapter which PEFT has saved")
	}
	doc, err := readDocument(dir, adapterConfig, infile.ModelConfig)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, diag.Errorf(codeAdapterConfig, dir, "there is no %s; --adapter takes the directory of an adapter "+
			"that PEFT has saved", adapterConfig)
	}
	a := &adapter{dir: dir, doc: doc}
	if err := a.read(); err != nil {
		return nil, err
	}
	if !isThere(dir, adapterTensors) {
		return nil, diag.Errorf(codeAdapterConfig, dir, "there is no %s, the one form of an adapter's weights that is "+
			"read; PEFT's save_pretrained writes it", adapterTensors)
	}
	a.file, err = openFile(filepath.Join(dir, adapterTensors))
	return a, err
}

// inertFields are those of adapter_config.json that say how an adapter was trained, or that its tensors say too. What
// fan_in_fan_out says depends in PEFT on the class of each module, and here on how the model's matrix is stored.
var inertFields = []string{"auto_mapping", "base_model_name_or_path", "eva_config", "exclude_modules", "fan_in_fan_out",
	"inference_mode", "layers_pattern", "layers_to_transform", "lora_bias", "lora_dropout", "megatron_core",
	"peft_version", "qalora_group_size", "revision", "runtime_config", "task_type"}

// inits are the values of init_lora_weights with which the weights of the model stay as they are.
var inits = []any{nil, true, false, "gaussian", "eva", "orthogonal"}

// read takes the fields of the configuration one by one. A field that is not known may be off, and nothing else.
func (a *adapter) read() *diag.Diagnostic {
	if kind, _ := a.doc.Get("peft_type"); kind != "LORA" {
		return a.refuse("peft_type", "LORA")
	}
	for _, needed := range []string{"r", "lora_alpha"} {
		if _, ok := a.doc.Get(needed); !ok {
			return a.refuse(needed, "a number")
		}
	}
	for _, field := range a.doc.Keys() {
		value, _ := a.doc.Get(field)
		ok, want := true, ""
		switch field {
		case "peft_type":
		case "r":
			a.rank, ok = wholeNumber(value)
			want = "a whole number from 1"
		case "lora_alpha":
			a.alpha, ok = finite(value)
			want = "a number"
		case "use_rslora":
			a.stabilised, ok = flag(value)
			want = "true or false"
		case "use_dora":
			a.dora, ok = flag(value)
			want = "true or false"
		case "bias":
			ok = value == nil || value == "none" || value == "all" || value == "lora_only"
			want = `"none", "all" or "lora_only"`
		case "init_lora_weights":
			_, nested := value.(*Object)
			_, list := value.([]any)
			ok = !nested && !list && slices.Contains(inits, value)
			want = `true, false, "gaussian", "eva" or "orthogonal"; others change the model's weights before the ` +
				"adapter is trained: PEFT's path_initial_model_for_weight_conversion saves an adapter without that"
		case "rank_pattern", "alpha_pattern":
			patterns, bad := a.patterns(field, value)
			if bad != nil {
				return bad
			}
			if field == "rank_pattern" {
				a.ranks = patterns
			} else {
				a.alphas = patterns
			}
		case "target_modules": // a text is an expression, or all-linear
			a.targets, ok = listOfNames(value)
			want = "a list of names"
			if _, text := value.(string); text {
				a.targets, ok = nil, true
			}
		case "modules_to_save":
			a.whole, ok = listOfNames(value)
			want = "a list of names, or null"
		default:
			ok = slices.Contains(inertFields, field) || isOff(value)
			want = "none: amkc does not model what it does"
		}
		if !ok {
			return a.refuse(field, want)
		}
	}
	return nil
}

func (a *adapter) refuse(field, want string) *diag.Diagnostic {
	value, ok := a.doc.Get(field)
	is := "is missing"
	if ok {
		is = "is " + brief(value)
	}
	return diag.Errorf(codeAdapterConfig, a.pos(field), "%s; accepted: %s", is, want)
}

func (a *adapter) pos(field string) string {
	return filepath.Join(a.dir, adapterConfig) + ": " + strconv.Quote(field)
}

// brief spells a value of JSON, cut to a length that can be read.
func brief(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("%.60q", v)
	case json.Number:
		return fmt.Sprintf("%.30s", v.String())
	case bool:
		return strconv.FormatBool(v)
	}
	return kindOf(value)
}

// isOff reports whether a value is null, false, 0 or empty.
func isOff(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case *Object:
		return len(v.keys) == 0
	case json.Number:
		n, err := v.Float64()
		return err == nil && n == 0
	}
	return false
}

func flag(value any) (on, ok bool) {
	if value == nil {
		return false, true
	}
	on, ok = value.(bool)
	return on, ok
}

func finite(value any) (float64, bool) {
	n, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	v, err := n.Float64()
	return v, err == nil && math.Abs(v) < math.MaxFloat32
}

func wholeNumber(value any) (int, bool) {
	v, ok := finite(value)
	return int(v), ok && v == math.Trunc(v) && v >= 1 && v <= math.MaxInt32
}

func listOfNames(value any) (names []string, ok bool) {
	list, ok := value.([]any)
	if value == nil {
		return nil, true
	}
	for _, v := range list {
		name, isName := v.(string)
		names, ok = append(names, name), ok && isName && name != ""
	}
	return names, ok && len(names) <= mostPatterns
}

// mostPatterns and longestPattern bound what it takes to match all modules with all patterns, or names. Repeat counts,
// which Python and Go read differently, would make a short pattern a large program.
const mostPatterns, longestPattern = 4096, 1000

// patterns reads what rank_pattern or alpha_pattern says of modules by expressions, of which the first that matches
// counts.
func (a *adapter) patterns(field string, value any) (out []pattern, bad *diag.Diagnostic) {
	of, ok := value.(*Object)
	switch {
	case value == nil:
		return nil, nil
	case !ok || len(of.keys) > mostPatterns:
		return nil, a.refuse(field, fmt.Sprintf("an object of at most %d numbers", mostPatterns))
	}
	for _, key := range of.keys {
		p := pattern{name: key}
		if len(key) <= longestPattern && !strings.Contains(key, "{") {
			p.match, _ = regexp.Compile(`^(?:(?:.*\.)?(?:` + key + `))$`)
		}
		if p.match == nil {
			return nil, diag.Errorf(codeAdapterConfig, a.pos(field), "has the key %.60q, which cannot be read as an "+
				"expression; accepted: names of modules, and expressions of at most %d bytes that Go has too, without "+
				"{", key, longestPattern)
		}
		number := of.values[key]
		if p.value, ok = finite(number); ok && field == "rank_pattern" {
			_, ok = wholeNumber(number)
		}
		if !ok {
			return nil, diag.Errorf(codeAdapterConfig, a.pos(field), "has %s for %.60q; accepted: numbers, of ranks "+
				"whole ones from 1", brief(number), key)
		}
		out = append(out, p)
	}
	return out, nil
}

// valueOf is what patterns say of a module, or what holds for all.
func valueOf(patterns []pattern, module string, all float64) float64 {
	for _, p := range patterns {
		if p.match.MatchString(module) {
			return p.value
		}
	}
	return all
}

// rankOf and scaleOf are the rank of a module, and what its product is multiplied with.
func (a *adapter) rankOf(module string) int { return int(valueOf(a.ranks, module, float64(a.rank))) }

func (a *adapter) scaleOf(module string) float32 {
	rank := float64(a.rankOf(module))
	if a.stabilised {
		rank = math.Sqrt(rank)
	}
	return float32(valueOf(a.alphas, module, a.alpha) / rank)
}

// isNamed reports whether a module is one of a list: the last parts of its name are.
func isNamed(module string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return module == name || strings.HasSuffix(module, "."+name)
	})
}
