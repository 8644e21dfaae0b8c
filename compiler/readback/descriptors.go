package readback

import (
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/knobs"
)

// A body is what the device does for a stage: the functions of amk/ that the kernel calls with its descriptor.
type body int

const (
	embedBody   body = iota // step.cuh: embed
	productBody             // a function of stages.h; with that of the head, step.cuh: publish_best, sample
	attendBody              // attention_*.cuh: attend
	combineBody             // combine.cuh: combine
)

// A role is a stage of the step: the name of its descriptor without the variant's, its name in the IR and in knobs per
// stage, and what carries it out. What it reads and hands over is in the calls.
type role struct {
	descriptor, name string
	body             body
	knob             string // of matrix stages
}

var roles = []role{
	{"Embed", "embed", embedBody, ""},
	{"Qkv", "L{i}.qkv", productBody, "qkv"},
	{"Part", "L{i}.part", attendBody, ""},
	{"Attn", "L{i}.attn", attendBody, ""},
	{"O", "L{i}.o", productBody, "o"},
	{"GateUp", "L{i}.gate_up", productBody, "gate_up"},
	{"Down", "L{i}.down", productBody, "down"},
	{"LmHead", headStage, productBody, headStage},
}

const headStage = "lm_head"

// combining is Attn where Part comes before it: a descriptor with a kWidth.
var combining = role{"Attn", "L{i}.attn", combineBody, ""}

// inLayer reports whether the stage is one of a layer.
func (r *role) inLayer() bool { return r.body != embedBody && !r.head() }

// head reports whether the stage makes the logits.
func (r *role) head() bool { return r.knob == headStage }

// A descriptor is a struct of schedule.h: one stage, in every layer or in one alone.
type descriptor struct {
	*scope
	role
	wiring
	kind                                               int  // of the layers that have it; 0: of all
	single                                             bool // in one layer, whose number its name has
	layer                                              int
	rows, grain, units, columns, rotation, step, tasks int
	empty                                              bool
	splits, shareRows, window, width                   int
	eps, scale                                         float64
	normed                                             bool      // of attention: it normalises and rotates q and k
	function                                           *function // of a matrix stage
	finishedOps                                        []ir.Op   // what it computes
	adds                                               bool      // to the residual
}

// descriptors reads the structs of schedule.h.
func (b *builder) descriptors() {
	r := &b.schedule
	for _, s := range r.structs {
		d := &descriptor{scope: s}
		if !d.find() {
			r.fail(s.at, "struct %s is the descriptor of no stage; want Embed, Qkv, Attn, Part, O, GateUp, Down or "+
				"LmHead, after the name of a variant or none", s.name)
			continue
		}
		b.read(d)
		r.rest(s)
		b.stages = append(b.stages, d)
	}
}

// find looks up the role: the one whose name ends that of the descriptor. ShortO is o; no name is the end of two.
func (d *descriptor) find() bool {
	name := d.ofKind()
	for _, role := range roles {
		if strings.HasSuffix(name, role.descriptor) {
			d.role = role
			if d.descriptor == "Attn" && d.byName["kWidth"] != nil {
				d.role = combining
			}
			if d.inLayer() {
				d.layer, _, d.single = layerBefore(strings.TrimSuffix(name, role.descriptor))
			}
			if d.single {
				d.role.name, _ = ir.Resolve(d.role.name, d.layer) // the names are those of the table
			}
			return true
		}
	}
	return false
}

// ofKind notes the kind that the name of a descriptor ends with, if it does, and returns the rest.
func (d *descriptor) ofKind() string {
	rest := strings.TrimRight(d.scope.name, "0123456789")
	kind, err := strconv.Atoi(d.scope.name[len(rest):])
	before, is := strings.CutSuffix(rest, "Kind")
	if !is || err != nil || kind < 1 || kind > most {
		return d.scope.name
	}
	d.kind = kind
	return before
}

// layerBefore takes a layer off the end of a name: ShortL03 is layer 3 after Short.
func layerBefore(name string) (layer int, rest string, ok bool) {
	rest = strings.TrimRight(name, "0123456789")
	digits := name[len(rest):]
	rest, isLayer := strings.CutSuffix(rest, "L")
	n, err := strconv.Atoi(digits)
	if !isLayer || err != nil || len(digits) < 2 || len(digits) > 2 && digits[0] == '0' || n >= most {
		return 0, name, false
	}
	return n, rest, true
}

// layerOf takes the layer off the front of what a constant is named after: L03QkvWeight is QkvWeight of layer 3.
func layerOf(name string) (layer int, rest string, ok bool) {
	end := 1
	for end < len(name) && name[end] >= '0' && name[end] <= '9' {
		end++
	}
	layer, before, ok := layerBefore(name[:min(end, len(name))])
	if !ok || before != "" {
		return 0, name, false
	}
	return layer, name[end:], true
}

// read takes the constants that the body of the descriptor's stage uses.
func (b *builder) read(d *descriptor) {
	r, s := &b.schedule, d.scope
	d.rotation, d.step, d.tasks = r.int(s, "kRotation"), r.int(s, "kRotationStep"), r.positive(s, "kTasks")
	switch d.body {
	case attendBody:
		d.units, d.splits, d.shareRows = b.unitsOf(s), r.positive(s, "kSplits"), r.positive(s, "kShareRows")
		d.window, d.scale = r.int(s, "kWindowRows"), r.float(s, "kScale")
		if d.normed = s.byName["kNormEps"] != nil; d.normed {
			d.eps = r.float(s, "kNormEps")
		}
		b.checkShare(d)
		return
	case combineBody:
		d.units, d.splits, d.width = b.unitsOf(s), r.positive(s, "kSplits"), r.positive(s, "kWidth")
		if b.facts.headDim%d.width != 0 {
			r.wrong(s, "kWidth", "%d; want pieces that a head of %d elements is cut into", d.width, b.facts.headDim)
		}
		return
	}
	d.rows, d.grain = r.positive(s, "kRows"), r.positive(s, "kGrain")
	if d.grain%8 != 0 {
		r.wrong(s, "kGrain", "%d; want whole tiles of 8 rows", d.grain)
	}
	if d.body == embedBody {
		return
	}
	d.columns, d.empty = r.positive(s, "kColumns"), r.bool(s, "kEmpty")
	for _, k := range knobs.StageConstants() {
		b.stageKnob(d, k, r.knob(s, k.Row()))
	}
}

// unitsOf takes the number of units, which are tasks each.
func (b *builder) unitsOf(s *scope) int {
	n := b.schedule.positive(s, "kUnits")
	if n > maxUnits {
		b.schedule.wrong(s, "kUnits", "%d; want at most %d", n, maxUnits)
	}
	return n
}

// maxUnits bounds the tasks of an attention stage.
const maxUnits = 1 << 16

// stageKnob notes the value of a knob for a stage. Descriptors of one stage in several variants agree.
func (b *builder) stageKnob(d *descriptor, k knobs.PerStage, n int) {
	if before, seen := k.Stated(&b.p.Config, d.knob); seen && before != n {
		b.schedule.wrong(d.scope, k.Row().Constant.Name, "%d, and %d in another variant; want the same", n, before)
	}
	k.Set(&b.p.Config, d.knob, n)
}

// checkShare holds the rows of a chunk to the ring: whole blocks of 16 rows that fit a slot. A unit that has all the
// rows of a head takes as many as fit, at most a block for each of the 8 warps.
func (b *builder) checkShare(d *descriptor) {
	block := 2 * 16 * ((b.facts.headDim + 15) / 16 * 16) * b.facts.dtype.Bits() / 8
	fit := knobs.ChunkBytes.Of(&b.p.Config) / block
	if d.splits == 1 {
		b.schedule.same(d.scope, "kShareRows", d.shareRows, 16*max(1, min(8, fit)), "the blocks that fit a ring slot")
	} else if d.shareRows%16 != 0 || d.shareRows/16 > fit {
		b.schedule.wrong(d.scope, "kShareRows", "%d; want blocks of 16 rows, at most the %d that fit a ring slot",
			d.shareRows, fit)
	}
}
