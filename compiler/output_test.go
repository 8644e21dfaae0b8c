package compiler

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// put writes a file below dir.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func text(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(b)
}

// commitFiles makes a build of these files in dir, as Compile does.
func commitFiles(t *testing.T, dir string, files map[string]string) (diag.List, error) {
	t.Helper()
	out, err := openOutput(dir)
	if err != nil {
		return nil, err
	}
	s, err := out.stage()
	require.NoError(t, err)
	defer s.abort()
	m := &codegen.Manifest{Format: codegen.ManifestFormat, Files: map[string]string{}}
	m.Facts.Model.Name = "demo"
	for name, content := range files {
		require.NoError(t, s.write(name, []byte(content)))
		m.Files[name] = codegen.Digest([]byte(content))
	}
	manifest, err := m.Marshal()
	require.NoError(t, err)
	require.NoError(t, s.write(host.ManifestFile, manifest))
	return s.commit(m)
}

// leftovers are the temporary directories beside a build.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	require.NoError(t, err)
	return found
}

func TestSomebodyElsesDirectoryIsRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"files":            {"thesis.tex": "x"},
		"not JSON":         {host.ManifestFile: "{"},
		"other manifest":   {host.ManifestFile: `{"name": "web app"}`},
		"only a dot file":  {".git/HEAD": "x"},
		"null file digest": {host.ManifestFile: `{"files": null}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			for file, content := range files {
				put(t, dir, file, content)
			}
			_, err := openOutput(dir)
			var d *diag.Diagnostic
			require.ErrorAs(t, err, &d)
			require.Equal(t, "AMK5101", d.Code)
			for file, content := range files {
				require.Equal(t, content, text(t, dir, file))
			}
		})
	}
	for _, prepare := range []func(dir string){func(string) {}, func(dir string) { require.NoError(t, os.Mkdir(dir, 0o755)) }} {
		dir := filepath.Join(t.TempDir(), "out")
		prepare(dir)
		_, err := commitFiles(t, dir, map[string]string{"a.h": "1"})
		require.NoError(t, err)
		require.Equal(t, "1", text(t, dir, "a.h"))
		require.Empty(t, leftovers(t, dir))
	}
}

func TestRecompileKeepsWhatIsTheUsers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	_, err := commitFiles(t, dir, map[string]string{"a.h": "1", "gone.h": "1", "megakernel.cu": "1", "sub/b.h": "1"})
	require.NoError(t, err)
	put(t, dir, "notes/today.md", "mine")
	put(t, dir, "mine.fatbin", "mine")
	put(t, dir, "megakernel.fatbin", "of the earlier build")
	put(t, dir, "demo", "of the earlier build")
	put(t, dir, "sub/b.h", "edited")
	put(t, dir, "new.h", "mine")
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(dir, "link")))

	kept, err := commitFiles(t, dir, map[string]string{"a.h": "2", "megakernel.cu": "2", "sub/b.h": "2", "new.h": "2"})
	require.NoError(t, err)
	for name, want := range map[string]string{"a.h": "2", "sub/b.h": "2", "sub/b.h.edited": "edited", "new.h": "2", "new.h.edited": "mine",
		"notes/today.md": "mine", "mine.fatbin": "mine"} {
		require.Equal(t, want, text(t, dir, name), name)
	}
	target, err := os.Readlink(filepath.Join(dir, "link"))
	require.NoError(t, err)
	require.Equal(t, "/nowhere", target)
	for _, name := range []string{"gone.h", "megakernel.fatbin", "demo"} {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
	require.Len(t, kept, 2)
	require.Contains(t, kept[0].Error()+kept[1].Error(), "b.h.edited")
	require.Contains(t, kept[0].Error()+kept[1].Error(), "new.h.edited")

	// A second edit of the same file does not take the first one's place.
	put(t, dir, "sub/b.h", "edited again")
	_, err = commitFiles(t, dir, map[string]string{"sub/b.h": "3"})
	require.NoError(t, err)
	require.Equal(t, "edited", text(t, dir, "sub/b.h.edited"))
	require.Equal(t, "edited again", text(t, dir, "sub/b.h.edited.2"))
	require.Empty(t, leftovers(t, dir))
}

// A link to a build stays a link, and what is behind it is replaced.
func TestOutputBehindALink(t *testing.T) {
	root := t.TempDir()
	real, link := filepath.Join(root, "disk", "out"), filepath.Join(root, "out")
	_, err := commitFiles(t, real, map[string]string{"a.h": "1"})
	require.NoError(t, err)
	put(t, real, "mine", "mine")
	require.NoError(t, os.Symlink(real, link))
	_, err = commitFiles(t, link, map[string]string{"a.h": "2"})
	require.NoError(t, err)
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	require.Equal(t, "2", text(t, real, "a.h"))
	require.Equal(t, "mine", text(t, link, "mine"))
}

func TestDiskErrorsLeaveTheEarlierBuild(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	dir := filepath.Join(t.TempDir(), "out")
	_, err := commitFiles(t, dir, map[string]string{"a.h": "1"})
	require.NoError(t, err)
	out, err := openOutput(dir)
	require.NoError(t, err)
	s, err := out.stage()
	require.NoError(t, err)
	require.NoError(t, os.Symlink("/dev/full", filepath.Join(s.dir, "a.h")))
	err = s.write("a.h", []byte("2"))
	var d *diag.Diagnostic
	require.ErrorAs(t, err, &d)
	require.Equal(t, "AMK5102", d.Code)
	require.Contains(t, err.Error(), "no space left")
	s.abort()
	require.Equal(t, "1", text(t, dir, "a.h"))
	require.Empty(t, leftovers(t, dir))

	blocked := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(blocked), "file", "mine")
	out = &output{dir: filepath.Join(blocked, "below")}
	_, err = out.stage()
	require.ErrorAs(t, err, &d)
	require.Equal(t, "AMK5102", d.Code)
}

func emitted(model, dir string) BuildOptions {
	return BuildOptions{Options: Options{Model: model, Name: "zoo", Target: ir.FindTarget("t4")}, OutDir: dir, NoBuild: true}
}

// Packed weights are used again for another schedule, and not for other weights of the same shapes.
func TestWeightsAreReusedWhenTheyAreTheSame(t *testing.T) {
	model, dir := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.CopyFS(model, os.DirFS("../testdata/models/zoo/llama-gqa")))
	first, err := Compile(context.Background(), emitted(model, dir))
	require.NoError(t, err)
	require.False(t, first.WeightsReused)
	before := text(t, dir, host.WeightsFile)

	o := emitted(model, dir)
	o.Config = ir.ScheduleConfig{PipeliningDepth: 2}
	second, err := Compile(context.Background(), o)
	require.NoError(t, err)
	require.True(t, second.WeightsReused)
	require.Equal(t, before, text(t, dir, host.WeightsFile))

	files, err := filepath.Glob(filepath.Join(model, "*.safetensors"))
	require.NoError(t, err)
	raw, err := os.ReadFile(files[0])
	require.NoError(t, err)
	raw[len(raw)-2] ^= 1
	require.NoError(t, os.WriteFile(files[0], raw, 0o644))
	third, err := Compile(context.Background(), o)
	require.NoError(t, err)
	require.False(t, third.WeightsReused, "one bit of the checkpoint is another")
	require.NotEqual(t, before, text(t, dir, host.WeightsFile))

	require.NoError(t, os.Truncate(filepath.Join(dir, host.WeightsFile), 100))
	fourth, err := Compile(context.Background(), o)
	require.NoError(t, err)
	require.False(t, fourth.WeightsReused, "the file is not what it was")
}

// An interrupted compile leaves an earlier build as it was.
func TestInterruptedCompileKeepsTheEarlierBuild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	const model = "../testdata/models/zoo/llama-gqa"
	_, err := Compile(context.Background(), emitted(model, dir))
	require.NoError(t, err)
	before := text(t, dir, host.ManifestFile)

	tools := t.TempDir()
	put(t, tools, "g++", "#!/bin/sh\n")
	put(t, tools, "nvcc", "#!/bin/sh\nexec sleep 60\n")
	for _, name := range []string{"g++", "nvcc"} {
		require.NoError(t, os.Chmod(filepath.Join(tools, name), 0o755))
	}
	t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(context.Background())
	o := emitted(model, dir)
	o.NoBuild, o.Config = false, ir.ScheduleConfig{PipeliningDepth: 2}
	o.Progress = func(activity string, _, _ int64) {
		if strings.HasPrefix(activity, "nvcc") {
			cancel()
		}
	}
	_, err = Compile(ctx, o)
	require.ErrorContains(t, err, "interrupted")
	require.Equal(t, before, text(t, dir, host.ManifestFile))
	require.Empty(t, leftovers(t, dir))
}
