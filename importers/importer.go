package importers

import (
	"maps"
	"slices"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/importers/quantised"
	"amkc/ir"
	"amkc/ir/diag"
)

// Source is the model to import.
type Source struct {
	Name        string // for Model.Name
	Config      *checkpoint.Config
	Weights     *checkpoint.Checkpoint // nil: shapes are taken from the config alone
	Tensors     map[string]bool        // without Weights: names of tensors that the files have, as far as known; or nil
	DType       *ir.DType              // of the compiled model; nil: that of the checkpoint
	AssumeInert []string               // config fields that the user vouches for
	MaxSeq      int                    // positions to compile for; 0: what the model allows, at most DefaultMaxSeq
}

// DefaultMaxSeq bounds the default number of positions: the KV cache is allocated in full, and that of a model with
// 131072 positions is larger than its weights.
const DefaultMaxSeq = 4096

// MostPositions is the largest number of positions that a model can be compiled for.
const MostPositions = 1 << 24

// Imported is the result of an importer.
type Imported struct {
	Graph    *ir.Graph
	Consumed []string                     // tensors of the checkpoint that were accounted for, sorted
	Matrices map[string]*quantised.Matrix // the quantised ones of the checkpoint, by key
	Warnings diag.List
}

// An importer carries what a family needs: the config's fields, and the tensors that have been accounted for.
type importer struct {
	*fields
	src      Source
	names    *tensorNames   // of the tensors
	part     *languageModel // of a model of several parts; nil: the model is of text alone
	leftOut  []string       // what the names of tensors begin with that belong to parts which are not compiled
	consumed map[string]bool
	// exactRouters is the key of the matrices of routers that transformers keeps in float32; "": there are none.
	exactRouters string
	unscaled     [][]float32 // frequencies of the rotary embeddings that the config has, before they are scaled

	scheme   *quantised.Scheme            // how matrices are quantised, nil: they are not
	matrices map[string]*quantised.Matrix // those that are, by key
}

// Import chooses the model family by model_type and builds the graph.
func Import(src Source) (*Imported, error) {
	f := &fields{doc: src.Config.Model}
	m := &importer{fields: f, src: src, consumed: map[string]bool{}, matrices: map[string]*quantised.Matrix{}}
	kind := f.text("model_type", "")
	family, known := familyOf(kind)
	reason := unmodelled[kind]
	if part, _ := f.doc.Get("text_config"); part != nil && reason == "" {
		reason = "it has several parts, of which text_config describes the language model, and that cannot be " +
			"compiled out of them"
	}
	switch {
	case f.diags.Err() != nil:
		return nil, f.diags
	case kind == "" && reason == "":
		return nil, diag.Errorf(codeModelType, f.pos("model_type"), "is missing; accepted: %s", accepted())
	case kind == "":
		return nil, diag.Errorf(codeModelType, f.pos("model_type"), "is missing: %s; accepted: %s", reason, accepted())
	case !known && reason != "":
		return nil, diag.Errorf(codeModelType, f.pos("model_type"), "%s is not supported: %s; accepted: %s",
			spell(kind),
			reason, accepted())
	case !known:
		return nil, diag.Errorf(codeModelType, f.pos("model_type"), "%s is not known; accepted: %s", spell(kind),
			accepted())
	}
	g := family.build(m)
	if f.diags.Err() == nil && src.Weights != nil {
		f.diags.Add(src.Weights.Warnings...)
		if m.mergeAdapters(g); f.diags.Err() == nil {
			m.matchTensors(g)
			m.sayRounded(g)
		}
	}
	if f.diags.Err() == nil {
		m.chooseStorage(g)
	}
	f.diags.Sort()
	if f.diags.Err() != nil {
		return nil, f.diags
	}
	return &Imported{Graph: g, Consumed: slices.Sorted(maps.Keys(m.consumed)), Matrices: m.matrices,
		Warnings: f.diags}, nil
}

// chooseDType is the dtype of the compiled model: what the user asked for, else what the config says, else what the
// embedding is stored in, else BF16. The config comes before the files, so that a model compiles alike with and
// without them.
func (m *importer) chooseDType() ir.DType {
	field, stated := m.statedDType()
	named, known := configDTypes[stated]
	switch {
	case m.src.DType != nil && !slices.Contains(slices.Collect(maps.Values(ModelDTypes)), *m.src.DType):
		m.fail(codeField, field, "--dtype %s; want BF16, F16 or F32", *m.src.DType)
	case m.src.DType != nil:
		return *m.src.DType
	case stated != "" && !known:
		m.fail(codeField, field, "is %s; want float32, float16 or bfloat16, or give --dtype", spell(stated))
	case stated != "":
		return named
	case m.src.Weights != nil:
		t, _ := m.src.Weights.Tensor(m.names.embedding()) // before adapters are merged
		if d, ok := ModelDTypes[t.DType]; ok {
			return d
		}
	}
	return ir.BF16
}

// statedDType reads the dtype under its present and its former name, and returns the name that it stands under.
func (m *importer) statedDType() (field, dtype string) {
	read := func(field string) string { return strings.TrimPrefix(m.text(field, ""), "torch.") }
	now, former := read("dtype"), read("torch_dtype")
	if now != "" && former != "" && now != former && m.src.DType == nil {
		m.fail(codeField, "dtype", "is %s, and torch_dtype is %s; want one of them, or give --dtype", spell(now),
			spell(former))
	}
	if now == "" {
		return "torch_dtype", former
	}
	return "dtype", now
}

// configDTypes are the names that configs use.
var configDTypes = map[string]ir.DType{"float32": ir.F32, "float": ir.F32, "float16": ir.F16, "half": ir.F16,
	"bfloat16": ir.BF16}

var ModelDTypes = map[checkpoint.DType]ir.DType{checkpoint.F32: ir.F32, checkpoint.F16: ir.F16,
	checkpoint.BF16: ir.BF16}

// ScaleDTypes are the types of the scales of quantised matrices.
var ScaleDTypes = map[checkpoint.DType]ir.DType{checkpoint.F32: ir.F32, checkpoint.F16: ir.F16,
	checkpoint.BF16: ir.BF16, checkpoint.E8M0: ir.F8E8M0}

// chooseMaxSeq is the number of positions to compile for.
func (m *importer) chooseMaxSeq(trained int) int {
	n := m.src.MaxSeq
	switch {
	case n == 0:
		n = min(trained, DefaultMaxSeq)
	case n < 0 || n > MostPositions:
		m.fail(codeMaxSeq, "max_position_embeddings", "--max-seq %d; want 1 to %d", n, MostPositions)
	case n > trained && m.diags.Err() == nil:
		m.diags.Add(diag.Warningf(codeMaxSeq, m.pos("max_position_embeddings"),
			"--max-seq %d is more than the %d positions the model was made for", n, trained))
	}
	return n
}
