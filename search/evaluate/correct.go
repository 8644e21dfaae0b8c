package evaluate

import (
	"context"
	"math"

	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/refvm"
	"amkc/search"
)

// What the reference VM is asked: models of at most mostBytes of weights, which takes about a second; and no more of a
// difference, relative to the RMS of the logits and to the largest, than float32 makes of another order of additions.
const (
	mostBytes = 48 << 20
	mostRMS   = 1e-4
	mostMax   = 1e-3
)

const refOracle = "reference VM, default configuration"

// compare runs the candidate's program and that of the default configuration on the reference VM, and compares logits:
// at the first positions, at both ends of every variant of either, and at the last. Knobs that are not for the order of
// additions may change no bit. Large models are not compared, and their verdicts have no correctness: on a GPU they do.
func (e *evaluation) compare(ctx context.Context) error {
	_, size := ir.WeightArena(e.plain.Program)
	if size > mostBytes || e.plain.Weights == nil {
		return nil
	}
	plain, err := logits(ctx, e.plain, e.plain, e.probes())
	if err != nil {
		return err
	}
	candidate, err := logits(ctx, e.candidate, e.plain, e.probes())
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &fault{search.Fail, firstError(err)}
	}
	c := &search.Correctness{Oracle: refOracle, Passed: true}
	e.v.Correctness = c
	order := knobs.OtherOrder(&e.plain.Program.Config, &e.candidate.Program.Config) // than of the defaults
	var wrong *diag.Diagnostic
	for i, pos := range e.probes() {
		rms, largest, same := difference(candidate[i], plain[i])
		passed := rms <= mostRMS && largest <= mostMax && (same || order != "")
		if !passed && wrong == nil {
			c.Passed = false
			wrong = diag.Errorf(codeDiffers, "position", "%d: logits differ from those of the default configuration "+
				"by "+
				"%.2g of their RMS, at most %.2g of the largest; want %g and %g, and the same bits unless a knob "+
				"decides "+
				"the order of additions", pos, rms, largest, mostRMS, mostMax)
		}
		if n := len(c.Spans); n > 0 && c.Spans[n-1].Last == pos-1 {
			s := &c.Spans[n-1]
			*s.Identical = *s.Identical && same
			s.Last, s.RMS, s.Max = pos, max(s.RMS, rms), max(s.Max, largest)
			continue
		}
		c.Spans = append(c.Spans, search.Span{First: pos, Last: pos, RMS: rms, Max: largest, Identical: &same})
	}
	if wrong != nil {
		return &fault{search.Fail, wrong}
	}
	return nil
}

// probes lists the positions that are compared, in order.
func (e *evaluation) probes() []int {
	last := e.plain.Program.Model.MaxSeq - 1
	at := map[int]bool{0: true, 1: true, 2: true, 3: true, last: true}
	for _, l := range []*compiler.Scheduled{e.plain, e.candidate} {
		for i := range l.Program.Variants {
			v := &l.Program.Variants[i]
			at[v.Lo], at[v.Lo+1], at[v.Hi] = true, true, true
		}
	}
	var positions []int
	for pos := range last + 1 {
		if at[pos] {
			positions = append(positions, pos)
		}
	}
	return positions
}

// logits runs a program at positions, over a cache of rows that are zero where none was appended. Both programs read
// their weights through the same checkpoint.
func logits(ctx context.Context, l, weights *compiler.Scheduled, at []int) ([][]float32, error) {
	s, err := refvm.NewSession(l.Program, weights.Weights, refvm.Options{Round: refvm.None})
	if err != nil {
		return nil, err
	}
	var all [][]float32
	for i, pos := range at {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		out, _, err := s.Pass([]int{pos}, []int{(7*i + 1) % l.Program.Model.Vocab})
		if err != nil {
			return nil, err
		}
		all = append(all, append([]float32{}, out...))
	}
	return all, nil
}

// difference compares logits: the RMS of the difference relative to theirs, the largest relative to the largest, and
// whether all bits are the same. A NaN differs by infinitely much.
func difference(is, want []float32) (rms, largest float64, same bool) {
	if len(is) != len(want) {
		return math.MaxFloat64, math.MaxFloat64, false
	}
	var squares, of, most float64
	same = true
	for i := range is {
		d, w := float64(is[i])-float64(want[i]), float64(want[i])
		same = same && math.Float32bits(is[i]) == math.Float32bits(want[i])
		squares, of = squares+d*d, of+w*w
		largest, most = max(largest, math.Abs(d)), max(most, math.Abs(w))
	}
	if same {
		return 0, 0, true
	}
	rms, largest = math.Sqrt(squares/of), largest/most
	if math.IsNaN(rms) || math.IsInf(rms, 0) || math.IsNaN(largest) || math.IsInf(largest, 0) {
		return math.MaxFloat64, math.MaxFloat64, false
	}
	return rms, largest, false
}
