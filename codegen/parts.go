package codegen

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/kernel"
	"amkc/runtime/host"
)

// What it would cost to launch a kernel for every layer, or for every stage, is measured by a kernel that does a list
// of stages of one layer and nothing else (part.cuh). measure.cu has it. It goes straight to each stage of its list, so
// that a launch takes no time for those that others do.

// A partStage is a stage as such a launch does it.
type partStage struct {
	Enum, Struct string
	Tasks        bool // its descriptor has the number of tasks that publish its result
	walk         []string
	consume      []string
}

// afterStep closes the walk of the consumers. Two calls follow those that end a step which are the same in every kernel
// and belong to no stage: one stores the token for a host that polls, one ends the launch.
var afterStep = []string{"tell_host(c);", "if (stopped(c)) break;"}

// endsLaunch is the statement with which a step ends its launch. That of some stages has no other step, and leaves the
// token instead.
var endsLaunch = afterStep[len(afterStep)-1]

// noteStage keeps the lines of a stage for launches of it alone, with what it takes up from the launches before. Stages
// without a number end the step, and belong to the one before them.
func (b *builder) noteStage(s *ir.Stage, kind *kernel.Body, st *stage, walk, consume []string) {
	if kind.Unlisted {
		if n := len(b.noted); n > 0 {
			for _, statement := range consume {
				if statement == endsLaunch {
					statement = "leave_token(c);"
				}
				b.noted[n-1].consume = append(b.noted[n-1].consume, statement)
			}
		}
		return
	}
	p := partStage{Enum: st.Enum, Struct: st.Struct, Tasks: advances(s), walk: walk}
	if op(s, ir.ROPE).In != nil {
		for _, r := range b.d.Rotations {
			p.consume = append(p.consume, r.call())
		}
		if kind.Streams == kernel.CacheRows {
			p.consume = append(p.consume, "consumer_barrier();")
		}
	}
	switch {
	case op(s, ir.EMBED).In != nil:
		p.consume = append(p.consume, "has_residual = true;", "take_token(c);")
	case addsToResidual(s):
		p.consume = append(p.consume, "take_residual(c, has_residual);")
	}
	p.consume = append(p.consume, consume...)
	b.noted = append(b.noted, p)
}

// Walk and Consume are the lines of its case in walk() and consume().
func (p *partStage) Walk() []string    { return inCase(p.walk, turnIndent) }
func (p *partStage) Consume() []string { return inCase(p.consume, "") }

func inCase(statements []string, further string) (lines []string) {
	for _, s := range statements {
		lines = append(lines, call("      "+further, s)...)
	}
	return lines
}

// parts are the stages of a program that can be launched separately: one whose layers are a loop over all of them,
// every stage of which publishes its result to the next one, and whose other stages are those of all variants.
// nil: what a stage takes up is more than the residual and one exchange, or depends on more than the layer, or comes
// from other GPUs.
func (b *builder) parts() []partStage {
	based := func(statements func(p *partStage) []string) bool {
		return slices.ContainsFunc(b.noted, func(p partStage) bool {
			return slices.ContainsFunc(statements(&p), func(s string) bool { return strings.Contains(s, "base + ") })
		})
	}
	if !based((*partStage).Walk) || !based((*partStage).Consume) { // weights of the layers lie elsewhere
		return nil
	}
	alone := b.pass.NumTokens() == 1 && b.p.NumRanks() == 1
	if !alone || b.d.Replicates || len(b.d.Kinds) > 0 || len(b.readings) > 0 {
		return nil
	}
	first := sections(&b.p.Variants[0])
	for i := range b.p.Variants {
		longest, loops := 0, 0
		for k, sec := range sections(&b.p.Variants[i]) {
			if l := sec.loop; l == nil {
				if sec.stages[0].Layer.Known || !sameStage(sec.stages[0], first[k].stages[0]) {
					return nil
				}
				longest += len(sec.stages)
				continue
			} else if l.First != 0 || l.Step > 1 || l.Count != b.p.Model.Layers {
				return nil
			}
			loops++
			if slices.ContainsFunc(sec.stages, func(s *ir.Stage) bool { return !advances(s) }) {
				return nil
			}
			longest += len(sec.stages)
		}
		if loops != 1 || longest > host.PartStages {
			return nil
		}
	}
	return b.noted
}
