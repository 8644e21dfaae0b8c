package tokenizer

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// cut runs a scanner over text.
func cut(scan scanner, text string) []string {
	pieces := []string{}
	scan.each(piece{text: text}, func(p piece) { pieces = append(pieces, p.text) })
	return pieces
}

func compilePatterns(t testing.TB) map[string]*regexp2.Regexp {
	t.Helper()
	out := make(map[string]*regexp2.Regexp, len(scanners))
	for pattern := range scanners {
		re, err := regexp2.Compile(pattern, regexp2.None)
		require.NoError(t, err)
		out[pattern] = re
	}
	return out
}

// oracle cuts text with a regular expression, checking that matches leave no gap.
func oracle(t testing.TB, re *regexp2.Regexp, text string) []string {
	t.Helper()
	pieces := []string{}
	end := 0
	m, err := re.FindStringMatch(text)
	for ; m != nil; m, err = re.FindNextMatch(m) {
		require.Equal(t, end, m.Index, "%q", text)
		end += m.Length
		pieces = append(pieces, m.String())
	}
	require.NoError(t, err)
	require.Equal(t, utf8.RuneCountInString(text), end)
	return pieces
}

// knownToOracle reports whether regexp2, which has Go's Unicode tables and folds no long s, agrees on text's classes.
func knownToOracle(text string) bool {
	for _, r := range text {
		if r == 'ſ' || unicode.In(r, newLetters, newNumbers) {
			return false
		}
	}
	return utf8.ValidString(text)
}

func TestScannersEqualRegexp(t *testing.T) {
	patterns := compilePatterns(t)
	compared := 0
	for _, text := range readCorpus(t).Texts {
		if !knownToOracle(text) {
			continue
		}
		for pattern, re := range patterns {
			require.Equal(t, oracle(t, re, text), cut(scanners[pattern], text), "%q with %s", text, pattern)
			compared++
		}
	}
	require.Greater(t, compared, 900)
}

func FuzzScannersEqualRegexp(f *testing.F) {
	for _, s := range []string{"I'm 1234  x\r\n\r\n y!\n", "'LL'd 'ſ", " \u00a0\u3000é\u0301٣½", "\t\t a_b\n \n"} {
		f.Add(s)
	}
	patterns := compilePatterns(f)
	f.Fuzz(func(t *testing.T, text string) {
		defer watch.Execution()()
		if !knownToOracle(text) {
			return
		}
		for pattern, re := range patterns {
			require.Equal(t, oracle(t, re, text), cut(scanners[pattern], text), "%q with %s", text, pattern)
		}
	})
}

// What the oracle cannot say, checked against tokenizers 0.23.3.
func TestScannersBeyondOracle(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          []string
	}{
		{patternLlama3, "x'ſy", []string{"x", "'ſ", "y"}},
		{patternGPT2, "x'ſy", []string{"x", "'", "ſy"}},
		{patternLlama3, "a\U0002EBF0b", []string{"a\U0002EBF0b"}},
		{patternGPT2, "a\U0001CCF0\U00016D70!", []string{"a", "\U0001CCF0\U00016D70", "!"}},
	} {
		require.Equal(t, c.want, cut(scanners[c.pattern], c.text))
	}
}
