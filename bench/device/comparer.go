package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"amkc/runtime/host"
)

// A text is random ids, and what single tokens have given after each.
type text struct {
	ids    []int
	logits []uint64 // their hashes
	next   []int    // the tokens that were chosen
}

// otherTexts are there so that something else is in the cache, and alongside a text; they are short, because whatever
// single tokens give is found by as many launches.
const (
	otherTexts = 3
	otherMost  = 384
)

// prefixes are kept in n files, of at most n positions.
const (
	prefixFiles = 6
	prefixMost  = 512
)

// A prefix is the beginning of a text in a file.
type prefix struct {
	path string
	text int
	ids  int
}

// A comparer compares what a session gives in one way with what it has given by single tokens.
type comparer struct {
	ctx  context.Context
	s    *host.Session
	rng  *rand.Rand
	kind string // of the case
	left int    // cases that are wanted

	giving string // what is aborted now and then; empty: nothing

	texts    []*text
	in       int // the text whose rows the cache has up to the session's position; -1: none
	prefixes []prefix
	dir      string // of their files
	passesResult
}

// hashSeed makes logits numbers. They are compared within a process.
var hashSeed = maphash.MakeSeed()

// hashOf tells logits apart by their bits.
func hashOf(logits []float32) uint64 {
	raw := make([]byte, 0, 4*len(logits))
	for _, v := range logits {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return maphash.Bytes(hashSeed, raw)
}

// readSingly makes the texts, and reads them by single tokens.
func (c *comparer) readSingly(positions int) error {
	for i := range 1 + otherTexts {
		n := positions
		if i > 0 {
			n = min(n, otherMost)
		}
		t := &text{ids: randomIDs(c.rng, n, c.s.Info().Vocab)}
		c.s.Reset()
		for _, id := range t.ids {
			next, err := c.s.Feed(c.ctx, []int{id}, func(_ int, logits []float32) error {
				t.logits = append(t.logits, hashOf(logits))
				return nil
			})
			if err != nil {
				return fmt.Errorf("text %d, by single tokens: %w", i, err)
			}
			t.next = append(t.next, next)
		}
		c.texts, c.in = append(c.texts, t), i
	}
	return nil
}

// aside draws what is random of a case in which times decide how much is drawn: how often drafts are asked for depends
// on them. The cases that follow do not.
func (c *comparer) aside() *rand.Rand { return rand.New(rand.NewPCG(c.rng.Uint64(), 0)) }

// count counts a case.
func (c *comparer) count(kind string) {
	c.Cases++
	c.Kinds[kind]++
}

// compare counts a position, and whether what it has given is the same.
func (c *comparer) compare(same bool, position int, format string, args ...any) {
	if c.Compared++; same {
		return
	}
	if c.Differing++; c.Difference == "" {
		c.Difference = fmt.Sprintf("case %d, %s: position %d: ", c.Cases, c.kind, position) +
			fmt.Sprintf(format, args...)
	}
}

// enter makes the session stand somewhere in a text, with a position left: further back in the one that is in the
// cache, after a prefix of a file, or in another text, of which the beginning is read in some way.
func (c *comparer) enter() (*text, error) {
	switch {
	case len(c.prefixes) > 0 && c.rng.IntN(4) == 0:
		p := c.prefixes[c.rng.IntN(len(c.prefixes))]
		ids, err := c.s.LoadPrefix(c.ctx, p.path)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(ids, c.texts[p.text].ids[:p.ids]) {
			return nil, errors.New("a prefix has come back with other ids")
		}
		c.in = p.text
		c.FromPrefix++
	case c.in >= 0 && c.rng.IntN(3) > 0:
		if err := c.s.Rewind(c.rng.IntN(1 + min(c.s.Position(), len(c.texts[c.in].ids)-1))); err != nil {
			return nil, err
		}
	default:
		c.in = c.rng.IntN(len(c.texts))
		c.s.Reset()
		if n := len(c.texts[c.in].ids); n > 1 && c.rng.IntN(2) == 0 {
			if err := c.read(c.texts[c.in], partOf(c.rng, n-1), false); err != nil {
				return nil, err
			}
		}
	}
	return c.texts[c.in], nil
}

// save writes the beginning of the text that is in the cache to a file, now and then.
func (c *comparer) save() error {
	n := min(c.s.Position(), len(c.texts[c.in].ids)-1, prefixMost)
	if n < 1 || c.rng.IntN(8) > 0 {
		return nil
	}
	p := prefix{text: c.in, ids: 1 + c.rng.IntN(n)}
	k := len(c.prefixes)
	if k == prefixFiles {
		k = c.rng.IntN(k)
	}
	p.path = filepath.Join(c.dir, fmt.Sprintf("%d.safetensors", k))
	f, err := os.Create(p.path)
	if err != nil {
		return err
	}
	if err := errors.Join(c.s.SavePrefix(f, c.texts[c.in].ids[:p.ids]), f.Close()); err != nil {
		return err
	}
	if k == len(c.prefixes) {
		c.prefixes = append(c.prefixes, p)
	} else {
		c.prefixes[k] = p
	}
	return nil
}

// read reads the next n tokens of a text at once, and compares their logits if they are wanted.
func (c *comparer) read(t *text, n int, logits bool) error {
	at := c.s.Position()
	var each func(int, []float32) error
	if logits {
		each = func(position int, logits []float32) error {
			c.compare(hashOf(logits) == t.logits[position], position, "in a part of %d tokens from %d on", n, at)
			return nil
		}
	}
	_, err := c.s.Feed(c.ctx, t.ids[at:at+n], each)
	c.Parts++
	c.Tokens += n
	return err
}

// partOf is a length of 1 to n: often short, sometimes all.
func partOf(rng *rand.Rand, n int) int {
	switch rng.IntN(4) {
	case 0:
		return 1 + rng.IntN(min(n, 9))
	case 1:
		return 1 + rng.IntN(min(n, 100))
	case 2:
		return 1 + rng.IntN(n)
	}
	return n
}

func randomIDs(rng *rand.Rand, n, vocab int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = rng.IntN(vocab)
	}
	return ids
}
