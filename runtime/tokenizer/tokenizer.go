// Package tokenizer reads a Hugging Face tokenizer.json and turns text into token ids and ids into text, exactly as the
// `tokenizers` library does for the families it accepts: byte-level BPE with the Llama-3, Qwen2 (that of Qwen2.5 and
// Qwen3 too), GPT-2 and Digits + ByteLevel pre-tokenizers, and the SentencePiece-style BPE of Llama-2, TinyLlama, Yi and
// Mistral up to v0.3. Files as published and as transformers 5 writes them again are both read.
//
// Whatever it does not model is refused by Load with an *UnsupportedError that names the component and what would be
// accepted; nothing is approximated. Known differences from the library:
//
//   - truncation and padding are ignored: transformers resets both on every call, whatever the file says;
//   - a special token whose normalized form differs from its content is still skipped by Decode (tokenizers 0.22 did
//     so, 0.23 compares the normalized form and keeps it).
//
// The package is copied into every emitted launcher. It imports the standard library, x/text's normalization, and
// runtime/infile, whose words for malformed JSON it takes, and must not import any other package of amkc.
package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Tokenizer is immutable after Load and safe for concurrent use.
type Tokenizer struct {
	model     *bpe
	added     map[int]addedToken
	raw       *matcher // added tokens found in the text as given
	normal    *matcher // added tokens found in the normalized text
	normalize []normalizer
	split     []preTokenizer
	toBytes   bool  // split has a ByteLevel step
	before    []int // ids that the post-processor puts before the text
	after     []int // and after it
	decode    []stageSpec
}

// A segment is a stretch of the text: an added token, or text still to be tokenized.
type segment struct {
	text  string
	id    int  // id of the added token, or noToken
	first bool // starts at byte 0 of the text that was given to Encode
}

const noToken = -1

// Encode returns the ids of text. Added tokens are recognised inside the text. With addSpecial the ids of the
// post-processor's template (the beginning-of-sequence token, usually) are included. It fails only on text that is not
// valid UTF-8.
func (t *Tokenizer) Encode(text string, addSpecial bool) ([]int, error) {
	if i := invalidUTF8(text); i >= 0 {
		return nil, fmt.Errorf("tokenizer: text is not valid UTF-8 at byte %d", i)
	}
	var ids []int
	if addSpecial {
		ids = append(ids, t.before...)
	}
	merger := newMerger(t.model)
	for _, s := range t.raw.split(segment{text: text, id: noToken, first: true}) {
		if s.id != noToken {
			ids = append(ids, s.id)
			continue
		}
		s.text = applyNormalizers(t.normalize, s.text)
		for _, s := range t.normal.split(s) {
			if s.id != noToken {
				ids = append(ids, s.id)
				continue
			}
			for _, p := range applyPreTokenizers(t.split, piece{s.text, s.first}) {
				ids = merger.tokenize(ids, p.text)
			}
		}
	}
	if addSpecial {
		ids = append(ids, t.after...)
	}
	return ids, nil
}

// Decode returns the text of ids. Ids that name no token contribute nothing; with skipSpecial neither do special
// tokens. Bytes that are not UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(ids []int, skipSpecial bool) string {
	d := t.NewDecoder(skipSpecial)
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(d.Push(id))
	}
	b.WriteString(d.Flush())
	return b.String()
}

// VocabSize is the number of distinct tokens, added ones included. The model's embedding may have more rows.
func (t *Tokenizer) VocabSize() int { return t.CountFrom(0) }

// CountFrom is the number of tokens whose id is at least first.
func (t *Tokenizer) CountFrom(first int) int {
	n := 0
	for id := range t.model.texts {
		if id >= first {
			n++
		}
	}
	for id := range t.added {
		if _, inModel := t.model.texts[id]; id >= first && !inModel {
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
	s, ok := t.model.texts[id]
	return s, ok
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
