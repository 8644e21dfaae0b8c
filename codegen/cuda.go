package codegen

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
	"amkc/knobs"
	"amkc/templates"
)

// runtimeABI is AMK_RUNTIME_ABI of the device runtime that these templates are written for.
const runtimeABI = 11

// cudaFiles are the sources that a program gives, named after their templates, and referenceFile is what the graph of
// its model gives.
var cudaFiles = []string{"measure.cu", "megakernel.cu", "model_config.h", "pages.h", "schedule.h", "stages.h"}

const referenceFile = "reference.cu"

// CUDA renders the CUDA sources of a validated program, by file name, except those of [Reference]. The device runtime
// amk/*.cuh goes next to them unchanged.
func CUDA(p *ir.Program) (map[string][]byte, error) {
	d, err := newCUDAData(p)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, name := range cudaFiles {
		if out[name], err = render(name, d); err != nil {
			return nil, err
		}
	}
	shared := *d
	shared.Variants = nil // the host has their ends, and compares them one by one
	text, err := render(ModelFile, &shared)
	if err != nil {
		return nil, err
	}
	out[ModelFile] = appendDigest(out[ModelFile], text)
	if d.PromptTokens > 0 {
		if out[promptFile], err = render(promptFile, d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// appendDigest adds the first bytes of the SHA-256 of what programs of a build have in common to a header. The host
// compares it between kernels.
func appendDigest(header, shared []byte) []byte {
	sum := sha256.Sum256(shared)
	return fmt.Appendf(slices.Clone(header), "\n// Of what is above but ends of variants: the host compares it "+
		"between kernels.\nnamespace amk {\nconstexpr unsigned kModelDigest = %du;\n}  // namespace amk\n",
		binary.BigEndian.Uint32(sum[:]))
}

// render renders a source from its template.
func render(name string, data any) ([]byte, error) {
	text, err := execute(name, data)
	if err != nil {
		return nil, err
	}
	return text, checkFormat(name, text)
}

// sources are all templates, parsed once.
var sources = sync.OnceValues(func() (*template.Template, error) { return template.ParseFS(templates.FS, "*.tmpl") })

// execute makes a file from its template.
func execute(name string, data any) ([]byte, error) {
	set, err := sources()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = set.ExecuteTemplate(&b, name+".tmpl", data)
	return b.Bytes(), err
}

// maxLine is the most columns that an emitted line may have.
const maxLine = 100

// ModelLines is the comment that names the model. A name is one word of any length, so it is broken at the end of a
// line.
func (d *cudaData) ModelLines() []string {
	var lines []string
	prefix, rest := "// model: ", fmt.Sprintf("%s (%s)", d.Model.Name, d.Model.Architecture)
	for len(prefix)+len(rest) > maxLine {
		room := maxLine - len(prefix)
		lines = append(lines, strings.TrimRight(prefix+rest[:room], " "))
		prefix, rest = "//        ", rest[room:]
	}
	return append(lines, prefix+rest)
}

// checkFormat holds generated text to the rules a formatter would: nothing like gofmt runs after.
func checkFormat(name string, text []byte) error {
	blank := false
	for i, line := range strings.Split(string(text), "\n") {
		pos := fmt.Sprintf("%s:%d", name, i+1)
		switch {
		case len([]rune(line)) > maxLine:
			return diag.Errorf(codeFormat, pos, "line of %d columns, want at most %d: %s", len([]rune(line)), maxLine,
				line)
		case strings.TrimRight(line, " \t") != line:
			return diag.Errorf(codeFormat, pos, "trailing space")
		case line == "" && blank:
			return diag.Errorf(codeFormat, pos, "double blank line")
		}
		blank = line == ""
	}
	return nil
}

// cudaData is what the templates see: plain values, everything decided.
type cudaData struct {
	Model ir.Model
	arch  string

	WeightElement, Element, CacheElement string

	ABI         int
	Root        string  // where the build is, from the directory of the sources
	Features    []field // Name, Value, Note
	Machine     []field
	Exchange    []field
	Scratch     []field
	Derived     []field // constants that depend on the features
	Variants    []variantData
	Weights     []weightConstant
	Tables      []tableData
	WeightBytes int
	CacheBytes  int
	Rotations   []*rotation // of stages that rotate
	Pages       []pageData
	Vectors     []vectorData
	Stages      []*stage // numbered in stall records, in schedule order
	Descriptors []*stage
	Functions   []*stageFunc // of stages.h
	Loops       []string     // lines that list them, unless there is one over all layers, or none
	Kinds       []string     // lines that list the kinds of the layers, where there are several
	Barriers    bool         // whether a step has any

	Quantised     bool     // a matrix is
	FragmentCache bool     // the cache has blocks of 16 rows in the order of mma's fragments
	PromptTokens  int      // of a pass over a prompt at most; 0: there are none
	PromptBytes   int      // of its workspace
	StepPages     []string // which a prompt has none of
	Operands      []promptOperand
	Spans         bool              // whether a pass over a prompt may have tokens of several variants
	Before        []attentionBefore // of such a pass
	Bodies        []*kernel.Body    // that stages have, each once
	Replicates    bool              // every SM has the whole residual
	RotatesHeads  bool              // in attention, and not as rows are finished
	Parts         []partStage
	Walk          []string // lines of the producer's walk
	Consume       []string // lines of the consumers' step
}

// Sizes are the constants of what layers may differ in, each with lines that list it layer by layer where they do. The
// constant is that of the layer with most.
func (d *cudaData) Sizes() []sizeConstant {
	m, out := &d.Model, []sizeConstant(nil)
	for _, c := range []struct {
		name, list string
		of         func(f *ir.LayerFacts) int
	}{{"kIntermediate", "kIntermediates", ir.IntermediateOf}, {"kHeads", "kHeadCounts", ir.HeadsOf},
		{"kKVHeads", "kKVHeadCounts", ir.KVHeadsOf}, {"kHeadDim", "kHeadDims", ir.HeadDimOf},
		{"kExperts", "kExpertCounts", ir.ExpertsOf}, {"kExpertsPerToken", "kExpertsOfTokens", ir.PerTokenOf},
		{"kShared", "kSharedWidths", ir.SharedOf}, {"kSharedGates", "kSharedGateCounts", ir.SharedGatesOf},
		{"kConvChannels", "kConvWidths", ir.ChannelsOf}, {"kConvTaps", "kConvReaches", ir.TapsOf},
		{"kStateHeads", "kStateHeadCounts", ir.StateHeadsOf},
		{"kStateKeyHeads", "kStateKeyHeadCounts", ir.StateKeyHeadsOf}, {"kStateKeys", "kStateKeySizes", ir.StateKeysOf},
		{"kStateValues", "kStateValueSizes", ir.StateValuesOf}} {
		if m.Most(c.of) == 0 {
			continue // no layer has such a thing
		}
		size := sizeConstant{Name: c.name, Value: m.Most(c.of), List: c.list}
		if m.Differ(c.of) {
			values := make([]string, m.Layers)
			for layer := range values {
				values[layer] = itoa(c.of(m.Of(layer)))
			}
			size.Lines = list(values)
		}
		out = append(out, size)
	}
	return out
}

// A sizeConstant is a size of layers.
type sizeConstant struct {
	Name, List string
	Value      int
	Lines      []string // of the list; none where all layers have the same
}

// Headers are the files of the device runtime that megakernel.cu includes besides attention and the stream: those of
// every kernel, and those of the bodies that this one uses.
func (d *cudaData) Headers() []string {
	headers := []string{"combine", "ending", "hidden", "info", "prefetch"}
	if len(d.Kinds) > 0 {
		headers = append(headers, "kinds")
	}
	for _, b := range d.Bodies {
		if b.Header != "" {
			headers = append(headers, b.Header)
		}
	}
	slices.Sort(headers)
	return slices.Compact(headers)
}

type variantData struct {
	Name, EndName, StagesName string
	End                       int
	Stages                    []string // lines that list their numbers in order
	order                     []string // the same, one by one
	Outside                   int      // how many of them are in no loop
	Sum                       string   // of the exchanges of a step, unless every loop is over the layers
}

type builder struct {
	p        *ir.Program // of one token, and the pages and units of all
	pass     ir.Pass
	d        *cudaData
	facts    *kernel.Facts
	stages   map[string]*stage // by descriptor name
	names    *ir.Directory
	weights  map[int]weightPlace // by buffer, as the maps below
	offsets  map[int][]int       // of each member, in the weights
	caches   map[int][]int       // of each member, which cache of the arena it is
	cacheAt  []int               // where each begins, if they are of several sizes
	vectors  map[int]string      // constants
	joins    map[*ir.Stage]joinPlace
	barriers int             // a step
	steps    map[string]bool // counters that end a step
	readings map[*ir.Stage]reading
	residual string // the buffer that embed, o and down share
	rounded  string // that of its rounding, where every SM has it
	normed   string // that of what owners add to it, where that is norms of branches
	token    string // the buffer that sample leaves the next token in
	noted    []partStage
	broken   error // of the first stage that differs from its body

	exchangeBytes int // pages with their copies, and counters
	slots         int // of the ring, at least
	products      []promptProduct
	placed        []placedStage
	differ        bool // variants do, in more than how attention is divided
}

func newCUDAData(p *ir.Program) (*cudaData, error) {
	b, err := build(p)
	if err != nil {
		return nil, err
	}
	return b.d, nil
}

// build decides everything.
func build(p *ir.Program) (*builder, error) {
	if p.Target == nil {
		return nil, diag.Errorf(codeStructure, "program", "no target: want a target line with arch, sms and smem_optin")
	}
	if len(p.Variants) == 0 {
		return nil, diag.Errorf(codeStructure, "program", "no variants")
	}
	if diags := ir.CheckNames(p); diags.Err() != nil {
		return nil, diags // the templates print names as they are
	}
	p, clash := Conventional(p)
	if clash != nil {
		return nil, clash
	}
	pass := p.Pass
	p, several := ir.OneToken(p)
	if several != nil {
		return nil, diag.Errorf(codeStructure, "program", "its pass of %d tokens does not treat all of them alike: %v",
			pass.NumTokens(), several)
	}
	if err := ir.CheckArch(p.Target.Arch); err != nil {
		return nil, diag.Errorf(codeStructure, "target "+p.Target.Name, "its arch %v", err)
	}
	b := &builder{p: p, pass: pass, names: ir.BufferDirectory(p), stages: map[string]*stage{},
		steps: map[string]bool{}, d: &cudaData{Model: p.Model, arch: p.Target.Arch, ABI: runtimeABI}}
	if b.pass.NumTokens() > 1 {
		b.d.Root = "../"
	}
	b.findFacts()
	matrices := ir.MatrixFormat(p.Model.Weights)
	if matrices == nil || !p.Model.OnDevice() {
		return nil, diag.Errorf(codeStructure, "program", "model dtype %v, want BF16, F16 or F32, the same for "+
			"weights, activations and the cache, which may also be I8", p.Model.DTypes)
	}
	b.d.WeightElement, b.d.Element, b.d.CacheElement = matrices.Loader(), matrices.Loader(), matrices.Loader()
	if p.Model.Cache == ir.I8 {
		b.d.CacheElement = "Int8"
	}
	for i := range p.Variants {
		v := &p.Variants[i]
		name := "k" + camel(v.Name)
		b.d.Variants = append(b.d.Variants, variantData{Name: v.Name, EndName: name + "End",
			StagesName: name + "Stages", End: v.Hi + 1})
		for k := range v.Counters {
			if v.Counters[k].Role == ir.RoleStep {
				b.steps[v.Counters[k].Name] = true
			}
		}
	}
	for _, step := range []func() error{b.checkKnobs, b.checkRanks, b.placeWeights, b.placeCaches, b.placeBarriers,
		b.placePages, b.placeReadings,
		b.body, b.checkWaitOrder, b.constants, b.checkIdentifiers, b.checkNumbers, b.checkContracts} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	b.d.Parts = b.parts()
	b.d.PromptTokens, b.d.StepPages = b.promptTokens(), b.stepPages()
	if b.d.Spans = b.d.PromptTokens > 0 && !b.differ; !b.d.Spans {
		b.d.Before = nil
	}
	b.d.Operands = b.promptOperands(b.d.PromptTokens)
	b.d.PromptBytes = b.promptBytes(b.d.PromptTokens)
	return b, nil
}

// constants fills in what the stages have in common.
func (b *builder) constants() error {
	p, m := b.p, &b.p.Model
	t := p.Target
	b.d.Features = []field{
		{Name: "AMK_BULK_COPY", Value: bit(t.BulkCopy), Note: "cp.async.bulk and mbarrier"},
		{Name: "AMK_ASYNC_COPY", Value: bit(t.AsyncCopy), Note: "cp.async"},
		{Name: "AMK_TENSOR_CORES", Value: bit(b.usesMMA()), Note: "mma.m16n8k16 on 16-bit elements"},
	}
	if b.registerPool() {
		b.d.Features = append(b.d.Features, field{Name: "AMK_REGISTER_POOL", Value: "1",
			Note: "setmaxnreg: warps that do not compute give registers away"})
	}
	shared, slot := knobs.BlockBytes(&p.Config, t), knobs.ChunkBytes.Of(&p.Config)
	b.d.Machine = []field{
		{"int", "kSMs", itoa(t.SMs), "thread blocks, one per SM"},
		{"int", "kTokens", itoa(b.pass.NumTokens()), "tokens of a pass"},
		{"int", "kSequences", itoa(b.pass.NumSequences()), b.sequencesNote()},
		{"unsigned", "kSharedLimit", itoa(shared), "bytes of shared memory a block may use"},
	}
	if n := p.NumRanks(); n > 1 {
		b.d.Features = append(b.d.Features, field{Name: "AMK_RANKS", Value: "1", Note: "each GPU is one of kGPUs"})
		b.d.Machine = append(b.d.Machine, field{"int", "kGPUs", itoa(n), "GPUs that run the kernel at once"})
	}
	for _, k := range knobs.Constants() {
		c := k.Row().Constant
		b.d.Machine = append(b.d.Machine, field{c.Type, c.Name, itoa(k.Of(&p.Config)), c.Note})
		if k == knobs.ChunkBytes {
			b.d.Machine = append(b.d.Machine, field{"unsigned", "kMaxRingSlots", itoa(shared / slot),
				"upper bound; the scratch takes its part"})
		}
	}
	if knobs.StreamsApart(p) {
		b.longStream()
	}
	n := b.needs()
	size, plain := n.scratch(shared, slot, m, b.usesMMA()), kernel.ScratchOf(m, false, n.kept, n.columns...)
	if err := b.checkShared(shared, slot, &size, &n); err != nil {
		return err
	}
	if size.Compact {
		plain = kernel.CompactScratchOf(m, false, n.kept, n.columns...)
		b.d.Features = append(b.d.Features, field{Name: "AMK_COMPACT_SCRATCH", Value: "1",
			Note: "stages share their scratch: each for itself it would not fit"})
	}
	slots := size.Slots(shared, slot)
	b.slots = slots
	if err := b.checkStream(slots); err != nil {
		return err
	}
	if err := b.checkGroups(slot, slots); err != nil {
		return err
	}
	if err := cmp.Or(b.checkOwnRows(size.Rows), b.checkSums(size.Rows)); err != nil {
		return err
	}
	b.d.Scratch = []field{
		{"int", "kResidualRows", itoa(size.Rows), "most rows of the residual that an SM owns, floats"},
		{"int", "kAngleTables", itoa(size.Rotations), "tables of cos and sin"},
		{"int", "kBranchParts", itoa(b.mostParts()), "most parts of a branch whose norm is added"},
	}
	b.d.FragmentCache = b.cacheLayout() == ir.KVBlock16
	activations := "activations, without tensor cores"
	if b.pass.NumTokens() > 1 {
		activations = "activations of all tokens"
	}
	if n.kept.Chosen > 0 {
		b.d.Features = append(b.d.Features, field{Name: "AMK_EXPERTS", Value: "1",
			Note: "routers choose experts, whose weights are streamed then"})
	}
	b.d.Derived = []field{
		{"int", "kAttentionHeads", withTensorCores(size.WarpHeads, plain.WarpHeads), "heads a warp keeps results of"},
		{"int", "kAttentionOwn", withTensorCores(size.OwnScores, plain.OwnScores), "scores of own rows"},
		{"int", "kAttentionScratch", fmt.Sprintf("8 * kAttentionHeads * %d", size.ResultStride()),
			"8 warps, padded head and 4"},
		{"int", "kUnitScratch", withTensorCores(size.Unit, plain.Unit), "bytes: q heads, a cache block"},
		{"int", "kDigitScratch", withTensorCores(size.Digits, plain.Digits), "bytes: a vector in fixed point"},
		{"int", "kVectorScratch", withTensorCores(size.Vector, plain.Vector), activations},
		{"int", "kScratchBytes", withTensorCores(size.Others(), plain.Others()), "without residual and ring"},
	}
	if n.kept.Chosen > 0 {
		b.d.Derived = append(b.d.Derived, field{"int", "kMostChosen", itoa(n.kept.Chosen),
			"experts that a router chooses for a token, at most"})
	}
	return nil
}

// longStream states how the variants behind the first one stream, where that is not how the first one does.
func (b *builder) longStream() {
	b.d.Features = append(b.d.Features, field{Name: "AMK_LONG_STREAM", Value: "1",
		Note: "a stream of its own from kLongFrom on"})
	b.d.Machine = append(b.d.Machine, field{"int", "kLongFrom", itoa(b.p.Variants[0].Hi + 1),
		"from this position on a launch has its own of these"})
	for _, k := range knobs.VariantConstants() {
		c := k.Row().Constant
		b.d.Machine = append(b.d.Machine, field{c.Type, c.Name, itoa(k.Of(&b.p.Config)), c.Note})
	}
}

// sequencesNote says what the tokens of a pass are of sequences.
func (b *builder) sequencesNote() string {
	if b.pass.NumSequences() > 1 && b.pass.NumRows() > 1 {
		return "sequences of a pass: the same number of rows of each"
	}
	return "sequences of a pass: rows of one, or a row of each"
}

// registerPool reports whether the consumers of a block take registers from its other warps: passes of several tokens
// have activations in registers, and code for one architecture alone may use setmaxnreg.
func (b *builder) registerPool() bool {
	number, specific := strings.CutSuffix(strings.TrimPrefix(b.p.Target.Arch, "sm_"), "a")
	n, err := strconv.Atoi(number)
	return b.pass.NumTokens() > 1 && specific && err == nil && n >= 90
}

// cacheLayout returns the layout of the keys and values of attention.
func (b *builder) cacheLayout() ir.LayoutKind {
	for i := range b.p.Buffers {
		if buf := &b.p.Buffers[i]; buf.Kind == ir.KVCache && buf.Layout.Kind == ir.KVBlock16 {
			return ir.KVBlock16
		}
	}
	return ir.KVRows16
}

func itoa(n int) string { return strconv.Itoa(n) }

// withTensorCores is a constant that has one value with tensor cores and another without.
func withTensorCores(with, without int) string {
	if with == without {
		return itoa(with)
	}
	return fmt.Sprintf("AMK_TENSOR_CORES ? %d : %d", with, without)
}

func bit(v bool) string {
	if v {
		return "1"
	}
	return "0"
}

// hexFloat prints v exactly, as a float literal.
func hexFloat(v float64) string {
	return strconv.FormatFloat(float64(float32(v)), 'x', -1, 32) + "f"
}

func decimal(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
