package quantised

import (
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

// A Scheme is the quantisation of a checkpoint's matrices, as its config describes it.
type Scheme struct {
	// Method is its name in quantization_config.
	Method string
	// Inputs reports that the original model quantises activations too (W8A8). The checkpoint stores nothing for that.
	Inputs bool
	// OfExperts reports that the matrices of experts are quantised, and no others.
	OfExperts bool
	// Types are those of the matrices of a GGUF file in blocks, by module; nil: the model is in other files.
	Types map[string]string

	recipes []recipe
	skipped modules // that are not quantised
	loose   modules // parts of such modules' names, which tools read in several ways
	head    bool    // matrices of logits are quantised like others
}

// A recipe is how matrices of some modules are stored.
type recipe struct {
	form      form
	targets   modules // that are stored so
	bits      int     // of an element
	group     int     // columns that share a scale; 0: all of a row
	rows      int     // rows that share a scale; 0: all
	float     bool    // elements are e4m3
	symmetric bool
	block     *block // of a GGUF file, whose blocks say the rest
}

// A form is a set of tensors that a matrix is stored in.
type form int

const (
	packedRows form = iota // compressed-tensors, pack-quantized
	plainBytes             // compressed-tensors, int-quantized and float-quantized
	gptq                   // with zero points less one
	gptq2                  // with zero points as they are
	awq
	scaleInv   // fp8 of transformers
	ggufBlocks // GGUF
	mxfp4      // of gpt-oss, and compressed-tensors, mxfp4-pack-quantized
	nvfp4      // compressed-tensors, nvfp4-pack-quantized, and ModelOpt
)

// methods read quantization_config, by quant_method.
var methods = map[string]func(*Scheme, *settings){
	"compressed-tensors": readCompressed, "gptq": readGPTQ, "awq": readAWQ, "fp8": readFP8, "gguf": readGGUF,
	"mxfp4": readOfExperts, "modelopt": readModelOpt,
}

const accepted = "accepted: compressed-tensors, gptq, awq of version gemm, fp8 with weight_scale_inv, modelopt in " +
	"NVFP4, and mxfp4 of experts, or the original model"

// refused are methods that are known and not read, and what they store.
var refused = map[string]string{
	"bitsandbytes": "bitsandbytes keeps NF4 or int8 with absmax and quant_map",
}

// Read returns the scheme of a config, or nil if it has none. older is quantize_config.json, in which former tools
// wrote the same, or nil. Errors: AMK1108, AMK1120, AMK1121.
func Read(config, older *checkpoint.Document) (*Scheme, *diag.Diagnostic) {
	object, pos := config.Object, config.Name
	field := ""
	for _, name := range []string{"quantization_config", "compression_config", "quantization"} {
		if v, ok := object.Get(name); ok && v != nil {
			field = name
			break
		}
	}
	var s *settings
	switch {
	case field != "":
		if s = newSettings(pos, object).within(field); s == nil {
			v, _ := object.Get(field)
			return nil, diag.Errorf(codeSetting, pos+": "+field, "is %s; want an object", checkpoint.Spell(v))
		}
		s.pos = pos + ": " + field
	case older != nil:
		s = newSettings(older.Name+": settings", older.Object)
	default:
		return nil, nil
	}
	return readScheme(s, field)
}

func readScheme(s *settings, field string) (*Scheme, *diag.Diagnostic) {
	absent := ""
	switch {
	case field == "compression_config":
		absent = "compressed-tensors"
	case field == "" && (s.has("w_bit") || s.has("zero_point")):
		absent = "awq"
	case field == "":
		absent = "gptq"
	}
	scheme := &Scheme{Method: strings.ToLower(s.text("quant_method", absent))}
	read := methods[scheme.Method]
	switch what := refused[scheme.Method]; {
	case s.err() != nil:
		return nil, s.err()
	case read != nil:
	case what != "":
		return nil, diag.Errorf(NotRead, s.pos, "the weights are quantised as %s: %s; %s",
			checkpoint.Spell(scheme.Method), what, accepted)
	case scheme.Method == "" && s.has("bits") && s.has("group_size"):
		return nil, diag.Errorf(NotRead, s.pos, "the weights are quantised by MLX, in groups of its own; %s", accepted)
	case scheme.Method == "":
		return nil, diag.Errorf(NotRead, s.pos, "the weights are quantised by an unnamed method; %s", accepted)
	default:
		return nil, diag.Errorf(NotRead, s.pos, "the weights are quantised as %s, which is not read; %s",
			checkpoint.Spell(scheme.Method), accepted)
	}
	read(scheme, s)
	if s.err() != nil {
		return nil, s.err()
	}
	return scheme, nil
}

// of returns the recipe of a module, or nil if its matrix is not quantised.
func (s *Scheme) of(module string) *recipe {
	if s.Types != nil {
		return blockForms[s.Types[module]]
	}
	if s.skipped.match(module) > noMatch {
		return nil
	}
	var best *recipe
	found := noMatch
	for i := range s.recipes {
		if m := s.recipes[i].targets.match(module); m > found {
			best, found = &s.recipes[i], m
		}
	}
	return best
}

// A Role is the purpose of a matrix.
type Role int

// Those that configs tell apart.
const (
	InLayer   Role = iota
	Head           // it makes the logits
	Embedding      // its rows are looked up
	OfExperts      // a token needs it if it chooses the expert
)

// Expected returns the elements of a matrix with n columns according to the config alone, or nil if it is not quantised
// or its form is not supported. scale is the type of scales if the form uses that of the model.
func (s *Scheme) Expected(module string, cols int, role Role, scale checkpoint.DType) *Element {
	if s.OfExperts {
		if role != OfExperts {
			return nil
		}
		return &Element{Type: mxfp4Recipe.element(), Group: mxfp4Group, Scale: checkpoint.E8M0}
	}
	r := s.of(module)
	if r == nil || role == Head && !s.head ||
		role == Embedding && s.Types == nil && !r.targets.names["Embedding"] ||
		s.loose.name(module) {
		return nil
	}
	if r.block != nil {
		element := r.block.element
		return &element
	}
	group, read := r.streamed(cols)
	if !read {
		return nil
	}
	switch r.form {
	case gptq, gptq2, awq:
		scale = checkpoint.F16
	case scaleInv, nvfp4:
		scale = checkpoint.F32
	case mxfp4:
		scale = checkpoint.E8M0
	}
	return &Element{Type: r.element(), Group: group, Scale: scale, Zeros: !r.symmetric}
}

// element is the type of elements, as weight formats name it.
func (r *recipe) element() string {
	switch {
	case r.form == nvfp4:
		return "I5" // twice the value
	case r.float && r.bits == 4:
		return "F4E2M1"
	case r.float:
		return "F8E4M3"
	case r.bits == 4 && r.form != plainBytes:
		return "I4"
	}
	return "I8"
}

// streamed is how many columns share a scale in rows of n, at most wholeGroup, and whether that is read.
func (r *recipe) streamed(cols int) (int, bool) {
	switch {
	case r.form == mxfp4 || r.form == nvfp4:
		return r.group, true
	case r.group == 0 || r.group >= cols || r.group%wholeGroup == 0:
		return wholeGroup, true
	case r.group == 32 || r.group == 64:
		return r.group, true
	}
	return 0, false
}

// wholeGroup is the columns of the largest groups that are streamed.
const wholeGroup = 128
