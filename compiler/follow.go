package compiler

import (
	"fmt"
	"math"
	"slices"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/refvm"
	"amkc/runtime/host"
)

// A Follower computes, stage by stage, the largest permitted difference of two kernels of one build that add in the
// same order: the kernel on a GPU, and on another device. The reference VM runs a step on the values that one of them
// published, and tracks the errors of approximate functions (refvm.Options.SameSums).
type Follower struct {
	*oracle
	facts    *host.Facts
	model    *host.Model
	kernel   string // directory of the kernel
	variants []host.Variant
	reports  []*StageReport
}

// A StageReport compares the results of a stage on one device with those on a GPU for the same inputs, over all steps
// and layers.
type StageReport struct {
	Kernel    string  `json:"kernel,omitempty"` // directory of the kernel; none: of one token
	Stage     string  `json:"stage"`            // label without a layer
	Elements  int     `json:"elements"`
	Exact     int     `json:"exact"`     // of these: they have to be the same bits
	Different int     `json:"different"` // are not
	Ulp       float64 `json:"ulp"`       // the largest difference, in ulp of the element, or of the vector's RMS
	Bound     float64 `json:"bound"`     // the largest that would have been allowed, the same
	Share     float64 `json:"share"`     // the largest difference as a part of what is allowed for it
}

// A Beginning is the initial state of a step.
type Beginning struct {
	Position  int
	IDs       []int
	Cache     []byte
	Fragments bool // how the cache is laid out: host.Info.Fragments
}

// Traced are the values that a step published on a device, and appended to the cache.
type Traced struct {
	host.TracedStep
	Cache []byte
}

// A Disagreement is a value in which two devices differ and should not.
type Disagreement struct {
	Kind string // "difference": of bits, or "bound"
	Text string
}

// NewFollower returns a Follower of the kernel for such passes.
func NewFollower(b *PackedBuild, facts *host.Facts, pass ir.Pass) (*Follower, error) {
	f := &Follower{facts: facts, model: &facts.Model, kernel: pass.Dir(), variants: facts.Variants}
	program := b.Program
	if f.kernel != "" {
		var err error
		if program, err = b.Pass(f.kernel); err != nil {
			return nil, err
		}
		of, err := codegen.Facts(program)
		if err != nil {
			return nil, err
		}
		f.variants = of.Variants
	}
	var err error
	f.oracle, err = newOracle(b, program, refvm.Options{Round: refvm.Device, Radii: true, SameSums: true, Workers: 1})
	return f, err
}

// Stages returns the reports of the stages that were compared.
func (f *Follower) Stages() (all []StageReport) {
	for _, r := range f.reports {
		all = append(all, *r)
	}
	return all
}

// comparing compares one step.
type comparing struct {
	*Follower
	Beginning
	got, want *Traced
	name      string
	wrong     []Disagreement
}

func (c *comparing) found(kind, format string, args ...any) {
	c.wrong = append(c.wrong, Disagreement{kind, fmt.Sprintf(format, args...)})
}

// A pair is what a stage has published on both devices.
type pair struct{ got, want []float32 }

// Compare compares a step with that of a GPU, whose values were the inputs of its stages.
func (f *Follower) Compare(from Beginning, got, gpu *Traced) ([]Disagreement, error) {
	c := &comparing{Follower: f, Beginning: from, got: got, want: gpu,
		name: fmt.Sprintf("%d rows at position %d", len(from.IDs), from.Position)}
	if len(from.IDs) == 1 {
		c.name = fmt.Sprintf("position %d", from.Position)
	}
	err := c.compare()
	return c.wrong, err
}

// compare compares all stages, the tokens and the cache.
func (c *comparing) compare() error {
	at := slices.IndexFunc(c.variants, func(v host.Variant) bool { return v.Lo <= c.Position && c.Position <= v.Hi })
	if at < 0 {
		return diag.Errorf(codeTrace, "kernel", "decoded at position %d, for which the program has no variant",
			c.Position)
	}
	if len(c.want.Values) != len(c.got.Values) || len(c.want.Logits) != len(c.got.Logits) ||
		len(c.want.Cache) != len(c.got.Cache) {
		return diag.Errorf(codeTrace, "kernel", "publishes %d values, %d logits and %d bytes of the cache; the GPU "+
			"has published %d, %d and %d", len(c.got.Values), len(c.got.Logits), len(c.got.Cache), len(c.want.Values),
			len(c.want.Logits), len(c.want.Cache))
	}
	if n := len(c.IDs); len(c.got.Logits) != n*c.model.Vocab || len(c.got.Chosen) != n || len(c.want.Chosen) != n {
		return diag.Errorf(codeTrace, "kernel", "publishes %d logits and %d tokens after %d; the GPU has published "+
			"%d tokens, and the model has %d logits", len(c.got.Logits), len(c.got.Chosen), n, len(c.want.Chosen),
			c.model.Vocab)
	}
	pairs, last := map[string]pair{}, ""
	for i, e := range c.variants[at].Unrolled(len(c.got.Values)/max(1, c.got.Stride) + 1) {
		from := i * c.got.Stride
		if e.Elements < 0 || e.Elements > c.got.Stride || e.Elements > 0 && from+e.Elements > len(c.got.Values) {
			return diag.Errorf(codeTrace, "stage "+e.Stage, "the program publishes %d elements as vector %d; the "+
				"kernel has %d values, in vectors of %d at most", e.Elements, i+1, len(c.got.Values), c.got.Stride)
		}
		if e.Elements > 0 {
			pairs[e.Stage] = pair{c.got.Values[from:][:e.Elements], c.want.Values[from:][:e.Elements]}
			continue
		}
		pairs[e.Stage], last = pair{c.got.Logits, c.want.Logits}, e.Stage
	}
	rows := &cacheRows{c.Cache, c.facts, c.Fragments}
	stages, kept, err := c.follow(rows, pairs)
	if err != nil {
		return err
	}
	for i := range stages {
		c.vectors(&stages[i], pairs[stages[i].label])
		if stages[i].label == last {
			c.tokens(stages[i].apart)
		}
	}
	c.cache(rows, kept)
	return nil
}

// A followed stage publishes something.
type followed struct {
	label string
	dtype ir.DType
	apart []float64 // how far each element may be from that of the other kernel; 0: they are the same bits
}

// A keptCache is that of a layer.
type keptCache struct {
	layer int
	apart []float64 // [heads, positions, rows of each, elements], of what the pass has appended
}

// follow runs the step on the VM, with the values that stages published on the GPU.
func (c *comparing) follow(rows *cacheRows, pairs map[string]pair) (stages []followed, cache []keptCache, err error) {
	vm, err := c.session.At(c.Position)
	if err != nil {
		return nil, nil, err
	}
	caches := map[string]int{}
	for _, m := range c.buffers.Members() {
		b := &c.program.Buffers[m.Declared]
		if b.Kind != ir.KVCache {
			continue
		}
		caches[m.Name] = b.Index(m.K)
		values, scales := rows.of(caches[m.Name], b.Shape)
		if scales != nil {
			err = vm.WriteRows(m.Name, values, scales)
		} else {
			err = vm.Write(m.Name, values)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	vm.Certain()
	all, err := c.stages(c.Position)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		if p := pairs[s.name]; p.want != nil && !vm.Give(s.buffer, p.want) {
			return nil, nil, diag.Errorf(codeTrace, "stage "+s.name,
				"%d elements are published, and the program has %d", len(p.want), len(vm.Apart(s.buffer)))
		}
	}
	if _, _, err := c.session.Pass([]int{c.Position}, c.IDs); err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		if pairs[s.name].want == nil {
			continue
		}
		vm.Give(s.buffer, nil)
		m, err := c.buffers.At(s.buffer, 0)
		if err != nil {
			return nil, nil, err
		}
		stages = append(stages, followed{s.name, c.program.Buffers[m.Declared].DType, vm.Apart(s.buffer)})
	}
	if len(stages) != len(pairs) {
		return nil, nil, diag.Errorf(codeTrace, "trace", "the kernel publishes %d vectors, and the program has %d of "+
			"their names", len(pairs), len(stages))
	}
	for _, m := range c.buffers.Members() {
		if layer, ok := caches[m.Name]; ok {
			cache = append(cache, keptCache{layer, vm.Apart(m.Name)})
		}
	}
	return stages, cache, nil
}

// report is that of a stage.
func (c *comparing) report(stage string) *StageReport {
	for _, r := range c.reports {
		if r.Stage == stage {
			return r
		}
	}
	r := &StageReport{Kernel: c.kernel, Stage: stage}
	c.reports = append(c.reports, r)
	return r
}

// vectors compares what a stage publishes.
func (c *comparing) vectors(s *followed, p pair) {
	r := c.report(withoutLayer(s.label))
	wrong, first, kind := 0, "", ""
	squares := 0.0
	for _, w := range p.want {
		if size := float64(w) * float64(w); size <= math.MaxFloat32 { // maxima of parts without rows are infinite
			squares += size / float64(len(p.want))
		}
	}
	for i, allowed := range s.apart {
		got, want := p.got[i], p.want[i]
		if r.take(got, want, allowed, refvm.Ulp(s.dtype, max(math.Abs(float64(want)), math.Sqrt(squares)))) {
			continue
		}
		if wrong++; wrong > 1 {
			continue
		}
		kind = "bound"
		if allowed == 0 {
			kind = "difference"
		}
		first = fmt.Sprintf("element %d is %v here and %v on the GPU (%08x and %08x); they may be %.3g apart", i, got,
			want, math.Float32bits(got), math.Float32bits(want), allowed)
	}
	if wrong > 0 {
		c.found(kind, "stage %s, given what it was given on the GPU: %d of %d elements are not as they should be, "+
			"first in %s, %s: %s", withoutLayer(s.label), wrong, len(p.got), s.label, c.name, first)
	}
}

// take notes a pair of elements, and reports whether they are as they should be.
func (r *StageReport) take(got, want float32, allowed, ulp float64) bool {
	r.Elements++
	if allowed == 0 {
		r.Exact++
	}
	if finite := !math.IsInf(allowed, 0) && !math.IsNaN(allowed); finite {
		r.Bound = max(r.Bound, allowed/ulp)
	}
	if math.Float32bits(got) == math.Float32bits(want) {
		return true
	}
	r.Different++
	apart := math.Abs(float64(got) - float64(want))
	if !(apart <= allowed) || allowed == 0 { // and so if one of them is not a number
		return false
	}
	if !math.IsInf(apart, 0) { // nor is allowed finite, if it is
		r.Ulp, r.Share = max(r.Ulp, apart/ulp), max(r.Share, apart/allowed)
	}
	return true
}

// withoutLayer is the label of a stage of any layer.
func withoutLayer(label string) string {
	for i := range label {
		if label[i] == '.' {
			return label[i+1:]
		}
	}
	return label
}

// tokens compares those that were chosen: another one must be as good, as far as its logit is known. Where both logits
// are known to the bit there is no other one: of two that are equal, every device chooses the same.
func (c *comparing) tokens(apart []float64) {
	logits, vocab := c.want.Logits, c.model.Vocab
	for t, id := range c.want.Chosen {
		own := c.got.Chosen[t]
		if own == id {
			continue
		}
		if min(own, id) < 0 || max(own, id) >= vocab {
			c.found("difference", "%s: token %d is chosen here, and %d on the GPU; the model has %d", c.name, own, id,
				vocab)
			continue
		}
		gap := math.Abs(float64(logits[t*vocab+id]) - float64(logits[t*vocab+own]))
		allowed := apart[t*vocab+id] + apart[t*vocab+own]
		if !(gap <= allowed) || allowed == 0 { // and so if one of them is not a number
			c.found("difference", "%s: token %d is chosen here, and %d on the GPU, whose logits are %v apart", c.name,
				own, id, gap)
		}
	}
}

// cache compares what the step has left there: all bytes, but for keys that are normalised before they are kept.
func (c *comparing) cache(before *cacheRows, kept []keptCache) {
	got, want := *before, *before
	got.bytes, want.bytes = c.got.Cache, c.want.Cache
	rest := slices.Clone(got.bytes) // what must be the same
	r := c.report("cache")
	element := elementTypes[c.model.DType]
	wrong, first := 0, ""
	for _, k := range kept {
		m := c.facts.ModelOf(k.layer)
		for i, allowed := range k.apart {
			if allowed == 0 {
				continue
			}
			d, n, each := i%m.HeadDim, i/m.HeadDim, c.facts.RowsOf(k.layer)
			value, row, head := n%each == 1, n/each%m.MaxSeq, n/each/m.MaxSeq
			g, w := got.element(k.layer, head, row, d, value), want.element(k.layer, head, row, d, value)
			if !r.take(float32(g), float32(w), allowed, refvm.Ulp(element, w)) {
				if wrong++; wrong == 1 {
					first = fmt.Sprintf("element %d of a row of head %d in layer %d at position %d is %v here and %v "+
						"on the GPU; they may be %.3g apart", d, head, k.layer, row, g, w, allowed)
				}
			}
			at := got.at(k.layer, head, row, d, value)
			copy(rest[at:at+got.elementBytes(k.layer)], want.bytes[at:])
			if got.integers(k.layer) {
				at := got.scaleAt(k.layer, head, row, value)
				copy(rest[at:at+2], want.bytes[at:])
			}
		}
	}
	if wrong > 0 {
		c.found("bound", "cache after %s: %s", c.name, first)
	}
	r.Elements, r.Exact = r.Elements+len(rest), r.Exact+len(rest)
	at, n := -1, 0
	for i := range rest {
		if rest[i] != want.bytes[i] {
			if n++; n == 1 {
				at = i
			}
		}
	}
	if r.Different += n; n > 0 {
		c.found("difference", "cache after %s: bytes that are others than on the GPU: %d, the first is byte %d", c.name,
			n, at)
	}
}

var elementTypes = map[string]ir.DType{"BF16": ir.BF16, "F16": ir.F16, "F32": ir.F32}
