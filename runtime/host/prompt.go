package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"time"

	"amkc/runtime/driver"
	"amkc/runtime/shape"
)

// Names in the fatbin of the kernel for prompts.
const (
	promptInfoName = "amk_prompt_info"
	promptName     = "amk_prompt"

	promptMatricesName = "amk_prompt_matrices"
)

// promptLeast is how many tokens make a pass over a prompt worth its while: it takes longer than a step.
const promptLeast = 8

// promptTile is how many tokens the kernel for prompts multiplies by a tile of weights at a time, at least.
const promptTile = 64

// A promptKernel decodes hundreds of known tokens at once, and leaves their rows in the cache, to the bits of single
// steps. It finds the largest logit after the last of them. Where settings choose, that token is left to a step.
type promptKernel struct {
	module    modules
	decode    functions
	list      *driver.Function // of matrices
	tokens    int              // of a pass at most
	threads   int              // per block
	shared    int              // bytes per block
	workspace int              // bytes, in global memory
	memory    driver.Ptr
	spans     bool // whether a pass may have tokens of several variants

	// Where in the workspace the kernel lists its matrices, and where it expects their tensor maps.
	matrices, maps, mostMatrices int
}

// promptInfoSize is sizeof(amk::PromptInfo), amk/prompt.cuh.
const promptInfoSize = 4*4 + 3*8 + 2*4

// decodePromptInfo reads the bytes of an amk::PromptInfo and refuses contents that no build has.
func decodePromptInfo(raw []byte) (*promptKernel, error) {
	if len(raw) != promptInfoSize {
		return nil, fmt.Errorf("%s has %d bytes, and %d are expected", promptInfoName, len(raw), promptInfoSize)
	}
	le := binary.LittleEndian
	if v := le.Uint32(raw); v != abi {
		return nil, fmt.Errorf("its runtime ABI is %d, and this program speaks %d", v, abi)
	}
	workspace := le.Uint64(raw[16:])
	k := &promptKernel{tokens: int(le.Uint32(raw[4:])), threads: int(le.Uint32(raw[8:])),
		shared: int(le.Uint32(raw[12:])), workspace: int(workspace), mostMatrices: int(le.Uint32(raw[40:])),
		spans: le.Uint32(raw[44:]) == 1}
	matrices, maps := le.Uint64(raw[24:]), le.Uint64(raw[32:])
	list := uint64(k.mostMatrices) * promptMatrixSize // of as many bytes as their tensor maps
	if k.tokens < 1 || k.tokens > MaxPromptTokens || k.threads < 1 || workspace < 1 || workspace > maxWorkspace ||
		list > workspace || max(matrices, maps) > workspace-list {
		return nil, fmt.Errorf("%s holds a size that no kernel has", promptInfoName)
	}
	k.matrices, k.maps = int(matrices), int(maps)
	return k, nil
}

const (
	// MaxPromptTokens is the maximum number of tokens of a pass over a prompt.
	MaxPromptTokens = 4096
	maxWorkspace    = 1 << 36
)

// loadPrompt puts the kernel for prompts on the device and checks that it is the manifest's and fits.
func (s *Session) loadPrompt(image []byte) (err error) {
	path := filepath.Join(s.dir, PromptFile)
	module, err := s.loadModule(image)
	if err != nil {
		return err
	}
	k, err := func() (*promptKernel, error) {
		info, err := readInfo(s.dev, module[0])
		if err != nil {
			return nil, err
		}
		what := info.mismatch(s.facts, shape.Pass{})
		if what == "" {
			what = info.otherThan(&s.info)
		}
		if what != "" {
			return nil, errors.New(what)
		}
		p, n, err := module[0].Global(promptInfoName)
		if err != nil {
			return nil, err
		}
		raw := make([]byte, n)
		if err := s.dev.CopyDtoH(raw, p, nil); err != nil {
			return nil, err
		}
		k, err := decodePromptInfo(raw)
		if err == nil && k.tokens != s.facts.Prompt {
			err = fmt.Errorf("compiled for passes of %d tokens, and the manifest says %d", k.tokens, s.facts.Prompt)
		}
		return k, err
	}()
	if err != nil {
		return errors.Join(&BuildError{Path: path, What: "not a kernel that this program can run",
			Remedy: "it belongs to another build: run make again", Err: err}, module.close())
	}
	k.module, s.prompt = module, k
	shape := s.info
	shape.Threads, shape.SharedBytes = k.threads, k.shared
	if err := checkShape(shape, s.dev.Facts()); err != nil {
		return err
	}
	if k.decode, err = s.function(&megakernel{info: shape}, module, PromptFile, promptName); err != nil {
		return err
	}
	k.list, err = module[0].Function(promptMatricesName)
	return err
}

// PromptBytes is the size of the memory that a kernel for prompts uses: its workspace, and after that the ids of a
// pass.
func PromptBytes(workspace, tokens int) int { return workspace + 4*tokens }

func (k *promptKernel) bytes() int { return PromptBytes(k.workspace, k.tokens) }

// PromptPart is the number of prompt tokens to pass to [Session.Feed] at once, for a caller that has work to do in
// between: those of a pass over a prompt, which chooses the token after them, or of a launch of steps.
func (f *Facts) PromptPart() int {
	if f.Prompt > 0 {
		return f.Prompt
	}
	return maxSteps
}

// A readingPace is how long passes over prompts took, or launches of steps where the build has no kernel for prompts:
// the last one of each range of positions, which begins where the one before ends and is as long as all before. It
// predicts the next one, so that its tokens can be limited by time. It determines where a prompt is cut, and never the
// logits. The zero value knows nothing.
type readingPace [32]readPart

// A readPart is a part of a prompt that was read.
type readPart struct {
	tokens int
	at     int // the position of the first
	took   time.Duration
}

// paceRange is the range of a position.
func paceRange(at int) int { return bits.Len(uint(at / steepFrom)) }

// of is what is known for a position: of its range, or of the nearest one before it, or after it.
func (p *readingPace) of(at int) readPart {
	k := paceRange(at)
	for i := k; i >= 0; i-- {
		if p[i].took > 0 {
			return p[i]
		}
	}
	for _, part := range p[k:] {
		if part.took > 0 {
			return part
		}
	}
	return readPart{}
}

// steepFrom is a position up to which attention takes less time than the rest of a pass. From there on the time of a
// token is taken to grow with its position.
const steepFrom = 1024

// fits is how many tokens from a position on take no longer than a time, in multiples of some; least where nothing is
// known.
func (p *readingPace) fits(within time.Duration, at, least int) int {
	part := p.of(at)
	if part.took <= 0 {
		return least
	}
	n := float64(max(0, within)) * float64(part.tokens) / float64(part.took) // if all take as long as those did
	// n tokens are at position at+n/2 in the mean, and take n * (at + n/2 + steepFrom) / there as long as one of those.
	there, here := float64(part.at+part.tokens/2+steepFrom), float64(at+steepFrom)
	n = min(n, math.Sqrt(here*here+2*n*there)-here, 1<<30)
	return int(n) / least * least
}

// read records a pass. Of few tokens it says little, because weights are read for one as for many.
func (p *readingPace) read(tokens, at, least int, took time.Duration) {
	if tokens >= least {
		p[paceRange(at)] = readPart{tokens, at, took}
	}
}

// leastPart is the least number of prompt tokens that are worth a pass: a tile of the kernel for prompts, which takes
// as long for fewer.
func (s *Session) leastPart() int {
	if s.prompt != nil {
		return promptTile
	}
	return promptLeast
}

// promptTokens is how many of n known tokens the next pass over the prompt takes; 0 if there is no kernel for it, or if
// it is not worth its while.
func (s *Session) promptTokens(n int, logits bool) int {
	if s.prompt == nil {
		return 0
	}
	end := s.info.MaxSeq
	if !s.prompt.spans {
		end = s.info.VariantEnds[s.info.variant(s.position)]
	}
	n = min(n, s.prompt.tokens, end-s.position)
	if logits {
		n = min(n, maxSteps)
	}
	if n < promptLeast {
		return 0
	}
	return n
}

// nextPrompt is how many of n known tokens the next pass over the prompt takes, as promptTokens, and whether it chooses
// the token after them, if one is to be chosen after the last: it does where that has the largest logit and no other
// result is wanted. Otherwise the last one is left to a step.
func (s *Session) nextPrompt(n int, want Outputs, choose bool) (tokens int, chooses bool) {
	tokens = s.promptTokens(n, want.Logits != nil)
	if !choose || tokens < n {
		return tokens, false
	}
	if want.Logits == nil && want.Hidden == nil && s.scores == nil && s.after(s.position+n) == nil {
		return tokens, true
	}
	return s.promptTokens(n-1, want.Logits != nil), false
}

// readPrompt decodes an input, of as many positions as promptTokens says, in one pass. With choose, next is the token
// with the largest logit after it. Cancellation and stalls are as for a burst.
func (s *Session) readPrompt(ctx context.Context, in Input, want Outputs, choose bool) (next int, err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	k := s.prompt
	p := s.params(len(in.IDs))
	p.Exchange, p.Forced = k.memory, k.memory+driver.Ptr(k.workspace)
	if want.Logits != nil {
		p.Logits = s.mem.scratch + driver.Ptr(s.mem.logits)
	}
	if want.Hidden != nil {
		p.Hidden = s.mem.hidden
	}
	if err := s.given(&p, in.IDs, in.Embeddings); err != nil {
		return 0, err
	}
	if choose {
		p.Chooses = 1
	}
	if err := s.stream.MemsetD8(k.memory, 0, cacheLine); err != nil { // the counter of joins, and what is chosen
		return 0, err
	}
	if err := s.stream.LaunchCooperative(k.decode[0], driver.Dim{X: s.info.SMs}, driver.Dim{X: k.threads}, k.shared,
		p.encode()); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- s.stream.Synchronize() }()
	select {
	case err := <-done:
		if err != nil {
			return 0, err
		}
	case <-ctx.Done():
		s.mem.pinned.Store32(s.mem.abort, 1)
		err := <-done
		s.mem.pinned.Store32(s.mem.abort, 0)
		if err != nil {
			return 0, err
		}
	}
	if stalls := s.stalls(s.one); len(stalls) > 0 {
		if err := s.recover(); err != nil {
			return 0, err
		}
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		return 0, &StallError{Position: s.position, Stalls: stalls}
	}
	if choose {
		if next, err = s.largest(); err != nil {
			return 0, err
		}
	}
	s.position += len(in.IDs)
	return next, context.Cause(ctx)
}

// chosenAt is where a pass over a prompt leaves the largest logit in its workspace (kChosenAt of amk/prompt.cuh): in
// the low half the inverted id. Where no logit is above -inf it is 0, and a step chooses id 0.
const chosenAt = 8

func (s *Session) largest() (id int, err error) {
	raw := make([]byte, 8)
	if err := s.dev.CopyDtoH(raw, s.prompt.memory+chosenAt, nil); err != nil {
		return 0, err
	}
	if key := binary.LittleEndian.Uint64(raw); key != 0 {
		id = int(^uint32(key))
	}
	return id, nil
}

// checkPrompts returns the intervals of positions in which passes over prompts are compared with single tokens, as
// first and number: from the first position on, and across the end of each variant or, where passes end there, from it
// on. There are none without a kernel for prompts, or where too few positions are left for a pass.
func (s *Session) checkPrompts() [][2]int {
	if s.prompt == nil {
		return nil
	}
	var spans [][2]int
	first := 0
	for _, end := range s.info.VariantEnds {
		if n := min(checkPrompt+checkAfter, s.info.MaxSeq-first); n >= promptLeast+1+checkAfter {
			spans = append(spans, [2]int{first, n})
		}
		if first = end; s.prompt.spans {
			first -= min(end, checkPrompt/2)
		}
	}
	return spans
}

// comparePrompt decodes n positions from first on, all but the last few by passes without logits, and once more token
// by token. It compares the logits of those last few, which depend on all rows that the others left in the cache, and
// the token that is chosen before them.
func (s *Session) comparePrompt(ctx context.Context, first, n int, report *CheckReport) error {
	ids := CheckIDs(first, n, s.info.Vocab)
	var runs [2][][]float32
	var next [2]int // after those
	for i, part := range [...]int{n - checkAfter, 1} {
		if err := s.setCache(first); err != nil {
			return err
		}
		s.position = first
		for known := range slices.Chunk(ids[:n-checkAfter], part) {
			var err error
			if next[i], err = s.Feed(ctx, known, nil); err != nil {
				return err
			}
		}
		for _, id := range ids[n-checkAfter:] {
			if _, err := s.Feed(ctx, []int{id}, func(_ int, logits []float32) error {
				runs[i] = append(runs[i], slices.Clone(logits))
				return nil
			}); err != nil {
				return err
			}
		}
	}
	if next[0] != next[1] {
		report.fail("position %d: a pass over a prompt chooses token %d, and a step %d", first+n-checkAfter, next[0],
			next[1])
	}
	for i := range runs[0] {
		if !slices.EqualFunc(runs[0][i], runs[1][i], sameBits) {
			report.fail("position %d: the logits differ, depending on whether the first %d positions from %d on were "+
				"decoded by passes over prompts or token by token", first+n-checkAfter+i, n-checkAfter, first)
			break
		}
	}
	return nil
}
