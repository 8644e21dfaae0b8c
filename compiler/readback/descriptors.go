package readback

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/knobs"
)

// A body is what the device does for a stage: the functions of amk/ that the kernel calls with its descriptor.
type body int

const (
	embedBody           body = iota // step.cuh: embed
	embedReplicatedBody             // replicated.cuh: embed_replicated
	addNormBody                     // replicated.cuh: add_norm
	addNormRowsBody                 // norm_rows.cuh: add_norm_rows
	productBody                     // a function of stages.h; with that of the head, step.cuh: publish_best, sample
	attendBody                      // attention_*.cuh: attend
	combineBody                     // combine.cuh: combine
)

// bodies are what the functions of amk/ do that the kernel calls with a descriptor.
var bodies = map[string]body{"embed": embedBody, "embed_replicated": embedReplicatedBody, "add_norm": addNormBody,
	"add_norm_rows": addNormRowsBody, "attend": attendBody, "combine": combineBody}

// replicated reports whether the body is for a residual that every SM has all of, and hands nothing over.
func (b body) replicated() bool { return b == embedReplicatedBody || b == addNormBody }

// A descriptor is a struct of schedule.h: one stage, in every layer or in one alone. What carries it out and where it
// runs is in its first call.
type descriptor struct {
	*scope
	wiring
	call                                               *kernelCall
	body                                               body
	name, knob                                         string // in the IR, and in knobs per stage
	kind                                               int    // of the layers that have it; 0: of all
	single                                             bool   // in one layer, whose number its name has
	layer                                              int
	rows, grain, units, columns, rotation, step, tasks int
	splitK                                             int // parts of the columns, whose rows follow each other
	parts                                              int // of a branch whose norm it adds to the residual
	empty                                              bool
	holds, readsHeld                                   bool // it keeps what it reads; it reads what was kept
	splits, shareRows, window, width                   int
	eps, scale, scoreCap                               float64
	unitOffset                                         bool       // its norms multiply by 1 + weight
	normed, wholeNorm                                  bool       // of attention: it normalises q and k; all of each
	centred, shifted, ownGains                         bool       // it takes means off, adds biases; heads have gains
	angles                                             *rotation  // that attention rotates q and k by; nil: by none
	scaled                                             bool       // of embed: it multiplies rows by scale
	positionOffset                                     int        // of embed: the row of position 0
	function                                           *function  // of a matrix stage
	finishedOps                                        []ir.Op    // what it computes
	adds                                               bool       // to the residual
	storage                                            ir.Storage // of its matrix, if that is quantised
}

// inLayer reports whether the stage is one of a layer.
func (d *descriptor) inLayer() bool { return d.single || d.looped() }

// looped reports whether the stage is in the loop over the layers.
func (d *descriptor) looped() bool { return d.call.looped }

// handsOver reports whether the stage ends an exchange: all do but a product that adds to the residual alone.
func (d *descriptor) handsOver() bool { return d.out != "" }

// head reports whether the stage makes the logits.
func (d *descriptor) head() bool { return d.call.best }

// descriptors reads the structs of schedule.h.
func (b *builder) descriptors() {
	r := &b.schedule
	calls := map[string]int{}
	for i := len(b.computed.calls) - 1; i >= 0; i-- {
		calls[b.computed.calls[i].entered] = i
	}
	for _, s := range r.structs {
		i, called := calls["kStage"+s.name]
		if !called {
			r.fail(s.at, "struct %s is of no stage that megakernel.cu calls; want a call after c.enter(kStage%s)",
				s.name, s.name)
			continue
		}
		d := &descriptor{scope: s, call: &b.computed.calls[i]}
		d.called = i
		if !b.identify(d) {
			continue
		}
		b.read(d)
		r.rest(s)
		b.stages = append(b.stages, d)
	}
}

// identify says what carries a stage out, and takes its name in the IR from that of the descriptor: what the variant,
// the layer and the kind add to it is known from where it is called.
func (b *builder) identify(d *descriptor) bool {
	c, name := d.call, d.scope.name
	before, after := "", ""
	if all := uint(1)<<len(b.ends) - 1; c.variants != all {
		end := b.ends[bits.TrailingZeros(c.variants)]
		before = strings.TrimSuffix(strings.TrimPrefix(end, "k"), "End")
	}
	if d.kind = c.kind; c.kind > 0 {
		after = "Kind" + strconv.Itoa(c.kind)
	}
	if d.single = c.layer >= 0; d.single {
		d.layer = c.layer
		before += fmt.Sprintf("L%02d", c.layer)
	}
	stage, first := strings.CutPrefix(name, before)
	stage, last := strings.CutSuffix(stage, after)
	if !first || !last || stage == "" {
		b.schedule.fail(d.at, "struct %s is called where the name begins with %q and ends with %q; want that", name,
			before, after)
		return false
	}
	d.knob = snake(stage)
	if d.name = d.knob; d.inLayer() {
		d.name = b.outside(d, "L{i}."+d.knob)
	}
	known := false
	if d.body, known = bodies[c.what]; !known {
		d.body = productBody
	}
	return true
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
	switch d.body {
	case productBody, embedBody, embedReplicatedBody:
		b.readStorage(d)
	}
	switch d.body {
	case embedReplicatedBody:
		b.facts.replicated = true
		b.readScale(d)
		return
	case addNormBody:
		b.readBranch(d)
		return
	}
	d.rotation, d.step, d.tasks = r.int(s, "kRotation"), r.int(s, "kRotationStep"), r.int(s, "kTasks")
	switch d.body {
	case attendBody:
		d.units, d.splits, d.shareRows = b.unitsOf(s), r.positive(s, "kSplits"), r.positive(s, "kShareRows")
		d.window, d.scale, d.scoreCap = r.int(s, "kWindowRows"), r.float(s, "kScale"), r.float(s, "kScoreCap")
		if d.normed = s.byName["kNormEps"] != nil; d.normed {
			d.eps, d.unitOffset = r.float(s, "kNormEps"), r.bool(s, "kNormUnitOffset")
			d.wholeNorm, d.ownGains = r.bool(s, "kWholeNorm"), r.bool(s, "kOwnGains")
			d.centred, d.shifted = r.bool(s, "kNormCentred"), r.bool(s, "kNormShifted")
			if d.wholeNorm && (d.centred || !d.ownGains) || d.shifted && !d.centred {
				r.fail(d.at, "%s has norms that no reader of attention.cuh computes: want kWholeNorm with kOwnGains "+
					"and without kNormCentred, and kNormShifted with kNormCentred alone", s.name)
			}
			b.facts.ownGains = b.facts.ownGains || d.ownGains
			if r.bool(s, "kRotates") {
				d.angles = b.rotation(r, d.at, r.int(s, "kAngles"))
			}
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
	if d.body == addNormRowsBody {
		b.readBranch(d)
		b.facts.normRows = true
		return
	}
	if d.body == embedBody {
		b.readScale(d)
		if s.byName["kPositions"] != nil {
			b.facts.positions, d.positionOffset = r.positive(s, "kPositions"), r.int(s, "kPositionOffset")
			if b.facts.positions > most {
				r.wrong(s, "kPositions", "%d; want at most %d", b.facts.positions, most)
			}
		}
		return
	}
	d.columns, d.empty = r.positive(s, "kColumns"), r.bool(s, "kEmpty")
	if d.splitK = 1; s.byName["kSplitK"] != nil {
		d.splitK = b.partsOf(s, "kSplitK")
	}
	d.holds = s.byName["kHolds"] != nil && r.bool(s, "kHolds")
	d.readsHeld = s.byName["kReadsHeld"] != nil && r.bool(s, "kReadsHeld")
	for _, k := range knobs.StageConstants() {
		b.stageKnob(d, k, r.knob(s, k.Row()))
	}
}

// readBranch takes what is said of a branch whose norm is added to the residual.
func (b *builder) readBranch(d *descriptor) {
	r, s := &b.schedule, d.scope
	d.eps, d.unitOffset = r.float(s, "kNormEps"), r.bool(s, "kUnitOffset")
	if d.parts = 1; s.byName["kParts"] != nil {
		d.parts = b.partsOf(s, "kParts")
	}
}

// readScale takes what rows of the embedding are multiplied by, if anything.
func (b *builder) readScale(d *descriptor) {
	if d.scaled = d.scope.byName["kScale"] != nil; d.scaled {
		d.scale = b.schedule.float(d.scope, "kScale")
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
	if !slices.Contains(k.Row().Stages, d.knob) {
		b.schedule.same(d.scope, k.Row().Constant.Name, n, k.Of(&b.p.Config, d.knob), "of stages without the knob")
		return
	}
	if before, seen := k.Stated(&b.p.Config, d.knob); seen && before != n {
		b.schedule.wrong(d.scope, k.Row().Constant.Name, "%d, and %d in another variant; want the same", n, before)
	}
	k.Set(&b.p.Config, d.knob, n)
}

// checkShare holds the rows of a chunk to the ring: whole blocks of 16 rows that fit a slot. A unit that has all the
// rows of a head takes as many as fit, at most a block for each of the 8 warps.
func (b *builder) checkShare(d *descriptor) {
	block := ir.CacheBlock(b.facts.dtypes.Cache, b.facts.headDim)
	fit := knobs.ChunkBytes.Of(&b.p.Config) / block
	if d.splits == 1 {
		b.schedule.same(d.scope, "kShareRows", d.shareRows, 16*max(1, min(8, fit)), "the blocks that fit a ring slot")
	} else if d.shareRows%16 != 0 || d.shareRows/16 > fit {
		b.schedule.wrong(d.scope, "kShareRows", "%d; want blocks of 16 rows, at most the %d that fit a ring slot",
			d.shareRows, fit)
	}
}
