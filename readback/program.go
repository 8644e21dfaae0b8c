package readback

import (
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
	"amkc/knobs"
)

// Names of the files, in positions.
const (
	scheduleFile = "schedule.h"
	pagesFile    = "pages.h"
	configFile   = "model_config.h"
	stagesFile   = "stages.h"
	kernelFile   = "megakernel.cu"
)

// Files are the names of the sources that a program is read back out of.
var Files = []string{scheduleFile, pagesFile, configFile, stagesFile, kernelFile}

// Program rebuilds the program from the literals of a build's headers and the calls of its kernel: text by the names
// of [Files]. It lacks what
// they do not hold: names of model and target, keys of the checkpoint, and of the configuration all but ring, warps
// and shared memory; floats are what a C++ float holds. Positions of the diagnostics are FILE:LINE:COLUMN. Where they
// leave no program, it is nil; with errors it is what the headers say, however wrong.
func Program(text map[string][]byte) (*ir.Program, diag.List) {
	b := &builder{p: &ir.Program{}}
	b.facts.Names = kernel.NamesBy(func(role string) string { return kernel.Shared[role] })
	for _, h := range []struct {
		r    *reader
		file string
	}{{&b.schedule, scheduleFile}, {&b.pages, pagesFile}, {&b.config, configFile}, {&b.finish, stagesFile}} {
		block, err := parse(h.file, text[h.file])
		b.diags.Add(err)
		*h.r = reader{block, &b.diags}
	}
	if b.diags.Err() == nil {
		b.otherLoops()
	}
	if b.diags.Err() != nil {
		return nil, b.diags
	}
	b.model()
	b.machine()
	b.variantEnds()
	if b.diags.Err() != nil {
		return nil, b.diags
	}
	b.facts.CacheBlocks = knobs.ChunkBytes.Of(&b.p.Config) / b.p.Model.CacheBlock()
	b.walks(text[kernelFile])
	if b.diags.Err() != nil {
		return nil, b.diags
	}
	b.descriptors()
	b.variantLists()
	if b.diags.Err() != nil {
		return nil, b.diags
	}
	b.functions()
	if b.diags.Err() != nil {
		return nil, b.diags
	}
	b.storages()
	b.buffers()
	b.placePages()
	for i := range b.variants {
		b.variant(&b.variants[i])
	}
	ir.NameRoles(b.p) // the names are those that this package gives
	b.checkTasks()
	b.checkExchanges()
	b.checkCalls()
	if b.diags.Err() != nil && b.facts.Pass.NumTokens() > 1 {
		return nil, b.diags // what is there is no program: that of all tokens is made of one that is right
	}
	if b.diags.Err() != nil {
		return b.p, b.diags
	}
	all, err := ir.ForTokens(b.p, b.facts.Pass)
	if err != nil {
		b.schedule.fail(pos{1, 1}, "no program of %d tokens: %v", b.facts.Pass.NumTokens(), err)
		return nil, b.diags
	}
	b.one, b.p = b.p, all
	// Check unrolls the program, within a budget, so it comes after what an edit contradicts first, and before
	// whatever counts layers one by one.
	if wrong := ir.Check(b.p); wrong.Err() != nil {
		b.diags.Add(wrong...)
		return b.p, b.diags
	}
	b.checkReadings()
	b.checkWeights()
	b.checkComments()
	b.leftOver()
	return b.p, b.diags
}

// builder rebuilds a program.
type builder struct {
	p                       *ir.Program
	one                     *ir.Program // of one token
	diags                   diag.List
	schedule, pages, config reader
	finish                  reader // stages.h
	streamed, computed      *walk  // of megakernel.cu

	facts    model
	flagged  bool
	barriers bool // each layer ends at one
	unrolled bool // the layers are in no loop, and what is theirs is in no family
	longFrom int  // from where on a variant streams in a way of its own; 0: none does

	storage   map[matrixOf]ir.Storage
	constants map[string]string // of model_config.h, by the weights that they are of

	kinds    []int // of the layers, a list that repeats; none: they are of one
	stages   []*descriptor
	variants []variantList
	ends     []string // the constants past their last positions
}

// model holds the constants that the views of the ops follow from.
type model struct {
	kernel.Facts
	layers, maxSeq int

	tied, fragments bool
	dtypes          ir.DTypes
	replicated      bool // every SM has the whole residual
	normRows        bool // owners of the residual add rows of norms of branches to it
	rotations       []kernel.Angles
}

// What the constants of a table are called, with a number from the second one on: where its frequencies lie, how many
// pairs of a head rotate_setup of step.cuh rotates by it, if the kernel passes that, and what multiplies cos and sin.
const invFreq, rotatedPairs, ropeScale = "kRopeInvFreq", "kRotatedPairs", "kRopeScale"

// numbered is the constant of a table.
func numbered(constant string, table int) string {
	if table == 0 {
		return constant
	}
	return constant + strconv.Itoa(table+1)
}

// readRotations reads what is said of the tables of angles.
func (b *builder) readRotations() {
	r, s, m := &b.config, b.config.scope, &b.facts
	tables := b.schedule.positive(b.schedule.scope, "kAngleTables")
	if tables > maxRotations {
		b.schedule.wrong(b.schedule.scope, "kAngleTables", "%d; want at most %d", tables, maxRotations)
		tables = 1
	}
	if tables == 1 && s.byName[invFreq] == nil {
		return // nothing rotates
	}
	for i := range tables {
		most := b.p.Model.Most(ir.HeadDimOf)
		t := kernel.Angles{Frequencies: numbered("rope.inv_freq", i), Pairs: most / 2}
		if name := numbered(rotatedPairs, i); s.byName[name] != nil {
			if t.Pairs = r.positive(s, name); t.Pairs > most/2 {
				r.wrong(s, name, "%d; want at most half of kHeadDim, which is %d", t.Pairs, most)
			}
		}
		if name := numbered(ropeScale, i); s.byName[name] != nil {
			t.Scale = []ir.Param{ir.FloatParam("scale", r.float(s, name))}
		}
		m.rotations = append(m.rotations, t)
	}
}

// maxRotations bounds the tables of angles: one for each kind of layers would do.
const maxRotations = 16

// rotation is the table with a number, which a stage says; one that is not there is reported.
func (b *builder) rotation(r *reader, at pos, number int) *kernel.Angles {
	if number >= len(b.facts.rotations) {
		r.fail(at, "there is no table %d of angles; want one of %d", number, len(b.facts.rotations))
		return &kernel.Angles{Pairs: 1}
	}
	return &b.facts.rotations[number]
}

// elements are the types of element.cuh; the last is for caches alone.
var elements = map[string]ir.DType{"Bf16": ir.BF16, "Fp16": ir.F16, "Fp32": ir.F32, integers: ir.I8}

const integers = "Int8"

// most bounds the constants that sizes are products of.
const most = 1 << 24

// model reads the facts of the model.
func (b *builder) model() {
	r, s, m := &b.config, b.config.scope, &b.facts
	for name, to := range map[string]*ir.DType{weightElement: &m.dtypes.Weights, element: &m.dtypes.Activations,
		cacheElement: &m.dtypes.Cache} {
		dtype, known := elements[r.types[name].name]
		if !known || dtype == ir.I8 && name != cacheElement {
			r.fail(pos{1, 1}, "no using %s = Bf16, Fp16 or Fp32; a cache may be of %s", name, integers)
		}
		*to = dtype
	}
	for _, f := range []struct {
		name string
		to   *int
	}{{"kLayers", &m.layers}, {"kHidden", &m.Hidden}, {"kVocab", &m.Vocab}, {"kMaxSeq", &m.maxSeq}} {
		*f.to = b.size(f.name)
	}
	m.tied = s.byName["kEmbedWeight"] == nil
	b.p.Model = ir.Model{DTypes: m.dtypes, Layers: m.layers, Hidden: m.Hidden, Vocab: m.Vocab, MaxSeq: m.maxSeq,
		Tied: m.tied}
	b.layerSizes()
	m.LayerFacts, m.HeadsDiffer = *b.p.Model.Of(0), b.p.Model.HeadsDiffer()
	for _, f := range b.p.Model.Facts() {
		if f.Heads%f.KVHeads != 0 {
			r.wrong(s, "kHeads", "%d, and a layer has %d query heads and %d kv heads; want a multiple of the kv heads",
				b.p.Model.Most(ir.HeadsOf), f.Heads, f.KVHeads)
		}
	}
	b.readRotations()
}

// size is a constant that sizes are products of.
func (b *builder) size(name string) int {
	r, s := &b.config, b.config.scope
	n := r.positive(s, name)
	if n > most {
		r.wrong(s, name, "%d; want at most %d", n, most)
	}
	return n
}

// layerSizes reads what layers may differ in: a constant, and a list of all layers where they do, of which the constant
// is the largest.
func (b *builder) layerSizes() {
	m := &b.p.Model
	var all ir.LayerFacts
	var differ []func(f *ir.LayerFacts, layer int)
	for _, c := range []struct {
		name, list string
		of         func(f *ir.LayerFacts) *int
	}{{"kIntermediate", "kIntermediates", func(f *ir.LayerFacts) *int { return &f.Intermediate }},
		{"kHeads", "kHeadCounts", func(f *ir.LayerFacts) *int { return &f.Heads }},
		{"kKVHeads", "kKVHeadCounts", func(f *ir.LayerFacts) *int { return &f.KVHeads }},
		{"kHeadDim", "kHeadDims", func(f *ir.LayerFacts) *int { return &f.HeadDim }},
		{"kExperts", "kExpertCounts", func(f *ir.LayerFacts) *int { return &f.Experts }},
		{"kExpertsPerToken", "kExpertsOfTokens", func(f *ir.LayerFacts) *int { return &f.PerToken }},
		{"kShared", "kSharedWidths", func(f *ir.LayerFacts) *int { return &f.Shared }},
		{"kSharedGates", "kSharedGateCounts", func(f *ir.LayerFacts) *int { return &f.SharedGates }},
		{"kConvChannels", "kConvWidths", func(f *ir.LayerFacts) *int { return &f.Channels }},
		{"kConvTaps", "kConvReaches", func(f *ir.LayerFacts) *int { return &f.Taps }},
		{"kStateHeads", "kStateHeadCounts", func(f *ir.LayerFacts) *int { return &f.StateHeads }},
		{"kStateKeyHeads", "kStateKeyHeadCounts", func(f *ir.LayerFacts) *int { return &f.StateKeyHeads }},
		{"kStateKeys", "kStateKeySizes", func(f *ir.LayerFacts) *int { return &f.StateKeys }},
		{"kStateValues", "kStateValueSizes", func(f *ir.LayerFacts) *int { return &f.StateValues }}} {
		some := slices.ContainsFunc([]string{"kExperts", "kShared", "kConv", "kState"}, func(of string) bool {
			return strings.HasPrefix(c.name, of) // layers may have none
		})
		if some && b.config.byName[c.name] == nil {
			continue
		}
		*c.of(&all) = b.size(c.name)
		if list := b.sizeList(c.name, c.list, *c.of(&all), some); list != nil {
			differ = append(differ, func(f *ir.LayerFacts, layer int) { *c.of(f) = list[layer] })
		}
	}
	layers := []ir.LayerFacts{all}
	if len(differ) > 0 {
		layers = slices.Repeat(layers, m.Layers)
		for layer := range layers {
			for _, set := range differ {
				set(&layers[layer], layer)
			}
		}
	}
	m.SetFacts(layers)
}

// sizeList reads a list with a size of each layer; nil where there is none, or none that can be.
func (b *builder) sizeList(name, list string, largest int, some bool) []int {
	r, m := &b.config, &b.p.Model
	c := r.scope.byName[list]
	if c == nil {
		return nil
	}
	r.taken[c.name] = true
	if most := ir.ModelBound("layers").Hi; m.Layers > most {
		r.fail(c.at, "%s has sizes of %d layers; want %d layers at most", c.name, m.Layers, most)
		return nil
	}
	var sizes []int
	least := 1
	if some {
		least = 0
	}
	for _, v := range c.value.list {
		if v.kind != integer || v.n < least || v.n > most {
			r.fail(v.at, "no size of a layer; want a number from %d to %d", least, most)
			return nil
		}
		sizes = append(sizes, v.n)
	}
	if c.typ != "int" || !c.array || len(sizes) != m.Layers || slices.Max(sizes) != largest {
		r.fail(c.at, "%s has %d values of type %s; want an array of int, with one for each of %d layers, of which %s "+
			"is the largest", c.name, len(sizes), c.typ, m.Layers, name)
		return nil
	}
	if slices.Min(sizes) == largest {
		r.fail(c.at, "%s has one size alone; want none of it", c.name)
	}
	return sizes
}

// factsOf are the facts that the stages and buffers of a layer depend on.
func (b *builder) factsOf(layer int) *kernel.Facts {
	f := b.facts.Facts
	f.LayerFacts = *b.p.Model.Of(layer)
	return &f
}

// machine reads what the SMs and their rings are.
func (b *builder) machine() {
	r, s := &b.schedule, b.schedule.scope
	tokens, sequences := r.positive(s, "kTokens"), r.positive(s, "kSequences")
	if tokens > maxTokens {
		r.wrong(s, "kTokens", "%d; want at most %d", tokens, maxTokens)
	}
	if tokens%sequences != 0 {
		r.wrong(s, "kSequences", "%d; want a divisor of kTokens, which is %d", sequences, tokens)
	}
	b.facts.Pass = ir.PassOf(sequences, tokens/sequences)
	if b.facts.SMs = r.positive(s, "kSMs"); b.facts.SMs > ir.MaxTargetSMs {
		r.wrong(s, "kSMs", "%d; want at most %d", b.facts.SMs, ir.MaxTargetSMs)
	}
	for _, h := range []*reader{&b.schedule, &b.pages, &b.config, &b.finish} {
		if h.below.line > 0 && b.facts.Pass.NumTokens() == 1 {
			h.fail(h.below, "includes a header from above its directory; want that only of a pass of several tokens, "+
				"whose headers lie below those of the build")
		}
	}
	b.facts.fragments = b.config.bool(b.config.scope, "kFragmentCache")
	b.flagged = r.bool(s, "kFlagged")
	if b.barriers = s.byName[barriersPerStep] != nil; b.barriers {
		r.same(s, barriersPerStep, r.positive(s, barriersPerStep), b.facts.layers, "one for each layer")
	}
	b.readKinds()
	shared := r.unsigned(s, "kSharedLimit")
	b.p.Target = &ir.Target{SMs: b.facts.SMs, SMemOptin: shared}
	b.p.Config = ir.ScheduleConfig{SMemBytesPerBlock: shared}
	for _, k := range knobs.Constants() {
		k.Set(&b.p.Config, r.knob(s, k.Row()))
	}
	if s.byName[longFrom] != nil {
		b.longFrom = r.positive(s, longFrom)
		for _, k := range knobs.VariantConstants() {
			k.Set(&b.p.Config, r.knob(s, k.Row()))
		}
	}
	b.ranks()
	r.same(s, "kMaxRingSlots", r.unsigned(s, "kMaxRingSlots"), shared/knobs.ChunkBytes.Of(&b.p.Config),
		"as many slots as kSharedLimit holds")
}

// longFrom is the first position of a variant that streams in a way of its own.
const longFrom = "kLongFrom"

// maxTokens bounds the tokens of a pass.
const maxTokens = 8

// readKinds reads the kinds of the layers, if there are several.
func (b *builder) readKinds() {
	r := &b.schedule
	c := r.scope.byName["kLayerKinds"]
	if c == nil {
		return
	}
	r.taken[c.name] = true
	if c.typ != "int" || !c.array || len(c.value.list) > min(b.facts.layers, listedKinds) {
		r.fail(c.at, "%s has %d kinds of type %s; want an array of int, with at most one for each of %d layers and %d "+
			"in all", c.name, len(c.value.list), c.typ, b.facts.layers, listedKinds)
		return
	}
	for _, v := range c.value.list {
		if v.kind != integer || v.n < 1 || v.n > most {
			r.fail(v.at, "no kind of a layer; want a number from 1 on")
			return
		}
		b.kinds = append(b.kinds, v.n)
	}
}

// listedKinds is what kinds.cuh tells apart.
const listedKinds = 128

// leftOver reports constants that nothing has asked for.
func (b *builder) leftOver() {
	for _, r := range []*reader{&b.schedule, &b.pages, &b.config} {
		r.rest(r.scope)
		if r.file == scheduleFile {
			continue
		}
		for _, s := range r.structs {
			r.fail(s.at, "struct %s is not known here", s.name)
		}
		if r.enum.name != "" {
			r.fail(r.enum.at, "enumeration %s is not known here", r.enum.name)
		}
		if r.file != configFile {
			r.noTypes()
		}
	}
	b.schedule.noTypes()
}

// noTypes reports types of elements in a header that has none.
func (r *reader) noTypes() {
	for _, name := range elementTypes {
		if v, ok := r.types[name]; ok {
			r.fail(v.at, "using %s is not known here", name)
		}
	}
}

// snake is the IR name of a C++ one: GateUp -> gate_up.
func snake(s string) string {
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				out.WriteByte('_')
			}
			c |= 0x20
		}
		out.WriteByte(c)
	}
	return out.String()
}
