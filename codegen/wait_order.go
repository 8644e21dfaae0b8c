package codegen

import (
	"cmp"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// The kernel has no waits of its own for each stage. All SMs walk the stages of a step in one order, and a stage
// waits for what was published last: by the epoch of that exchange, or by its counter and its number of tasks. A stage
// may wait for an exchange that was kept instead: the first stage that sees one as the last keeps it. So the program
// must say the same, stage by stage and iteration by iteration; otherwise the kernel would wait for another exchange
// than the one that was proved, or forever.

// waitOrder walks the steps of one variant in the order of the kernel.
type waitOrder struct {
	last    *ir.Stage         // that has published a vector; nil before the first one
	counter string            // which announces it
	held    map[int]string    // the counters of the exchanges that are kept
	by      map[string]string // the stage that signals a counter, as it is called in its iteration
	begun   bool              // every SM has the token's row
	due     *ir.Stage         // has a norm that the next reader of the residual adds
	ids     string            // of the experts that were chosen last
	shares  string            // and of their weights
	routed  int               // layers up to that of the last router
	gate    string            // of the expert that every token has
	hidden  int               // stages that keep the last hidden state, so far
	ends    int               // stages that end the step, so far
	b       *builder
}

// checkWaitOrder holds the waits and signals of each variant to the order in which the kernel waits.
func (b *builder) checkWaitOrder() error {
	for i := range b.p.Variants {
		v, h := &b.p.Variants[i], waitOrder{b: b, by: map[string]string{}, held: map[int]string{}}
		if err := eachStep(v, h.stage); err != nil {
			return err
		}
		if h.ends < len(kernel.Endings) {
			return diag.Errorf(codeStructure, "variant "+v.Name, "no stage ends the step as the kernel's %s: want %v, "+
				"after the product that makes the logits", kernel.Endings[h.ends], kernel.Endings)
		}
		if h.hidden == 0 {
			return diag.Errorf(codeStructure, "variant "+v.Name, "no stage keeps the last hidden state, which the "+
				"host may ask for: want the norm that the logits are made of in an output of role %s", ir.RoleHidden)
		}
	}
	return nil
}

// eachStep calls f for the stages of a step in the order of the kernel, in each iteration of their loop.
func eachStep(v *ir.Variant, f func(s *ir.Stage, at site, index int) error) error {
	for _, n := range v.Body {
		stages, at := []*ir.Stage(nil), site{}
		switch n := n.(type) {
		case *ir.Stage:
			stages = []*ir.Stage{n}
		case *ir.Loop:
			stages, at = n.Body, site{loop: n}
		}
		for k, index := range at.indices() {
			for _, s := range stages {
				if at.loop != nil && !at.loop.Runs(s, k) {
					continue
				}
				if err := f(s, at, index); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// A reading is how a stage comes by the exchange that it waits for: as which number it keeps the last one for a later
// stage, and which of those that were kept it reads.
type reading struct{ holds, held int }

// placeReadings finds the stages that do not wait for what was published last, and those that keep it for them. What is
// kept has a number by what it is called, whatever its layer.
func (b *builder) placeReadings() error {
	b.readings = map[*ir.Stage]reading{}
	numbers := map[string]int{}
	for i := range b.p.Variants {
		var last string                // counter of the last exchange
		sees := map[string]*ir.Stage{} // the first stage that has the exchange of a counter for the last
		err := eachStep(&b.p.Variants[i], func(s *ir.Stage, _ site, index int) error {
			kind, err := classify(s)
			if err != nil || kind.Unlisted {
				return err
			}
			if sees[last] == nil && !kind.Asked {
				sees[last] = s
			}
			for _, wait := range lateWaits(s, kind) {
				waited, err := ir.Resolve(wait.Counter, index)
				first := sees[waited]
				if err == nil && waited != last && first != nil && keeps(kernel.Of(first)) {
					_, of, _ := strings.Cut(waited, ".")
					if numbers[of] == 0 {
						numbers[of] = len(numbers) + 1
					}
					r, f := b.readings[s], b.readings[first]
					r.held, f.holds = numbers[of], numbers[of]
					if first == s {
						f.held = r.held
					}
					b.readings[s], b.readings[first] = r, f
				}
			}
			if advances(s) {
				last, err = ir.Resolve(s.Signal, index)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lateWaits are those of a stage that may be for an exchange before the last.
func lateWaits(s *ir.Stage, kind *kernel.Body) []ir.Wait {
	switch n := len(s.Waits); {
	case kind.ReadsTwo && n == 2:
		return s.Waits[1:]
	case n == 1 && kind.ReadsLate():
		return s.Waits
	}
	return nil
}

// keeps reports whether a body may keep an exchange.
func keeps(b *kernel.Body) bool { return b != nil && b.Holds() }

// stage looks at a stage in the iteration with an index.
func (h *waitOrder) stage(s *ir.Stage, at site, index int) error {
	kind, err := h.b.classify(s)
	switch {
	case err != nil:
		return err
	case h.ends > 0 || kind.EndsStep():
		return h.end(s, kind, at, index)
	case kind.Unlisted:
		return nil
	}
	if h.due != nil && !kind.Replicated() && !h.reads(s, kind) {
		return diag.Errorf(codeStructure, "stage "+s.Name, "comes between stage %s, which adds to the residual, and "+
			"one that reads it: want them side by side, for the kernel adds where it reads", h.due.Name)
	}
	if err := cmp.Or(h.wait(s, kind, index), h.chosen(s, kind, at, index)); err != nil {
		return err
	}
	if kind.Asked { // where a launch asks for it, so that what is due stays so
		if h.hidden++; h.hidden > 1 || s.Signal != "" {
			return diag.Errorf(codeStructure, "stage "+s.Name, "signals %s, or keeps the last hidden state once more: "+
				"want one stage that does, and no signal", counterName(s.Signal))
		}
		return nil
	}
	h.due = nil
	if kind.Replicated() {
		if s.Signal != "" || kind.Begins && at.loop != nil {
			return diag.Errorf(codeStructure, "stage "+s.Name, "signals %s, or looks up a token in a loop; the "+
				"kernel's %s does neither: want no signal, and the token's row before the loops",
				counterName(s.Signal), kind)
		}
		if h.begun = true; !kind.Begins {
			h.due = s
		}
		return nil
	}
	if !advances(s) {
		if h.b.handedOver(s, at) > 0 {
			return diag.Errorf(codeStructure, "stage "+s.Name, "publishes its rows and signals nothing: want a "+
				"counter that announces them")
		}
		return nil
	}
	if kind.Begins && (at.loop != nil || s.Dist.Empty) {
		return diag.Errorf(codeStructure, "stage "+s.Name,
			"begins a step, on the SMs that have rows of it: want it in no loop, and not empty")
	}
	name, err := ir.Resolve(s.Name, index)
	if err != nil {
		return err
	}
	counter, err := ir.Resolve(s.Signal, index)
	if err != nil {
		return err
	}
	if h.b.steps[counter] {
		return diag.Errorf(codeStructure, "stage "+name,
			"signals %s, as the kernel does where a step ends and nowhere else: want the counter of its vector, or "+
				"none", counter)
	}
	if other, taken := h.by[counter]; taken && counter != "" {
		return diag.Errorf(codeStructure, "stage "+name,
			"signals %s, and so does stage %s: want a counter for each, as the kernel has", counter, other)
	}
	h.by[counter], h.last, h.counter = name, s, counter
	return nil
}

// reads reports whether a stage reads the residual of its SM.
func (h *waitOrder) reads(s *ir.Stage, kind *kernel.Body) bool {
	return kind.ReadsResidual && h.b.readsResidual(s)
}

// wait holds the wait of a stage to the exchange before it. EMBED and what reads the residual of its SM read no vector
// and wait for none.
func (h *waitOrder) wait(s *ir.Stage, kind *kernel.Body, index int) error {
	resident := h.reads(s, kind)
	if kind.Begins || resident {
		if len(s.Waits) > 0 {
			return diag.Errorf(codeStructure, "stage "+s.Name, "waits for %s, and reads nothing that is published: "+
				"want no wait, as the kernel has none", s.Waits[0].Counter)
		}
		if resident && !h.begun {
			return diag.Errorf(codeStructure, "stage "+s.Name,
				"comes first in the step, and the residual has no token's row: want %s before it", ir.EMBED)
		}
		return nil
	}
	if h.last == nil {
		return diag.Errorf(codeStructure, "stage "+s.Name,
			"comes first in the step, and no stage publishes what it reads: want one of %s before it", ir.EMBED)
	}
	waited := "nothing"
	for i, w := range s.Waits {
		counter, err := ir.Resolve(w.Counter, index)
		if err != nil {
			return err
		}
		if i == 0 {
			waited = counter
			continue
		}
		waited += " and " + counter
	}
	want, how := h.counter, h.b.readings[s]
	if how.holds > 0 {
		h.held[how.holds] = h.counter
	}
	switch held := h.held[how.held]; {
	case kind.ReadsTwo:
		want += " and " + counterName(held)
	case how.held > 0:
		want = held
	}
	if waited != want {
		return diag.Errorf(codeStructure, "stage "+s.Name,
			"waits for %s, and the kernel for %s, which the stage before it, %s, publishes: want a wait for that, "+
				"and the stage right after the one whose vector it reads",
			waited, counterName(want), h.last.Name)
	}
	return nil
}

// end looks at a stage that ends the step, or comes after one that does.
func (h *waitOrder) end(s *ir.Stage, kind *kernel.Body, at site, index int) error {
	if h.ends == len(kernel.Endings) || kind != kernel.Endings[h.ends] || at.loop != nil {
		return diag.Errorf(codeStructure, "stage "+s.Name, "is not a stage that the kernel can end a step with here: "+
			"want %v in this order, in no loop, each once, and nothing after them", kernel.Endings)
	}
	if h.due != nil {
		return diag.Errorf(codeStructure, "stage "+s.Name, "ends the step before a stage reads the residual that "+
			"stage %s adds to: want one, for the kernel adds where it reads", h.due.Name)
	}
	if h.ends < len(kernel.Endings)-1 && s.Signal != "" {
		return diag.Errorf(codeStructure, "stage "+s.Name, "signals %s, and the kernel's %s nothing: want that",
			s.Signal, kind)
	}
	h.ends++
	if len(kind.Args) > 0 { // it reads what was published
		return h.wait(s, kind, index)
	}
	if len(s.Waits) > 0 {
		return diag.Errorf(codeStructure, "stage "+s.Name,
			"waits for %s, and the kernel goes on with what its own SM has left: want no wait", s.Waits[0].Counter)
	}
	return nil
}

// counterName is a counter in a sentence.
func counterName(name string) string {
	if name == "" {
		return "nothing"
	}
	return name
}
