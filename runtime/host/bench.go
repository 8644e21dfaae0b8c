package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// BenchOptions say what [Session.Bench] measures. Zero values take the defaults.
type BenchOptions struct {
	Position       int  // of the first step of every launch
	StepsPerLaunch int  // default 16, less where the positions of a variant end sooner
	Launches       int  // of each kernel, default 100
	WarmUp         int  // launches of each kernel before, default 10
	Prompt         int  // tokens of a prompt whose time to the first token is measured too; 0: none
	Drawn          bool // measure steps that draw their tokens too: with a temperature, and with each kind of choice
}

// Quantiles of a time, in microseconds per token.
type Quantiles struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
}

// BenchReport is a measurement: interleaved launches, of the decode kernel; of the ceiling kernel, which streams
// the same bytes and waits for nothing; of the drain kernel, which decodes without a stream; and of a plain read of
// the weights. GBs are 10^9 bytes per second.
type BenchReport struct {
	Device         string         `json:"device"`
	Position       int            `json:"position"`
	StepsPerLaunch int            `json:"steps_per_launch"`
	Launches       int            `json:"launches"`
	Latency        Quantiles      `json:"latency_us"`
	Ceiling        Quantiles      `json:"ceiling_us"`
	Drain          Quantiles      `json:"drain_us,omitzero"`  // time of consumers and exchanges alone
	Drawn          *Quantiles     `json:"drawn_us,omitempty"` // of steps that draw their tokens with a temperature
	Chosen         []ChosenReport `json:"chosen,omitempty"`
	BytesPerToken  float64        `json:"bytes_per_token"` // weights streamed, and KV rows read, the mean of the steps
	GBs            float64        `json:"gbs"`
	CeilingGBs     float64        `json:"ceiling_gbs"`
	ReadGBs        float64        `json:"read_gbs"`         // plain read bandwidth: 16-byte loads by all SMs, median
	Share          float64        `json:"share_of_ceiling"` // 1: as fast as the ceiling
	WarmUp         int            `json:"warm_up"`          // launches before, which are not reported
	Samples        Samples        `json:"samples_us"`
	Machine        Machine        `json:"machine"`

	Passes []PassReport  `json:"passes,omitempty"` // of the kernels for several tokens that the build has
	Prompt *PromptReport `json:"prompt,omitempty"`
	Parts  []PartsReport `json:"parts,omitempty"` // of a build whose measuring kernels have a step in parts
}

// Samples are microseconds per token, one per launch in the order of the launches: those of one index ran one after the
// other.
type Samples struct {
	Decode  []float64 `json:"decode"`
	Ceiling []float64 `json:"ceiling"`
}

// Bench measures the latency of a token. It returns [ErrNotChecked] unless [Session.Check] has passed, see also
// [Session.Trust], and an [ArtefactError] when the result would be faster than is possible. The session is at position
// 0 afterwards, and the contents of the cache are undefined.
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
	if err := b.turns.warmUp(ctx, o.WarmUp); err != nil {
		return nil, err
	}
	b.clocks.forget()
	if err := b.turns.run(ctx, o.Launches, progress); err != nil {
		return nil, err
	}
	r, err := s.benchReport(o, b)
	if err == nil && o.Prompt > 0 {
		r.Prompt, err = s.benchPrompt(ctx, o.Prompt, &b.clocks, progress)
	}
	return r, err
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
		return fmt.Errorf("%d steps per launch from position %d do not fit: 1 to %d are possible, because the "+
			"schedule ends or changes "+
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
	return s.checkPrompt(o.Prompt)
}

// A bench is a measurement in progress.
type bench struct {
	measures               *measures
	decode, ceiling, plain *timedKernel
	drain                  *timedKernel // nil: the build has none
	drawn                  *timedDrawn  // nil: not asked for
	passes                 []timedPass
	parts                  *timedParts
	readBytes              int64
	turns                  *interleaving
	clocks                 clockWatch
}

// newBench loads the kernels. The bench must be closed, also after an error.
func (s *Session) newBench(o BenchOptions) (b *bench, err error) {
	b = &bench{}
	if b.measures, err = s.openMeasures(); err != nil {
		return b, err
	}
	s.position = o.Position
	b.decode = s.timedSteps(s.one, s.one.decode, o.StepsPerLaunch, true, nil)
	if b.ceiling, err = s.timedCeiling(s.one, o.StepsPerLaunch, nil); err != nil {
		return b, err
	}
	b.plain, b.readBytes = b.measures.timedRead(o.StepsPerLaunch)
	// Decode comes after the ceiling, which leaves the caches as decode itself does.
	kernels := []*timedKernel{b.plain, b.ceiling, b.decode}
	if b.measures.drain != nil {
		b.drain = s.timedSteps(s.one, b.measures.drain, o.StepsPerLaunch, true, nil)
		kernels = slices.Insert(kernels, 0, b.drain)
	}
	if o.Drawn {
		if b.drawn, err = s.newTimedDrawn(o.StepsPerLaunch); err != nil {
			return b, err
		}
		kernels = append(kernels, b.drawn.timed()...)
	}
	var several []*timedKernel
	if b.passes, several, err = s.newTimedPasses(o); err != nil {
		return b, err
	}
	kernels = append(kernels, several...)
	if b.parts, err = s.newTimedParts(b.measures, o); err != nil {
		return b, err
	}
	kernels = append(kernels, b.parts.timed...)
	if b.turns, err = s.interleave(kernels...); err != nil {
		return b, err
	}
	b.clocks = watchClocks(s.dev)
	b.turns.queued = b.clocks.look
	return b, nil
}

func (b *bench) close() error {
	errs := []error{b.clocks.close(), b.drawn.close()}
	if b.turns != nil {
		errs = append(errs, b.turns.close())
	}
	if b.parts != nil {
		errs = append(errs, b.parts.close())
	}
	if b.measures != nil {
		errs = append(errs, b.measures.close())
	}
	return errors.Join(errs...)
}

func (s *Session) benchReport(o BenchOptions, b *bench) (r *BenchReport, err error) {
	r = &BenchReport{Device: s.dev.Facts().Name, Position: o.Position, StepsPerLaunch: o.StepsPerLaunch,
		Launches: o.Launches, WarmUp: o.WarmUp,
		Samples: Samples{Decode: nanoseconds(b.decode.times), Ceiling: nanoseconds(b.ceiling.times)},
		Machine: b.clocks.machine(s.dev.Facts()),
		Latency: quantiles(b.decode.times), Ceiling: quantiles(b.ceiling.times)}
	if b.drain != nil {
		r.Drain = quantiles(b.drain.times)
	}
	b.drawn.report(r)
	t := &s.facts.Traffic
	r.BytesPerToken = float64(t.Weights) + t.CacheBytes(o.Position, o.StepsPerLaunch)
	r.GBs = r.BytesPerToken / r.Latency.Median / 1000
	r.CeilingGBs = r.BytesPerToken / r.Ceiling.Median / 1000
	r.ReadGBs = float64(b.readBytes) / quantiles(b.plain.times).Median / 1000
	artefact := &ArtefactError{Latency: r.Latency.Median, Ceiling: r.Ceiling.Median,
		Read: r.BytesPerToken / r.ReadGBs / 1000, Cached: r.cached()}
	if artefact.impossible() {
		return nil, artefact
	}
	r.Share = r.Ceiling.Median / r.Latency.Median
	for i := range b.passes {
		p := b.passes[i].report()
		artefact := &ArtefactError{Latency: p.Latency.Median, Ceiling: p.Ceiling.Median,
			Read:   artefact.Read * p.Ceiling.Median / r.Ceiling.Median, // as many bytes more as the ring takes longer
			Cached: artefact.Cached}
		if artefact.impossible() {
			return nil, artefact
		}
		r.Passes = append(r.Passes, p)
	}
	r.Parts = b.parts.reports()
	return r, nil
}

// nanoseconds returns a copy of times in microseconds, rounded to what is more than an event can tell.
func nanoseconds(times []float64) []float64 {
	out := make([]float64, len(times))
	for i, t := range times {
		out[i] = math.Round(t*1000) / 1000
	}
	return out
}

// quantiles interpolates linearly between the sorted times.
func quantiles(times []float64) Quantiles {
	times = slices.Sorted(slices.Values(times))
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

// Names in measure.fatbin.
const (
	profileName = "amk_profile"
	drainName   = "amk_drain"
	readName    = "amk_read"
)

// Of the plain read (amk/read.cuh).
const (
	readThreads = 512
	readBlocks  = 2 // an SM
	readSize    = 32
)

// measures are the kernels of measure.fatbin: forms of the decode step that nothing but a measurement launches.
type measures struct {
	s                    *Session
	module               modules
	read                 functions
	profile, drain, part functions // nil: it is not compiled
}

// openMeasures loads them. They must be closed.
func (s *Session) openMeasures() (_ *measures, err error) {
	path := filepath.Join(s.dir, MeasureFile)
	image, err := infile.Read(path, infile.Module)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &BuildError{Path: path, What: "the kernels that a measurement needs are missing",
			Remedy: "build them: run make in " + s.dir}
	} else if err != nil {
		return nil, &BuildError{Path: path, What: "the measuring kernels cannot be read", Err: err}
	}
	m := &measures{s: s}
	if m.module, err = s.loadModule(image); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	info, err := readInfo(s.dev, m.module[0])
	if err != nil {
		return nil, &BuildError{Path: path, What: "not the measuring kernels of amkc", Remedy: "run make again",
			Err: err}
	}
	if !reflect.DeepEqual(info, s.info) {
		return nil, &BuildError{Path: path, What: "made from other sources than " + FatbinFile,
			Remedy: "run make again"}
	}
	for _, f := range []struct {
		name string
		into *functions
	}{{profileName, &m.profile}, {drainName, &m.drain}, {partName, &m.part}} {
		if _, absent := m.module.functions(f.name); absent != nil {
			continue
		}
		if *f.into, err = s.function(s.one, m.module, MeasureFile, f.name); err != nil {
			return nil, err
		}
	}
	if m.read, err = m.module.functions(readName); err != nil {
		return nil, &BuildError{Path: path, What: "not the measuring kernels of amkc", Remedy: "run make again",
			Err: err}
	}
	return m, nil
}

func (m *measures) close() error {
	if err := m.module.close(); !driver.IsSticky(err) {
		return err
	}
	return nil
}

// leastRead is how much a launch of the plain read reads at least, where the steps of a launch do: in less, the ends
// of the launch would show.
const leastRead = 4 << 30

// timedRead is the plain read of as many bytes as the steps stream of weights; of large models in one pass, which is
// as good as many. Its times are microseconds for bytes.
func (m *measures) timedRead(steps int) (k *timedKernel, bytes int64) {
	bytes = m.s.facts.Traffic.Weights / 16 * 16
	bytes = min(bytes, m.s.info.WeightBytes/16*16)
	passes := min(int64(steps), (leastRead+bytes-1)/max(1, bytes))
	arg := make([]byte, 0, readSize)
	le := binary.LittleEndian
	arg = le.AppendUint64(arg, uint64(m.s.mem.weights))
	arg = le.AppendUint64(arg, uint64(bytes))
	// what is there is written before it is read
	arg = le.AppendUint64(arg, uint64(m.s.mem.scratch)+uint64(m.s.mem.logits))
	arg = le.AppendUint32(arg, uint32(passes))
	arg = le.AppendUint32(arg, 0)
	grid, block := driver.Dim{X: readBlocks * m.s.info.SMs}, driver.Dim{X: readThreads}
	return &timedKernel{per: float64(passes), queue: func() error {
		return m.s.stream.Launch(m.read[0], grid, block, 0, arg)
	}}, bytes
}
