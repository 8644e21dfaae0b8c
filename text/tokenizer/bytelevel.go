package tokenizer

import (
	"strings"
	"sync"
	"unicode/utf8"

	"amkc/text/tokenizer/regex"
)

// Byte-level BPE writes each byte as one printable character: printable Latin-1 stands for itself, and the rest, in
// order, for U+0100 onwards (so a space is "Ġ" and a newline "Ċ").
var (
	byteToRune [256]rune
	runeToByte [0x100 + 68]int16 // -1 for characters that stand for no byte
)

func init() {
	for i := range runeToByte {
		runeToByte[i] = -1
	}
	next := rune(0x100)
	for b := range byteToRune {
		r := rune(b)
		if printable := '!' <= r && r <= '~' || 0xA1 <= r && r <= 0xFF && r != 0xAD; !printable {
			r = next
			next++
		}
		byteToRune[b] = r
		runeToByte[r] = int16(b)
	}
}

func byteLevelString(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/4)
	for i := 0; i < len(s); i++ {
		b.WriteRune(byteToRune[s[i]])
	}
	return b.String()
}

// appendStandIns appends the bytes that a token stands for. It reports false for a token with a character outside the
// alphabet, such as an added token with a space in it.
func appendStandIns[T string | []byte](dst []byte, token T) ([]byte, bool) {
	mark := len(dst)
	for i := 0; i < len(token); i++ {
		char := int(token[i])
		if char >= 0x80 { // the alphabet ends before what takes three bytes
			if char >= 0xE0 || i+1 == len(token) {
				return dst[:mark], false
			}
			i++
			char = char&0x1F<<6 | int(token[i])&0x3F
		}
		if char >= len(runeToByte) || runeToByte[char] < 0 {
			return dst[:mark], false
		}
		dst = append(dst, byte(runeToByte[char]))
	}
	return dst, true
}

// appendLossy appends src to dst as UTF-8, with one U+FFFD for each maximal stretch that begins a character and breaks
// off. An unfinished character at the end is returned as rest, to be completed by later bytes, unless final is set.
func appendLossy(dst, src []byte, final bool) (out, rest []byte) {
	for len(src) > 0 {
		if r, size := utf8.DecodeRune(src); r != utf8.RuneError || size > 1 {
			dst = append(dst, src[:size]...)
			src = src[size:]
			continue
		}
		if !final && !utf8.FullRune(src) {
			return dst, src
		}
		n := 1
		for n < len(src) && !utf8.FullRune(src[:n+1]) {
			n++
		}
		dst = utf8.AppendRune(dst, utf8.RuneError)
		src = src[n:]
	}
	return dst, nil
}

// patternGPT2 is what ByteLevel cuts words with.
const patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

var wordsGPT2 = sync.OnceValue(func() *regex.Regexp {
	re, err := regex.Compile(patternGPT2)
	if err != nil {
		panic(err) // only a malformed pattern, which is a constant above
	}
	return re
})

// byteSplit is ByteLevel as a pre-tokenizer: an optional space in front, words by the GPT-2 pattern, and the bytes of
// each in their written form. The steps after it see that form. The model takes bytes, so that the last step, which it
// is as a rule, can leave the text as it is.
type byteSplit struct {
	addSpace bool
	words    *regex.Regexp // nil if it does not cut
}

func loadByteLevel(c component) (preTokenizer, error) {
	var f struct {
		AddPrefixSpace bool  `json:"add_prefix_space"`
		UseRegex       *bool `json:"use_regex"`
	}
	if err := c.fields(&f); err != nil {
		return nil, err
	}
	b := &byteSplit{addSpace: f.AddPrefixSpace}
	if f.UseRegex == nil || *f.UseRegex {
		b.words = wordsGPT2()
	}
	return b, nil
}

func (b *byteSplit) cut(e *encoder, step int, p piece) {
	if b.addSpace && !strings.HasPrefix(p.text, " ") {
		p.text = " " + p.text
	}
	if b.words == nil {
		e.written(step, p)
		return
	}
	m := e.matcher(step, b.words)
	m.Reset(p.text)
	for !e.full { // the pattern leaves no gap
		start, end, ok := m.Next()
		if !ok {
			return
		}
		e.written(step, piece{p.text[start:end], p.first && start == 0})
	}
}

// written passes on the bytes of p in their written form, or as they are if only the model is left.
func (e *encoder) written(step int, p piece) {
	if e.t.written {
		p.text = byteLevelString(p.text)
	}
	e.pre(step+1, p)
}
