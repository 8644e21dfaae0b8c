// Package tokenizer reads a Hugging Face tokenizer.json and turns text into token ids and ids into text, exactly as the
// `tokenizers` library does. It models BPE, over bytes as in GPT-2 and over characters as in SentencePiece, with the
// normalizers, pre-tokenizers, post-processors and decoders that model families use, in published files and in those
// that transformers 5 writes.
//
// Load refuses other components with an *UnsupportedError that names the component and what would be accepted; nothing
// is approximated. Truncation and padding are ignored, because transformers resets both on every call.
//
// The package is copied into every emitted launcher. It imports the standard library, x/text's normalization, the two
// packages below it, and runtime/infile, whose words for malformed JSON it takes, and must not import any other package
// of amkc.
package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"amkc/text/tokenizer/regex"
)

// A Tokenizer is safe for concurrent use. After Load it only caches words.
type Tokenizer struct {
	model     *bpe
	added     map[int]addedToken
	raw       *matcher // added tokens found in the text as given
	normal    *matcher // added tokens found in the normalized text
	normalize []normalizer
	growth    int  // how much longer normalizers may make a text
	shrink    int  // and how much shorter: at most a text of n bytes becomes one of n/shrink; 0: there is no bound
	shifts    bool // a step so far changes how many characters there are
	split     []preTokenizer
	drops     bool  // a step of split leaves out a part of the text
	toBytes   bool  // split has a ByteLevel step
	written   bool  // which is not the last one, so that pieces arrive in the written form of bytes
	before    []int // ids that the post-processor puts before the text
	after     []int // and after it
	decode    []stageSpec
	covers    coverage
	encoders  sync.Pool
}

const noToken = -1

// Encode returns the ids of text. Added tokens are recognised inside the text. With addSpecial the ids of the
// post-processor's template (the beginning-of-sequence token, usually) are included. It fails only on text that is not
// valid UTF-8.
func (t *Tokenizer) Encode(text string, addSpecial bool) ([]int, error) {
	return t.EncodeAtMost(text, addSpecial, math.MaxInt)
}

// EncodeAtMost is Encode for a text of at most most ids. For a longer one it fails with a *LimitError: before any work
// if its length in bytes shows that, and otherwise at the first id too many.
func (t *Tokenizer) EncodeAtMost(text string, addSpecial bool, most int) ([]int, error) {
	if i := invalidUTF8(text); i >= 0 {
		return nil, fmt.Errorf("tokenizer: text is not valid UTF-8 at byte %d", i)
	}
	if t.covers.least(text) > most {
		return nil, &LimitError{most}
	}
	e, ok := t.encoders.Get().(*encoder)
	if !ok {
		e = newEncoder(t)
	}
	defer e.release()
	e.ids, e.most = e.ids[:0], most
	if addSpecial {
		e.ids = append(e.ids, t.before...)
		e.most = max(most-len(t.after), -1)
	}
	if e.full = len(e.ids) > e.most; !e.full {
		e.encode(text)
	}
	if e.full {
		return nil, &LimitError{most}
	}
	if addSpecial {
		e.ids = append(e.ids, t.after...)
	}
	return slices.Clone(e.ids), nil
}

// EncodePrompt returns the ids of a text that a person wrote as a prompt: those of Encode with addSpecial, unless the
// text itself begins with the token that would be added. Then the token is not added again, because models are trained
// with one, and begun is its text.
func (t *Tokenizer) EncodePrompt(text string) (ids []int, begun string, err error) {
	return t.EncodePromptAtMost(text, math.MaxInt)
}

// EncodePromptAtMost is EncodePrompt for a text of at most most ids, and fails as EncodeAtMost does.
func (t *Tokenizer) EncodePromptAtMost(text string, most int) (ids []int, begun string, err error) {
	n := len(t.before)
	ids, err = t.EncodeAtMost(text, true, most+min(n, math.MaxInt-most)) // n of them may go again
	switch {
	case err != nil:
		return nil, "", atMost(err, most)
	case n > 0 && len(ids) >= 2*n && slices.Equal(ids[n:2*n], t.before):
		return ids[n:], t.Decode(t.before, false), nil
	case len(ids) > most:
		return nil, "", &LimitError{most}
	}
	return ids, "", nil
}

// An encoder is what one call of Encode needs and the next can use again.
type encoder struct {
	t        *Tokenizer
	matchers []*regex.Matcher // of the steps of t.split, nil where there is none or not yet one
	merger   merger
	ids      []int
	most     int  // ids that there may be
	full     bool // there are more, or would be: nothing more is encoded
	bytes    []byte
}

func newEncoder(t *Tokenizer) *encoder {
	return &encoder{t: t, matchers: make([]*regex.Matcher, len(t.split)), merger: newMerger(t.model)}
}

// maxKept bounds the buffers of an encoder that is used again, in elements. One long word makes them large.
const maxKept = 1 << 16

// release lets the next call use the encoder.
func (e *encoder) release() {
	if max(cap(e.ids), cap(e.bytes), cap(e.merger.symbols), cap(e.merger.queue)) <= maxKept {
		e.t.encoders.Put(e)
	}
}

// matcher returns the matcher of a step. A step that runs again while it runs would break it, and none does.
func (e *encoder) matcher(step int, re *regex.Regexp) *regex.Matcher {
	if e.matchers[step] == nil {
		e.matchers[step] = re.Matcher()
	}
	return e.matchers[step]
}

// encode appends the ids of text to e.ids, up to where there are too many.
func (e *encoder) encode(text string) {
	e.t.raw.split(text, func(part string, at int, id int) bool {
		if id != noToken {
			return e.add(id)
		}
		part = applyNormalizers(e.t.normalize, part)
		e.t.normal.split(part, func(part string, offset int, id int) bool {
			if id != noToken {
				return e.add(id)
			}
			e.pre(0, piece{part, at == 0 && offset == 0})
			return !e.full
		})
		return !e.full
	})
}

// add appends the id of an added token, and reports whether there may be more ids.
func (e *encoder) add(id int) bool {
	e.ids = append(e.ids, id)
	e.full = len(e.ids) > e.most
	return !e.full
}

// Decode returns the text of ids. Ids without a token are ignored, and with skipSpecial special tokens too. Bytes that
// are not UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(ids []int, skipSpecial bool) string {
	d := t.NewDecoder(skipSpecial)
	for _, id := range ids {
		d.feed(id)
	}
	return d.take() + d.Flush()
}

// VocabSize is the number of distinct tokens, added ones included. The model's embedding may have more rows.
func (t *Tokenizer) VocabSize() int { return t.CountFrom(0) }

// CountFrom is the number of tokens whose id is at least first.
func (t *Tokenizer) CountFrom(first int) int {
	n := 0
	for id := max(first, 0); id < len(t.model.kinds); id++ {
		if t.model.kinds[id] != absent {
			n++
		}
	}
	for id := range t.added {
		if _, inModel := t.model.text(id); id >= first && !inModel {
			n++
		}
	}
	return n
}

// IsSpecial reports whether id is an added token marked special.
func (t *Tokenizer) IsSpecial(id int) bool { return t.added[id].Special }

// text returns the token as it enters the decoder, and whether id names one.
func (t *Tokenizer) text(id int) (string, bool) {
	if a, ok := t.added[id]; ok {
		return a.pattern, true
	}
	return t.model.text(id)
}

// invalidUTF8 returns the offset of the first byte of s that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

// A coverage is what a token stands for at most in a text as it is given.
type coverage struct {
	bytes int  // 0: any number
	white bool // and white space next to it
}

// coverage finds what a token stands for at most, added ones and what steps before the model leave out included.
func (t *Tokenizer) coverage() (c coverage) {
	if t.model.longest[0] == 0 || t.shrink == limitless || t.drops {
		return c
	}
	longest := 0
	for _, n := range t.model.longest {
		longest = max(longest, n)
	}
	given := 0
	for _, a := range t.added {
		if a.Normalized {
			longest = max(longest, len(a.pattern))
		} else {
			given = max(given, len(a.pattern))
		}
		if a.LStrip || a.RStrip {
			if a.Normalized && len(t.normalize) > 0 { // what is white space then need not be now
				return coverage{}
			}
			c.white = true
		}
	}
	c.bytes = max(given, longest*t.shrink)
	return c
}

// Least is a lower bound of the number of tokens of a text, found without encoding it; 0 if its length does not give
// one.
func (t *Tokenizer) Least(text string) int { return t.covers.least(text) }

// least is a number of tokens that a text has at least.
func (c coverage) least(text string) int {
	if c.bytes == 0 {
		return 0
	}
	n := len(text)
	if c.white {
		for _, r := range text {
			if unicode.IsSpace(r) {
				n -= utf8.RuneLen(r)
			}
		}
	}
	return n / c.bytes
}
