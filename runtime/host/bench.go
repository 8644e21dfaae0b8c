package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"amkc/runtime/driver"
)

// BenchOptions say what [Session.Bench] measures. Zero values take the defaults.
type BenchOptions struct {
	Position       int // of the first step of every launch
	StepsPerLaunch int // default 16, less where the positions of a variant end sooner
	Launches       int // of each kernel, default 100
	WarmUp         int // launches of each kernel before, default 10
}

// Quantiles of a time, in microseconds a token.
type Quantiles struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
}

// BenchReport is a measurement: launches of the decode kernel and of the ceiling kernel, which streams the same bytes and
// waits for nothing, taken in turn. GBs are 10^9 bytes a second.
type BenchReport struct {
	Device         string    `json:"device"`
	Position       int       `json:"position"`
	StepsPerLaunch int       `json:"steps_per_launch"`
	Launches       int       `json:"launches"`
	Latency        Quantiles `json:"latency_us"`
	Ceiling        Quantiles `json:"ceiling_us"`
	BytesPerToken  float64   `json:"bytes_per_token"` // weights streamed, and KV rows read at the mean position
	GBs            float64   `json:"gbs"`
	CeilingGBs     float64   `json:"ceiling_gbs"`
	Share          float64   `json:"share_of_ceiling"` // 1: as fast as the ceiling
}

// Bench measures the latency of a token. It returns [ErrNotChecked] unless [Session.Check] has passed on this session, and
// an [ArtefactError] when the result would be faster than the ceiling. The session stands at position 0 afterwards, and
// the cache holds rows that belong to no sequence.
func (s *Session) Bench(ctx context.Context, o BenchOptions, progress Progress) (_ *BenchReport, err error) {
	if s.closed {
		return nil, ErrClosed
	}
	if !s.checked {
		return nil, ErrNotChecked
	}
	if err := s.benchDefaults(&o); err != nil {
		return nil, err
	}
	b, err := s.newBench(o)
	defer func() {
		s.Reset()
		err = errors.Join(err, b.close())
	}()
	if err != nil {
		return nil, err
	}
	for b.launches < o.WarmUp {
		if err := b.batch(ctx, o.WarmUp-b.launches); err != nil {
			return nil, err
		}
	}
	b.launches, b.decode, b.ceiling = 0, nil, nil
	for b.launches < o.Launches {
		if err := b.batch(ctx, o.Launches-b.launches); err != nil {
			return nil, err
		}
		if progress != nil {
			progress("measuring", int64(b.launches), int64(o.Launches))
		}
	}
	return s.benchReport(o, b)
}

// benchDefaults fills in the options and refuses what does not fit one launch.
func (s *Session) benchDefaults(o *BenchOptions) error {
	if o.Position < 0 || o.Position >= s.info.MaxSeq {
		return &PositionError{First: o.Position, Steps: 1, MaxSeq: s.info.MaxSeq}
	}
	end := s.info.VariantEnds[s.info.variant(o.Position)]
	if o.StepsPerLaunch == 0 {
		o.StepsPerLaunch = min(16, end-o.Position)
	}
	if o.StepsPerLaunch < 0 || o.Position+o.StepsPerLaunch > end {
		return fmt.Errorf("%d steps a launch from position %d do not fit: 1 to %d are possible, because the schedule ends or changes "+
			"at position %d", o.StepsPerLaunch, o.Position, end-o.Position, end)
	}
	if o.Launches == 0 {
		o.Launches = 100
	}
	if o.WarmUp == 0 {
		o.WarmUp = 10
	}
	if o.Launches < 0 || o.WarmUp < 0 {
		return fmt.Errorf("%d launches and %d to warm up were asked for; they must be positive", o.Launches, o.WarmUp)
	}
	return nil
}

// benchBatch is how many launches of each kernel are queued at a time: enough that the GPU never waits for the host, few
// enough that a cancelled context is seen soon.
const benchBatch = 8

// A bench is a measurement in progress.
type bench struct {
	s               *Session
	steps           int
	launches        int
	marks           [benchBatch][4]*driver.Event // around the decode and the ceiling kernel
	decode, ceiling []float64                    // microseconds a token
}

// newBench makes the events. The bench must be closed, also after an error.
func (s *Session) newBench(o BenchOptions) (*bench, error) {
	b := &bench{s: s, steps: o.StepsPerLaunch}
	s.position = o.Position
	for i := range b.marks {
		for k := range b.marks[i] {
			var err error
			if b.marks[i][k], err = s.dev.NewEvent(); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

func (b *bench) close() error {
	var errs []error
	for i := range b.marks {
		for _, e := range b.marks[i] {
			if e != nil {
				errs = append(errs, e.Close())
			}
		}
	}
	if err := errors.Join(errs...); !driver.IsSticky(err) {
		return err
	}
	return nil
}

// batch runs up to n launches of each kernel, in turn, and takes their times.
func (b *bench) batch(ctx context.Context, n int) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	n = min(n, benchBatch)
	s := b.s
	err := s.dev.Do(func() error {
		for i := range n {
			if err := b.queue(b.marks[i]); err != nil {
				return err
			}
		}
		return s.stream.Synchronize()
	})
	if err != nil {
		return err
	}
	if stalls := s.stalls(); len(stalls) > 0 {
		return errors.Join(&StallError{Position: s.position, Stalls: stalls}, s.recover())
	}
	for _, m := range b.marks[:n] {
		for _, t := range []struct {
			from, to *driver.Event
			into     *[]float64
		}{{m[0], m[1], &b.decode}, {m[2], m[3], &b.ceiling}} {
			ms, err := driver.ElapsedMS(t.from, t.to)
			if err != nil {
				return err
			}
			*t.into = append(*t.into, ms*1000/float64(b.steps))
		}
	}
	b.launches += n
	return nil
}

// queue puts a launch of each kernel on the stream, with the events around them. Every decode launch starts at the same
// position and overwrites the rows of the one before.
func (b *bench) queue(marks [4]*driver.Event) error {
	s := b.s
	p := s.params(b.steps)
	if err := s.enterVariant(&p); err != nil {
		return err
	}
	for i, f := range []*driver.Function{s.decode, s.ceiling} {
		if err := s.stream.Record(marks[2*i]); err != nil {
			return err
		}
		if err := s.enqueue(f, &p); err != nil {
			return err
		}
		if err := s.stream.Record(marks[2*i+1]); err != nil {
			return err
		}
	}
	s.epoch += uint64(b.steps)
	return nil
}

func (s *Session) benchReport(o BenchOptions, b *bench) (*BenchReport, error) {
	r := &BenchReport{Device: s.dev.Facts().Name, Position: o.Position, StepsPerLaunch: o.StepsPerLaunch, Launches: o.Launches,
		Latency: quantiles(b.decode), Ceiling: quantiles(b.ceiling)}
	if r.Latency.Median <= 0 || r.Ceiling.Median <= 0 || r.Latency.Median < r.Ceiling.Median {
		return nil, &ArtefactError{Latency: r.Latency.Median, Ceiling: r.Ceiling.Median}
	}
	meanPosition := float64(o.Position) + float64(o.StepsPerLaunch-1)/2
	r.BytesPerToken = float64(s.facts.Traffic.Weights) + meanPosition*float64(s.facts.Traffic.CacheRow)
	r.GBs = r.BytesPerToken / r.Latency.Median / 1000
	r.CeilingGBs = r.BytesPerToken / r.Ceiling.Median / 1000
	r.Share = r.Ceiling.Median / r.Latency.Median
	return r, nil
}

// quantiles interpolates linearly between the sorted times. It sorts them in place.
func quantiles(times []float64) Quantiles {
	slices.Sort(times)
	at := func(q float64) float64 {
		x := q * float64(len(times)-1)
		i := int(x)
		if i+1 == len(times) {
			return times[i]
		}
		return times[i] + (x-float64(i))*(times[i+1]-times[i])
	}
	return Quantiles{Median: at(0.5), P10: at(0.1), P90: at(0.9)}
}
