package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"amkc/runtime/driver"
	"amkc/runtime/shape"
	"amkc/text/sampling"
)

// A burst is the work of one launch: tokens from the session's position on, all of one variant.
type burst struct {
	kernel *megakernel // nil: that of one token
	tokens int         // to decode; the last step of a pass may have rows to spare
	forced []int       // all of them, or nil: token, and then what the steps choose
	token  int
	stops  []int // only without forced: a chosen token among these ends the launch
	logits bool  // leave the logits of every token in scratch memory
	hidden bool  // leave the last hidden state of every token where there is room for it

	embeddings []float32 // of those of forced that are Embedding; then there is one sequence
	// by what the tokens are chosen, of each sequence of the pass; nil: the largest logits. With counts, what steps
	// decode after the first token of a sequence is of its output
	choose []*choosing
	counts bool

	// positions are those of the sequences of a pass of several, or absent. Then each step has as many tokens as the
	// kernel, all of them of forced, where those of later steps may be -1. nil: one sequence, at the session's
	// position.
	positions []int
	trace     *tracer // nil, or where every exchanged value goes
}

// absent is the position of a sequence that is not there, and noToken what a step chooses where settings and logits
// leave nothing to draw: kAbsent and kNoToken of amk/launch.cuh.
const (
	absent  = -1
	noToken = 0x7ffffffe
)

// pollEvery is how often the words of a running launch are read.
const pollEvery = 200 * time.Microsecond

// steps is how many the launch of a burst has.
func (b *burst) steps() int { return b.stepsOf(b.tokens) }

// stepsOf is how many steps decode n tokens.
func (b *burst) stepsOf(tokens int) int {
	return (tokens + b.kernel.info.NumTokens() - 1) / b.kernel.info.NumTokens()
}

// stopped reports whether the tokens that a launch has chosen end with a step that ends it.
func (b *burst) stopped(tokens []int) bool {
	n := 1
	if b.positions != nil {
		n = b.kernel.info.NumTokens()
	}
	for i, id := range tokens[max(0, len(tokens)-n):] {
		if (id == noToken || slices.Contains(b.stops, id)) &&
			(b.positions == nil || b.positions[i/b.kernel.info.NumRows()] != absent) {
			return true
		}
	}
	return false
}

// nothingAt says that there is no token to choose for a position.
func nothingAt(position int) error {
	return &sampling.LogitsError{Position: position, What: "no token can be chosen: each has a logit or a bias of " +
		"-inf or is not allowed, or the logit of some is not a finite number"}
}

// run runs a burst and returns the tokens chosen, one after each that was decoded; noToken where settings and
// logits leave none, which ends the launch unless the next token is given. emit gets each other one as soon as the
// kernel has written it; its first error is returned after the launch, and it is not called again.
//
// When ctx is cancelled the abort word is raised, and the launch ends as soon as it next waits in vain, or on its own.
// If it was aborted, the session is where it was before; if not, its steps count. In both cases the cause of
// the cancellation is returned with the tokens that count.
func (s *Session) run(ctx context.Context, b burst, emit func(id int) error) ([]int, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if b.kernel == nil {
		b.kernel = s.one
	}
	if err := s.recall(ctx); err != nil {
		return nil, err
	}
	first, begun := s.position, time.Now()
	if err := s.start(b); err != nil {
		return nil, err
	}
	s.states.after = -1 // until it has ended well
	done := s.waitForAll()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()

	var tokens []int
	var emitErr error
	drain := func() {
		for len(tokens) < b.tokens {
			word := s.mem.pinned.Load32(s.mem.tokens + 4*len(tokens))
			if word == 0 {
				return
			}
			id := s.chosen(first+len(tokens)+1, int(word-1), b.positions != nil)
			tokens = append(tokens, id)
			if emit != nil && emitErr == nil && id != noToken {
				emitErr = emit(id)
			}
		}
	}
	cancelled := ctx.Done()
	var failed error
	for running := len(s.gpus); running > 0; {
		select {
		case err := <-done:
			if running--; err != nil { // the others wait for it in vain
				failed, emit = errors.Join(failed, err), nil
				s.mem.pinned.Store32(s.mem.abort, 1)
			}
			s.took = time.Since(begun)
		case <-cancelled:
			s.mem.pinned.Store32(s.mem.abort, 1)
			cancelled, emit = nil, nil // what an aborted launch chooses from then on is garbage
		case <-tick.C:
			drain()
		}
	}
	s.mem.pinned.Store32(s.mem.abort, 0)
	if failed != nil {
		return nil, failed
	}
	if stalls := s.stalls(b.kernel); len(stalls) > 0 {
		if err := s.recover(); err != nil {
			return nil, err
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		return nil, &StallError{Position: first, Stalls: stalls}
	}
	drain()
	if b.positions == nil {
		s.decoded(first, b.taken(tokens))
		s.position += len(tokens)
	}
	b.kernel.epoch += uint64(b.stepsOf(len(tokens)))
	if len(tokens) < b.tokens && !b.stopped(tokens) {
		return tokens, fmt.Errorf("the kernel ended after %d of %d tokens without saying why", len(tokens), b.tokens)
	}
	if err := context.Cause(ctx); err != nil {
		return tokens, err
	}
	return tokens, emitErr
}

// waitForAll waits for each GPU, and says as often as there are GPUs how that ended.
func (s *Session) waitForAll() <-chan error {
	done := make(chan error, len(s.gpus))
	for i := range s.gpus {
		go func() { done <- s.gpus[i].stream.Synchronize() }()
	}
	return done
}

// start queues a burst.
func (s *Session) start(b burst) error {
	k, rows := b.kernel, b.steps()*b.kernel.info.NumTokens()
	p := s.params(b.steps())
	p.Token = b.token
	if b.positions != nil {
		p.sequences(s, b.positions)
	}
	p.HostTokens = s.mem.pinned.Ptr + driver.Ptr(s.mem.tokens)
	if b.forced != nil {
		p.Forced = s.mem.scratch + driver.Ptr(s.mem.forced)
		spare := make([]int, rows-b.tokens) // whatever these rows decode, nothing reads it
		if err := s.given(&p, slices.Concat(b.forced, spare), b.embeddings); err != nil {
			return err
		}
	}
	if b.hidden {
		p.Hidden = s.mem.hidden
	}
	if len(b.stops) > 0 {
		p.StopIDs, p.NStop = s.mem.scratch+driver.Ptr(s.mem.stopIDs), len(b.stops)
		if err := s.put(p.StopIDs, words(b.stops)); err != nil {
			return err
		}
	}
	if b.logits {
		p.LogitStride = k.info.NumTokens()
	}
	if b.logits || b.choose != nil {
		p.Logits = s.mem.scratch + driver.Ptr(s.mem.logits)
	}
	if b.choose != nil {
		if err := s.setSettings(&p, b.choose, b.counts); err != nil {
			return err
		}
	}
	for i := range rows {
		s.mem.pinned.Store32(s.mem.tokens+4*i, 0)
	}
	if err := k.enter(s, &p); err != nil {
		return err
	}
	function := k.decode
	if b.trace != nil {
		function, p.Trace = b.trace.kernel, b.trace.values
	} else if s.scores != nil && k == s.one {
		p.Trace = s.scores.values
	}
	return k.enqueue(s, function, &p)
}

// params fills in what all launches have in common.
func (s *Session) params(steps int) launchParams {
	return launchParams{
		Weights: s.mem.weights, Cache: s.cache(),
		Abort: s.mem.pinned.Ptr + driver.Ptr(s.mem.abort), Stalls: s.mem.pinned.Ptr + driver.Ptr(s.mem.stalls),
		AbortDevice: s.mem.scratch + driver.Ptr(s.mem.abortDevice),
		SpinLimitNS: uint64(s.spinLimit.Nanoseconds()), Steps: steps, Position: s.position,
	}
}

// stalls reads what the last launch, of a kernel, left. The streams must be idle.
func (s *Session) stalls(k *megakernel) []Stall {
	all := decodeStalls(s.stallRecords(), k.stages)
	for i := range all {
		if len(s.gpus) > 1 {
			rank := all[i].SM / s.info.SMs
			all[i].SM -= rank * s.info.SMs
			all[i].On = fmt.Sprintf("GPU %d", s.gpus[rank].dev.Facts().Ordinal)
		}
	}
	return all
}

// stallRecords are those of the SMs of all GPUs, one after another.
func (s *Session) stallRecords() []byte {
	return s.mem.pinned.Bytes[s.mem.layout.stalls:][:stallSize*s.info.SMs*len(s.gpus)]
}

// recover makes the session usable after a launch that was aborted: it may have left words in the exchange pages that
// belong to no step.
func (s *Session) recover() error {
	clear(s.stallRecords())
	for _, k := range s.kernels() {
		k.variant = noVariant
	}
	if err := s.set(s.mem.scratch+driver.Ptr(s.mem.abortDevice), 0, 4); err != nil {
		return err
	}
	return s.synchronize()
}

// launchParams is the argument of the kernels, amk::Launch (amk/launch.cuh). A zero pointer switches its feature off.
// Trace is where a traced kernel writes values, and the instrumented one its spans.
type launchParams struct {
	Weights, Cache, Exchange, Logits, Trace, Forced, Tokens, HostTokens, Abort, AbortDevice, Stalls, StopIDs driver.Ptr
	Sampling, Choices, Rounds, Embeddings, Hidden                                                            driver.Ptr
	SpinLimitNS, FirstEpoch                                                                                  uint64
	Steps, Position, Token, NStop, LogitStride, Chooses                                                      int

	Positions [shape.MaxTokens]int // of several sequences
}

// sequences makes it a launch of a pass of several, which have the cache from its first region on.
func (p *launchParams) sequences(s *Session, positions []int) {
	p.Cache, p.Position = s.mem.cache, 0
	copy(p.Positions[:], positions)
}

// launchSize is sizeof(amk::Launch).
const launchSize = 8*19 + 4*(6+shape.MaxTokens)

// encode lays the struct out as the device compiler does.
func (p *launchParams) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, launchSize)
	for _, at := range p.pointers() {
		b = le.AppendUint64(b, uint64(*at))
	}
	b = le.AppendUint64(b, p.SpinLimitNS)
	b = le.AppendUint64(b, p.FirstEpoch)
	counts := []int{p.Steps, p.Position, p.Token, p.NStop, p.LogitStride, p.Chooses}
	for _, v := range append(counts, p.Positions[:]...) {
		b = le.AppendUint32(b, uint32(int32(v)))
	}
	return b
}

// encodeFor lays it out as a rank gets it: with what it has for itself, where the pages of all ranks are, and which of
// them it is. Rank 0 tells the host the tokens.
func (p *launchParams) encodeFor(s *Session, rank int) []byte {
	if len(s.gpus) == 1 {
		return p.encode()
	}
	own := *p
	for _, at := range own.pointers() {
		*at = s.on(rank, *at)
	}
	if own.Stalls += driver.Ptr(rank * stallSize * s.info.SMs); rank > 0 {
		own.HostTokens = 0
	}
	b := own.encode()
	for i := range maxRanks {
		var pages driver.Ptr
		if i < len(s.gpus) {
			pages = s.on(i, p.Exchange)
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(pages))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(rank)) // and reserved
}

// maxRanks is kMaxRanks of amk/launch.cuh.
const maxRanks = 8

// pointers are those of the struct, in its order.
func (p *launchParams) pointers() []*driver.Ptr {
	return []*driver.Ptr{&p.Weights, &p.Cache, &p.Exchange, &p.Logits, &p.Trace, &p.Forced, &p.Tokens, &p.HostTokens,
		&p.Abort, &p.AbortDevice, &p.Stalls, &p.StopIDs, &p.Sampling, &p.Choices, &p.Rounds, &p.Embeddings, &p.Hidden}
}

// words lays token ids out as the kernel's int arrays.
func words(ids []int) []byte {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(id)))
	}
	return b
}
