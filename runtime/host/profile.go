package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"amkc/runtime/driver"
)

// A Span is what one role of one SM did for a while.
//
// Consumers: "exchange wait" is waiting for the vector that a stage reads (at the end of a step, for the other SMs),
// where warps read a share each for that of the first warp; "compute" is everything else up to the partial sums of
// all warps, waiting for weights to arrive in the ring included; "signal" is adding them up and publishing rows.
// The spans of an SM's consumers follow one another without a gap.
//
// The producer: "slot wait" is waiting for a free slot of the ring, "step wait" for the cache rows of the step
// before, or for a barrier in builds that have any. What is left is copying, and waiting for copies to land. A wait
// says for which stage the slot was meant.
type Span struct {
	SM         int
	Role       string  // "consumer", "producer"
	Kind       string  // consumer: "exchange wait", "compute", "signal"; producer: "slot wait", "step wait"
	Stage      string  // label, layer included: "L03.qkv"
	Step       int     // from the first recorded one; a producer's may be the one before or after them
	Start, End float64 // µs since the first SM began the first recorded step
}

// A Profile is the spans of some steps in the middle of one launch of the instrumented kernel: where there is room, a
// step precedes and follows them, so that they run as in a long launch.
type Profile struct {
	Position, Steps, SMs int     // Position: of the first recorded step
	Spans                []Span  // by SM, role, start
	Latency              float64 // µs per token of the instrumented kernel, median
	Plain                float64 // µs per token of the decode kernel in the same run, median
	Dropped              int     // spans that did not fit the buffer
}

// ProfileOptions say what [Session.Profile] records. Zero values take the defaults.
type ProfileOptions struct {
	Position int // of the first step of every launch
	Steps    int // recorded, 1 to 16, default 1
	Launches int // of each kernel, from which the medians come, default 20
}

const (
	maxProfileSteps = 16
	profileWarmUp   = 5
	profileTries    = 10   // launches among which one of median latency is looked for
	profileNear     = 0.01 // how near is near enough
)

// spansPerStep is how many spans of one role of one SM a step has room for: three for each stage of a large model, or
// a slot wait before every chunk of 8 kB. A profile with smaller chunks says how many it dropped.
func (s *Session) spansPerStep(position int) int {
	const least, chunk = 8192, 8192
	streamed := s.facts.Traffic.Weights + int64(s.facts.Traffic.CacheBytes(position, 1))
	chunks := int(streamed / int64(s.info.SMs) / chunk)
	return max(least, chunks+chunks/4)
}

// Profile records what each role of each SM did, and when. It returns the spans of a launch that took about as long as
// the median one. Errors, and the state of the session afterwards, are as for [Session.Bench].
//
// Times of one SM are good to a few cycles. Those of different SMs are aligned by the GPU's timer, which on an H200
// leaves up to 2 µs between groups of SMs, and then by the exchanges, to some 0.1 µs.
func (s *Session) Profile(ctx context.Context, o ProfileOptions) (_ *Profile, err error) {
	if s.closed {
		return nil, ErrClosed
	}
	if !s.checked {
		return nil, ErrNotChecked
	}
	lead, steps, err := s.profileDefaults(&o)
	if err != nil {
		return nil, err
	}
	r := &recorder{s: s, steps: steps, capacity: steps * s.spansPerStep(o.Position)}
	defer func() {
		s.Reset()
		err = errors.Join(err, r.close())
	}()
	s.position = o.Position
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.turns.warmUp(ctx, profileWarmUp); err != nil {
		return nil, err
	}
	if err := r.turns.run(ctx, o.Launches, nil); err != nil {
		return nil, err
	}
	p := &Profile{Position: o.Position + lead, Steps: o.Steps, SMs: s.info.SMs,
		Latency: quantiles(r.profile.times).Median, Plain: quantiles(r.plain.times).Median}
	raw, err := r.typical(ctx, p.Latency)
	if err != nil {
		return nil, err
	}
	all, err := decodeSpans(raw, s.info.SMs, r.capacity, s.facts.Stages)
	if err != nil {
		return nil, &BuildError{Path: s.dir, What: "its profile cannot be read", Err: err}
	}
	p.Dropped = all.dropped
	p.Spans = all.window(lead, o.Steps)
	return p, nil
}

// profileDefaults fills in the options. It returns how many steps of a launch come before the recorded ones, and how
// many there are in all.
func (s *Session) profileDefaults(o *ProfileOptions) (lead, steps int, err error) {
	if o.Position < 0 || o.Position >= s.info.MaxSeq {
		return 0, 0, &PositionError{First: o.Position, Steps: 1, MaxSeq: s.info.MaxSeq}
	}
	if o.Steps == 0 {
		o.Steps = 1
	}
	if o.Launches == 0 {
		o.Launches = 20
	}
	end := s.info.VariantEnds[s.info.variant(o.Position)]
	if room := min(maxProfileSteps, end-o.Position); o.Steps < 0 || o.Steps > room {
		return 0, 0, fmt.Errorf("%d steps from position %d were to be recorded; 1 to %d are possible, because the "+
			"schedule changes or "+
			"ends at position %d and no more than %d are kept", o.Steps, o.Position, room, end, maxProfileSteps)
	}
	if o.Launches < 0 {
		return 0, 0, fmt.Errorf("%d launches were asked for; they must be positive", o.Launches)
	}
	spare := end - o.Position - o.Steps
	lead = min(1, spare)
	return lead, o.Steps + min(2, spare), nil
}

// A recorder launches the instrumented kernel, interleaved with the plain one.
type recorder struct {
	s               *Session
	steps, capacity int // of a launch; spans that one role of one SM has room for
	measures        *measures
	buffer          driver.Ptr
	plain, profile  *timedKernel
	turns           *interleaving
}

// open takes what is needed. The recorder must be closed, also after an error.
func (r *recorder) open() (err error) {
	s := r.s
	if r.measures, err = s.openMeasures(); err != nil {
		return err
	}
	if r.measures.profile == nil {
		return &BuildError{Path: filepath.Join(s.dir, MeasureFile), What: "it has no kernel that records who did what",
			Remedy: "compile measure.cu without -DAMK_LEAN=1"}
	}
	if r.buffer, err = s.alloc(profileBytes(s.info.SMs, r.capacity)); err != nil {
		return err
	}
	header := make([]byte, profileHeaderSize)
	binary.LittleEndian.PutUint32(header, uint32(r.capacity))
	if err := s.put(r.buffer, header); err != nil {
		return err
	}
	r.plain = s.timedSteps(s.one, s.one.decode, r.steps, true, nil)
	r.profile = s.timedSteps(s.one, r.measures.profile, r.steps, true, func(p *launchParams) { p.Trace = r.buffer })
	r.turns, err = s.interleave(r.plain, r.profile)
	return err
}

func (r *recorder) close() error {
	var errs []error
	if r.turns != nil {
		errs = append(errs, r.turns.close())
	}
	if r.buffer != 0 {
		errs = append(errs, r.s.free(r.buffer))
	}
	if r.measures != nil {
		errs = append(errs, r.measures.close())
	}
	return errors.Join(errs...)
}

// typical launches until a launch takes about the median time, and returns what the nearest one has recorded.
func (r *recorder) typical(ctx context.Context, median float64) ([]byte, error) {
	var best, raw []byte
	nearest := math.Inf(1)
	for range profileTries {
		r.profile.times = nil
		if err := r.turns.run(ctx, 1, nil); err != nil {
			return nil, err
		}
		off := math.Abs(r.profile.times[0] - median)
		if off >= nearest {
			continue
		}
		if raw == nil {
			raw = make([]byte, profileBytes(r.s.info.SMs, r.capacity))
		}
		if err := r.s.dev.CopyDtoH(raw, r.buffer, nil); err != nil {
			return nil, err
		}
		nearest, best, raw = off, raw, best
		if off <= profileNear*median {
			break
		}
	}
	return best, nil
}
