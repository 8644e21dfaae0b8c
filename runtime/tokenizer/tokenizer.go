// Package tokenizer reads a Hugging Face tokenizer.json and turns text into token ids and ids into text, exactly as the
// `tokenizers` library does. It models BPE, over bytes as in GPT-2 and over characters as in SentencePiece, with the
// normalizers, pre-tokenizers, post-processors and decoders that model families use, in files as published and as
// transformers 5 writes them again.
//
// Whatever it does not model is refused by Load with an *UnsupportedError that names the component and what would be
// accepted; nothing is approximated. Truncation and padding are ignored: transformers resets both on every call, whatever
// the file says.
//
// The package is copied into every emitted launcher. It imports the standard library, x/text's normalization, the two
// packages below it, and runtime/infile, whose words for malformed JSON it takes, and must not import any other package
// of amkc.
package tokenizer

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"amkc/runtime/tokenizer/regex"
)

// A Tokenizer is safe for concurrent use. After Load it only remembers words, to be quicker with them.
type Tokenizer struct {
	model     *bpe
	added     map[int]addedToken
	raw       *matcher // added tokens found in the text as given
	normal    *matcher // added tokens found in the normalized text
	normalize []normalizer
	growth    int  // how much longer normalizers may make a text
	shifts    bool // a step so far changes how many characters there are
	split     []preTokenizer
	toBytes   bool  // split has a ByteLevel step
	written   bool  // which is not the last one, so that pieces arrive in the written form of bytes
	before    []int // ids that the post-processor puts before the text
	after     []int // and after it
	decode    []stageSpec
	encoders  sync.Pool
}

const noToken = -1

// Encode returns the ids of text. Added tokens are recognised inside the text. With addSpecial the ids of the
// post-processor's template (the beginning-of-sequence token, usually) are included. It fails only on text that is not
// valid UTF-8.
func (t *Tokenizer) Encode(text string, addSpecial bool) ([]int, error) {
	if i := invalidUTF8(text); i >= 0 {
		return nil, fmt.Errorf("tokenizer: text is not valid UTF-8 at byte %d", i)
	}
	e, ok := t.encoders.Get().(*encoder)
	if !ok {
		e = newEncoder(t)
	}
	defer t.encoders.Put(e)
	e.ids = e.ids[:0]
	if addSpecial {
		e.ids = append(e.ids, t.before...)
	}
	e.encode(text)
	if addSpecial {
		e.ids = append(e.ids, t.after...)
	}
	return slices.Clone(e.ids), nil
}

// EncodePrompt returns the ids of a text that a person wrote as a prompt: those of Encode with addSpecial, unless the
// text itself begins with the token that would be put in front. Then it is not put there again, and begun is that
// token as it is written: a model was trained on one.
func (t *Tokenizer) EncodePrompt(text string) (ids []int, begun string, err error) {
	ids, err = t.Encode(text, true)
	n := len(t.before)
	if err != nil || n == 0 || len(ids) < 2*n || !slices.Equal(ids[n:2*n], t.before) {
		return ids, "", err
	}
	return ids[n:], t.Decode(t.before, false), nil
}

// An encoder is what one call of Encode needs and the next can use again.
type encoder struct {
	t        *Tokenizer
	matchers []*regex.Matcher // of the steps of t.split, nil where there is none or not yet one
	merger   merger
	ids      []int
	bytes    []byte
}

func newEncoder(t *Tokenizer) *encoder {
	return &encoder{t: t, matchers: make([]*regex.Matcher, len(t.split)), merger: newMerger(t.model)}
}

// matcher returns the matcher of a step. A step that runs again while it runs would break it, and none does.
func (e *encoder) matcher(step int, re *regex.Regexp) *regex.Matcher {
	if e.matchers[step] == nil {
		e.matchers[step] = re.Matcher()
	}
	return e.matchers[step]
}

// encode appends the ids of text to e.ids.
func (e *encoder) encode(text string) {
	e.t.raw.split(text, func(part string, at int, id int) {
		if id != noToken {
			e.ids = append(e.ids, id)
			return
		}
		part = applyNormalizers(e.t.normalize, part)
		e.t.normal.split(part, func(part string, offset int, id int) {
			if id != noToken {
				e.ids = append(e.ids, id)
				return
			}
			e.pre(0, piece{part, at == 0 && offset == 0})
		})
	})
}

// Decode returns the text of ids. Ids that name no token contribute nothing; with skipSpecial neither do special
// tokens. Bytes that are not UTF-8 become U+FFFD.
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
