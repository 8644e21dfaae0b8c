package compiler

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/validate"
	"amkc/validate/kernel"
)

// sourcesOf are what a compile writes of a program besides the program itself, without comments and the like.
func sourcesOf(p *ir.Program, g *ir.Graph) (map[string][]byte, error) {
	files, err := codegen.Project(p, g, "model")
	if err != nil {
		return nil, err
	}
	if err := checkEmitted(files, p); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, text := range files {
		if name == "program.json" || name == "schedule.amk" || strings.HasSuffix(name, ".md") ||
			strings.HasPrefix(name, "amk/") || strings.HasPrefix(name, "launcher/") && name != "launcher/main.go" {
			continue
		}
		if name == "Makefile" {
			out[name] = makeComments.ReplaceAll(text, nil)
		} else {
			out[name] = comments.ReplaceAll(text, nil)
		}
	}
	return out, nil
}

var (
	comments     = regexp.MustCompile(`(?m)//.*$`)
	makeComments = regexp.MustCompile(`(?m)^#.*$`)
)

// plainOf is the plain kernels with the places of weights in place of their constants, which are called by what the
// program does with them.
func plainOf(files map[string][]byte) string {
	values := map[string]string{}
	for _, c := range places.FindAllStringSubmatch(string(files["model_config.h"]), -1) {
		values[c[1]] = c[2]
	}
	return constants.ReplaceAllStringFunc(string(files["reference.cu"]), func(name string) string {
		return cmp.Or(values[name], name)
	})
}

var (
	places    = regexp.MustCompile(`constexpr size_t (k\w+) = (\d+);`)
	constants = regexp.MustCompile(`\bk[A-Z]\w*`)
)

// notEmitted are the fields that say nothing of the emitted code, and why.
var notEmitted = map[string]string{
	"Target.Name":                   "a label",
	"Target.L2Bytes":                "for the cost model",
	"Target.HBMBytes":               "for the host, which compares it with the weights",
	"Target.HBMGBs":                 "for the cost model",
	"Config.SMAssignment.Policy":    "what pass assign was asked for",
	"Config.Tiling[][]":             "what a pass was asked for, unless it is one of ring or warps",
	"Variants[].Body[].Name":        "a label of a stage, which generated text calls by its role, or of a loop",
	"Variants[].Body[].Body[].Name": "a label of a stage",
}

// steersNothing reports whether an edit is one of a field that is not emitted.
func (e *valueEdit) steersNothing() string {
	if strings.HasPrefix(e.path, "Config.Tiling[ring]") || strings.HasPrefix(e.path, "Config.Tiling[warps]") {
		return ""
	}
	field := e.field()
	for name := range notEmitted {
		if field == name || strings.HasPrefix(field, name+"[") || strings.HasPrefix(field, name+".") {
			return name
		}
	}
	return ""
}

// orderless are the lists whose elements are found by their names.
var orderless = []string{"Buffers[]", "Variants[].Counters[]"}

// meansNothing reports whether an edit leaves the same program: one that is printed alike, with declarations in another
// order, with as much shared memory for a block, which is the smaller of two numbers, or with a default that it does
// not state.
func (e *valueEdit) meansNothing(before, after *programText, silent bool) bool {
	reordered := e.what == beforeTheOther && slices.Contains(orderless, e.field())
	return bytes.Equal(before.text, after.text) || silent && reordered ||
		silent && (e.path == "Config.SMemBytesPerBlock" || e.path == "Target.SMemOptin") &&
			before.shared == after.shared ||
		silent && e.path == "Config.PipeliningDepth" && before.depth == after.depth ||
		silent && e.path == "Target.TensorCores" && before.tensorCores == after.tensorCores // none multiplies fp32
}

type programText struct {
	text          []byte
	shared, depth int
	tensorCores   bool
}

func textOf(p *ir.Program) *programText {
	t := &programText{text: ir.Print(p), shared: p.Target.SMemOptin, depth: knobs.InFlight.Of(&p.Config),
		tensorCores: p.Target.RunsOnTensorCores(p.Model.Weights)}
	if n := p.Config.SMemBytesPerBlock; n > 0 {
		t.shared = min(t.shared, n)
	}
	return t
}

const beforeTheOther = "before the one before it"

// editCase is a program whose edits are tried.
type editCase struct {
	name string
	p    *ir.Program
	g    *ir.Graph
}

func editCases(t testing.TB) []editCase {
	var out []editCase
	for _, c := range goldenCases {
		if c.name != "pycoder-5m_h200_bf16" || os.Getenv("AMKC_LONG") != "" {
			l := lowerModel(t, c.model, c.target, c.dtype, c.maxSeq, c.config)
			out = append(out, editCaseOf(t, c.name, l))
		}
	}
	split := map[string]int{"split_from": 16, "max_splits": 4}
	for name, tiling := range map[string]map[string]map[string]int{
		"counted exchanges":   {"attention": split, "exchange": {"flagged": 0}},
		"a barrier per layer": {"attention": split, "loop": {"barrier": 1}},
		"unrolled":            {"attention": split, "loop": {"roll": 0}},
	} {
		l := lowerModel(t, "zoo/llama-gqa", "h200", ir.BF16, 128, ir.ScheduleConfig{Tiling: tiling})
		out = append(out, editCaseOf(t, name, l))
	}
	slices.SortFunc(out, func(a, b editCase) int { return strings.Compare(a.name, b.name) })
	return out
}

// editCaseOf reads the program from its text: as it comes from the passes it shares transforms with the graph, which an
// edit is not to change.
func editCaseOf(t testing.TB, name string, l *Scheduled) editCase {
	p, diags := ir.ParseText(ir.Print(l.Program), name)
	require.NoError(t, diags.Err())
	return editCase{name, p, l.Graph}
}

// No edit of a program is proved and then not emitted: either the emitted code changes, and reads back as the edit, or
// the edit is refused with a code. Only fields that are known to say nothing of the code are neither. AMKC_LONG tries
// every edit, and else some forty of each program are tried.
func TestNoSilentEdits(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	used := map[string]bool{}
	long := os.Getenv("AMKC_LONG") != ""
	counts := map[string]int{}
	for _, c := range editCases(t) {
		original, err := sourcesOf(c.p, c.g)
		require.NoError(t, err, c.name)
		before := textOf(c.p)
		edits := editsOf(c.p)
		stride := 1
		if !long {
			stride = max(1, len(edits)/24) | 1 // odd, so that every kind of edit has its turn
		}
		for i := 0; i < len(edits); i += stride {
			e := &edits[i]
			e.do()
			after := textOf(c.p)
			outcome, files := tryEdit(c.p, c.g, original)
			field := e.steersNothing()
			if files != nil && strings.HasPrefix(e.path, "Variants[]") {
				require.Equal(t, plainOf(original), plainOf(files), "%s: %s", e.path, e.what)
			}
			e.undo()
			switch {
			case e.meansNothing(before, after, outcome == silent):
				outcome = "the same program"
			case outcome == silent && field == "":
				t.Errorf("%s: %s: %s: is proved, and the emitted code is the same", c.name, e.path, e.what)
			case outcome == silent:
				used[field] = true
				outcome = "of a field that is not emitted"
			}
			counts[outcome]++
		}
		again, err := sourcesOf(c.p, c.g)
		require.NoError(t, err, "the program is as it was")
		require.Equal(t, original, again)
	}
	t.Log(counts)
	if long && *update {
		writeCounts(t, counts)
	}
	require.Greater(t, counts["the emitted code changes, and reads back as the edit"], 10)
	if long {
		require.Equal(t, slices.Sorted(maps.Keys(notEmitted)), slices.Sorted(maps.Keys(used)),
			"no field is listed in vain")
	}
}

// writeCounts puts the outcomes into docs/verify.md.
func writeCounts(t *testing.T, counts map[string]int) {
	const file, begin, end = "../docs/verify.md", "<!-- edits: written by a test -->\n", "<!-- end of edits -->"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	table := "\n| what becomes of the edit | edits |\n|---|---:|\n"
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		table += fmt.Sprintf("| %s | %d |\n", outcome, counts[outcome])
	}
	require.NoError(t, os.WriteFile(file, []byte(before+begin+table+"\n"+end+after), 0o644))
}

const silent = "silent"

// tryEdit is what becomes of an edited program: silent, reflected, or refused by the rules of a stage; and the files,
// if it is emitted.
func tryEdit(p *ir.Program, g *ir.Graph, original map[string][]byte) (string, map[string][]byte) {
	if ir.Check(p).Err() != nil {
		return "refused as no program", nil
	}
	if !validate.ProgramFor(kernel.Backend, p).OK {
		return "refused by the proof", nil
	}
	files, err := sourcesOf(p, g)
	if d, ok := err.(*diag.Diagnostic); ok && d.Code == codeEmitted.ID {
		return "refused when read back", nil
	}
	switch {
	case err != nil:
		return "refused by the emission", nil
	case maps.EqualFunc(files, original, bytes.Equal):
		return silent, files
	}
	return "the emitted code changes, and reads back as the edit", files
}

// These edits are not refused: the emitted code follows them, and reads back as they are.
func TestEditsAreReflected(t *testing.T) {
	eachOp := func(p *ir.Program, code ir.Opcode, f func(o *ir.Op)) {
		for i := range p.Variants {
			require.NoError(t, eachStage(&p.Variants[i], func(s *ir.Stage, _ int) error {
				for k := range s.Ops {
					if s.Ops[k].Code == code {
						f(&s.Ops[k])
					}
				}
				return nil
			}))
		}
	}
	eachStageOf := func(p *ir.Program, name string, f func(s *ir.Stage)) {
		for i := range p.Variants {
			require.NoError(t, eachStage(&p.Variants[i], func(s *ir.Stage, _ int) error {
				if strings.HasSuffix(s.Name, name) {
					f(s)
				}
				return nil
			}))
		}
	}
	setFloat := func(o *ir.Op, key string, v float64) {
		for i := range o.Params {
			if o.Params[i].Key == key {
				o.Params[i].Float = v
			}
		}
	}
	edits := map[string]func(p *ir.Program){
		"epsilons": func(p *ir.Program) {
			p.Model.Eps = 0.25
			eachOp(p, ir.RMSNORM, func(o *ir.Op) { setFloat(o, "eps", 0.25) })
		},
		"scales": func(p *ir.Program) {
			eachOp(p, ir.ATTENTION, func(o *ir.Op) { setFloat(o, "scale", 0.75) })
		},
		"windows": func(p *ir.Program) {
			eachOp(p, ir.ATTENTION, func(o *ir.Op) {
				for k := 1; k <= 2; k++ {
					o.In[k].Dims[1].Lo = ir.Int(0).Max(ir.Symbol(ir.Pos).Sub(ir.Int(20)))
				}
			})
		},
		"positions of the variants": func(p *ir.Program) { p.Variants[0].Hi++; p.Variants[1].Lo++ },
		"rotation of a stage's spans": func(p *ir.Program) {
			eachStageOf(p, ".gate_up", func(s *ir.Stage) { s.Dist.Rot = (s.Dist.Rot + 1) % s.Dist.SMs })
		},
		"rotation from layer to layer": func(p *ir.Program) {
			eachStageOf(p, ".qkv", func(s *ir.Stage) { s.Dist.Step++ })
		},
		"chunks in flight":  func(p *ir.Program) { p.Config.PipeliningDepth-- },
		"name of a variant": func(p *ir.Program) { p.Variants[0].Name = "brief" },
		"copies of a page": func(p *ir.Program) {
			for i := range p.Pages {
				if p.Pages[i].Layout.Copies > 1 {
					p.Pages[i].Layout.Copies = 3
				}
			}
			for i := range p.Buffers {
				if p.Buffers[i].Layout.Words() && p.Buffers[i].Layout.Copies > 1 {
					p.Buffers[i].Layout.Copies = 3
				}
			}
		},
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		t.Run(name, func(t *testing.T) {
			l := lowerModel(t, "zoo/llama-gqa", "t4", ir.F16, 128, ir.ScheduleConfig{
				Tiling: map[string]map[string]int{"attention": {"split_from": 16, "max_splits": 4}}})
			p := l.Program
			original, err := sourcesOf(p, l.Graph)
			require.NoError(t, err)
			edits[name](p)
			proof := validate.ProgramFor(kernel.Backend, p)
			require.True(t, proof.OK, "%v", proof.Diags)
			files, err := sourcesOf(p, l.Graph)
			require.NoError(t, err)
			require.NotEqual(t, original, files)
		})
	}
}

// The edits that once were proved and not emitted: the window of attention, the position of the rotation, the row that
// attention adds.
func TestOnceSilentEdits(t *testing.T) {
	for _, c := range []struct{ old, text, want string }{
		{"0:pos,", "max(1,pos-64):pos,", "the kernel's attend would compute"},
		{"limit=384 pos=pos", "limit=384 pos=0", "the kernel's gemv would compute"},
		{" row=pos", "", "the kernel's attend would compute"},
	} {
		raw, err := os.ReadFile(root + "/golden/pycoder-5m_h200_bf16/schedule.amk")
		require.NoError(t, err)
		require.Contains(t, string(raw), c.old)
		p, err := ir.Parse([]byte(strings.ReplaceAll(string(raw), c.old, c.text)), "edited.amk")
		require.NoError(t, err)
		_, err = codegen.CUDA(p)
		require.ErrorContains(t, err, c.want, c.old)
	}
}
