package readback_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/readback"
)

var files = readback.Files

// An edit is another text of one of the headers.
type edit struct {
	what string
	file int
	text string
}

// findings are those of reading edited headers back, without any re-emission: of the reader itself, or of the
// comparison with the program.
func findings(h [5][]byte, e edit, want *ir.Program) []string {
	h[e.file] = []byte(e.text)
	p, diags := readback.Program(texts(h))
	if diags.Err() == nil {
		diags.Add(readback.Compare(p, want)...)
	}
	var out []string
	for _, d := range diags {
		out = append(out, d.Error())
	}
	return out
}

var (
	literal    = regexp.MustCompile(`\b(0x[0-9a-f.]+p[+-]\d+f|\d+|true|false|k[A-Z]\w*|Bf16|Fp16|Fp32)\b`)
	otherNames = map[string][]string{"Bf16": {"Fp16", "Fp32"}, "Fp16": {"Bf16", "Fp32"}, "Fp32": {"Bf16", "Fp16"}}
)

// literalEdits replaces every literal of the blocks in turn: numbers by one more, by one less and by twice as much,
// truth values by the other one, names by every other name that the same header uses as a value.
func literalEdits(h [5][]byte) []edit {
	var out []edit
	for f, text := range h[:4] {
		s := string(text)
		begin, end := strings.Index(s, "// amkc:literals"), strings.Index(s, "// amkc:end")
		type place struct{ lo, hi int }
		var places []place
		names := map[string]bool{}
		at := begin
		inList := false
		for _, line := range strings.SplitAfter(s[begin:end], "\n") {
			code, _, _ := strings.Cut(line, "//")
			from := strings.IndexAny(code, "={")
			switch {
			case strings.HasPrefix(code, "enum") || strings.HasPrefix(code, "struct") ||
				strings.HasPrefix(code, "namespace"):
				from = len(code)
			case inList || strings.HasPrefix(code, "  kStage"):
				from = 0
			case from < 0:
				from = len(code)
			}
			for _, m := range literal.FindAllStringIndex(code[from:], -1) {
				p := place{lo: at + from + m[0], hi: at + from + m[1]}
				places = append(places, p)
				if v := s[p.lo:p.hi]; strings.HasPrefix(v, "k") {
					names[v] = true
				}
			}
			inList = strings.HasSuffix(strings.TrimRight(code, " \n"), "[]{") || inList && !strings.Contains(code, "}")
			at += len(line)
		}
		for _, p := range places {
			v := s[p.lo:p.hi]
			for _, other := range others(v, names) {
				line := 1 + strings.Count(s[:p.lo], "\n")
				out = append(out, edit{fmt.Sprintf("%s:%d %s -> %s", files[f], line, v, other), f,
					s[:p.lo] + other + s[p.hi:]})
			}
		}
	}
	return out
}

func others(v string, names map[string]bool) []string {
	if list := otherNames[v]; list != nil {
		return list
	}
	switch {
	case v == "true":
		return []string{"false"}
	case v == "false":
		return []string{"true"}
	case strings.HasPrefix(v, "0x"):
		if f, err := strconv.ParseFloat(strings.TrimSuffix(v, "f"), 32); err == nil && f == 0 {
			return []string{"0x1p-20f"}
		}
		return []string{"0x0p+00f", strings.TrimSuffix(v, "f"), "0x1.8p-01f"}
	case strings.HasPrefix(v, "k"):
		return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(n string) bool { return n == v })
	}
	n, _ := strconv.Atoi(v)
	out := []string{strconv.Itoa(n + 1), strconv.Itoa(2*n + 8), "65536", "16000000", "2000000000", "99999999999"}
	out = slices.DeleteFunc(out, func(s string) bool { return s == v })
	if n > 0 {
		out = append(out, strconv.Itoa(n-1), "0")
	}
	return out
}

// Every literal of every header matters: whichever is edited, reading back finds it. Nothing is emitted again here.
//
// The edits of all builds take half a minute, and builds have nearly all of them alike: unless AMKC_LONG is set, each
// build tries every eighth, and others than the build before it.
func TestEveryLiteralIsReadBack(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for n, dir := range builds(t) {
		t.Run(dir, func(t *testing.T) {
			h, want := headers(t, dir), programOf(t, dir)
			edits := literalEdits(h)
			require.Greater(t, len(edits), 300)
			for i, e := range edits {
				if tried(i + n) {
					require.NotEmpty(t, findings(h, e, want), e.what)
				}
			}
		})
	}
}

// tried reports whether the n-th of some edits is: all in the long tests, and otherwise every eighth.
func tried(n int) bool { return n%8 == 0 || os.Getenv("AMKC_LONG") != "" }

// No line of a block or of a walk can go, or come twice, but for comments and blank lines.
func TestEveryDeclarationIsNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for n, dir := range builds(t) {
		t.Run(dir, func(t *testing.T) {
			h, want := headers(t, dir), programOf(t, dir)
			for f, text := range h {
				lines := strings.SplitAfter(string(text), "\n")
				inside := false
				for i, line := range lines {
					mark, isMark := strings.CutPrefix(strings.TrimLeft(line, " "), "// amkc:")
					inside = isMark && mark != "end\n" || inside && !isMark
					if code, _, _ := strings.Cut(line, "//"); !inside || strings.TrimSpace(code) == "" || !tried(i+n) {
						continue
					}
					without := edit{"without " + line, f,
						strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "")}
					require.NotEmpty(t, findings(h, without, want), "%s: %s", files[f], without.what)
					twice := edit{"twice " + line, f, strings.Join(lines[:i], "") + line + strings.Join(lines[i:], "")}
					require.NotEmpty(t, findings(h, twice, want), "%s: %s", files[f], twice.what)
				}
			}
		})
	}
}

// The comments that list the ops of a stage say what its body computes.
func TestOpCommentsAreReadBack(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for n, dir := range builds(t) {
		h, want := headers(t, dir), programOf(t, dir)
		lines := strings.SplitAfter(string(h[0]), "\n")
		edited := 0
		for i, line := range lines {
			if !strings.HasPrefix(line, "//   ") && !strings.HasPrefix(line, "// stage ") {
				continue
			}
			edited++
			rest := strings.Join(lines[i+1:], "")
			for k, text := range []string{"", strings.TrimRight(line, "\n") + " more\n", line + line,
				line[:len(line)/2] + "\n"} { // half of it: a float cut by a digit may be the same float32
				if !tried(i + k + n) {
					continue
				}
				require.NotEmpty(t, findings(h, edit{line, 0, strings.Join(lines[:i], "") + text + rest}, want),
					"%s %q -> %q", dir, line, text)
			}
		}
		require.Greater(t, edited, 20)
	}
}

// What the grammar keeps out, with the place where it stands.
func TestRefusals(t *testing.T) {
	const build = "llama-gqa_t4_fp16_split"
	h := headers(t, build)
	const mark = "namespace amk {\n"
	for _, c := range []struct{ name, old, text, want string }{
		{"directive", mark, mark + "#define kTasks 3\n",
			`schedule.h:10:1: error: '#'; want a declaration of a literal [AMK4911]`},
		{"directive before", "#pragma once\n", "#pragma once\n#define int long\n",
			`schedule.h:7:1: error: "#define int long" before the literals; want comments and #include ` +
				`"amk/weight_format.cuh" alone [AMK4911]`},
		{"other include", "#pragma once\n", "#pragma once\n#include \"../mine.h\"\n",
			`want comments and #include "amk/weight_format.cuh" alone [AMK4911]`},
		{"include of the runtime", "#pragma once\n", "#pragma once\n#include \"amk/ring.cuh\"\n",
			`#include \"amk/ring.cuh\"" before the literals; want comments and #include ` +
				`"amk/weight_format.cuh" alone [AMK4911]`},
		{"include besides the one of pages.h", "#include \"amk/exchange.cuh\"\n",
			"#include \"amk/exchange.cuh\"\n#include \"amk/evil.cuh\"\n",
			`pages.h:9:1: error: "#include \"amk/evil.cuh\"" before the literals; want comments and #include ` +
				`"amk/exchange.cuh" alone [AMK4911]`},
		{"continued comment", mark, mark + "// this \\\n",
			`schedule.h:10:9: error: byte '\\'; want printable text without backslashes up to the end of the ` +
				`literals [AMK4911]`},
		{"continued comment before", "#pragma once\n", "#pragma once\n// this \\\n",
			`schedule.h:7:9: error: byte '\\'`},
		{"trigraph", mark, mark + "// this ?" + "?/\n", `schedule.h:10:9: error: byte '?'`},
		{"block comment", mark, mark + "/* none */\n",
			`schedule.h:10:1: error: '/'; want a declaration of a literal [AMK4911]`},
		{"expression", "constexpr int kSMs = 40;", "constexpr int kSMs = 4 * 10;",
			`schedule.h:12:24: error: '*'; want a declaration of a literal [AMK4911]`},
		{"octal", "constexpr int kSMs = 40;", "constexpr int kSMs = 040;",
			`schedule.h:12:22: error: "040"; want a decimal integer below 2^53 or a hex float [AMK4911]`},
		{"separators", "constexpr int kSMs = 40;", "constexpr int kSMs = 4'0;", `error: '\''; want a declaration`},
		{"suffix", "constexpr int kSMs = 40;", "constexpr int kSMs = 40u;", `"40u"; want a decimal integer`},
		{"negative", "constexpr int kSMs = 40;", "constexpr int kSMs = -40;", `'-'; want a declaration`},
		{"float for int", "constexpr int kSMs = 40;", "constexpr int kSMs = 0x1.4p+05f;",
			`schedule.h:12:22: error: kSMs is a hex float; want an integer [AMK4912]`},
		{"wrapped int", "constexpr int kSMs = 40;", "constexpr int kSMs = 4294967336;",
			`schedule.h:12:22: error: kSMs is 4294967336, which int cannot hold; want at most 2147483647 [AMK4912]`},
		{"other type", "constexpr int kSMs = 40;", "constexpr char kSMs = 40;",
			`schedule.h:12:16: error: kSMs is declared as char; want int [AMK4912]`},
		{"nothing", "constexpr int kSMs = 40;", "constexpr int kSMs;",
			`schedule.h:12:19: error: ";" after kSMs; want = and a literal [AMK4911]`},
		{"twice", "constexpr int kSMs = 40;", "constexpr int kSMs = 40; constexpr int kSMs = 40;",
			`error: kSMs is declared twice [AMK4911]`},
		{"unknown", "constexpr int kSMs = 40;", "constexpr int kSMs = 40; constexpr int kMine = 40;",
			`schedule.h:12:40: error: kMine is not a constant that is known here [AMK4912]`},
		{"in a struct", "  static constexpr int kRows = 64;", "  int rows() { return 64; }",
			`"int" in struct Embed; want static constexpr TYPE NAME and a literal [AMK4911]`},
		{"no end", "// amkc:end\n", "", `ends within the literals; want a line // amkc:end [AMK4911]`},
		{"no mark", "// amkc:literals ", "// ", `schedule.h:9:1: error: "namespace amk {" before the literals`},
		{"another namespace", "}  // namespace amk\n// amkc:end",
			"}  // namespace amk\nnamespace other {}\n// amkc:end",
			`"namespace" after the namespace; want the end of the literals [AMK4911]`},
		{"overlap", "constexpr Page kXchg0{0, 256, 2};", "constexpr Page kXchg0{256, 256, 2};",
			`pages.h:14:22: error: kXchg0 has offset 256 and 256 bytes; want offset 0, where the page before it ` +
				`ends, and 256 bytes, which its vectors take [AMK4912]`},
		{"threshold", "kTasks = 16;", "kTasks = 17;",
			`schedule.h:84:33: error: kTasks is 17; want 16, the tasks of the distribution [AMK4912]`},
		{"rotation", "kRotation = 3;", "kRotation = 4;",
			"schedule.h: stage L{i}.gate_up of variant short: error: rotation: the headers say 4, and program.json " +
				"says 3 [AMK4913]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := 0
			if !bytes.Contains(h[0], []byte(c.old)) {
				file = 1
			}
			require.Contains(t, string(h[file]), c.old)
			text := strings.Replace(string(h[file]), c.old, c.text, 1)
			found := findings(h, edit{c.name, file, text}, programOf(t, build))
			require.NotEmpty(t, found)
			require.Contains(t, strings.Join(found, "\n"), c.want)
		})
	}
}
