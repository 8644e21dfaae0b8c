package readback

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/kernel"
	"amkc/knobs"
)

// A descriptor is a struct of schedule.h: one stage, in every layer or in one alone. Its body and where it
// runs is in its first call.
type descriptor struct {
	*scope
	kernel.Stage
	call        *kernelCall
	called      int // which of the calls of the consumers is its first
	body        *kernel.Body
	name, knob  string // in the IR, and in knobs per stage
	kind        int    // of the layers that have it; 0: of all
	single      bool   // in one layer, whose number its name has
	layer       int
	function    *function  // of a matrix stage
	finishedOps []ir.Op    // what it computes
	adds        bool       // to the residual
	storage     ir.Storage // of its matrix, if that is quantised
}

// inLayer reports whether the stage is one of a layer.
func (d *descriptor) inLayer() bool { return d.single || d.looped() }

// looped reports whether the stage is in the loop over the layers.
func (d *descriptor) looped() bool { return d.call.looped }

// handsOver reports whether the stage ends an exchange: all do but a product that adds to the residual alone, and what
// keeps the last hidden state.
func (d *descriptor) handsOver() bool { return d.Out != "" }

// afterLayers reports whether the stage reads what the last layer publishes.
func (d *descriptor) afterLayers() bool { return d.head() || d.body.Asked }

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
		d := &descriptor{scope: s, call: &b.computed.calls[i], called: i, Stage: kernel.Named}
		if !b.identify(d) {
			continue
		}
		b.read(d)
		r.rest(s)
		b.stages = append(b.stages, d)
	}
}

// identify finds the body of a stage, and takes its name in the IR from that of the descriptor: what the variant,
// the layer and the kind add to it is known from where it is called.
func (b *builder) identify(d *descriptor) bool {
	c, name := d.call, d.scope.name
	if d.body = kernel.Find(c.what); d.body == nil || d.body.Unlisted {
		d.body = kernel.Product
	}
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

// read takes the constants of the descriptor of a stage.
func (b *builder) read(d *descriptor) {
	r, s := &b.schedule, d.scope
	if d.body.Matrix(&d.Stage) != nil {
		b.readStorage(d)
	}
	d.OwnHeads = b.facts.HeadsDiffer
	for i := range d.body.Fields {
		b.readField(d, &d.body.Fields[i])
	}
	for i := range d.body.Fields {
		f := &d.body.Fields[i]
		if f.Wants == nil {
			continue
		}
		if want := f.Wants(b.factsOf(b.layerOf(d)), &d.Stage); want != "" {
			switch at := f.At(&d.Stage).(type) {
			case *int:
				r.wrong(s, f.Name, "%d; want %s", *at, want)
				*at = 1
			case *bool:
				r.wrong(s, f.Name, "%t; want %s", *at, want)
			}
		}
	}
	if d.body.Temps != nil {
		d.Temps = d.body.Temps(&d.Stage)
	}
	if d.Rotates {
		d.Angles = *b.rotation(r, d.at, d.AngleTable)
	}
	if d.body.Streams == kernel.Tiles {
		for _, k := range knobs.StageConstants() {
			b.stageKnob(d, k, r.knob(s, k.Row()))
		}
	}
	m := &b.facts
	m.replicated, m.normRows = m.replicated || d.body.Replicated(), m.normRows || d.body.Keeps&kernel.BranchRows != 0
	m.OwnGains, m.Positions = m.OwnGains || d.OwnGains, max(m.Positions, d.Positions)
}

// readField takes a constant, if it is there or has to be.
func (b *builder) readField(d *descriptor, f *kernel.Field) {
	r, s := &b.schedule, d.scope
	there := s.byName[f.Name] != nil
	if f.Opens {
		*f.If(&d.Stage) = there
	}
	if f.If != nil && !*f.If(&d.Stage) {
		return
	}
	switch at := f.At(&d.Stage).(type) {
	case *int:
		switch {
		case f.Default != nil && !there:
			*at = f.Default.(int)
		case f.Positive:
			*at = r.positive(s, f.Name)
		default:
			*at = r.int(s, f.Name)
		}
		if f.Most > 0 && *at > f.Most {
			r.wrong(s, f.Name, "%d; want at most %d", *at, f.Most)
			*at = 1
		}
	case *bool:
		*at = (f.Default == nil || there) && r.bool(s, f.Name)
	case *float64:
		if f.Default == nil || there {
			*at = r.float(s, f.Name)
		} else {
			*at = f.Default.(float64)
		}
	}
}

// stageKnob notes the value of a knob for a stage. Descriptors of one stage in several variants agree.
func (b *builder) stageKnob(d *descriptor, k knobs.PerStage, n int) {
	if !k.Row().IsOf(d.knob) {
		b.schedule.same(d.scope, k.Row().Constant.Name, n, k.Of(&b.p.Config, d.knob), "of stages without the knob")
		return
	}
	if before, seen := k.Stated(&b.p.Config, d.knob); seen && before != n {
		b.schedule.wrong(d.scope, k.Row().Constant.Name, "%d, and %d in another variant; want the same", n, before)
	}
	k.Set(&b.p.Config, d.knob, n)
}
