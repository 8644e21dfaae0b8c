package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"amkc/app/front"
)

func TestCounts(t *testing.T) {
	for s, want := range map[string]int{"1": 1, "4096": 4096, "8k": 8192, "8K": 8192, "32k": 32768, "128k": 131072,
		"1m": 1 << 20, "1M": 1 << 20, " 7 ": 7, "007": 7} {
		n, err := front.ParseCount(s, 1, 1<<24)
		require.NoError(t, err, s)
		require.Equal(t, want, n, s)
	}
	for _, s := range []string{"", "k", "0", "-1", "-8k", "1.5k", "8kk", "8km", "8g", "8 k", "0x10", "1e3", "8,192",
		"eight", "17m", "99999999999999999999", "9223372036854775807k", "١"} {
		_, err := front.ParseCount(s, 1, 1<<24)
		require.EqualError(t, err, "want a whole number from 1 to 16777216; 8k is 8192, 1m is 1048576", s)
	}
	_, err := front.ParseCount("9007199254740993k", 0, math.MaxInt) // its product does not fit
	require.EqualError(t, err, "want a whole number from 0 on; 8k is 8192, 1m is 1048576")
	_, err = front.ParseCount("2000", 1, 1024)
	require.EqualError(t, err, "want a whole number from 1 to 1024")

	var list []int
	flag := newCounts(&list, []int{0})
	require.Equal(t, "0", flag.String())
	require.NoError(t, flag.Set("8k,5"))
	require.NoError(t, flag.Set("6"))
	require.Equal(t, []int{8192, 5, 6}, list, "what is given replaces the default, and adds up")
	require.EqualError(t, flag.Set("1,,2"),
		`number 2 of the list is ""; want a whole number from 0 on; 8k is 8192, 1m is 1048576`)
	require.Equal(t, []int{8192, 5, 6}, list)
	ids := newIDs(&list)
	require.NoError(t, ids.Set("1, 2,3"))
	require.Equal(t, []int{1, 2, 3}, list)
	require.Error(t, ids.Set("1k"), "ids count nothing")
}

// TestBadFlags gives every flag of every verb what it does not accept: one line, exit code 2, in amkc's own words.
func TestBadFlags(t *testing.T) {
	refused := func(args ...string) string {
		code, out, errs := amkc(args...)
		require.Equal(t, 2, code, args)
		require.Empty(t, out, args)
		require.Equal(t, 1, strings.Count(errs, "\n"), "%v: want one line: %s", args, errs)
		for _, foreign := range []string{"strconv", "pflag", "parsing", "invalid syntax", "invalid argument",
			"shorthand", "flag needs", "bad flag", "out of range", "\x1b"} {
			require.NotContains(t, errs, foreign, args)
		}
		return errs
	}
	for _, v := range verbs() {
		c := &call{verb: v}
		c.defineFlags()
		refused := func(args ...string) string { return refused(append(strings.Fields(v.name), args...)...) }
		c.flags.VisitAll(func(f *pflag.Flag) {
			long := "--" + f.Name
			if typed := long + "x"; c.flags.Lookup(f.Name+"x") == nil {
				// There may be another flag as near, as --prompts is to --promptx.
				require.Regexp(t, "unknown flag "+typed+"; did you mean "+long+`( or --\w+)?\?`, refused(typed))
			}
			if f.NoOptDefVal == "" {
				require.Contains(t, refused("x", long), long+" needs a value: ")
				if f.Name != "prompt" { // a model may well be asked to begin a text
					require.Contains(t, refused("x", long+"="), long+` "": `)
				}
			}
			if kind := f.Value.Type(); kind != "string" && kind != "stringArray" {
				for _, bad := range []string{"\x1b[31m", "9999999999999999999999", "-1", "maybe"} {
					require.Contains(t, refused("x", long+"="+bad), long+" ", bad)
				}
			}
		})
		for _, bad := range []string{"--zyxwvut", "-Z", "--=x", "--\x1b[31m"} {
			require.Contains(t, refused(bad), v.title(), bad)
		}
	}
}

// TestStrayWords: a first word that is neither a verb nor a path is answered with the verb that it resembles.
func TestStrayWords(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, v := range verbs() {
		words := strings.Fields(v.name)
		last := words[len(words)-1]
		typed := last[:1] + last[2:] // a letter is missing
		code, _, errs := amkc(append(words[:len(words)-1], typed, "x", "--json")...)
		require.Equal(t, 2, code)
		require.Contains(t, errs, "there is no verb and no directory "+typed+"; did you mean ", typed)
		require.Contains(t, errs, last, typed)
	}
	_, _, errs := amkc("models/cots", "-o", "out")
	require.NotContains(t, errs, "did you mean", "a path is a model")
}

func TestAmounts(t *testing.T) {
	var x float64
	for s, want := range map[string]float64{"0": 0, "24": 24, "22.5": 22.5, " 0.005 ": 0.005} {
		require.NoError(t, newAmount(&x).Set(s), s)
		require.Equal(t, want, x)
	}
	for _, s := range []string{"", "-1", "NaN", "Inf", "1e300", "1e400", "2147483648", "24g", "1,5"} {
		require.EqualError(t, newAmount(&x).Set(s), "want a number from 0 to 2147483647, as 24 or 22.5", s)
	}
}
