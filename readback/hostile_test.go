package readback_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/readback"
	"amkc/validate"
)

// A hostileFamily is headers that make the reader work hard: numbers are cheap to write, and a header can have two
// megabytes.
type hostileFamily struct {
	name string
	make func(h [5]string) [5]string
}

const headerSize = 1<<21 - 1<<10

// times repeats text to about the size of a large header.
func times(size int, line func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(line(i))
	}
	return b.String()
}

var (
	agreement = regexp.MustCompile(`(schedule\.h|pages\.h|model_config\.h):(\d+):\d+: error: (k\w+) is \d+; ` +
		`want (\d+),`)
	place  = regexp.MustCompile(`pages\.h:(\d+):\d+: error: (k\w+) has .*; want offset (\d+), .*, and (\d+) bytes`)
	triple = regexp.MustCompile(`\{\d+, \d+, (\d+)\}`)
)

// constants edits constants, and then all others that the reader says follow from them.
func constants(edits ...string) func([5]string) [5]string {
	return func(h [5]string) [5]string {
		for i := 0; i < len(edits); i += 2 {
			for f := range h {
				h[f] = regexp.MustCompile(edits[i]+` = \d+;`).ReplaceAllString(h[f], edits[i]+" = "+edits[i+1]+";")
			}
		}
		for range 40 {
			_, diags := read(h)
			edited := false
			for _, d := range diags {
				if m := agreement.FindStringSubmatch(d.Error()); m != nil {
					h, edited = onLine(h, m[1], m[2], regexp.MustCompile(m[3]+` = \d+;`), m[3]+" = "+m[4]+";"), true
				} else if m := place.FindStringSubmatch(d.Error()); m != nil {
					h, edited = onLine(h, "pages.h", m[1], triple, "{"+m[3]+", "+m[4]+", $1}"), true
				}
			}
			if !edited {
				break
			}
		}
		return h
	}
}

func onLine(h [5]string, file, line string, pattern *regexp.Regexp, text string) [5]string {
	for f := range h {
		if files[f] == file {
			lines := strings.SplitAfter(h[f], "\n")
			var n int
			fmt.Sscan(line, &n)
			lines[n-1] = pattern.ReplaceAllString(lines[n-1], text)
			h[f] = strings.Join(lines, "")
		}
	}
	return h
}

func read(h [5]string) (*ir.Program, []error) {
	p, diags := readback.Program(texts([5][]byte{[]byte(h[0]), []byte(h[1]), []byte(h[2]), []byte(h[3]), []byte(h[4])}))
	var out []error
	for _, d := range diags {
		out = append(out, d)
	}
	return p, out
}

// before puts text before a mark of one header.
func before(file int, mark string, text func() string) func([5]string) [5]string {
	return func(h [5]string) [5]string {
		h[file] = strings.Replace(h[file], mark, text()+mark, 1)
		return h
	}
}

// walked begins what the first turns of the producer stream with a text that is repeated, after one that is not.
func walked(line func(i int) string, first ...string) func([5]string) [5]string {
	return before(4, "        turns.weights<Qkv>", func() string {
		return strings.Join(first, "") + times(headerSize/2, line)
	})
}

const closing = "}  // namespace amk\n// amkc:end"

var hostileHeaders = []hostileFamily{
	{"layers", constants("kLayers", "65536")},
	{"layers within the budget", constants("kLayers", "100")},
	{"layers beyond", constants("kLayers", "16777216")},
	{"SMs", constants("kSMs", "65536")},
	{"layers and SMs", constants("kLayers", "1000", "kSMs", "65536")},
	{"rows", constants("kHidden", "16777216", "kRows", "16777216", "kColumns", "16777216")},
	{"vocabulary", constants("kVocab", "16777216")},
	{"positions", constants("kMaxSeq", "16777216", "kLongEnd", "16777216")},
	{"units", constants("kUnits", "65536")},
	{"unknown constants", before(0, closing, func() string {
		return times(headerSize/2, func(i int) string { return fmt.Sprintf("constexpr int k%d = 1;\n", i) })
	})},
	{"descriptors", func(h [5]string) [5]string {
		begin := strings.Index(h[0], "struct Embed {")
		end := begin + strings.Index(h[0][begin:], "};\n") + len("};\n")
		one, names := h[0][begin:end], ""
		all := times(headerSize/3, func(i int) string {
			names += fmt.Sprintf("  kStageX%dEmbed,\n", i)
			return strings.Replace(one, "struct Embed", fmt.Sprintf("struct X%dEmbed", i), 1)
		})
		h[0] = strings.Replace(h[0], closing, all+closing, 1)
		h[0] = strings.Replace(h[0], "\n};\n", "\n"+names+"};\n", 1)
		return h
	}},
	{"stages of a variant", func(h [5]string) [5]string {
		list := times(headerSize/2, func(int) string { return "kStageEmbed, " })
		h[0] = strings.Replace(h[0], "Stages[]{", "Stages[]{"+list, 1)
		return h
	}},
	{"pages", before(1, "// ---- vectors", func() string {
		return times(headerSize/2, func(i int) string { return fmt.Sprintf("constexpr Page kY%d{0, 0, 1};\n", i) })
	})},
	{"pages of a vector", func(h [5]string) [5]string {
		list := times(headerSize/2, func(int) string { return "kXchg0, " })
		h[1] = strings.Replace(h[1], "constexpr Page kX = kXchg0;", "constexpr Page kX[]{"+list+"};", 1)
		return h
	}},
	{"lines of a comment", func(h [5]string) [5]string {
		at := strings.Index(h[0], "struct ")
		h[0] = h[0][:at] + times(headerSize/2, func(int) string { return "//       x\n" }) + h[0][at:]
		return h
	}},
	{"calls", before(4, "    c.enter(kStageEmbed);", func() string {
		return times(headerSize/2, func(int) string { return "a(c);\n" })
	})},
	{"calls of a kind", walked(func(int) string { return "if (position < kLongEnd) { a(p.c); }\n" })},
	{"arms", walked(func(int) string { return "if (position < kShortEnd) {} else " })},
	{"branches in branches", walked(func(int) string { return "if (position < kLongEnd) {\n" })},
	{"arguments", walked(func(int) string { return "x, " }, "turns.weights(p.c, ")},
	{"braces in braces", walked(func(int) string { return "x{" }, "turns.weights(p.c, ")},
	{"comments of a walk", walked(func(int) string { return "//\n" }, "x(p.c);\n")},
	{"marks", walked(func(int) string { return "// amkc:end\n" })},
	{"size", before(0, closing, func() string {
		return times(10<<20, func(i int) string { return fmt.Sprintf("constexpr int k%d = 1;\n", i) })
	})},
}

// judge takes headers through what amkc verify does with them.
func judge(h [5][]byte, want *ir.Program) int {
	p, diags := readback.Program(texts(h))
	if diags.Err() == nil {
		diags.Add(readback.Compare(p, want)...)
	}
	if p != nil {
		diags.Add(validate.Program(p).Diags...)
	}
	return len(diags)
}

func hostileBytes(t testing.TB, f hostileFamily) (out [5][]byte) {
	var h [5]string
	for i, text := range headers(t, "llama-gqa_t4_fp16_split") {
		h[i] = string(text)
	}
	for i, text := range f.make(h) {
		out[i] = []byte(text)
	}
	require.NotEqual(t, headers(t, "llama-gqa_t4_fp16_split"), out, f.name)
	return out
}

// However large the numbers and the lists of a header are, it is refused in a bounded list of findings and bounded
// memory. How long that takes is for BenchmarkHostileHeaders to say.
func TestHostileHeaders(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	want := programOf(t, "llama-gqa_t4_fp16_split")
	for _, f := range hostileHeaders {
		t.Run(f.name, func(t *testing.T) {
			h := hostileBytes(t, f)
			var start, end runtime.MemStats
			runtime.ReadMemStats(&start)
			found := judge(h, want)
			runtime.ReadMemStats(&end)
			require.NotZero(t, found)
			require.Less(t, found, 200)
			require.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(768<<20))
		})
	}
}

func BenchmarkHostileHeaders(b *testing.B) {
	want := programOf(b, "llama-gqa_t4_fp16_split")
	for _, f := range hostileHeaders {
		b.Run(f.name, func(b *testing.B) {
			h := hostileBytes(b, f)
			b.ReportAllocs()
			for b.Loop() {
				judge(h, want)
			}
		})
	}
}
