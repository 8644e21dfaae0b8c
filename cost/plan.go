package cost

import (
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
	"amkc/knobs"
)

// A plan is a variant at one position, unrolled: stages in the order of their iterations, with names resolved to
// numbers.
type plan struct {
	stages   []*stage
	steps    []instance
	counters int
	load     []float64 // bytes that each SM streams
	bytes    float64   // all of them
	chunks   float64
	kept     kernel.Kept // by the block that keeps most
}

// An instance is a stage in one iteration.
type instance struct {
	stage  int
	sms    []int // of its tasks
	waits  []int // counters
	signal int   // counter, or -1
	halts  bool  // nothing after it is copied before its task is done
}

func newPlan(p *ir.Program, stages []*stage) (*plan, error) {
	b := planner{plan: plan{stages: stages, load: make([]float64, p.Target.SMs)}, program: p, numbers: map[string]int{}}
	b.kept.Pass = p.Pass
	b.barrier = knobs.LayerBarrier.Of(&p.Config)
	for at := 0; at < len(stages); {
		next := at + 1
		for stages[at].loop != nil && next < len(stages) && stages[next].loop == stages[at].loop {
			next++
		}
		for k, i := range stages[at].indices() {
			for n := at; n < next; n++ {
				if s := stages[n]; s.loop != nil && !s.loop.Runs(s.ir, k) {
					continue
				}
				if err := b.add(n, i); err != nil {
					return nil, err
				}
			}
		}
		at = next
	}
	b.counters = len(b.numbers)
	return &b.plan, nil
}

type planner struct {
	plan
	program *ir.Program
	numbers map[string]int // of counters that stages so far signal, by their resolved names
	barrier bool
}

func (b *planner) add(n, i int) error {
	s := b.stages[n]
	in := instance{stage: n, signal: -1}
	switch {
	case s.cut == nil:
	case kernel.ProductOf(s.ir.Ops).Code == ir.SELECTED:
		b.kept.MultipliesEach(s.cut, b.program.Model.Activations)
	default:
		b.kept.Multiplies(s.cut, &s.ir.Dist, b.program.Model.Activations)
	}
	for k, span := range s.ir.Dist.Tasks(i) {
		t := &s.tasks[k]
		in.sms = append(in.sms, span.SM)
		b.load[span.SM] += t.streamed
		b.bytes += t.streamed
		b.chunks += t.chunks
		switch {
		case s.body.Replicated():
			b.kept.Rows = b.program.Model.Hidden
		case s.body.Begins:
			b.kept.Rows = max(b.kept.Rows, span.B-span.A)
		}
	}
	for _, w := range s.ir.Waits {
		name, err := ir.Resolve(w.Counter, i)
		c, known := b.numbers[name]
		if err != nil || !known {
			return diag.Errorf(codeJudge, "stage "+s.ir.Name,
				"waits for counter %s, which no stage before it signals; want the stages in the order in which they "+
					"depend on each other", name)
		}
		in.waits = append(in.waits, c)
	}
	if s.ir.Signal != "" {
		name, err := ir.Resolve(s.ir.Signal, i)
		if err != nil {
			return diag.Errorf(codeJudge, "stage "+s.ir.Name, "%v", err)
		}
		if _, known := b.numbers[name]; !known {
			b.numbers[name] = len(b.numbers)
		}
		in.signal = b.numbers[name]
	}
	in.halts = b.barrier && s.body == kernel.Join || s.body == kernel.Route // which chooses what is copied
	b.steps = append(b.steps, in)
	return nil
}
