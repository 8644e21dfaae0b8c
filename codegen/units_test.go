package codegen

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/kernel"
	"amkc/runtime"
)

// unitsMain prints, for every position and unit of some stages, which rows a unit copies and which of those it hides.
const unitsMain = `
template <int splits, int share, int window>
struct Stage {
  static constexpr int kSplits = splits, kShareRows = share, kWindowRows = window;
};

template <int splits, int share, int window>
void show() {
  for (int position = 0; position < 260; ++position) {
    for (int unit = 0; unit < kSequences * kKVHeads * splits; ++unit) {
      const Unit<Stage<splits, share, window>> u{unit, position};
      if ((u.sequence() * kKVHeads + u.head()) * splits + u.split() != unit || u.head() >= kKVHeads) std::abort();
      if (u.sequence() != 1 || u.head() != 1) continue;
      const int chunks = u.chunks();
      std::printf("%d %d %d %d %d %d", splits, share, window, position, u.split(), chunks > 0 ? u.hidden() : 0);
      for (int i = 0; i < chunks; ++i) std::printf(" %d %d", u.first_row(i) + u.skipped(i), u.rows(i));
      std::printf("\n");
    }
  }
}

template <int splits, int share>
void windows() {
  show<splits, share, 0>();
  show<splits, share, 1>();
  show<splits, share, 2>();
  show<splits, share, 16>();
  show<splits, share, 17>();
  show<splits, share, 100>();
  show<splits, share, 250>();
}

int main() {
  windows<1, 64>();
  windows<2, 16>();
  windows<3, 48>();
}
`

// The rows that Unit of attention.cuh copies and sees are those of the views that attendOps states: no block is copied
// that has none of them, and of those that are copied the others are hidden. Units of several sequences and heads come
// in their order.
func TestUnitsSeeTheirRows(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	header := runtime.DeviceSources()["amk/attention.cuh"]
	from := bytes.Index(header, []byte("template <class S>\nstruct Unit {"))
	size := bytes.Index(header[from:], []byte("\n};\n")) + len("\n};\n")
	source := "#include <algorithm>\n#include <cstdio>\n#include <cstdlib>\n" +
		"#define __device__\n#define __forceinline__ inline\n" +
		"using std::max;\nusing std::min;\nconstexpr int ceil_div(int n, int d) { return (n + d - 1) / d; }\n" +
		"constexpr int kCacheRows = 16, kSlotBytes = 128, kKVHeads = 2;\n" +
		"template <class>\nstruct HeadsOf { static constexpr int kCacheBlockBytes = 1, kKVHeads = 2; };\n" +
		"constexpr int kSequences = 3, kSequenceRows = 1;\n" +
		"template <class>\nconstexpr int kRowGroups = 1;\ntemplate <class>\nconstexpr int kUnitRows = 1;\n" +
		string(header[from:][:size]) + unitsMain
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "units.cc"), []byte(source), 0o600))
	out, err := exec.Command(compiler, "-std=c++17", "-O1", "-o", filepath.Join(dir, "units"),
		filepath.Join(dir, "units.cc")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(filepath.Join(dir, "units")).Output()
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		checkUnit(t, lines.Text())
	}
}

func checkUnit(t *testing.T, line string) {
	var n []int
	for _, field := range strings.Fields(line) {
		number, err := strconv.Atoi(field)
		require.NoError(t, err)
		n = append(n, number)
	}
	splits, share, window, pos, unit, hidden := n[0], n[1], n[2], n[3], n[4], n[5]
	attend := kernel.Attend.Ops(&kernel.Facts{LayerFacts: ir.LayerFacts{Heads: 1, KVHeads: 1, HeadDim: 16}},
		&kernel.Stage{Splits: splits, ShareRows: share, Window: window})
	rows := attend[0].In[1].Dims[1].Bind(ir.TaskSpan{A: unit, B: unit + 1})
	want := rows.Elements(nil, pos)
	var got []int
	for n = n[6:]; len(n) > 0; n = n[2:] {
		first, rows := n[0], n[1]
		if first%16 != 0 || rows < 1 || first%share+rows > share {
			t.Fatalf("%s: %d rows from %d on are not a piece of a chunk", line, rows, first)
		}
		for row := first; row < first+rows; row++ {
			got = append(got, row)
		}
	}
	if hidden > 15 || hidden > 0 && hidden >= len(got) || !slices.Equal(want, got[hidden:]) {
		t.Fatalf("%s: want the rows %v to be seen", line, want)
	}
}
