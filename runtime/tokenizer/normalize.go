package tokenizer

import (
	"fmt"
	"strings"
)

// A normalizer rewrites text before it is split into words.
type normalizer func(text string) string

func applyNormalizers(steps []normalizer, text string) string {
	for _, n := range steps {
		text = n(text)
	}
	return text
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
		n = func(s string) string { return f.Prepend + s } // s is never empty
	case "Replace":
		from, to, err := replacement(c)
		if err != nil {
			return err
		}
		n = func(s string) string { return strings.ReplaceAll(s, from, to) }
	case "NFC":
		n = nfc
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
