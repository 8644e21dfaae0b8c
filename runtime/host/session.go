// Package host runs a build: it opens the directory that amkc wrote, puts weights and cache on the GPU, and decodes,
// checks and measures with the kernels of the build.
//
// [Open] refuses what cannot work before it loads anything large: a device other than the one compiled for, files that
// do not belong together, too little memory. A [Session] then holds the GPU memory and the position of the next token.
// [Session.Feed], [Session.Generate] and [Session.Complete] decode, [Session.Check] compares the megakernel with the
// plain kernels of the same build, [Session.Bisect] names the first stage in which the two differ, [Session.Bench]
// measures, and [Session.Profile] records the activity of each SM; both require a passed check.
//
// # Launches
//
// One launch runs consecutive steps of one variant. A step decodes one token, or several known tokens where the build
// has a kernel for passes of several rows; logits are the same to the bit. A kernel for prompts decodes, in one launch
// and to the same bits, up to the number of known tokens in the manifest, usually 2,048. It chooses no token, so the
// last token passed to [Session.Feed] is decoded by a step. A launch is aborted when the context ends, and the session
// is then in the state before that launch: Feed takes whole prompts, and there is no need to pass them in parts. The
// cache and the exchange pages stay on the GPU between launches. Words of exchange pages carry epochs, which count the
// steps since the pages were cleared. This package clears them, and restarts the count, whenever the variant changes
// and after an aborted launch.
//
// Tokens arrive in pinned host memory while the kernel runs. An abort word in the same memory cancels the waits of a
// kernel that makes no progress; a [StallError] reports where each SM was waiting.
//
// The package is copied into every emitted launcher. It imports the standard library, text/draft, runtime/driver,
// runtime/infile, runtime/printable and text/sampling, and must not import any other package of amkc. Errors are
// plain types, see errors.go.
package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"amkc/runtime/driver"
	"amkc/text/draft"
)

// A Session is a build on a GPU, and the position of the next token. It serves one goroutine at a time.
type Session struct {
	dir   string
	facts *Facts
	info  Info // of the kernel of one token

	gpu             // the first, on which results are
	gpus      []gpu // all that run the build
	allocated []allocation
	one       *megakernel   // of one token per step
	passes    []*megakernel // of several rows per step, by their number
	prompt    *promptKernel // nil: none
	several   []*megakernel // of several sequences per step: of a token of each, and then of several rows
	mem       *memory
	closed    bool

	spinLimit     time.Duration
	openReference ReferenceOpener
	lateEpochs    bool

	region   int // of the cache, of those that the sequences of a pass have; what decodes one sequence uses this
	position int // of the next token; the cache holds the rows before it
	states   recalled
	checked  bool    // Check has passed
	scores   *scores // of routers, nil unless they are recorded
	build    buildID
	patterns map[blocksOf][]byte // of the made-up cache, as soon as they are needed

	chooser *choosing  // how the one sequence goes on; nil: by the largest logits
	tables  []tables   // of the choices of each sequence, as soon as they are needed
	rounds  driver.Ptr // where the SMs find which tokens are left, the same; 0: no memory

	progress Progress // of reading long inputs; nil: nobody is told

	drafter draft.Drafter // nil: none
	drafts  draft.Stats
	script  []int         // see SetScript
	took    time.Duration // of the last launch, from before it was queued
	pace    readingPace
}

// Facts returns the facts of the manifest.
func (s *Session) Facts() Facts { return *s.facts }

// Info returns the constants of the fatbin.
func (s *Session) Info() Info { return s.info }

// Device returns the facts about the GPU.
func (s *Session) Device() driver.Facts { return s.dev.Facts() }

// Position returns the position of the next token: the number of tokens decoded since the start or [Session.Reset].
func (s *Session) Position() int { return s.position }

// Reset starts a new sequence at position 0. The cache needs no clearing: no step reads a row at or past its position.
func (s *Session) Reset() { s.position = 0 }

// Rewind makes an earlier position the next, or leaves the session where it is. The rows of the cache before it stay,
// so that a sequence which begins with the same tokens is decoded from there on, to the same bits as from position 0.
// Of a model with recurrent states the tokens before it are decoded again, by the next launch.
func (s *Session) Rewind(position int) error {
	if position < 0 || position > s.position {
		return fmt.Errorf("a rewind to position %d; want 0 to %d, where the session is", position, s.position)
	}
	s.position = position
	return nil
}

// Close frees the GPU. Closing twice is harmless.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, a := range s.allocated {
		errs = append(errs, s.freeAll(a))
	}
	if s.mem != nil {
		errs = append(errs, s.mem.pinned.Free())
	}
	for _, k := range s.kernels() {
		errs = append(errs, k.module.close())
	}
	if s.prompt != nil {
		errs = append(errs, s.prompt.module.close())
	}
	errs = append(errs, s.closeGPUs()...)
	// After a failure that ended the context every call repeats it, and the caller has it already.
	for i, err := range errs {
		if driver.IsSticky(err) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// room checks that steps more positions exist from the session's position on.
func (s *Session) room(steps int) error {
	if s.closed {
		return ErrClosed
	}
	if s.position+steps > s.info.MaxSeq {
		return &PositionError{First: s.position, Steps: steps, MaxSeq: s.info.MaxSeq}
	}
	return nil
}

// valid checks that every id names a row of the embedding.
func (s *Session) valid(ids ...int) error {
	for _, id := range ids {
		if id < 0 || id >= s.info.Vocab {
			return &TokenError{ID: id, Vocab: s.info.Vocab}
		}
	}
	return nil
}

// A Progress function reports how much of a long activity is done; done reaches total. It runs on the caller's
// goroutine.
type Progress func(activity string, done, total int64)

// Options of [Open]. The zero value is GPU 0 and the defaults.
type Options struct {
	GPU      int
	Progress Progress // of loading the weights, in bytes; may be nil
	// a wait on the GPU longer than this is a stall; 0 means 5 s. Tools that slow kernels down need more
	SpinLimit time.Duration
	Reference ReferenceOpener // nil: the reference kernels of the build
	// LateEpochs starts at an epoch so late that epochs wrap within a step or two, which otherwise takes tens of
	// thousands of steps. Results are the same.
	LateEpochs bool
}

const defaultSpinLimit = 5 * time.Second

// Open opens a build directory on a GPU: it checks that the build, the device and its free memory go together, and only
// then loads the weights and clears the cache. Errors are [BuildError], [DeviceError], [MemoryError], and those of
// package driver, of which [driver.Problem] says what to do. A cancelled context ends it with its cause.
func Open(ctx context.Context, dir string, o Options) (_ *Session, err error) {
	facts, err := ReadFacts(dir)
	if err != nil {
		return nil, err
	}
	images := make([][]byte, 1+len(facts.Passes)) // of one token, and of the passes
	if images[0], err = readFatbin(dir, FatbinFile); err != nil {
		return nil, err
	}
	var prompt []byte
	if facts.Prompt > 0 {
		if prompt, err = readFatbin(dir, PromptFile); err != nil {
			return nil, err
		}
	}
	for i, p := range facts.Passes {
		if images[1+i], err = readFatbin(dir, filepath.Join(p.Dir(), FatbinFile)); err != nil {
			return nil, err
		}
	}
	s := &Session{dir: dir, facts: facts, spinLimit: o.SpinLimit, openReference: o.Reference,
		lateEpochs: o.LateEpochs, build: buildIDOf(dir, append(images, prompt))}
	if s.spinLimit == 0 {
		s.spinLimit = defaultSpinLimit
	}
	if s.openReference == nil {
		s.openReference = openReference
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.openGPUs(o.GPU); err != nil {
		return nil, err
	}
	if err := s.load(images); err != nil {
		return nil, err
	}
	if prompt != nil {
		if err := s.loadPrompt(prompt); err != nil {
			return nil, err
		}
	}
	for i := range s.gpus {
		if err := checkMemory(s.gpus[i].dev, s.info, s.Sequences(), s.facts.Prompt, s.exchangeBytes()...); err != nil {
			return nil, err
		}
	}
	if err := s.fill(ctx, filepath.Join(dir, WeightsFile), o.Progress); err != nil {
		return nil, err
	}
	return s, nil
}

// load puts the kernels on the device.
func (s *Session) load(images [][]byte) (err error) {
	if s.one, err = s.loadMegakernel(images[0], FatbinFile, PassFacts{Stages: s.facts.Stages}); err != nil {
		return err
	}
	s.info = s.one.info
	for i, p := range s.facts.Passes {
		k, err := s.loadMegakernel(images[1+i], filepath.Join(p.Dir(), FatbinFile), p)
		switch {
		case err != nil:
			return err
		case p.NumSequences() > 1:
			s.several = append(s.several, k)
		default:
			s.passes = append(s.passes, k)
		}
	}
	return s.openStreams()
}

// kernels are those that have been loaded.
func (s *Session) kernels() []*megakernel {
	if s.one == nil {
		return nil
	}
	return slices.Concat([]*megakernel{s.one}, s.passes, s.several)
}

// exchangeBytes are the sizes of what the kernels but that of one token have for themselves, as for [Info.Footprint].
func (s *Session) exchangeBytes() []int {
	var bytes []int
	for _, k := range s.kernels()[1:] {
		bytes = append(bytes, k.info.ExchangeBytes)
	}
	if s.prompt != nil {
		bytes = append(bytes, s.prompt.bytes())
	}
	return bytes
}

// cache is the region of the cache that decodes one sequence.
func (s *Session) cache() driver.Ptr {
	return s.mem.cache + driver.Ptr(int64(s.region)*s.info.CacheBytes)
}

// fill allocates the memory, loads the weights, and clears what kernels read before they have written all of it: blocks
// of the cache are copied whole, whichever of their rows there are, and so are the operands of 64 tokens of a prompt.
// What those bytes are is masked, or belongs to columns that nobody looks at; but a tool that looks for reads of memory
// that was never written would find them, and among them no others.
func (s *Session) fill(ctx context.Context, path string, progress Progress) error {
	w, err := openWeights(path, s.info.WeightBytes*int64(len(s.gpus)), s.facts.Invented)
	if err != nil {
		return err
	}
	s.mem, err = s.allocate(s.facts.Prompt)
	for _, k := range s.kernels() {
		if err == nil {
			k.exchange, err = s.alloc(k.info.ExchangeBytes)
		}
	}
	if err == nil && s.prompt != nil {
		s.prompt.memory, err = s.alloc(s.prompt.bytes())
	}
	if err == nil {
		err = w.upload(ctx, s, progress)
	}
	if err := errors.Join(err, w.close()); err != nil {
		return err
	}
	type stretch struct {
		at    driver.Ptr
		bytes int
	}
	zeros := []stretch{{s.mem.cache, s.Sequences() * int(s.info.CacheBytes)}, {s.mem.scratch, s.mem.logits}}
	if s.prompt != nil {
		zeros = append(zeros, stretch{s.prompt.memory, s.prompt.bytes()})
	}
	for _, z := range zeros {
		if err := s.set(z.at, 0, z.bytes); err != nil {
			return err
		}
	}
	if err := s.synchronize(); err != nil || s.prompt == nil {
		return err
	}
	return s.mapMatrices()
}
