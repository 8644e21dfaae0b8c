package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
)

// A normalizer rewrites text before it is split into words.
type normalizer func(text string) (string, error)

func applyNormalizers(steps []normalizer, text string) (string, error) {
	for _, n := range steps {
		var err error
		if text, err = n(text); err != nil {
			return "", err
		}
	}
	return text, nil
}

// maxPrepend bounds what Prepend inserts, so that normalizing many added tokens stays linear in the file's size.
const maxPrepend = 16

func (t *Tokenizer) addNormalizer(c component) error {
	var n normalizer
	switch c.kind {
	case "Prepend":
		var f struct {
			Prepend string `json:"prepend"`
		}
		if err := c.fields(&f); err != nil {
			return err
		}
		if len(f.Prepend) > maxPrepend {
			return &UnsupportedError{c.where, fmt.Sprintf("a prefix of %d bytes", len(f.Prepend)),
				fmt.Sprintf("at most %d", maxPrepend)}
		}
		n = func(s string) (string, error) { return f.Prepend + s, nil } // s is never empty
	case "Replace":
		from, to, err := replacement(c)
		if err != nil {
			return err
		}
		n = func(s string) (string, error) { return strings.ReplaceAll(s, from, to), nil }
	case "NFC":
		n = inertNFC
	default:
		return c.unsupported("null, Prepend, Replace, NFC and Sequence of them")
	}
	t.normalize = append(t.normalize, n)
	return nil
}

// replacement reads a Replace component, which is a normalizer and a decoder. One character for one character is what
// SentencePiece conversions use, and cannot make text grow from step to step.
func replacement(c component) (from, to string, err error) {
	const accepted = "a String pattern of one character replaced by one character"
	var f struct {
		Pattern struct{ String, Regex *string } `json:"pattern"`
		Content string                          `json:"content"`
	}
	if err := c.fields(&f); err != nil {
		return "", "", err
	}
	if f.Pattern.String == nil {
		if f.Pattern.Regex == nil {
			return "", "", malformed(c.where+".pattern", "has neither String nor Regex")
		}
		return "", "", &UnsupportedError{c.where + ".pattern", fmt.Sprintf("Regex %q", *f.Pattern.Regex), accepted}
	}
	from, to = *f.Pattern.String, f.Content
	_, okFrom := oneRune(from)
	_, okTo := oneRune(to)
	if !okFrom || !okTo {
		return "", "", &UnsupportedError{c.where, fmt.Sprintf("replacing %q by %q", from, to), accepted}
	}
	return from, to, nil
}

// inertNFC passes text on which NFC normalization is the identity: every character is in ranges whose members neither
// decompose, nor combine with a neighbour, nor reorder. Real normalization needs tables that the standard library
// does not have, so other text is refused and never passed on unnormalized.
func inertNFC(s string) (string, error) {
	for i, r := range s {
		if r >= 0x300 && !unicode.Is(nfcInert, r) {
			return "", fmt.Errorf("tokenizer: byte %d: %q may need Unicode normalization (NFC), which is not "+
				"available here; "+
				"accepted: text of characters that NFC never changes, such as Latin, kana, CJK ideographs, "+
				"Hangul and emoji", i, r)
		}
	}
	return s, nil
}

// nfcInert lists ranges above U+02FF all of whose members have NFC_Quick_Check=Yes (so none is the second half of a
// composition) and combining class 0.
var nfcInert = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0400, 0x0482, 1}, // Cyrillic
		{0x2010, 0x2027, 1}, // dashes, quotes, bullets
		{0x20A0, 0x20C0, 1}, // currency signs
		{0x2190, 0x21FF, 1}, // arrows
		{0x2200, 0x22FF, 1}, // mathematical operators
		{0x2500, 0x27BF, 1}, // box drawing to dingbats
		{0x3001, 0x3029, 1}, // CJK punctuation
		{0x3041, 0x3096, 1}, // Hiragana
		{0x30A1, 0x30FA, 1}, // Katakana
		{0x30FC, 0x30FE, 1},
		{0x4E00, 0x9FFF, 1}, // CJK ideographs
		{0xAC00, 0xD7A3, 1}, // Hangul syllables
		{0xFF01, 0xFF9D, 1}, // full-width and half-width forms
		{0xFFFD, 0xFFFD, 1},
	},
	R32: []unicode.Range32{
		{0x1F300, 0x1F64F, 1}, // emoji
		{0x1F680, 0x1F6FF, 1},
		{0x1F900, 0x1F9FF, 1},
	},
}
