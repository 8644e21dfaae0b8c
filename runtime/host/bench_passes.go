package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"amkc/runtime/driver"
	"amkc/runtime/shape"
)

// PassReport is the time of a pass of several tokens, launched between those of one. Latency and Ceiling are
// microseconds per pass. All sequences are at the position of the bench.
type PassReport struct {
	shape.Pass
	StepsPerLaunch int        `json:"steps_per_launch"` // passes
	Latency        Quantiles  `json:"latency_us"`
	Ceiling        Quantiles  `json:"ceiling_us"`
	Drawn          *Quantiles `json:"drawn_us,omitempty"` // of passes that draw their tokens with a temperature
}

// PromptReport is the time from a prompt's ids to the first token after it, both on the host, in microseconds.
type PromptReport struct {
	Tokens     int       `json:"tokens"`
	Times      int       `json:"times"`
	FirstToken Quantiles `json:"first_token_us"`
	Clocks     *Clocks   `json:"clocks,omitempty"` // meanwhile; nil: the driver does not tell, or it took no time
	Bytes      int       `json:"bytes"`            // of memory that prompts alone use; 0: no kernel for them
}

// A timedPass is a pass of several tokens that a bench measures.
type timedPass struct {
	kernel          *megakernel
	steps           int
	decode, ceiling *timedKernel
	drawn           *timedKernel // nil: not asked for
}

// newTimedPasses are those that fit the positions of a bench, with steps that decode no more positions than its variant
// has left.
func (s *Session) newTimedPasses(o BenchOptions) (all []timedPass, kernels []*timedKernel, err error) {
	for _, k := range s.kernels()[1:] {
		end := k.info.VariantEnds[k.info.variant(o.Position)]
		steps := min(o.StepsPerLaunch, maxSteps, (end-o.Position)/k.info.NumRows())
		if steps < 1 {
			continue
		}
		known := func(p *launchParams) {
			p.Forced = s.mem.scratch + driver.Ptr(s.mem.forced)
			if n := k.info.NumSequences(); n > 1 {
				p.sequences(s, slices.Repeat([]int{o.Position}, n))
			}
		}
		t := timedPass{kernel: k, steps: steps, decode: s.timedSteps(k, k.decode, steps, true, known)}
		if t.ceiling, err = s.timedCeiling(k, steps, known); err != nil {
			return nil, nil, err
		}
		kernels = append(kernels, t.ceiling, t.decode)
		if o.Drawn {
			t.drawn = s.timedSteps(k, k.decode, steps, true, func(p *launchParams) {
				known(p)
				s.drawn(p)
			})
			kernels = append(kernels, t.drawn)
		}
		all = append(all, t)
	}
	return all, kernels, nil
}

func (t *timedPass) report() PassReport {
	r := PassReport{Pass: t.kernel.info.Written(), StepsPerLaunch: t.steps, Latency: quantiles(t.decode.times),
		Ceiling: quantiles(t.ceiling.times)}
	if t.drawn != nil {
		r.Drawn = new(quantiles(t.drawn.times))
	}
	return r
}

// promptTimes is how often a prompt is decoded, after once that does not count.
const promptTimes = 5

// benchPrompt measures how long a prompt of n fixed ids takes, and watches the clocks meanwhile. They need not be those
// of steps: products of hundreds of tokens draw more power.
func (s *Session) benchPrompt(ctx context.Context, n int, clocks *clockWatch, progress Progress) (*PromptReport,
	error) {
	ids := CheckIDs(0, n, s.info.Vocab)
	var times []float64
	for i := range 1 + promptTimes {
		s.Reset()
		if i <= 1 {
			clocks.forget()
		}
		stop := clocks.watch()
		start := time.Now()
		_, err := s.Feed(ctx, ids, nil)
		took := time.Since(start)
		stop()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			times = append(times, float64(took.Nanoseconds())/1000)
		}
		if progress != nil {
			progress("reading a prompt", int64(i+1), 1+promptTimes)
		}
	}
	r := &PromptReport{Tokens: n, Times: promptTimes, FirstToken: quantiles(times), Clocks: clocksOf(clocks.states)}
	if s.prompt != nil {
		r.Bytes = s.prompt.bytes()
	}
	return r, nil
}

// checkPrompt refuses a prompt that has no positions.
func (s *Session) checkPrompt(n int) error {
	if n < 0 || n > s.info.MaxSeq {
		return fmt.Errorf("a prompt of %d tokens was asked for, and the build has %d positions", n, s.info.MaxSeq)
	}
	return nil
}
