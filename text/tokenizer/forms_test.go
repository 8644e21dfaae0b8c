package tokenizer

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"amkc/internal/watch"
)

// goldenNFC is what the tokenizers library makes of characters and sequences; testdata/make_unicode.py writes and
// explains it.
type goldenNFC struct {
	Marks     string
	Blocks    map[string]string
	Firsts    string
	Pairs     map[string]string
	Hangul    string
	Pool      string
	Random    []string
	Sequences [][2]string
	Steps     map[string][]string
}

func readGoldenNFC(t testing.TB) (g goldenNFC) {
	readJSON(t, "testdata/unicode.json", &g)
	require.Len(t, g.Blocks, 0x110)
	return g
}

// The library normalizes as Unicode 9 does. Adlam came with 9.0 and its nukta has class 7; the marks of class 218 and
// 230 below came with 10.0 and 11.0 and are unassigned characters to it, whatever x/text knows of them.
func TestNFCIsOfUnicode9(t *testing.T) {
	require.Equal(t, "á\u0334\U0001E94A", nfc.normalize("a\u0301\U0001E94A\u0334"))
	for _, text := range []string{"a\u0301\u1DF9\u0323", "a\u1DF9\u0301", "a\u0301\U00010D24\u0323", "\u1DF6\u0334"} {
		require.Equal(t, strings.ReplaceAll(text, "a\u0301", "á"), nfc.normalize(text))
	}
}

// TestNFCOfEveryCharacter also asks for a character between others, and before all marks. AMKC_LONG takes all
// characters, and else it is those of the first two planes and the compatibility ideographs, which the others are like.
func TestNFCOfEveryCharacter(t *testing.T) {
	g := readGoldenNFC(t)
	for b := range 0x110 {
		if b >= 0x20 && b != 0x2F && os.Getenv("AMKC_LONG") == "" {
			continue
		}
		key := fmt.Sprintf("%02X", b)
		d := newDigest()
		for r := rune(b << 12); r < rune(b+1)<<12; r++ {
			if !utf8.ValidRune(r) {
				continue
			}
			d.add(nfc.normalize(string(r)))
			between := "x\u0345" + string(r) + "\u0334"
			d.add(nfc.normalize(between))
			if nfc.normalize(between) != between {
				d.add(nfc.normalize("x" + string(r) + g.Marks))
			}
		}
		require.Equal(t, g.Blocks[key], d.String(), "characters U+%s000 to U+%sFFF", key, key)
	}
}

func TestNFCOfPairs(t *testing.T) {
	g := readGoldenNFC(t)
	for second, want := range g.Pairs {
		d := newDigest()
		for _, first := range g.Firsts {
			d.add(nfc.normalize(string(first) + second))
		}
		require.Equal(t, want, d.String(), "%+q", second)
	}
	hangul := newDigest()
	for lv := range rune(19 * 21) {
		for t := range rune(28) {
			jamo := string(0x1100+lv/21) + string(0x1161+lv%21)
			if t == 0 {
				hangul.add(nfc.normalize(jamo))
				continue
			}
			hangul.add(nfc.normalize(jamo + string(0x11A7+t)))
			hangul.add(nfc.normalize(string(0xAC00+28*lv) + string(0x11A7+t)))
		}
	}
	require.Equal(t, g.Hangul, hangul.String())
}

func TestNFCOfSequences(t *testing.T) {
	g := readGoldenNFC(t)
	for _, s := range g.Sequences {
		require.Equal(t, s[1], nfc.normalize(s[0]), "%+q", s[0])
		require.Equal(t, s[1], nfc.normalize(s[1]), "%+q", s[1])
	}
	pool := []rune(g.Pool)
	random := draw(1)
	for i, want := range g.Random {
		d := newDigest()
		for range 1000 {
			var text []rune
			for range 1 + random.below(12) {
				text = append(text, pool[random.below(len(pool))])
			}
			d.add(nfc.normalize(string(text)))
		}
		require.Equal(t, want, d.String(), "sequences %d to %d", 1000*i, 1000*i+999)
	}
}

// TestStepsEqualLibrary has the other normalizers on every character, of the first two planes if AMKC_LONG is not set.
func TestStepsEqualLibrary(t *testing.T) {
	g := readGoldenNFC(t)
	steps := map[string]normalizer{"NFD": nfd.normalize, "NFKC": nfkc, "NFKD": nfkd.normalize,
		"Lowercase": lowercase, "StripAccents": stripAccents}
	require.Len(t, g.Steps, len(steps))
	pool := []rune(g.Pool)
	for name, step := range steps {
		want := g.Steps[name]
		require.Len(t, want, 18)
		for plane := range rune(17) {
			if plane >= 2 && os.Getenv("AMKC_LONG") == "" {
				continue
			}
			d := newDigest()
			for r := plane << 16; r < (plane+1)<<16; r++ {
				if utf8.ValidRune(r) {
					d.add(step(string(r)))
					d.add(step("x\u0345" + string(r) + "\u0334"))
				}
			}
			require.Equal(t, want[plane], d.String(), "%s of plane %d", name, plane)
		}
		random, d := draw(1), newDigest()
		for range 5000 {
			var text []rune
			for range 1 + random.below(12) {
				text = append(text, pool[random.below(len(pool))])
			}
			d.add(step(string(text)))
		}
		require.Equal(t, want[17], d.String(), name)
	}
}

// A letter with 400,000 marks, and as many short segments: minutes if either took quadratic time.
func TestNFCOfLongText(t *testing.T) {
	took := watch.Thread(func() {
		marks := strings.Repeat("\u0301\u0323", 200_000)
		want := "ẹ" + strings.Repeat("\u0323", 199_999) + strings.Repeat("\u0301", 200_000)
		require.Equal(t, want, nfc.normalize("e"+marks))
		require.Equal(t, strings.Repeat("é가", 200_000), nfc.normalize(strings.Repeat("e\u0301\u1100\u1161", 200_000)))
	})
	require.Less(t, took, 20*time.Second)
}

// Where x/text's own normalization is right, the two are the same: there are no later characters and no long runs.
func FuzzNFC(f *testing.F) {
	for _, s := range readGoldenNFC(f).Sequences {
		f.Add(s[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer watch.Execution()()
		if !utf8.ValidString(text) {
			return
		}
		got := nfc.normalize(text)
		require.Equal(t, got, nfc.normalize(got))
		if !strings.ContainsFunc(text, isLater) && strings.Count(norm.NFC.String(text), norm.GraphemeJoiner) ==
			strings.Count(text, norm.GraphemeJoiner) {
			require.Equal(t, norm.NFC.String(text), got)
		}
	})
}
