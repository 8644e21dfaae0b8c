package kernels

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler"
	"amkc/compiler/objects"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
)

// compiled says which cases nvcc gets: those of the gate, all, or none. It is a variable and not a flag, so that go
// test reuses the result where nothing has changed.
func compiled() string { return os.Getenv("AMKC_KERNELS") }

const models = "../../testdata/models"

// refused is the code of what nvcc does not accept.
var refused = diag.Lookup("AMK5110")

func TestKernels(t *testing.T) {
	if compiled() == "" {
		t.Skip("make kernels runs it")
	}
	require.Contains(t, []string{"gate", "all"}, compiled())
	cache, err := compiler.CacheDir()
	require.NoError(t, err)
	nvcc, err := findNVCC(t.Context())
	require.NoError(t, err)
	all := selected(compiled() == "all")
	var mu sync.Mutex
	made := 0
	require.NoError(t, objects.SideBySide(len(all), runtime.NumCPU(), func(i int) error {
		of, fresh, err := nvcc.compile(t.Context(), all, i, t.TempDir(), filepath.Join(cache, "kernels"))
		mu.Lock()
		defer mu.Unlock()
		if err != nil { // the others may have more to say
			t.Errorf("%s: %v", all[i].name(), err)
			return nil
		}
		made += fresh
		fmt.Printf("%-90s %d sources, %d compiled\n", all[i].name(), of, fresh)
		return nil
	}))
	fmt.Printf("%d cases, %d sources compiled\n", len(all), made)
}

// An nvccTool is nvcc, and what decides what it makes of a source.
type nvccTool struct{ path, version string }

func findNVCC(ctx context.Context) (*nvccTool, error) {
	path := compiler.FindNVCC()
	if path == "" {
		return nil, fmt.Errorf("there is no nvcc: make cuda fetches it")
	}
	nvcc := &nvccTool{path: path, version: objects.Environment()}
	for _, tool := range []string{path, "g++"} {
		said, err := exec.CommandContext(ctx, tool, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("%s --version: %w", tool, err)
		}
		nvcc.version += string(said)
	}
	return nvcc, nil
}

// options are how a case is compiled.
func (c *kernelCase) options() (o compiler.Options, err error) {
	o = compiler.Options{Model: filepath.Join(models, filepath.FromSlash(c.model)), Name: filepath.Base(c.model),
		Target: ir.FindTarget(c.target), Ranks: c.gpus}
	number := 0
	if n, _ := fmt.Sscanf(c.target, "sm_%d", &number); n == 1 { // one without a record of its own, of some size
		o.Target = ir.ArchTarget(number, 20)
	}
	dtypes := map[string]ir.DType{"fp32": ir.F32, "fp16": ir.F16, "bf16": ir.BF16, "int8": ir.I8}
	dtype := dtypes[c.dtype]
	o.DType = &dtype
	if c.cache != "" {
		of := dtypes[c.cache]
		o.Cache = &of
	}
	if c.config != "" {
		var problems diag.List
		if o.Config, problems = ir.ParseConfig([]byte(c.config), "config"); len(problems) > 0 {
			return o, problems
		}
	}
	if c.weights != "" {
		if o.Formats, err = passes.ParseWeightFormats(c.weights); err != nil {
			return o, err
		}
	}
	if c.rows > 0 {
		o.Passes = []ir.Pass{{Rows: c.rows}, {Sequences: c.rows}}
	}
	return o, nil
}

// compile emits a case of some and gives nvcc the sources that no case before it covers. It says how many these are,
// and how many were not in the cache.
func (n *nvccTool) compile(ctx context.Context, of []kernelCase, i int, dir, cache string) (all, fresh int, err error) {
	c := &of[i]
	o, err := c.options()
	if err != nil {
		return 0, 0, err
	}
	build := filepath.Join(dir, "build")
	defer os.RemoveAll(build)
	arch, err := emitBuild(ctx, o, build)
	if err != nil {
		return 0, 0, err
	}
	files, err := sourcesBelow(build)
	if err != nil {
		return 0, 0, err
	}
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return 0, 0, err
	}
	sources := sourcesOf(of, i)
	if err := known(files, sources); err != nil {
		return 0, 0, err
	}
	var list []objects.Object
	for _, source := range sources {
		flags := slices.Concat(codegen.NVCCFlags(), []string{"-Werror", "all-warnings", "-gencode",
			codegen.Gencode(arch), "-fatbin"})
		switch {
		case *c == parts && source == "measure.cu":
			flags = append(flags, "-DAMK_PARTS=1")
		case source == "megakernel.cu" && compiled() != "all" && !slices.Contains(sources, "measure.cu"):
			flags = append(flags, "-DAMK_LEAN=2") // amk_decode alone
		}
		key := objects.Digest(objects.Included(files, source), n.version, source, strings.Join(flags, " "))
		list = append(list, objects.Object{Name: source, Path: filepath.Join(cache, key[:32]+".fatbin"),
			Make: func(ctx context.Context, _, out string) error {
				cmd := exec.CommandContext(ctx, n.path, append(flags, "-o", out, source)...)
				cmd.Dir = build
				if said, err := cmd.CombinedOutput(); err != nil {
					return diag.Errorf(refused, source, "nvcc failed: %s", said)
				}
				return nil
			}})
	}
	fresh, err = objects.Provide(ctx, refused, "nvcc", list, nil)
	return len(list), fresh, err
}

// emitBuild writes the sources of a build, and returns their architecture.
func emitBuild(ctx context.Context, o compiler.Options, dir string) (arch string, err error) {
	b, err := compiler.Compile(ctx, compiler.BuildOptions{Options: o, OutDir: dir, NoBuild: true, NoLauncher: true})
	if err != nil {
		return "", err
	}
	return b.Program.Target.Arch, nil
}

// sourcesBelow are the sources and headers of a build, by their paths in it.
func sourcesBelow(build string) (map[string][]byte, error) {
	files := map[string][]byte{}
	return files, filepath.WalkDir(build, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !slices.Contains([]string{".cu", ".cuh", ".h"}, filepath.Ext(path)) {
			return err
		}
		name, err := filepath.Rel(build, path)
		if err == nil {
			files[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
}

// sourcesOf are the sources of a case that say something which those of no case before it say. The kernel depends on
// everything. Its measured forms are the same bodies with other `if constexpr`s, and each takes nvcc as long as
// amk_decode. They are compiled once for an architecture, and once for a configuration; in the gate for those
// configurations that change the stream, which is what they measure. So are, in the gate, the kernels of megakernel.cu
// other than amk_decode.
// The reference depends on shapes, dtype and architecture, and not on the schedule. Of a build with passes, the kernels
// of these alone: the others are those of the build without. On several GPUs each has its share of it.
func sourcesOf(of []kernelCase, i int) []string {
	c, before := &of[i], of[:i]
	if c.rows > 0 {
		return []string{fmt.Sprintf("rows%d/megakernel.cu", c.rows), fmt.Sprintf("sequences%d/megakernel.cu", c.rows)}
	}
	if c.gpus > 1 {
		return []string{"megakernel.cu", "measure.cu", "reference.cu"}
	}
	first := func(same func(b kernelCase) bool) bool { return !slices.ContainsFunc(before, same) }
	out := []string{"megakernel.cu"}
	measured := compiled() == "all" || slices.Contains(streams, c.config)
	if first(func(b kernelCase) bool { return b.target == c.target }) ||
		measured && first(func(b kernelCase) bool { return b.config == c.config }) {
		out = append(out, "measure.cu")
	}
	if first(func(b kernelCase) bool {
		return b.target == c.target && b.model == c.model && b.dtype == c.dtype && b.weights == c.weights &&
			b.cache == c.cache && b.rows == 0
	}) {
		out = append(out, "reference.cu")
	}
	if c.prompt || c.longPrompt && compiled() == "all" {
		out = append(out, "prompt.cu")
	}
	return out
}

// known refuses sources that sourcesOf does not know, and those that a build does not have.
func known(files map[string][]byte, sources []string) error {
	var emitted []string
	for name := range files {
		if strings.HasSuffix(name, ".cu") {
			emitted = append(emitted, name)
		}
	}
	slices.Sort(emitted)
	all := append([]string{"megakernel.cu", "measure.cu", "reference.cu", "prompt.cu"}, sources...)
	for _, name := range emitted {
		if !slices.Contains(all, name) {
			return fmt.Errorf("amkc emits %v; say in sourcesOf when %s is compiled", emitted, name)
		}
	}
	for _, name := range sources {
		if !slices.Contains(emitted, name) {
			return fmt.Errorf("amkc emits %v, and no %s", emitted, name)
		}
	}
	return nil
}

// Cases have all architectures that --target accepts, those of the gate all that they are to have, and each is another.
func TestCases(t *testing.T) {
	archs, names := map[string]bool{}, map[string]bool{}
	for i := range cases {
		o, err := cases[i].options()
		require.NoError(t, err)
		require.NotNil(t, o.Target, cases[i].target)
		archs[o.Target.Arch] = true
		require.False(t, names[cases[i].name()], "%s is listed twice", cases[i].name())
		names[cases[i].name()] = true
	}
	for _, cc := range ir.Capabilities() {
		require.True(t, archs[ir.ArchTarget(cc, 1).Arch], "no case for sm_%d", cc)
	}
	require.Equal(t, cases, selected(true))
	require.Contains(t, selected(false), parts)
	for _, config := range streams {
		of := selected(false)
		i := slices.IndexFunc(of, func(c kernelCase) bool { return c.config == config })
		require.GreaterOrEqual(t, i, 0, config)
		require.Contains(t, sourcesOf(of, i), "measure.cu", config)
	}
	for _, name := range []string{"megakernel.cu", "measure.cu", "reference.cu", "prompt.cu", "rows8/megakernel.cu",
		"sequences8/megakernel.cu"} {
		for _, target := range inGate {
			of := selected(false)
			has := slices.ContainsFunc(of, func(c kernelCase) bool { return c.target == target && c.rows == 8 })
			if strings.Contains(name, "/") && target == "a100" {
				require.False(t, has, "passes are compiled for Hopper in the gate")
				continue
			}
			in := false
			for i := range of {
				in = in || of[i].target == target && slices.Contains(sourcesOf(of, i), name)
			}
			require.True(t, in, "%s for %s", name, target)
		}
	}
}

// A source is compiled again if a header that it includes or nvcc has changed; and what nvcc says is an error.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "nvcc")
	fake := func(script string) {
		require.NoError(t, os.WriteFile(tool, []byte("#!/bin/sh\n"+script), 0o700))
	}
	const good = `while [ "$1" != -o ]; do shift; done; echo "$2" > "$2"` + "\n"
	nvcc := &nvccTool{path: tool, version: "1"}
	of := []kernelCase{{target: "h200", model: llama, dtype: "bf16"}}
	run := func(cache string) (all, fresh int, err error) {
		return nvcc.compile(t.Context(), of, 0, t.TempDir(), filepath.Join(dir, cache))
	}
	want := func(fresh int) {
		t.Helper()
		all, got, err := run("cache")
		require.NoError(t, err)
		require.Equal(t, 3, all)
		require.Equal(t, fresh, got)
	}
	fake(good)
	want(3)
	want(0)
	nvcc.version = "2"
	want(3)
	of[0].config = pagesInTurn
	want(3)
	fake("echo 'megakernel.cu(7): error: no'; exit 1\n")
	want(0) // nvcc is not run
	_, _, err := run("another")
	require.ErrorContains(t, err, "megakernel.cu(7): error: no")
	fake(good)
	_, fresh, err := run("another")
	require.NoError(t, err)
	require.Equal(t, 3, fresh, "nothing that failed is kept")

	require.ErrorContains(t, known(map[string][]byte{"a.cu": nil, "megakernel.cu": nil}, []string{"megakernel.cu"}),
		"say in sourcesOf when a.cu is compiled")
	require.ErrorContains(t, known(nil, []string{"megakernel.cu"}), "and no megakernel.cu")
}
