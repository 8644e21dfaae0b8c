package compiler

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/passes"
	"amkc/validate"
	"amkc/validate/kernel"
)

// withoutBody are the small models that are proved and run by the reference VM alone for a target: how their names
// begin, and how the kernel refuses them.
var withoutBody = append([]bodiless{
	{"cohere2-head-dim", "h200", "head size 14; with tensor cores it must be a multiple of 4"},
	{"llama-rope-linear", "h200", "head size 10; with tensor cores it must be a multiple of 4"},
	{"phi3-partial", "h200", "head size 14; with tensor cores it must be a multiple of 4"},
}, lacking()...)

type bodiless struct{ prefix, target, refusal string }

// lacking are those of which the kernel lacks something: what, as AMK5125 has it.
func lacking() (out []bodiless) {
	for prefix, refusal := range map[string]string{"flex-olmo": "of the residual without a norm",
		"phimoe": "TOPK with jitter"} {
		out = append(out, bodiless{prefix, "h200", refusal}, bodiless{prefix, "t4", refusal})
	}
	return out
}

// project are the files of a build, or what the kernel lacks of it, as a compile finds it.
func project(l *Scheduled) (map[string][]byte, error) {
	if err := Lacking("m", l.Program); err != nil {
		return nil, err
	}
	return codegen.Project(l.Program, l.Graph, "m")
}

// refusedFor is the row of withoutBody that a model has for a target, or -1.
func refusedFor(name, target string) int {
	return slices.IndexFunc(withoutBody, func(w bodiless) bool {
		return strings.HasPrefix(name, w.prefix) && w.target == target
	})
}

// Every small model that is imported (TestZoo of package cli says which), and every quantised one, is emitted for a
// target with tensor cores and for one without them, and reads back, but for those of withoutBody.
func TestEveryZooModelIsEmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "models", "zoo", "*"))
	require.NoError(t, err)
	quantised, err := filepath.Glob(filepath.Join(root, "models", "quantised", "models", "*"))
	require.NoError(t, err)
	dirs = append(dirs, quantised...)
	refused := make([]bool, len(withoutBody))
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if CheckModel(Options{Model: dir, ConfigOnly: true}) != nil {
			continue
		}
		for target, dtype := range map[string]ir.DType{"h200": ir.BF16, "t4": ir.F32} {
			l, err := RunPasses(Options{Model: dir, Name: "m", Target: ir.FindTarget(target), DType: &dtype,
				MaxSeq: 48, ConfigOnly: true})
			require.NoError(t, err, name)
			files, err := project(l)
			row, backend := refusedFor(name, target), kernel.Backend
			if row >= 0 {
				backend, refused[row] = validate.Reference, true
			}
			proof := validate.ProgramFor(backend, l.Program)
			require.True(t, proof.OK, "%s for %s: %v", name, target, proof.Diags)
			if row >= 0 {
				require.ErrorContains(t, err, withoutBody[row].refusal, name)
				continue
			}
			require.NoError(t, err, "%s for %s", name, target)
			require.NoError(t, checkEmitted(files, l.Program), "%s for %s", name, target)
		}
	}
	for i, w := range withoutBody {
		require.True(t, refused[i], "%s: no small model is refused so", w.prefix)
	}
}

// So are those that have matrices of 128 columns, with these quantised: layers of several kinds, products with parts of
// the columns, embeddings that are the head.
func TestQuantisedZooIsEmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "models", "zoo", "*"))
	require.NoError(t, err)
	quantised := 0
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if CheckModel(Options{Model: dir, ConfigOnly: true}) != nil {
			continue
		}
		for target, spec := range map[string]string{"h200": "int4", "t4": "int8"} {
			formats, err := passes.ParseWeightFormats(spec)
			require.NoError(t, err)
			dtype := map[string]ir.DType{"h200": ir.BF16, "t4": ir.F32}[target]
			l, err := RunPasses(Options{Model: dir, Name: "m", Target: ir.FindTarget(target), DType: &dtype,
				MaxSeq: 48, ConfigOnly: true, Formats: formats})
			require.NoError(t, err, name)
			blocks := func(b ir.Buffer) bool { return b.Layout.Kind == ir.Tile8x128 }
			if !slices.ContainsFunc(l.Program.Buffers, blocks) {
				continue
			}
			quantised++
			backend := kernel.Backend
			if refusedFor(name, target) >= 0 {
				backend = validate.Reference
			}
			proof := validate.ProgramFor(backend, l.Program)
			require.True(t, proof.OK, "%s for %s: %v", name, target, proof.Diags)
			files, err := project(l)
			if row := refusedFor(name, target); row >= 0 {
				require.ErrorContains(t, err, withoutBody[row].refusal, name)
				continue
			}
			require.NoError(t, err, "%s for %s", name, target)
			require.NoError(t, checkEmitted(files, l.Program), "%s for %s", name, target)
		}
	}
	require.Greater(t, quantised, 40)
}

// The knobs of gate_up are those of up where a model has no gate: both in the text and in what is read back.
func TestKnobsOfAModelWithoutAGate(t *testing.T) {
	bf16 := ir.BF16
	l, err := RunPasses(Options{Model: filepath.Join(root, "models", "zoo", "gpt-neox-parallel"), Name: "m", MaxSeq: 48,
		Target: ir.FindTarget("h200"), DType: &bf16, ConfigOnly: true, Config: ir.ScheduleConfig{
			Tiling: map[string]map[string]int{"warps": {"gate_up": 4}, "rotation": {"gate_up": 3}}}})
	require.NoError(t, err)
	files, err := codegen.Project(l.Program, l.Graph, "m")
	require.NoError(t, err)
	_, up, _ := strings.Cut(string(files["schedule.h"]), "struct Up {")
	up, _, _ = strings.Cut(up, "};")
	require.Contains(t, up, "kWarps = 4;")
	require.Contains(t, up, "kRotation = 3;")
	require.NoError(t, checkEmitted(files, l.Program))
}
