package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Byte-level BPE writes each byte as one printable character: printable Latin-1 stands for itself, and the rest, in
// order, for U+0100 onwards (so a space is "Ġ" and a newline "Ċ").
var (
	byteToRune [256]rune
	runeToByte = map[rune]byte{}
)

func init() {
	next := rune(0x100)
	for b := range byteToRune {
		r := rune(b)
		if printable := '!' <= r && r <= '~' || 0xA1 <= r && r <= 0xFF && r != 0xAD; !printable {
			r = next
			next++
		}
		byteToRune[b] = r
		runeToByte[r] = byte(b)
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

// appendBytes appends the bytes that a token stands for. A token with a character outside the alphabet, such as an
// added token with a space in it, stands for its own text.
func appendBytes(dst []byte, token string) []byte {
	mark := len(dst)
	for _, r := range token {
		b, ok := runeToByte[r]
		if !ok {
			return append(dst[:mark], token...)
		}
		dst = append(dst, b)
	}
	return dst
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
