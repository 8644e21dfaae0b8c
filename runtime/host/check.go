package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"amkc/runtime/driver"
)

const (
	checkTokens = 32 // decoded from position 0
	checkPart   = 5  // of them at a time, for passes of several rows
	checkEdge   = 4  // positions on either side of a variant's end, and twice that before max_seq

	// Tokens of a prompt, of which logits have no room: those of a pass, all but the last, fill two tiles of 64 and end
	// in a third. What they left in the cache shows in the logits of as many positions after them as is said below.
	checkPrompt = 2*64 + 9 + 1
	checkAfter  = 2
)

// CheckReport is the result of [Session.Check].
type CheckReport struct {
	Passed    bool         `json:"passed"`
	Tolerance Tolerance    `json:"tolerance"`
	Spans     []CheckSpan  `json:"spans"`
	Passes    []*PassCheck `json:"passes,omitempty"` // of several sequences, where the build has them
	Failures  []string     `json:"failures,omitempty"`

	of buildID
}

// String lists the findings, a line each.
func (r *CheckReport) String() string {
	var b strings.Builder
	for _, s := range r.Spans {
		same := "two runs bit-identical"
		if !s.Deterministic {
			same = "two runs differ"
		}
		fmt.Fprintf(&b, "positions %d to %d: logit error %.2e RMS, %.2e max; %s\n", s.First, s.Last, s.RMS, s.Max, same)
	}
	for _, p := range r.Passes {
		fmt.Fprintln(&b, p)
	}
	for _, failure := range r.Failures {
		fmt.Fprintln(&b, failure)
	}
	return b.String()
}

// A buildID tells the builds of a process apart: by their directories, and by what kernels were in them.
type buildID struct {
	dir     string
	kernels [sha256.Size]byte
}

func buildIDOf(dir string, images [][]byte) buildID {
	id, h := buildID{dir: dir}, sha256.New()
	for _, image := range images {
		sum := sha256.Sum256(image)
		h.Write(sum[:])
	}
	h.Sum(id.kernels[:0])
	return id
}

// Trust accepts the report of a Check that passed in another session of the same build in this process. For any other
// report it returns [ErrNotChecked]. Check leaves rows in the cache, and Trust does not: see [Session.FillCache].
func (s *Session) Trust(r *CheckReport) error {
	if !r.Passed || r.of != s.build {
		return ErrNotChecked
	}
	s.checked = true
	return nil
}

// CheckSpan is the result for consecutive positions, both ends included. The errors are the largest over them, relative
// as in [Tolerance].
type CheckSpan struct {
	First         int     `json:"first"`
	Last          int     `json:"last"`
	RMS           float64 `json:"rms"`
	Max           float64 `json:"max"`
	Deterministic bool    `json:"deterministic"`
}

// Check decodes fixed ids at 32 positions from 0 on, around the positions where the variant changes, and at the last
// positions of the build, with the megakernel and with the reference, and compares the logits. It also requires that
// the chosen token is the argmax of the kernel's own logits, and that the kernel gives the same bits when it runs
// again, one token a launch instead of many. Where routers choose experts, the reference chooses by the scores of the
// megakernel, which must be close to its own: two that are nearly the same may come in another order. If the build has
// passes of several rows, they decode the ids, in full passes and then in parts that leave rows unused. If it has a
// kernel for prompts, that decodes them instead, and then, from the beginning of each variant, more tokens than it can
// return logits for: the logits of the following positions must equal those after single tokens, to the bit. Passes of
// several sequences are compared with single tokens to the bit, from random positions and with random other sequences;
// with several rows, some are wrong drafts.
//
// Positions other than the first see a cache of made-up rows, the same for all. An error means that the check could not
// be made; findings are in the report. The session is at position 0 afterwards.
func (s *Session) Check(ctx context.Context, progress Progress) (_ *CheckReport, err error) {
	if s.closed {
		return nil, ErrClosed
	}
	ref, err := s.openReference(s.resident())
	if err != nil {
		return nil, err
	}
	defer func() {
		s.Reset()
		err = errors.Join(err, ref.Close())
	}()
	s.checked, s.chooser, s.script = false, nil, nil
	report := &CheckReport{Tolerance: toleranceOf(&s.facts.Model), of: s.build}
	spans := checkSpans(s.info)
	prompts := s.checkPrompts()
	total := int64(len(spans) + len(prompts))
	done := func(n int) {
		if progress != nil {
			progress("checking", int64(n), total)
		}
	}
	for i, span := range spans {
		if err := s.checkSpan(ctx, ref, span[0], span[1], report); err != nil {
			return nil, err
		}
		done(i + 1)
	}
	for i, span := range prompts {
		if err := s.comparePrompt(ctx, span[0], span[1], report); err != nil {
			return nil, err
		}
		done(len(spans) + i + 1)
	}
	if len(s.several) > 0 {
		if err := s.checkSequences(ctx, report); err != nil {
			return nil, err
		}
	}
	report.Passed = len(report.Failures) == 0
	s.checked = report.Passed
	return report, nil
}

// CheckFrom compares n positions from the first on with the reference, as [Session.Check] does. It does not count as a
// passed check: the report covers only these positions.
func (s *Session) CheckFrom(ctx context.Context, first, n int) (_ *CheckReport, err error) {
	if s.closed {
		return nil, ErrClosed
	}
	if first < 0 || n < 1 || first+n > s.info.MaxSeq {
		return nil, &PositionError{First: first, Steps: n, MaxSeq: s.info.MaxSeq}
	}
	ref, err := s.openReference(s.resident())
	if err != nil {
		return nil, err
	}
	defer func() {
		s.Reset()
		err = errors.Join(err, ref.Close())
	}()
	s.checked, s.chooser, s.script = false, nil, nil
	report := &CheckReport{Tolerance: toleranceOf(&s.facts.Model)} // of no build, so that Trust refuses it
	if err := s.checkSpan(ctx, ref, first, n, report); err != nil {
		return nil, err
	}
	report.Passed = len(report.Failures) == 0
	return report, nil
}

// FillCache fills the cache of each sequence with fixed contents, so that measurements read the same data in each
// session. The session is at position 0 afterwards.
func (s *Session) FillCache() error {
	defer func() { s.region, s.position = 0, 0 }()
	for s.region = range s.Sequences() {
		if err := s.setCache(s.info.MaxSeq); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) resident() Resident {
	return s.residentOn(0)
}

// residentOn is what is on a GPU.
func (s *Session) residentOn(rank int) Resident {
	r := Resident{Dir: s.dir, Device: s.gpus[rank].dev, Facts: s.facts, Info: s.info,
		Weights: s.on(rank, s.mem.weights), Cache: s.on(rank, s.cache())}
	for i := 1; i < len(s.gpus) && rank == 0; i++ {
		r.Peers = append(r.Peers, s.residentOn(i))
	}
	return r
}

// checkSpans returns the intervals of positions to check, as first and number.
func checkSpans(i Info) [][2]int {
	spans := [][2]int{{0, min(checkTokens, i.MaxSeq)}}
	for _, end := range i.VariantEnds {
		first := max(0, end-checkEdge)
		last := end + checkEdge
		if end == i.MaxSeq {
			first, last = max(0, end-2*checkEdge), end
		}
		spans = append(spans, [2]int{first, min(last, i.MaxSeq) - first})
	}
	return spans
}

// checkSpan compares n positions from first on, and adds to the report.
func (s *Session) checkSpan(ctx context.Context, ref Reference, first, n int, report *CheckReport) error {
	ids := CheckIDs(first, n, s.info.Vocab)
	together, err := s.checkPass(ctx, first, ids, n, report)
	if err != nil {
		return err
	}
	scores, err := s.newScores()
	if err != nil {
		return err
	}
	singly, err := s.checkPass(ctx, first, ids, 1, report)
	if err := errors.Join(err, scores.close()); err != nil {
		return err
	}
	runs := [][][]float32{together}
	if len(s.passes) > 0 {
		parts, err := s.checkPass(ctx, first, ids, checkPart, report)
		if err != nil {
			return err
		}
		runs = append(runs, parts)
	}
	span := CheckSpan{First: first, Last: first + n - 1, Deterministic: true}
	if err := s.setCache(first); err != nil {
		return err
	}
	for i, id := range ids {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		for _, run := range runs {
			if span.Deterministic && !slices.EqualFunc(run[i], singly[i], sameBits) {
				span.Deterministic = false
				report.fail("position %d: two runs of the kernel differ", first+i)
			}
		}
		given := scores.at(i)
		want, own, err := ref.Step(id, first+i, given)
		if err != nil {
			return fmt.Errorf("reference kernels at position %d: %w", first+i, err)
		}
		for k, v := range own {
			d := measure(given[k].Values, v.Values, 0, 1)
			if !report.Tolerance.holds(d) {
				report.fail("position %d: scores of stage %s differ by %.2e (RMS) and %.2e (max), and %.0e and %.0e "+
					"are allowed", first+i, v.Stage, d.rms, d.max, report.Tolerance.RMS, report.Tolerance.Max)
			}
		}
		d := compare(together[i], want)
		span.RMS, span.Max = max(span.RMS, d.rms), max(span.Max, d.max)
		if what := report.Tolerance.exceededBy(d, together[i], want); what != "" {
			report.fail("position %d: %s", first+i, what)
		}
	}
	report.Spans = append(report.Spans, span)
	return nil
}

// checkPass decodes ids from a position on, group of them a call, and returns the logits of each.
func (s *Session) checkPass(ctx context.Context, first int, ids []int, group int, report *CheckReport) ([][]float32,
	error) {
	if err := s.setCache(first); err != nil {
		return nil, err
	}
	s.position = first
	var all [][]float32
	for part := range slices.Chunk(ids, group) {
		position := s.position
		next, err := s.Feed(ctx, part, func(_ int, logits []float32) error {
			all = append(all, slices.Clone(logits))
			return nil
		})
		if err := errors.Join(err, s.scores.read(position)); err != nil {
			return nil, err
		}
		if want, finite := argmax(all[len(all)-1]); finite && next != want {
			report.fail("position %d: the kernel chose token %d, and the largest of its logits is that of %d",
				s.position-1, next, want)
		}
	}
	return all, nil
}

func (r *CheckReport) fail(format string, args ...any) {
	r.Failures = append(r.Failures, fmt.Sprintf(format, args...))
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// CheckIDs returns the ids that [Session.Check] decodes at n positions: fixed, spread over the vocabulary, and the
// same wherever spans overlap.
func CheckIDs(first, n, vocab int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = int(mix(uint64(first+i)) % uint64(vocab))
	}
	return ids
}

// mix scrambles a counter (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// fillBytes is about the period of the made-up cache. Of elements it is exact, and no multiple of the size of any row,
// head or layer.
const fillBytes = 8<<20 - 4*1009

const (
	blockRows     = 16 // of K, and of V, in a block of the cache (amk/cache.cuh)
	cacheAlign    = 256
	rowScaleBytes = 4 // of the scales of K and of V of a row, both BF16
)

// setCache prepares the cache for decoding from a position on: rows that nothing decoded are made up, others in
// each region, and without any the cache is cleared. Padding gets values too, finite ones; it is multiplied by zeros.
func (s *Session) setCache(position int) error {
	total := int(s.info.CacheBytes)
	s.states = recalled{after: position}
	if position == 0 {
		if err := s.set(s.cache(), 0, total); err != nil {
			return err
		}
		return s.synchronize()
	}
	var errs []error
	for _, p := range s.cacheParts(total) {
		type piece struct{ at, from, to int } // of the cache, and of the pattern
		var there []piece
		pattern := s.patternOf(p.bytes, &p.model)
		errs = append(errs, makeUp(p.bytes, p.region, pattern, &p.model, func(at, from, to int) error {
			dst := s.cache() + driver.Ptr(p.at+at)
			for _, q := range there {
				if q.from <= from && to <= q.to {
					return s.move(dst, s.cache()+driver.Ptr(p.at+q.at+from-q.from), to-from)
				}
			}
			there = append(there, piece{at, from, to})
			return s.put(dst, pattern[from:to])
		}))
	}
	return errors.Join(errors.Join(errs...), s.synchronize())
}

// A cachePart is a part of the cache with blocks of one size. Its region says where in the pattern it begins.
type cachePart struct {
	at, bytes, region int
	model             Model
}

// cacheParts are all of the cache, or its layers where they have blocks of integers and differ in them, or elements of
// several types.
func (s *Session) cacheParts(total int) []cachePart {
	f := s.facts
	if len(f.Layers) == 0 || f.Model.Cache != integerCache && !slices.ContainsFunc(f.Layers, Layer.single) {
		return []cachePart{{0, total, s.region, f.Model}}
	}
	var parts []cachePart
	for l := range f.Layers {
		parts = append(parts, cachePart{f.CacheAt(l), f.layerBytes(l), s.region*len(f.Layers) + l, f.ModelOf(l)})
	}
	return parts
}

// blocksOf is what a pattern follows from: the elements of a head, and their type.
type blocksOf struct {
	elements     int
	dtype, cache string
}

// patternOf is what parts with such blocks repeat, as long as the longest that has been asked for.
func (s *Session) patternOf(bytes int, m *Model) []byte {
	of := blocksOf{m.HeadDim, m.DType, m.Cache}
	if len(s.patterns[of]) < patternBytes(bytes, m) {
		if s.patterns == nil {
			s.patterns = map[blocksOf][]byte{}
		}
		s.patterns[of] = patternOf(bytes, m)
	}
	return s.patterns[of]
}

// patternBytes is the length of a pattern.
func patternBytes(total int, m *Model) int {
	if m.Cache == integerCache {
		return max(1, min(fillBytes, total)/blockBytes(m)) * blockBytes(m)
	}
	return min(fillBytes, total)
}

// patternOf returns what the made-up cache of a region, of n bytes, repeats.
func patternOf(total int, m *Model) []byte {
	if m.Cache == integerCache {
		return madeUpBlocks(patternBytes(total, m)/blockBytes(m), m)
	}
	return madeUp(patternBytes(total, m), m)
}

// makeUp gives put all parts of the made-up cache of a region, of n bytes: the offset in the cache, and the bytes
// of the pattern that belong there. A cache of integers has scales at the end of each block: its layers are made of
// whole blocks, and what aligns the next layer, which nothing reads, is left as it is.
func makeUp(total, region int, pattern []byte, m *Model, put func(at, from, to int) error) error {
	layer, used, apart := total, total, 4*1009
	if m.Cache == integerCache {
		apart = blockBytes(m)
		used = m.KVHeads * ((m.MaxSeq + blockRows - 1) / blockRows) * apart
		layer = (used + cacheAlign - 1) / cacheAlign * cacheAlign
	}
	next := region * apart % len(pattern) // layers and regions begin at different places of it
	for first := 0; first < total; first += layer {
		for at, end := first, min(first+used, total); at < end; {
			to := min(len(pattern), next+end-at)
			if err := put(at, next, to); err != nil {
				return err
			}
			at, next = at+to-next, to%len(pattern)
		}
	}
	return nil
}

// madeUp returns elements of magnitude 1/8 to 1 and either sign.
func madeUp(n int, m *Model) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, n+4)
	for i := uint64(0); len(b) < n; i++ {
		r := mix(i)
		exponent := uint32(r>>32) % 3
		switch m.DType {
		case "F32":
			b = le.AppendUint32(b, uint32(r)&0x807FFFFF|(124+exponent)<<23)
		case "F16":
			b = le.AppendUint16(b, uint16(r)&0x83FF|uint16(12+exponent)<<10)
		default:
			b = le.AppendUint16(b, uint16(r)&0x807F|uint16(124+exponent)<<7)
		}
	}
	return b[:n]
}

// blockBytes is the size of a block of a cache of integers.
func blockBytes(m *Model) int {
	padded := (m.HeadDim + 15) / 16 * 16
	return blockRows * (2*padded + rowScaleBytes)
}

// madeUpBlocks returns blocks of a cache of integers. Each row of K and of V has a scale of its own, of 1/1024 to
// 1/128, and each element is any of the integers from -127 to 127, so that values are less than 1.
func madeUpBlocks(n int, m *Model) []byte {
	block := blockBytes(m)
	b := make([]byte, 0, n*block)
	for i := uint64(0); len(b) < n*block; i++ {
		r := mix(i)
		if len(b)%block < block-blockRows*rowScaleBytes {
			b = append(b, byte(int8(int(r%255)-127)))
			continue
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(r)&0x7F|uint16(117+(r>>32)%3)<<7)
	}
	return b
}
