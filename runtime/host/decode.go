package host

import (
	"context"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"amkc/runtime/driver"
)

// Feed decodes ids at the session's position and the ones after it, and returns the token that is chosen after the
// last: the largest logit, the lowest id among equals, unless [Session.Choose] says otherwise. onLogits, if not nil,
// gets the logits [vocab] after each id, in order; the slice is valid during the call. Errors: [PositionError],
// [TokenError], [StallError], [sampling.LogitsError], the cause of a cancelled context, and those of the driver.
func (s *Session) Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int,
	err error) {
	if len(ids) == 0 {
		return 0, fmt.Errorf("no tokens to decode")
	}
	if err := s.room(len(ids)); err != nil {
		return 0, err
	}
	if err := s.valid(ids...); err != nil {
		return 0, err
	}
	for len(ids) > 0 {
		first, n := s.position, s.promptTokens(len(ids), onLogits != nil)
		if n > 0 {
			if err := s.readPrompt(ctx, ids[:n], onLogits != nil); err != nil {
				return 0, err
			}
		} else {
			var k *megakernel
			k, n = s.next(len(ids), onLogits != nil)
			b := burst{kernel: k, tokens: n, forced: ids[:n], logits: onLogits != nil}
			if n == len(ids) {
				b.sampling = s.sampling
			}
			tokens, err := s.run(ctx, b, nil)
			if err != nil {
				return 0, err
			}
			next = tokens[n-1]
		}
		ids = ids[n:]
		if onLogits != nil {
			if err := s.readLogits(n, func(i int, logits []float32) error {
				return onLogits(first+i, logits)
			}); err != nil {
				return 0, err
			}
		}
	}
	return next, nil
}

// readLogits fetches the logits of the first n tokens of the last launch.
func (s *Session) readLogits(n int, each func(i int, logits []float32) error) error {
	all := make([]float32, n*s.info.Vocab)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&all[0])), 4*len(all))
	if err := s.dev.CopyDtoH(raw, s.mem.scratch+driver.Ptr(s.mem.logits), nil); err != nil {
		return err
	}
	for i := range n {
		if err := each(i, all[i*s.info.Vocab:][:s.info.Vocab]); err != nil {
			return err
		}
	}
	return nil
}

// Generate decodes token at the session's position, then the token chosen after it, and so on for up to n steps, and
// returns the chosen tokens. It ends early after choosing one of stops, which is then the last of them. emit, if not
// nil, gets each as soon as it is known. With an error it returns what was chosen before; errors as for
// [Session.Feed], and emit's.
func (s *Session) Generate(ctx context.Context, token, n int, stops []int, emit func(id int) error) ([]int, error) {
	if err := s.canGenerate(token, n, stops); err != nil {
		return nil, err
	}
	var all []int
	for len(all) < n {
		next := s.one.limit(s.position, n-len(all), false)
		tokens, err := s.run(ctx, burst{tokens: next, token: token, stops: stops, sampling: s.sampling}, emit)
		all = append(all, tokens...)
		if err != nil {
			return all, err
		}
		token = all[len(all)-1]
		if slices.Contains(stops, token) {
			break
		}
	}
	return all, nil
}

func (s *Session) canGenerate(token, n int, stops []int) error {
	if err := s.room(n); err != nil {
		return err
	}
	if err := s.valid(token); err != nil {
		return err
	}
	if len(stops) > MaxStops {
		return fmt.Errorf("%d stop ids were given, and %d are possible", len(stops), MaxStops)
	}
	return nil
}

// A Completion is what the model wrote after a prompt.
type Completion struct {
	IDs     []int
	Stopped bool // the last id is a stop id
}

// Complete decodes a prompt at the session's position and generates up to n tokens after it, n > 0. stops, emit and
// errors are as for [Session.Generate]; a request that does not fit the positions of the build is refused at once. With
// a drafter, see [Session.SetDrafter], the same tokens may come sooner.
func (s *Session) Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(id int) error) (Completion,
	error) {
	if n < 1 {
		return Completion{}, fmt.Errorf("%d tokens were asked for; at least 1 is needed", n)
	}
	// The last token chosen is not decoded, so it takes no position.
	if err := s.room(len(prompt) + n - 1); err != nil {
		return Completion{}, err
	}
	next, err := s.Feed(ctx, prompt, nil)
	if err != nil {
		return Completion{}, err
	}
	c := Completion{IDs: []int{next}, Stopped: slices.Contains(stops, next)}
	if emit != nil {
		if err := emit(next); err != nil {
			return c, err
		}
	}
	if c.Stopped || n == 1 {
		return c, nil
	}
	generate := s.Generate
	if s.drafter != nil && len(s.passes) > 0 {
		d := drafting{s: s, text: append(slices.Clone(prompt), next)}
		generate = d.generate
	}
	rest, err := generate(ctx, next, n-1, stops, emit)
	c.IDs = append(c.IDs, rest...)
	c.Stopped = slices.Contains(stops, c.IDs[len(c.IDs)-1])
	return c, err
}

// argmax returns the index of the largest value, the lowest among equals, and whether all are finite.
func argmax(v []float32) (best int, finite bool) {
	finite = true
	for i, x := range v {
		if x > v[best] {
			best = i
		}
		finite = finite && !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0)
	}
	return best, finite
}
