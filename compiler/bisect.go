package compiler

import (
	"context"
	"slices"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/refvm"
	"amkc/runtime/host"
	"amkc/runtime/progress"
)

var codeTrace = diag.New("AMK4904", "the kernel and the program speak of different stages", `
amkc check --bisect and amkc explore hold every vector that the kernel publishes to the one that the reference VM
computes from program.json. The names of the stages come from the manifest. One of them is not in the program, so that
the files do not belong together: amkc verify says which have changed. Compile again.`)

// A Tracer decodes ids from its position on, and returns the results that every stage published in the last step.
// [host.Session] is one.
type Tracer interface {
	Trace(ctx context.Context, ids []int) (*host.Trace, error)
}

const bisectTokens = 32 // compared from position 0, as many as host.Session.Check decodes there

// Bisect compares a kernel at position 0 with the reference VM, which runs the program of the same build on its packed
// weights and rounds where the kernel rounds. Both decode the ids of host.CheckIDs, each with its own cache, and are
// compared stage by stage at the first 32 positions and at the first one of every further variant, until a stage
// differs.
//
// Unlike host.Session.Bisect, this shares no code with the generated sources. But errors propagate from stage to stage
// and from position to position, so the bounds are wider. A step of the VM takes seconds for a model of some gigabytes,
// and it runs one for every position up to the last one compared.
func Bisect(ctx context.Context, b *PackedBuild, kernel Tracer, tell progress.Func) (*host.BisectReport, error) {
	positions := bisectPositions(b.Program)
	facts, err := codegen.Facts(b.Program)
	if err != nil {
		return nil, err
	}
	o, err := newOracle(b, b.Program, refvm.Options{Round: refvm.Device})
	if err != nil {
		return nil, err
	}
	report := &host.BisectReport{Tolerance: host.TolerancesOfStages(&facts.Model, true)}
	last := positions[len(positions)-1]
	ids := host.CheckIDs(0, last+1, facts.Model.Vocab)
	for _, at := range positions {
		first := o.session.Pos()
		trace, err := kernel.Trace(ctx, ids[first:at+1])
		if err != nil {
			return nil, err
		}
		for p := first; p <= at; p++ {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			tell.Report(progress.Step{Activity: "comparing with the reference VM", Done: int64(p),
				Total: int64(last + 1), Unit: "positions"})
			if _, _, err := o.session.Step(ids[p]); err != nil {
				return nil, err
			}
		}
		pairs, err := o.pairs(trace)
		if err != nil {
			return nil, err
		}
		report.Positions++
		report.Stages += len(pairs)
		difference, seen := host.FirstDifference(&facts, at, pairs, report.Tolerance)
		report.Seen.RMS, report.Seen.Max = max(report.Seen.RMS, seen.RMS), max(report.Seen.Max, seen.Max)
		if report.First = difference; difference != nil {
			return report, nil
		}
	}
	report.Passed = true
	return report, nil
}

// bisectPositions returns the positions to compare, ascending.
func bisectPositions(p *ir.Program) []int {
	var at []int
	for i := range min(bisectTokens, p.Model.MaxSeq) {
		at = append(at, i)
	}
	for _, v := range p.Variants {
		at = append(at, v.Lo)
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// An oracle runs a program so that the vectors of all stages can be looked at after a step.
type oracle struct {
	program *ir.Program
	session *refvm.Session
	buffers *ir.Directory
}

// newOracle starts at position 0. No buffer has a page: pages are shared, and a layer would overwrite what the one
// before it has published.
func newOracle(b *PackedBuild, p *ir.Program, opts refvm.Options) (*oracle, error) {
	apart := *p
	apart.Buffers = slices.Clone(apart.Buffers)
	for i := range apart.Buffers {
		apart.Buffers[i].Pages = nil
	}
	o := &oracle{program: &apart, buffers: ir.BufferDirectory(&apart)}
	var err error
	o.session, err = refvm.NewSession(&apart, b, opts)
	return o, err
}

// pairs matches a trace with the step that the oracle has just done.
func (o *oracle) pairs(t *host.Trace) ([]host.StagePair, error) {
	if at := o.session.Pos() - 1; t.Position != at {
		return nil, diag.Errorf(codeTrace, "trace",
			"the kernel decoded at position %d, want %d: a kernel that stood at 0", t.Position, at)
	}
	want, err := o.vectors(t.Position)
	if err != nil {
		return nil, err
	}
	pairs := host.PairStages(t.Vectors, want)
	for i := range pairs {
		pairs[i].Want = host.SumOfParts(pairs[i].Want, len(pairs[i].Got))
	}
	for i, v := range t.Vectors {
		if i >= len(pairs) || pairs[i].Stage != v.Stage {
			return nil, diag.Errorf(codeTrace, "stage "+v.Stage,
				"the kernel publishes a vector of this stage, and the program has none for position %d", t.Position)
		}
	}
	return pairs, nil
}

// vectors returns what the stages of the variant for a position have published, in order.
func (o *oracle) vectors(position int) ([]host.StageVector, error) {
	vm, err := o.session.At(position)
	if err != nil {
		return nil, err
	}
	stages, err := o.stages(position)
	if err != nil {
		return nil, err
	}
	var all []host.StageVector
	for _, s := range stages {
		values, err := vm.Read(s.buffer)
		if err != nil {
			return nil, err
		}
		all = append(all, host.StageVector{Stage: s.name, Values: values})
	}
	return all, nil
}

// eachStage calls f for every stage of a variant in the order of execution, with its layer.
func eachStage(v *ir.Variant, f func(s *ir.Stage, layer int) error) error {
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			if err := f(n, 0); err != nil {
				return err
			}
		case *ir.Loop:
			for k := range n.Count {
				for _, s := range n.Body {
					if !n.Runs(s, k) {
						continue
					}
					if err := f(s, n.Index(k)); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// published names the buffer that a stage's result is in: the first vector of floats that it writes outside its own
// SM. The cache comes after it, and so do the best logits; a stage that writes neither has none.
func (o *oracle) published(s *ir.Stage, layer int) (string, error) {
	for _, op := range s.Ops {
		for _, out := range op.Out {
			if out.IsTemp() {
				continue
			}
			m, err := o.buffers.At(out.Buf, layer)
			if err != nil {
				return "", err
			}
			b := &o.program.Buffers[m.Declared]
			if (b.Kind == ir.Activation || b.Kind == ir.Output) && b.Space != ir.SMEM && b.DType != ir.I32 {
				return m.Name, nil
			}
		}
	}
	return "", nil
}
