package host

import (
	"fmt"

	"amkc/runtime/driver"
	"amkc/runtime/shape"
)

const (
	maxSteps = 32  // of one launch that decodes; it has room for the logits of as many positions
	MaxStops = 256 // ids that can end a launch

	page      = 2 << 20 // granularity of the driver's allocations
	cacheLine = 64
)

// layout places the small things of a session: in scratch memory on the GPU, and in pinned memory. All are byte
// offsets.
type layout struct {
	abortDevice, stopIDs, sampling, choices, recent, chosen, forced, logits, scratchBytes int
	abort, stalls, tokens, pinnedBytes                                                    int
}

func layoutFor(i Info, gpus int) layout {
	var l layout
	l.stopIDs = l.abortDevice + 256
	l.sampling = l.stopIDs + 4*MaxStops
	l.choices = l.sampling + samplingSize*shape.MaxTokens
	l.recent = l.choices + choiceSize*shape.MaxTokens
	l.chosen = l.recent + 4*maxRecent*shape.MaxTokens
	l.forced = l.chosen + 4*maxSteps*shape.MaxTokens
	l.logits = roundUp(l.forced+4*maxSteps*shape.MaxTokens, 256)
	l.scratchBytes = l.logits + 4*maxSteps*i.Vocab
	l.stalls = l.abort + cacheLine
	l.tokens = roundUp(l.stalls+stallSize*i.SMs*gpus, cacheLine)
	l.pinnedBytes = l.tokens + 4*maxSteps*shape.MaxTokens
	return l
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// memory is what a session holds on the GPU, and its pinned words.
type memory struct {
	layout
	weights, cache, scratch driver.Ptr
	embeddings, hidden      driver.Ptr // a vector for each token of a launch
	pinned                  *driver.Pinned
	set                     []byte // the settings that are there, and what lies after them
}

// A Footprint is the GPU memory that a build needs, in bytes, rounded to the driver's granularity, without the driver's
// own memory.
type Footprint struct {
	Weights uint64 `json:"weights"`
	Cache   uint64 `json:"cache"` // of all sequences of a pass
	// Other are exchange pages, the vectors of a prompt's pass, and embeddings, hidden states, logits and words of a
	// launch.
	Other  uint64 `json:"other"`
	MaxSeq int    `json:"max_seq"`

	row uint64 // bytes of the cache a position
}

// Footprint is known from the sizes alone, without a GPU. There is a cache for each of the sequences, and the
// kernel for prompts decodes up to prompt tokens at once, 0 if there is none. passes are the sizes of what the build's
// other kernels have for themselves: the exchange pages of those for passes of several tokens, and [PromptBytes] of
// that for prompts.
func (i Info) Footprint(sequences, prompt int, passes ...int) Footprint {
	cache := int64(sequences) * i.CacheBytes
	f := Footprint{Weights: paged(i.WeightBytes), Cache: paged(cache),
		Other: paged(int64(i.ExchangeBytes)) + paged(int64(layoutFor(i, 1).scratchBytes)) +
			2*paged(i.vectorBytes(prompt)),
		MaxSeq: i.MaxSeq, row: uint64((cache + int64(i.MaxSeq) - 1) / int64(i.MaxSeq))}
	for _, bytes := range passes {
		f.Other += paged(int64(bytes))
	}
	return f
}

// vectorBytes are those of a vector for each token of a launch: its embeddings, or its last hidden states.
func (i Info) vectorBytes(prompt int) int64 {
	return 4 * int64(max(maxSteps, prompt)) * int64(i.Hidden)
}

// Bytes returns the total.
func (f Footprint) Bytes() uint64 { return f.Weights + f.Cache + f.Other }

// checkMemory says whether everything fits before anything is allocated.
func checkMemory(d *driver.Device, i Info, sequences, prompt int, passes ...int) error {
	free, total, err := d.MemInfo()
	if err != nil {
		return err
	}
	f := i.Footprint(sequences, prompt, passes...)
	if f.Bytes() <= free {
		return nil
	}
	return &MemoryError{Footprint: f, Device: d.String(), Free: free, Total: total, Fits: f.Fits(free)}
}

// paged is what an allocation of n bytes takes.
func paged(n int64) uint64 { return uint64((n + page - 1) / page * page) }

// cacheBlock is a number of positions that the caches of all layouts come in multiples of.
const cacheBlock = 16

// Fits is the largest number of positions whose cache fits n bytes with the rest, in whole blocks and below
// MaxSeq; 0 when none does.
func (f Footprint) Fits(free uint64) int {
	rest := f.Weights + f.Other + page
	if free <= rest {
		return 0
	}
	return min(int((free-rest)/f.row), f.MaxSeq-1) / cacheBlock * cacheBlock
}

// allocate takes all of it. On an error the session has what was taken.
func (s *Session) allocate(prompt int) (*memory, error) {
	i, m := &s.info, &memory{layout: layoutFor(s.info, len(s.gpus))}
	var err error
	for _, a := range []struct {
		into  *driver.Ptr
		bytes int64
	}{
		{&m.weights, i.WeightBytes}, {&m.cache, int64(s.Sequences()) * i.CacheBytes},
		{&m.scratch, int64(m.scratchBytes)},
		{&m.embeddings, i.vectorBytes(prompt)}, {&m.hidden, i.vectorBytes(prompt)},
	} {
		if *a.into, err = s.alloc(int(a.bytes)); err != nil {
			return m, err
		}
	}
	m.pinned, err = s.dev.AllocPinned(m.pinnedBytes)
	return m, err
}

// ReadCache returns the bytes of the cache, of all sequences, in the layout of the kernels; of several GPUs, one after
// the other.
func (s *Session) ReadCache() ([]byte, error) {
	if s.closed {
		return nil, ErrClosed
	}
	b := make([]byte, s.allCache())
	return b, s.eachCache(b, func(d *driver.Device, at driver.Ptr, b []byte) error { return d.CopyDtoH(b, at, nil) })
}

// WriteCache writes bytes that ReadCache has read.
func (s *Session) WriteCache(b []byte) error {
	switch {
	case s.closed:
		return ErrClosed
	case len(b) != s.allCache():
		return fmt.Errorf("%d bytes are not a cache of the build, which has %d", len(b), s.allCache())
	}
	return s.eachCache(b, func(d *driver.Device, at driver.Ptr, b []byte) error { return d.CopyHtoD(at, b, nil) })
}

// allCache is the size of the cache on all GPUs.
func (s *Session) allCache() int { return len(s.gpus) * s.Sequences() * int(s.info.CacheBytes) }

// eachCache calls do with the cache of each GPU, and its part of the bytes of all.
func (s *Session) eachCache(all []byte, do func(d *driver.Device, at driver.Ptr, b []byte) error) error {
	each := len(all) / len(s.gpus)
	for i := range s.gpus {
		if err := do(s.gpus[i].dev, s.on(i, s.mem.cache), all[i*each:][:each]); err != nil {
			return err
		}
	}
	return nil
}
