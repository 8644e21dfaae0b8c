package diff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnified(t *testing.T) {
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", i+1)
		}
		return b.String()
	}
	ten := numbers(10)
	for _, test := range []struct{ name, a, b, want string }{
		{"equal", ten, ten, ""},
		{"replace", ten, strings.Replace(ten, "5\n", "five\n", 1),
			"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"insert at start", "a\n", "x\na\n", "@@ -1 +1,2 @@\n+x\n a\n"},
		{"delete at end", "a\nb\n", "a\n", "@@ -1,2 +1 @@\n a\n-b\n"},
		{"from nothing", "", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		{"to nothing", "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"no final newline", "a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"near changes share a hunk", ten, strings.NewReplacer("2\n", "two\n", "7\n", "seven\n").Replace(ten),
			"@@ -1,10 +1,10 @@\n 1\n-2\n+two\n 3\n 4\n 5\n 6\n-7\n+seven\n 8\n 9\n 10\n"},
		{"far changes do not", numbers(30), strings.NewReplacer("\n5\n", "\nV\n", "\n20\n", "\nXX\n").
			Replace(numbers(30)),
			"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n@@ -17,7 +17,7 @@\n 17\n 18\n 19\n-20\n+XX\n " +
				"21\n 22\n 23\n"},
		{"moved block", "a\nb\nc\nd\n", "c\nd\na\nb\n", "@@ -1,4 +1,4 @@\n-a\n-b\n c\n d\n+a\n+b\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, string(Unified([]byte(test.a), []byte(test.b))))
		})
	}
}

// TestApply holds random differences to what they promise: applied to a they give b.
func TestApply(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		a := make([]string, random.IntN(40))
		for i := range a {
			a[i] = strconv.Itoa(random.IntN(12)) + "\n"
		}
		b := append([]string{}, a...)
		for range random.IntN(6) {
			switch at := random.IntN(len(b) + 1); {
			case at < len(b) && random.IntN(2) == 0:
				b = append(b[:at:at], b[at+1:]...)
			default:
				b = append(b[:at:at], append([]string{"new" + strconv.Itoa(random.IntN(3)) + "\n"}, b[at:]...)...)
			}
		}
		textA, textB := strings.Join(a, ""), strings.Join(b, "")
		hunks := Unified([]byte(textA), []byte(textB))
		require.Equal(t, textB, apply(t, a, hunks), "from %q by\n%s", textA, hunks)
		added, removed := Count(hunks)
		require.Equal(t, len(b)-len(a), added-removed)
	}
}

// apply is a patch(1) that insists on exact places.
func apply(t *testing.T, a []string, hunks []byte) string {
	var out strings.Builder
	next := 0
	for line := range bytes.Lines(hunks) {
		text := string(line[1:])
		switch line[0] {
		case '@':
			var from, n int
			if _, err := fmt.Sscanf(string(line), "@@ -%d,%d", &from, &n); err != nil {
				_, err = fmt.Sscanf(string(line), "@@ -%d", &from)
				require.NoError(t, err)
				n = 1
			}
			if n > 0 {
				from--
			}
			for ; next < from; next++ {
				out.WriteString(a[next])
			}
		case '+':
			out.WriteString(text)
		case ' ', '-':
			require.Equal(t, a[next], text)
			next++
			if line[0] == ' ' {
				out.WriteString(text)
			}
		}
	}
	return out.String() + strings.Join(a[next:], "")
}

func TestTrees(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	for _, dir := range []string{a, b} {
		write(dir, "same.txt", "same\n")
		write(dir, "sub/same.bin", "\x00\x01")
	}
	write(a, "a.txt", "1\n")
	write(b, "b.txt", "1\n")
	write(a, "sub/schedule.h", "x\ny\n")
	write(b, "sub/schedule.h", "x\nz\n")
	write(a, "weights.bin", "\xff")
	write(b, "weights.bin", "\xfe")

	changes, err := Trees(a, b)
	require.NoError(t, err)
	var got []string
	for _, c := range changes {
		got = append(got, string(c.Kind)+" "+c.Path)
	}
	require.Equal(t, []string{"only_in_a a.txt", "only_in_b b.txt", "text sub/schedule.h", "binary weights.bin"}, got)
	require.Equal(t, "@@ -1,2 +1,2 @@\n x\n-y\n+z\n", string(changes[2].Hunks))
	require.Equal(t, [2]int{1, 1}, [2]int{changes[2].Added, changes[2].Removed})

	same, err := Trees(a, a)
	require.NoError(t, err)
	require.Empty(t, same)
	_, err = Trees(a, filepath.Join(b, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Trees(a, filepath.Join(b, "b.txt"))
	require.ErrorContains(t, err, "want a directory")
}
