package explore

import (
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/objects"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

// smallMachine stands for explore/cpu where what is compiled does not matter.
func smallMachine() map[string][]byte {
	return map[string][]byte{
		"amk_cpu/thread.h":  []byte("#pragma once\n#include \"../machine/machine.h\"\n#define __global__\n"),
		"machine/machine.h": []byte("#pragma once\nextern \"C\" int answer(int n);\n"),
		"machine/parts.h":   []byte("#pragma once\n"),
		"machine/one.cc":    []byte("#include \"machine.h\"\nextern \"C\" int answer(int n) { return n + 1; }\n"),
		"machine/two.cc": []byte("extern \"C\" void __tsan_init() {}\nextern \"C\" void __tsan_write4(void*) {}\n" +
			"extern \"C\" void __tsan_read4(void*) {}\n"),
	}
}

// smallBuild is a build whose kernels are a few lines.
func smallBuild(t *testing.T) string {
	t.Helper()
	dir := hosttest.Build(t, "", func(f *host.Facts) { hosttest.AddPasses(f, shape.Pass{Rows: 2}) })
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "amk", "hw"), 0o700))
	for name, text := range map[string]string{
		"amk/hw/thread.cuh": "#pragma once\n#include <amk_cpu/thread.h>\n",
		"amk/store.cuh": `#pragma once
#include "hw/thread.cuh"
inline __attribute__((always_inline)) void store(int* p, int n) {
  *p = answer(n);
}
`,
		"schedule.h":          "#pragma once\n",
		"megakernel.cu":       "#include \"schedule.h\"\n" + smallKernel,
		"rows2/megakernel.cu": strings.ReplaceAll(smallKernel, "amk/", "../amk/"),
		"reference.cu":        smallKernel,
		"measure.cu":          smallKernel,
	} {
		hosttest.Write(t, dir, filepath.FromSlash(name), []byte(text))
	}
	return dir
}

// It has code in two sections, the later one at a lower address or a higher one.
const smallKernel = `#include "amk/store.cuh"
extern "C" int amk_info = 3;
extern "C" __global__ void amk_decode(int* p) {
  store(p, amk_info);
}
extern "C" __attribute__((section(".text.startup"))) void amk_first(int* p) {
  *p = 1;
}
extern "C" __attribute__((section("of_last"))) void amk_last(int* p) {
  *p = 2;
}
`

// needCompiler skips a test where there is no compiler.
func needCompiler(t *testing.T) *toolchain {
	t.Helper()
	c, err := findToolchain(t.Context())
	if err != nil {
		t.Skip(err)
	}
	return c
}

func compiled(t *testing.T, c *toolchain, build, cache string, cpu map[string][]byte) *Objects {
	t.Helper()
	o, err := c.compile(t.Context(), build, cache, cpu, nil, nil)
	require.NoError(t, err)
	return o
}

// Objects are made once, and again as far as something that they are made of is another.
func TestCompileCaches(t *testing.T) {
	c, build, cache, cpu := needCompiler(t), smallBuild(t), t.TempDir(), smallMachine()
	o := compiled(t, c, build, cache, cpu)
	require.Equal(t, 1+8, o.Made) // the machine, and eight kernels
	require.ElementsMatch(t, []string{"megakernel.fatbin", "rows2/megakernel.fatbin", "reference.fatbin",
		"measure.fatbin", "eager/megakernel.fatbin", "traced/megakernel.fatbin",
		"measured/megakernel.fatbin", "measured/rows2/megakernel.fatbin"}, sorted(o.Kernels))
	again := compiled(t, c, build, cache, cpu)
	require.Zero(t, again.Made)
	again.Made = o.Made
	require.Equal(t, o, again)

	called := *c
	called.called = true
	other := compiled(t, &called, build, cache, cpu)
	require.Equal(t, 8, other.Made, "kernels whose functions are called, for the same machine")
	require.Equal(t, o.Library, other.Library)
	require.Equal(t, o.Sources, other.Sources, "scripts are for both")

	// Of a kernel that one job runs, objects are made for that job.
	for jobs, want := range map[string][]string{
		"steps":     {"megakernel.fatbin", "rows2/megakernel.fatbin"},
		"ends":      {"megakernel.fatbin", "reference.fatbin", "rows2/megakernel.fatbin"},
		"abort":     {"eager/megakernel.fatbin", "megakernel.fatbin", "rows2/megakernel.fatbin"},
		"reference": {"megakernel.fatbin", "rows2/megakernel.fatbin", "traced/megakernel.fatbin"},
		"measure": {"measure.fatbin", "measured/megakernel.fatbin", "measured/rows2/megakernel.fatbin",
			"megakernel.fatbin", "rows2/megakernel.fatbin"},
	} {
		some, err := c.compile(t.Context(), build, cache, cpu, []string{"text", jobs}, nil)
		require.NoError(t, err)
		require.Equal(t, want, sorted(some.Kernels), jobs)
	}

	// The source of a machine does not change what kernels are compiled to, nor does a header that they do not include;
	// one that they include does.
	cpu["machine/one.cc"] = append(cpu["machine/one.cc"], "// another\n"...)
	other = compiled(t, c, build, cache, cpu)
	require.Equal(t, 1, other.Made)
	require.Equal(t, o.Sources, other.Sources)
	require.NotEqual(t, o.Machine, other.Machine)
	cpu["machine/parts.h"] = append(cpu["machine/parts.h"], "// another\n"...)
	require.Equal(t, 1, compiled(t, c, build, cache, cpu).Made)
	cpu["machine/machine.h"] = append(cpu["machine/machine.h"], "// another\n"...)
	require.Equal(t, 1+8, compiled(t, c, build, cache, cpu).Made)

	// So does a header of the build, wherever it is and whatever it is called, and another compiler; a file that no
	// kernel includes does not.
	require.NoError(t, os.Mkdir(filepath.Join(build, "mine"), 0o700))
	hosttest.Write(t, build, filepath.Join("mine", "a.inl"), []byte("#include \"../mine/b.hpp\"\n"))
	hosttest.Write(t, build, filepath.Join("mine", "b.hpp"), []byte("#if 0\n#include \"gone.h\"\n#endif\n"))
	hosttest.Write(t, build, "measure.cu", []byte("#include \"mine/a.inl\"\n"+smallKernel))
	before := compiled(t, c, build, cache, cpu)
	require.Equal(t, 1, before.Made)
	hosttest.Write(t, build, filepath.Join("mine", "b.hpp"), []byte("// another\n"))
	other = compiled(t, c, build, cache, cpu)
	require.Equal(t, 1, other.Made)
	require.NotEqual(t, before.Sources, other.Sources)
	hosttest.Write(t, build, "README.md", []byte("another"))
	hosttest.Write(t, build, filepath.Join("amk", "unused.cuh"), []byte("another"))
	require.Zero(t, compiled(t, c, build, cache, cpu).Made)
	hosttest.Write(t, build, "schedule.h", []byte("// another\n"))
	require.Equal(t, 4, compiled(t, c, build, cache, cpu).Made, "of megakernel.cu, in its four forms")
	hosttest.Write(t, build, filepath.Join("amk", "hw", "thread.cuh"), []byte("#include <amk_cpu/thread.h>\n"))
	other = compiled(t, c, build, cache, cpu)
	require.Equal(t, 8, other.Made)
	require.NotEqual(t, o.Sources, other.Sources)
	newer := *c
	newer.version += "1"
	require.Equal(t, 1+8, compiled(t, &newer, build, cache, cpu).Made)

	// An object that is gone is made again, and what a build has is found wherever it lies.
	require.NoError(t, os.Remove(other.Kernels["measure.fatbin"]))
	require.Equal(t, 1, compiled(t, c, build, cache, cpu).Made)
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.CopyFS(moved, os.DirFS(build)))
	require.Zero(t, compiled(t, c, moved, cache, cpu).Made)
}

// What is compiled can be loaded instead of a fatbin: kernels and what the host reads are there by name, the
// machine is asked for by its soname, and the object says which file it stands for.
func TestCompiledObjects(t *testing.T) {
	c, build := needCompiler(t), smallBuild(t)
	o := compiled(t, c, build, t.TempDir(), smallMachine())
	f, err := elf.Open(o.Kernels["rows2/megakernel.fatbin"])
	require.NoError(t, err)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Contains(t, libraries, libraryName)
	name, err := f.DynString(elf.DT_SONAME)
	require.NoError(t, err)
	require.Equal(t, []string{"rows2/megakernel.fatbin"}, name)
	found := map[string]bool{}
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	defined := map[string]elf.Symbol{}
	for _, s := range symbols {
		found[s.Name] = s.Section != elf.SHN_UNDEF
		defined[s.Name] = s
	}
	kernel := defined["amk_decode"]
	require.True(t, found["amk_decode"])
	require.True(t, found["amk_info"])
	hook, imported := found["__tsan_write4"]
	require.True(t, imported && !hook, "stores call the machine")

	// Places in it are told with what the compiler has put instead of calls.
	s := symbolsOf(o)
	var innermost []Frame
	for offset := kernel.Value; offset < kernel.Value+kernel.Size; offset++ {
		if frames := s.frames("rows2/megakernel.fatbin", offset); len(frames) == 2 {
			innermost = frames
		}
	}
	require.Equal(t, []Frame{{"store", "amk/store.cuh", 4}, {"amk_decode", "rows2/megakernel.cu", 4}}, innermost)
	for name, line := range map[string]int{"amk_first": 7, "amk_last": 10} {
		frames := s.frames("rows2/megakernel.fatbin", defined[name].Value+defined[name].Size)
		require.Equal(t, []Frame{{name, "rows2/megakernel.cu", line + 1}}, frames)
	}
	require.Nil(t, s.frames("unknown.fatbin", 16))
	require.Nil(t, s.frames("rows2/megakernel.fatbin", 0))

	dir := t.TempDir()
	require.NoError(t, layOut(dir, build, o))
	for name, object := range o.Kernels {
		at, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(name)))
		require.NoError(t, err)
		want, err := filepath.EvalSymlinks(object)
		require.NoError(t, err)
		require.Equal(t, want, at)
	}
	for _, form := range append([]string{""}, forms...) {
		of := filepath.Join(dir, form)
		facts, err := host.ReadFacts(of)
		require.NoError(t, err)
		require.Len(t, facts.Passes, 1)
		for name := range o.Kernels {
			if top, _, _ := strings.Cut(name, "/"); !slices.Contains(forms, top) {
				require.FileExists(t, filepath.Join(of, filepath.FromSlash(name)))
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	c, build := needCompiler(t), smallBuild(t)
	refused := func(code *diag.Code, text string) {
		t.Helper()
		cache := t.TempDir()
		_, err := c.compile(t.Context(), build, cache, smallMachine(), nil, nil)
		var d *diag.Diagnostic
		require.ErrorAs(t, err, &d)
		require.Equal(t, code.ID, d.Code)
		require.Contains(t, diag.List{d}.Error()+strings.Join(d.Related, "\n"), text)
		left, err := filepath.Glob(filepath.Join(cache, objectsDir, "*.so"))
		require.NoError(t, err)
		for _, object := range left { // of the others
			_, err := elf.Open(object)
			require.NoError(t, err)
		}
	}
	hosttest.Write(t, build, "megakernel.cu", []byte("#include \"schedule.h\"\n#error \"\x1b[31m red\"\n"+smallKernel))
	refused(codeCompile, "#error")
	require.NoError(t, os.Remove(filepath.Join(build, "megakernel.cu")))
	_, err := c.compile(t.Context(), build, t.TempDir(), smallMachine(), nil, nil)
	var missing *host.BuildError
	require.ErrorAs(t, err, &missing)
	require.Contains(t, err.Error(), "the source of a kernel is missing")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.compile(ctx, smallBuild(t), t.TempDir(), smallMachine(), nil, nil)
	require.ErrorIs(t, err, context.Canceled)

	t.Setenv("CPATH", t.TempDir())
	require.NotEqual(t, c.version, needCompiler(t).version, "which keys of the cache have")
	t.Setenv(CompilerVariable, "no-such-compiler")
	_, err = Compile(t.Context(), Options{Build: build, Cache: t.TempDir()})
	var d *diag.Diagnostic
	require.ErrorAs(t, err, &d)
	require.Equal(t, codeNoCompiler.ID, d.Code)
}

// Two processes that want the same object make it once.
func TestCompileSideBySide(t *testing.T) {
	c, build, cache := needCompiler(t), smallBuild(t), t.TempDir()
	all := make([]*Objects, 4)
	require.NoError(t, objects.SideBySide(len(all), 2, func(i int) (err error) {
		all[i], err = c.compile(t.Context(), build, cache, smallMachine(), nil, nil)
		return err
	}))
	for _, o := range all {
		require.Equal(t, all[0].Kernels, o.Kernels)
	}
	left, err := filepath.Glob(filepath.Join(cache, objectsDir, "*.lock"))
	require.NoError(t, err)
	require.Empty(t, left)
}
