package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"amkc/runtime/driver"
)

// An Input has the tokens, or embeddings in place of tokens, to decode at consecutive positions.
type Input struct {
	IDs []int // Embedding where the next row of Embeddings stands
	// Embeddings are [rows][hidden] in float32. A row replaces the row of a token in the embedding table, and must
	// already include the factor with which the model scales embeddings. Learned positions are added to it as usual.
	Embeddings []float32
}

// Embedding is the id of a position whose embedding is given.
const Embedding = -1

// cut returns the first n positions and the others, of rows of n elements.
func (in Input) cut(n, hidden int) (head, tail Input) {
	rows := 0
	for _, id := range in.IDs[:n] {
		if id == Embedding {
			rows += hidden
		}
	}
	return Input{in.IDs[:n], in.Embeddings[:rows]}, Input{in.IDs[n:], in.Embeddings[rows:]}
}

// Outputs are callbacks for the results of each position, in order; nil ones are not called. Slices are valid during
// the call, and an error ends decoding.
type Outputs struct {
	Logits func(position int, logits []float32) error // [vocab]
	// Hidden gets the last hidden state [hidden]: after the last norm, from which the logits are computed.
	Hidden func(position int, hidden []float32) error
}

// Feed is [Session.Decode] for tokens, with only logits as output.
func (s *Session) Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int,
	err error) {
	return s.Decode(ctx, Input{IDs: ids}, Outputs{Logits: onLogits})
}

// Decode decodes an input at the session's position and the ones after it, and returns the token that is chosen after
// the last: the largest logit, the lowest id among equals; where no output is wanted, as [Session.Choose] says. Errors:
// [PositionError], [TokenError], [StallError], [sampling.LogitsError], the cause of a cancelled context, those of the
// driver, and those of want.
func (s *Session) Decode(ctx context.Context, in Input, want Outputs) (next int, err error) {
	return s.decode(ctx, in, want, true)
}

// read is [Session.Feed] where the token after the last is not wanted, so that a pass over a prompt may take all.
func (s *Session) read(ctx context.Context, ids []int) error {
	_, err := s.decode(ctx, Input{IDs: ids}, Outputs{}, false)
	return err
}

// decode is [Session.Decode]. Unless choose is set, next has no meaning.
func (s *Session) decode(ctx context.Context, in Input, want Outputs, choose bool) (next int, err error) {
	if err := s.takes(in); err != nil {
		return 0, err
	}
	tell := s.reading(len(in.IDs), want.Logits != nil)
	for len(in.IDs) > 0 {
		tell(len(in.IDs))
		first := s.position
		n, chooses := s.nextPrompt(len(in.IDs), want, choose)
		var part Input
		if n > 0 {
			part, in = in.cut(n, s.info.Hidden)
			if next, err = s.readPrompt(ctx, part, want, chooses); err != nil {
				return 0, err
			}
		} else {
			few := want.Logits != nil || want.Hidden != nil || len(in.Embeddings) > 0
			var k *megakernel
			k, n = s.next(len(in.IDs), few)
			part, in = in.cut(n, s.info.Hidden)
			b := burst{kernel: k, tokens: n, forced: part.IDs, embeddings: part.Embeddings,
				logits: want.Logits != nil, hidden: want.Hidden != nil}
			if len(in.IDs) == 0 && want.Logits == nil && want.Hidden == nil { // who asks for logits chooses by them
				b.choose = only(s.after(first + n))
			}
			tokens, err := s.run(ctx, b, nil)
			if err != nil {
				return 0, err
			}
			if next = tokens[n-1]; next == noToken && choose {
				s.position--
				return 0, nothingAt(first + n)
			}
		}
		if want.Logits != nil {
			if err := s.readLogits(0, n, func(i int, logits []float32) error {
				return want.Logits(first+i, logits)
			}); err != nil {
				return 0, err
			}
		}
		if want.Hidden != nil {
			if err := s.readRows(s.mem.hidden, n, s.info.Hidden, func(i int, hidden []float32) error {
				return want.Hidden(first+i, hidden)
			}); err != nil {
				return 0, err
			}
		}
	}
	tell(0)
	return next, nil
}

// SetProgress makes the session report to p how many tokens of an input have been decoded, before the first launch and
// after each. Short inputs, of a launch or two, are not reported: those up to a part, see [Facts.PromptPart], or less
// if logits are wanted. nil ends it.
func (s *Session) SetProgress(p Progress) { s.progress = p }

// reading returns what is told how many of n tokens are left.
func (s *Session) reading(n int, logits bool) (tell func(left int)) {
	part := s.facts.PromptPart()
	if logits {
		part = min(part, echoPart)
	}
	if s.progress == nil || n <= part {
		return func(int) {}
	}
	return func(left int) { s.progress("reading tokens", int64(n-left), int64(n)) }
}

// State decodes a token at the session's position, and returns the last hidden state [hidden] after it. Errors are
// those of [Session.Decode].
func (s *Session) State(ctx context.Context, id int) (state []float32, err error) {
	_, err = s.Decode(ctx, Input{IDs: []int{id}}, Outputs{Hidden: func(_ int, hidden []float32) error {
		state = hidden
		return nil
	}})
	return state, err
}

// takes checks that an input can be decoded at the session's position.
func (s *Session) takes(in Input) error {
	if len(in.IDs) == 0 {
		return fmt.Errorf("no tokens to decode")
	}
	if err := s.room(len(in.IDs)); err != nil {
		return err
	}
	rows := 0
	for _, id := range in.IDs {
		if id == Embedding {
			rows++
		} else if err := s.valid(id); err != nil {
			return err
		}
	}
	if want := rows * s.info.Hidden; len(in.Embeddings) != want {
		return fmt.Errorf("%d numbers were given for embeddings at %d positions; want %d, %d for each",
			len(in.Embeddings), rows, want, s.info.Hidden)
	}
	return nil
}

// given writes the ids of a launch and the embeddings among them where the kernel finds them.
func (s *Session) given(p *launchParams, ids []int, rows []float32) error {
	if len(rows) == 0 {
		return s.put(p.Forced, words(ids))
	}
	p.Embeddings = s.mem.embeddings
	ids = slices.Clone(ids)
	for i := range ids {
		if ids[i] != Embedding {
			continue
		}
		ids[i] = s.info.Vocab // kGiven of amk/step.cuh
		at := p.Embeddings + driver.Ptr(4*i*s.info.Hidden)
		if err := s.put(at, bytesOf(rows[:s.info.Hidden])); err != nil {
			return err
		}
		rows = rows[s.info.Hidden:]
	}
	return s.put(p.Forced, words(ids))
}

// bytesOf are the bytes of numbers, as the machine has them.
func bytesOf(v []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)) }

// readLogits fetches the logits of n tokens of the last launch, from one of them on.
func (s *Session) readLogits(first, n int, each func(i int, logits []float32) error) error {
	at := s.mem.scratch + driver.Ptr(s.mem.logits) + driver.Ptr(4*s.info.Vocab*first)
	if len(s.gpus) == 1 {
		return s.readRows(at, n, s.info.Vocab, each)
	}
	row, own := make([]float32, s.info.Vocab), s.info.Vocab/len(s.gpus)
	for i := range n {
		for rank := range s.gpus { // each has made its own, at their places
			from := s.on(rank, at) + driver.Ptr(4*(i*s.info.Vocab+rank*own))
			if err := s.gpus[rank].dev.CopyDtoH(bytesOf(row[rank*own:][:own]), from, nil); err != nil {
				return err
			}
		}
		if err := each(i, row); err != nil {
			return err
		}
	}
	return nil
}

// readRows fetches vectors that the last launch has left.
func (s *Session) readRows(at driver.Ptr, n, size int, each func(i int, row []float32) error) error {
	all := make([]float32, n*size)
	if err := s.dev.CopyDtoH(bytesOf(all), at, nil); err != nil {
		return err
	}
	for i := range n {
		if err := each(i, all[i*size:][:size]); err != nil {
			return err
		}
	}
	return nil
}

// Generate decodes token at the session's position, then the token chosen after it, and so on for up to n steps, and
// returns the chosen tokens. It ends early after choosing one of stops, which is then the last of them. emit, if not
// nil, gets each as soon as it is known. With an error it returns the tokens chosen before it. Errors are those of
// [Session.Feed] and of emit.
func (s *Session) Generate(ctx context.Context, token, n int, stops []int, emit func(id int) error) ([]int, error) {
	if err := s.canGenerate(token, n, stops); err != nil {
		return nil, err
	}
	var all []int
	for len(all) < n {
		next := s.one.limit(s.position, n-len(all), false)
		tokens, err := s.decodeOn(ctx, next, token, stops, emit)
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

// decodeOn decodes a token and those chosen after it in one launch, of up to n steps.
func (s *Session) decodeOn(ctx context.Context, steps, token int, stops []int, emit func(id int) error) ([]int, error) {
	chooser := s.after(s.position + 1)
	if chooser != nil && chooser.text.Allowed != nil {
		steps = 1 // what is allowed after that is another matter
	}
	tokens, err := s.run(ctx, burst{tokens: steps, token: token, stops: stops, choose: only(chooser), counts: true},
		emit)
	if last := len(tokens) - 1; last >= 0 && tokens[last] == noToken {
		s.position--
		tokens, err = tokens[:last], errors.Join(nothingAt(s.position+1), err)
	}
	chooser.chose(tokens...)
	return tokens, err
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

// A Completion is the output of the model after a prompt.
type Completion struct {
	IDs     []int
	Stopped bool // the last id is a stop id
}

// Complete decodes a prompt at the session's position and generates up to n tokens after it, n > 0. stops, emit and
// errors are as for [Session.Generate]; a request that does not fit the positions of the build is refused at once. A
// drafter ([Session.SetDrafter]) may make it faster; the tokens are the same.
func (s *Session) Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(id int) error) (Completion,
	error) {
	if n < 1 {
		return Completion{}, fmt.Errorf("%d tokens were asked for; at least 1 is needed", n)
	}
	// The last token chosen is not decoded, so it takes no position.
	if err := s.room(len(prompt) + n - 1); err != nil {
		return Completion{}, err
	}
	chooser := s.after(s.position + len(prompt))
	next, err := s.Feed(ctx, prompt, nil)
	if err != nil {
		return Completion{}, err
	}
	chooser.chose(next)
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
