package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"amkc/runtime/driver"
)

// A StageVector is what one stage published.
type StageVector struct {
	Stage  string // label, layer included: "L03.qkv"
	Values []float32
	Parts  []float32 // that Values are the sum of, one after another, where the stage publishes parts
}

// A Trace is every vector that the megakernel exchanged in one step, in order, and the logits after them under the
// name of the stage that makes them.
type Trace struct {
	Position int
	Vectors  []StageVector
	Hidden   []float32 // the last hidden state
	Chosen   int       // the token after the step
}

// Vector returns the values of a stage, nil when it published none.
func (t *Trace) Vector(stage string) []float32 {
	i := slices.IndexFunc(t.Vectors, func(v StageVector) bool { return v.Stage == stage })
	if i < 0 {
		return nil
	}
	return t.Vectors[i].Values
}

// Published returns what a stage published, of parts one after another; nil when it published nothing.
func (t *Trace) Published(stage string) []float32 {
	i := slices.IndexFunc(t.Vectors, func(v StageVector) bool { return v.Stage == stage })
	switch {
	case i < 0:
		return nil
	case t.Vectors[i].Parts != nil:
		return t.Vectors[i].Parts
	}
	return t.Vectors[i].Values
}

// Trace decodes ids at the session's position and the ones after it, as [Session.Feed] does, and returns the vectors of
// the last one's step.
func (s *Session) Trace(ctx context.Context, ids []int) (_ *Trace, err error) {
	if err := s.onlyOne("tracing a step"); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("no tokens to decode")
	}
	if err := s.room(len(ids)); err != nil {
		return nil, err
	}
	if err := s.valid(ids...); err != nil {
		return nil, err
	}
	if n := len(ids) - 1; n > 0 {
		if _, err := s.Feed(ctx, ids[:n], nil); err != nil {
			return nil, err
		}
	}
	t, err := s.newTracer(s.one)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.step(ctx, ids[len(ids)-1])
}

// A tracer is the traced form of a kernel, and memory for the values of one step.
type tracer struct {
	s      *Session
	of     *megakernel
	kernel functions
	values driver.Ptr // [Info.ExchangesPerStep][Info.TraceStride]
}

func (s *Session) newTracer(k *megakernel) (*tracer, error) {
	kernel, err := s.function(k, k.module, filepath.Join(k.info.Dir(), FatbinFile), traceName)
	if err != nil {
		return nil, err
	}
	t := &tracer{s: s, of: k, kernel: kernel}
	t.values, err = s.alloc(4 * max(1, t.size()))
	return t, err
}

// size is how many values a step has room for.
func (t *tracer) size() int { return t.of.info.ExchangesPerStep * t.of.info.TraceStride }

func (t *tracer) close() error { return t.s.free(t.values) }

// run decodes tokens at the session's position, in one step, and returns what stages publish, or would, where other
// values are given for that.
func (t *tracer) run(ctx context.Context, ids []int, given []float32) (values []float32, chosen []int, err error) {
	s := t.s
	if given == nil { // kNotGiven of amk/launch.cuh
		err = s.set(t.values, 0xff, 4*t.size())
	} else if len(given) != t.size() {
		err = fmt.Errorf("a step of the kernel publishes %d values, and %d are given", t.size(), len(given))
	} else if len(given) > 0 {
		err = s.put(t.values, bytesOf(given))
	}
	if err != nil {
		return nil, nil, err
	}
	b := burst{kernel: t.of, tokens: len(ids), forced: ids, logits: true, hidden: true, trace: t}
	if chosen, err = s.run(ctx, b, nil); err != nil {
		return nil, nil, err
	}
	values = make([]float32, t.size())
	if len(values) > 0 {
		err = s.dev.CopyDtoH(bytesOf(values), t.values, nil)
	}
	return values, chosen, err
}

// step decodes one token at the session's position.
func (t *tracer) step(ctx context.Context, token int) (*Trace, error) {
	s := t.s
	trace := &Trace{Position: s.position}
	exchanges, err := s.exchanges(s.position)
	if err != nil {
		return nil, err
	}
	all, chosen, err := t.run(ctx, []int{token}, nil)
	if err != nil {
		return nil, err
	}
	trace.Chosen, trace.Hidden = chosen[0], make([]float32, s.info.Hidden)
	if err := s.dev.CopyDtoH(bytesOf(trace.Hidden), s.mem.hidden, nil); err != nil {
		return nil, err
	}
	for i, e := range exchanges {
		values := all[i*s.info.TraceStride:][:e.Elements]
		v := StageVector{Stage: e.Stage}
		if e.Parts > 1 {
			v.Parts = slices.Clone(values)
		}
		v.Values = SumOfParts(values, e.Elements/max(1, e.Parts))
		if e.Elements == 0 {
			err = s.readLogits(0, 1, func(_ int, logits []float32) error {
				v.Values = slices.Clone(logits)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		trace.Vectors = append(trace.Vectors, v)
	}
	return trace, nil
}

// A TracedStep is what one step of a kernel has published.
type TracedStep struct {
	Values []float32 // [exchanges][Stride]; after the end of a vector, NaN
	Stride int
	Logits []float32 // [tokens][vocab]
	Chosen []int     // after each token
}

// TraceStep decodes ids in one step at a position, whatever has been decoded before it: by the kernel of one token, or
// by that of passes of as many rows. With given, which is Values of such a step, each stage publishes the given values
// instead of its own, so that later stages read those; its own are returned.
func (s *Session) TraceStep(ctx context.Context, position int, ids []int, given []float32) (_ *TracedStep, err error) {
	k := s.one
	if i := slices.IndexFunc(s.passes, func(k *megakernel) bool { return k.info.NumRows() == len(ids) }); i >= 0 {
		k = s.passes[i]
	}
	if position < 0 || position >= s.info.MaxSeq || len(ids) == 0 {
		return nil, &PositionError{First: position, Steps: len(ids), MaxSeq: s.info.MaxSeq}
	}
	s.position = position
	if err := errors.Join(s.room(len(ids)), s.valid(ids...)); err != nil {
		return nil, err
	}
	if k.info.NumRows() != len(ids) || k.limit(position, len(ids), true) != len(ids) {
		return nil, fmt.Errorf("no kernel of the build decodes %d tokens at position %d in one step", len(ids),
			position)
	}
	t, err := s.newTracer(k)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	step := &TracedStep{Stride: k.info.TraceStride}
	if step.Values, step.Chosen, err = t.run(ctx, ids, given); err != nil {
		return nil, err
	}
	return step, s.readLogits(0, len(ids), func(_ int, logits []float32) error {
		step.Logits = append(step.Logits, logits...)
		return nil
	})
}

// SumOfParts adds up, in place, a vector of n elements that a stage publishes in parts, one after another. Values that
// are not parts of n elements are returned as they are.
func SumOfParts(values []float32, n int) []float32 {
	if n == 0 || len(values)%n != 0 {
		return values
	}
	for i, v := range values[n:] {
		values[i%n] += v
	}
	return values[:n]
}

// exchanges returns the exchanges of a step at a position by ordinal, layers filled in.
func (s *Session) exchanges(position int) ([]Exchange, error) {
	broken := func(format string, args ...any) error {
		return &BuildError{Path: filepath.Join(s.dir, ManifestFile), What: fmt.Sprintf(format, args...),
			Remedy: recompile}
	}
	v := s.info.variant(position)
	if v >= len(s.facts.Variants) {
		return nil, broken("it describes %d variants, and the kernel has %d", len(s.facts.Variants),
			len(s.info.VariantEnds))
	}
	all := s.facts.Variants[v].Unrolled(s.info.ExchangesPerStep + 1)
	if len(all) == 0 || len(all) > s.info.ExchangesPerStep {
		return nil, broken("variant %s has %d exchanges per step or more, and the kernel up to %d",
			s.facts.Variants[v].Name, len(all), s.info.ExchangesPerStep)
	}
	for _, e := range all {
		if e.Elements < 0 || e.Elements > s.info.TraceStride {
			return nil, broken("stage %s publishes %d elements, and the longest vector of the kernel has %d", e.Stage,
				e.Elements, s.info.TraceStride)
		}
		if e.Parts < 0 || e.Elements%max(1, e.Parts) != 0 {
			return nil, broken("stage %s publishes %d elements in %d parts", e.Stage, e.Elements, e.Parts)
		}
	}
	return all, nil
}

// Unrolled lists the exchanges of a step in order, no more than most of them, with their layers filled in.
func (v *Variant) Unrolled(most int) []Exchange { return unrolled(v.Exchanges, most) }

// unrolled repeats the exchanges of loops, round by round, until there are as many as are asked for.
func unrolled(list []Exchange, most int) []Exchange {
	var all []Exchange
	for len(list) > 0 && len(all) < most {
		first, body := list[0], 1
		if first.Layers == 0 {
			all, list = append(all, first), list[1:]
			continue
		}
		for body < len(list) && list[body].Loop == first.Loop && list[body].First == first.First &&
			list[body].Layers == first.Layers {
			body++
		}
		for round := 0; round < first.Layers && len(all) < most; round++ {
			for _, e := range list[:body] {
				if len(e.Rounds) > 0 && !slices.Contains(e.Rounds, round) {
					continue
				}
				all = append(all, Exchange{Stage: inLayer(e.Stage, first.First+round*max(1, first.Step)),
					Elements: e.Elements, Scores: e.Scores, Parts: e.Parts})
			}
		}
		list = list[body:]
	}
	return all
}

// DecodeElements reads little-endian elements of a model's dtype: F32, F16 or BF16.
func DecodeElements(raw []byte, dtype string) []float32 {
	size := elementBytes(dtype)
	values := make([]float32, len(raw)/size)
	for i := range values {
		switch at := raw[i*size:]; dtype {
		case "F32":
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(at))
		case "F16":
			values[i] = fromHalf(binary.LittleEndian.Uint16(at))
		default:
			values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(at)) << 16)
		}
	}
	return values
}

// encodeElements is the inverse of DecodeElements. Values that the dtype does not have are rounded to nearest, ties to
// even.
func encodeElements(values []float32, dtype string) []byte {
	raw := make([]byte, 0, len(values)*elementBytes(dtype))
	for _, v := range values {
		bits := math.Float32bits(v)
		switch dtype {
		case "F32":
			raw = binary.LittleEndian.AppendUint32(raw, bits)
		case "F16":
			raw = binary.LittleEndian.AppendUint16(raw, toHalf(bits))
		default:
			raw = binary.LittleEndian.AppendUint16(raw, uint16(nearest(bits, 16)>>16))
		}
	}
	return raw
}

func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h)&0x8000<<16, uint32(h)>>10&31, uint32(h)&0x3FF
	switch exponent {
	case 0:
		return float32(math.Copysign(math.Ldexp(float64(fraction), -24), float64(math.Float32frombits(sign|1<<23))))
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// toHalf converts the bits of a float32 to the nearest half.
func toHalf(bits uint32) uint16 {
	sign := uint16(bits >> 16 & 0x8000)
	switch size := math.Float32frombits(bits &^ (1 << 31)); {
	case bits&^(1<<31) > 255<<23: // not a number
		return sign | 31<<10 | uint16(nearest(bits, 13)>>13&0x3FF)
	case size >= 65520: // infinite, or nearer to that than to the largest half
		return sign | 31<<10
	case size < 0x1p-14: // zero or subnormal
		return sign | uint16(math.RoundToEven(math.Ldexp(float64(size), 24)))
	}
	return sign | uint16(nearest(bits&^(1<<31), 13)>>13-112<<10)
}

// nearest rounds the bits of a float32 to ones whose last n are 0. A carry goes into the exponent, as it should.
func nearest(bits uint32, n int) uint32 {
	if bits&^(1<<31) > 255<<23 { // not a number, and it stays none
		bits &^= 1<<n - 1
		if bits&(1<<23-1) == 0 {
			bits |= 1 << 22
		}
		return bits
	}
	return (bits + 1<<(n-1) - 1 + bits>>n&1) &^ (1<<n - 1)
}

// scores are those that routers choose experts by, of steps that are decoded one a launch while a session has them. A
// model without experts has none, and nil does nothing.
type scores struct {
	s      *Session
	values driver.Ptr // as those of a tracer
	steps  [][]StageVector
}

// newScores lets the session record the scores of its steps, until they are closed.
func (s *Session) newScores() (*scores, error) {
	chooses := func(e Exchange) bool { return e.Scores }
	if !slices.ContainsFunc(s.facts.Variants, func(v Variant) bool {
		return slices.ContainsFunc(v.Exchanges, chooses)
	}) {
		return nil, nil
	}
	values, err := s.alloc(4 * s.info.ExchangesPerStep * s.info.TraceStride)
	if err != nil {
		return nil, err
	}
	s.scores = &scores{s: s, values: values}
	return s.scores, nil
}

// read takes the scores of the step at a position, which has been decoded.
func (r *scores) read(position int) error {
	if r == nil {
		return nil
	}
	exchanges, err := r.s.exchanges(position)
	if err != nil {
		return err
	}
	var step []StageVector
	for i, e := range exchanges {
		if !e.Scores {
			continue
		}
		v := StageVector{Stage: e.Stage, Values: make([]float32, e.Elements)}
		at := r.values + driver.Ptr(4*i*r.s.info.TraceStride)
		if err := r.s.dev.CopyDtoH(bytesOf(v.Values), at, nil); err != nil {
			return err
		}
		step = append(step, v)
	}
	r.steps = append(r.steps, step)
	return nil
}

// at are the scores of the n-th step that was read.
func (r *scores) at(n int) []StageVector {
	if r == nil || n >= len(r.steps) {
		return nil
	}
	return r.steps[n]
}

// close ends the recording.
func (r *scores) close() error {
	if r == nil {
		return nil
	}
	r.s.scores = nil
	return r.s.free(r.values)
}
