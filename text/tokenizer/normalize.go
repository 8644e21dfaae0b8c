package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"amkc/text/tokenizer/chars"
	"amkc/text/tokenizer/regex"
)

// A normalizer rewrites text before it is split into words.
type normalizer func(text string) string

func applyNormalizers(steps []normalizer, text string) string {
	for _, n := range steps {
		text = n(text)
	}
	return text
}

// Bounds of what normalizers insert, so that normalizing many added tokens stays linear in the file's size.
const (
	maxPrepend = 16
	maxGrowth  = 128 // how much longer all of them together may make a text
)

// How much longer each form makes a text at most, in UTF-8.
const (
	growthCanonical     = 3
	growthCompatibility = 11
)

// How much shorter a step makes a text at most, in UTF-8. Where each character becomes one or more, it is by no more than
// what a character may have. A composition is one character instead of its decomposition.
const (
	shrinkCharacters  = utf8.UTFMax
	shrinkComposition = shrinkCharacters * growthCanonical
)

// maxShrink is the most of all steps together that is a bound worth having.
const maxShrink = 1 << 20

// limitless is the shrink of a step that may leave out any part of a text.
const limitless = 0

func (t *Tokenizer) addNormalizer(c component) error {
	var n normalizer
	growth, shrink := 1, 1
	shifts := true
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
		n = func(s string) string {
			if s == "" {
				return s
			}
			return f.Prepend + s
		}
	case "Replace":
		r, err := loadReplacement(c)
		if err != nil {
			return err
		}
		n, growth, shrink, shifts = r.apply, r.growth, r.shrink, !r.oneForOne
	case "NFC":
		n, growth, shrink = nfc.normalize, growthCanonical, shrinkComposition
	case "NFD":
		n, growth, shrink = nfd.normalize, growthCanonical, shrinkCharacters
	case "NFKC":
		n, growth, shrink = nfkc, growthCompatibility, shrinkComposition
	case "NFKD":
		n, growth, shrink = nfkd.normalize, growthCompatibility, shrinkCharacters
	case "Lowercase":
		n, growth, shrink = lowercase, 2, shrinkCharacters
	case "StripAccents":
		n, shrink = stripAccents, limitless
	case "Strip":
		var f struct {
			Left  bool `json:"strip_left"`
			Right bool `json:"strip_right"`
		}
		if err := c.fields(&f); err != nil {
			return err
		}
		n = func(s string) string {
			if f.Left {
				s = strings.TrimLeftFunc(s, unicode.IsSpace)
			}
			if f.Right {
				s = strings.TrimRightFunc(s, unicode.IsSpace)
			}
			return s
		}
		shrink = limitless
	default:
		return c.unsupported("null, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip and " +
			"Sequence of them")
	}
	t.normalize = append(t.normalize, n)
	t.shifts = t.shifts || shifts
	if t.shrink *= shrink; t.shrink > maxShrink {
		t.shrink = limitless
	}
	if t.growth = max(t.growth, 1) * growth; t.growth > maxGrowth {
		return &UnsupportedError{c.where, fmt.Sprintf("text that may become %d times as long", t.growth),
			fmt.Sprintf("at most %d times", maxGrowth)}
	}
	return nil
}

// A replacement is a Replace component, which is a normalizer and a decoder.
type replacement struct {
	find      *regex.Regexp // nil if from is looked for
	from, to  string
	growth    int
	shrink    int
	oneForOne bool // a character for a character
}

// maxContent bounds what a replacement inserts.
const maxContent = 16

func loadReplacement(c component) (r replacement, err error) {
	var f struct {
		Pattern patternJSON `json:"pattern"`
		Content string      `json:"content"`
	}
	if err := c.fields(&f); err != nil {
		return r, err
	}
	if len(f.Content) > maxContent {
		return r, &UnsupportedError{c.where + ".content", fmt.Sprintf("a text of %d bytes", len(f.Content)),
			fmt.Sprintf("at most %d", maxContent)}
	}
	r = replacement{to: f.Content, growth: 1 + len(f.Content)}
	find, err := f.Pattern.compile(c.where + ".pattern")
	switch {
	case err != nil:
		return r, err
	case f.Pattern.Regex == nil:
		r.from = *f.Pattern.String
		r.growth = max(1, (len(r.to)+len(r.from)-1)/len(r.from))
		_, okFrom := oneRune(r.from)
		_, okTo := oneRune(r.to)
		if len(r.to) > 0 {
			r.shrink = max(1, (len(r.from)+len(r.to)-1)/len(r.to))
		}
		r.oneForOne = okFrom && okTo
	case find.Nullable():
		return r, &UnsupportedError{c.where + ".pattern", fmt.Sprintf("%q, which matches the empty text", *f.Pattern.Regex),
			"a pattern of at least one character"}
	default:
		r.find = find
	}
	return r, nil
}

func (r replacement) apply(s string) string {
	if r.find == nil {
		return strings.ReplaceAll(s, r.from, r.to)
	}
	m := r.find.Matcher()
	m.Reset(s)
	var out strings.Builder
	done := 0
	for {
		start, end, ok := m.Next()
		if !ok {
			break
		}
		out.WriteString(s[done:start])
		out.WriteString(r.to)
		done = end
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// lowercase writes each character small as Unicode 17 does. Go's Unicode may be an earlier one.
func lowercase(s string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		switch {
		case r < 0x1C89:
			if r == 'İ' {
				return r // two characters: the letter and its dot
			}
		case r == 0x1C89, r == 0xA7CC, r == 0xA7CE, r == 0xA7D2, r == 0xA7D4, r == 0xA7DA:
			return r + 1
		case r == 0xA7CB:
			return 0x264
		case r == 0xA7DC:
			return 0x19B
		case 0x10D50 <= r && r <= 0x10D65:
			return r + 0x20
		case 0x16EA0 <= r && r <= 0x16EB8:
			return r + 0x1B
		}
		return unicode.ToLower(r)
	}, s), "İ", "i\u0307")
}

// accents are the marks that StripAccents removes.
var accents = sync.OnceValue(func() *chars.Table { return chars.EarlyMarks().Table() })

func stripAccents(s string) string {
	return strings.Map(func(r rune) rune {
		if accents().Has(r) {
			return -1
		}
		return r
	}, s)
}
