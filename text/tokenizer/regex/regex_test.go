package regex

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// golden is how the tokenizers library cuts texts; testdata/make_regex.py of the tokenizer writes it.
type golden struct {
	Texts    []string
	Patterns map[string][][]int
}

func readGolden(t testing.TB) (g golden) {
	data, err := os.ReadFile("testdata/splits.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	require.Greater(t, len(g.Patterns), 300)
	return g
}

// ends cuts text around the matches, and returns where the pieces end, in characters. With record the failures are kept
// from the first step on.
func ends(re *Regexp, text string, record bool) []int {
	out := []int{}
	done, count := 0, 0
	add := func(at int) {
		if at > done {
			count += utf8.RuneCountInString(text[done:at])
			done = at
			out = append(out, count)
		}
	}
	m := re.Matcher()
	m.Reset(text)
	if record {
		m.steps = 0
	}
	for {
		start, end, ok := m.Next()
		if !ok {
			break
		}
		add(start)
		add(end)
	}
	add(len(text))
	return out
}

func TestSplitsEqualOniguruma(t *testing.T) {
	g := readGolden(t)
	compared, refused := 0, 0
	for pattern, want := range g.Patterns {
		re, err := Compile(pattern)
		if err != nil {
			refused++
			continue
		}
		for i, text := range g.Texts {
			require.Equal(t, want[i], ends(re, text, false), "%s on %q", pattern, text)
			require.Equal(t, want[i], ends(re, text, true), "%s on %q", pattern, text)
			compared++
		}
	}
	require.Greater(t, compared, 15_000)
	require.Less(t, refused, 20, "patterns that are refused")
}

func TestRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		`(?=ab)`:                     "(?= of more than one character",
		`(?<!a|bc)x`:                 "(?<! of more than one character",
		`(?>a)`:                      `a group that begins with "(?>"`,
		`(?<name>a)`:                 `a group that begins with "(?<"`,
		`a(?i)b`:                     `a group that begins with "(?i"`,
		`(?i:é)`:                     "characters beyond ASCII in any case",
		`(?i:\p{L})`:                 "characters beyond ASCII in any case",
		`(?i:fi)`:                    `"fi" in any case`,
		`(?i:s(?:s))`:                `"ss" in any case`,
		`(?i:(?:af)i)`:               `"fi" in any case`,
		`(?i:s{1}t)`:                 `"st" in any case`,
		`(a?)*`:                      "a repeat of what may be empty",
		`(?:){64}`:                   "a repeat of what may be empty",
		`a**`:                        "a repeat of a repeat",
		`(?:ab)++`:                   "a possessive repeat of anything but one character",
		`a{1,2}+`:                    "a possessive repeat of anything but one character",
		`a{2}?`:                      "? after {n}",
		`a{65}`:                      "a { without bounds",
		`a{2,1}`:                     "a { without bounds",
		`a{,2}`:                      "a { without bounds",
		`a{+2}`:                      "a { without bounds",
		`a{1,-0}`:                    "a { without bounds",
		`{1}`:                        `a bare '{'`,
		`*a`:                         `'*' with nothing to repeat`,
		`\p{Greek}`:                  `\p{Greek}, which is not a general category`,
		`\pL`:                        `\p without {name}`,
		`\p{}`:                       `\p{}, which is not a general category`,
		`\R`:                         `\R`,
		`(a)\1`:                      `\1`,
		`\b`:                         `\b`,
		`\xE9`:                       "a byte that is not a character",
		`\x{110000}`:                 "numbers no character",
		`\uD800`:                     "numbers no character",
		`\x{`:                        "an unfinished number",
		`\u12`:                       "an unfinished number",
		`\`:                          "the end of the pattern",
		`[a`:                         "a [ without its ]",
		`[]a]`:                       "a class that begins with ]",
		`[[:alpha:]]`:                "a class [:name:]",
		`[z-a]`:                      "a range with no characters",
		`[\s-a]`:                     "a - after a class",
		`(a`:                         "a ( without its )",
		`a)`:                         "an unmatched )",
		"\xff":                       "none of UTF-8",
		strings.Repeat("a", 9000):    "more than 8192 bytes",
		strings.Repeat("(", 40):      "nested more than 32 deep",
		strings.Repeat("[", 40):      "nested more than 32 deep",
		strings.Repeat(`\p{L}`, 200): `more than 128 of \p and \w`,
		`(?:(?:a{64}){64}){64}`:      "a pattern of too many parts",
	} {
		_, err := Compile(pattern)
		var e *SyntaxError
		require.True(t, errors.As(err, &e), "%q: %v", pattern, err)
		require.Contains(t, e.Got, want, "%q", pattern)
		require.LessOrEqual(t, e.At, len(pattern))
	}
}

// Each takes minutes to years where time is not linear.
func TestHostileText(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const n = 200_000
	for pattern, text := range map[string]string{
		`\s+$`:                                strings.Repeat(" ", n) + "x",
		`\s++$`:                               strings.Repeat(" ", n) + "x",
		`\s*[\r\n]+|\s`:                       strings.Repeat(" ", n) + "x",
		`\s*?x$`:                              strings.Repeat(" ", n) + "x ",
		`(?:a|a)*b`:                           strings.Repeat("a", n),
		`(?:a*?a)+b`:                          strings.Repeat("a", n),
		`.*.*.*x`:                             strings.Repeat("é", n),
		`a*a++b`:                              strings.Repeat("a", n),
		`(?:a|b)*a++c`:                        strings.Repeat("a", n),
		`a?a?a?a?a?a?a?a?a+b`:                 strings.Repeat("a", n),
		`(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+\d`: strings.Repeat("a b", n),
	} {
		re, err := Compile(pattern)
		require.NoError(t, err)
		took := watch.Thread(func() { require.NotEmpty(t, ends(re, text, false)) })
		require.Less(t, took, 10*time.Second, pattern)
	}
}

// TestBuilt has the patterns that are not parsed.
func TestBuilt(t *testing.T) {
	require.Equal(t, []int{1, 3, 4, 6}, ends(Literal("a."), "xa.aa.", false))
	letter, ok := Compile(`\p{L}`)
	require.NoError(t, ok)
	require.Equal(t, []int{1, 2, 3}, ends(letter, "aé1", false))
}

// FuzzCompile checks that no pattern panics or takes long, and that a record of failures changes no match.
func FuzzCompile(f *testing.F) {
	g := readGolden(f)
	i := 0
	for pattern := range g.Patterns {
		if i++; i%8 == 0 {
			f.Add(pattern, g.Texts[i%len(g.Texts)])
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		defer watch.Execution()()
		re, err := Compile(pattern)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		require.Equal(t, ends(re, text, false), ends(re, text, true))
	})
}
