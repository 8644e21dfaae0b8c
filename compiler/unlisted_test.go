package compiler

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/internal/injection"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// small is a directory with some files of a build, and its manifest.
func small(t *testing.T) (string, *codegen.Manifest) {
	t.Helper()
	dir := t.TempDir()
	m := &codegen.Manifest{Format: host.ManifestFormat, Files: map[string]string{}}
	m.Facts.Model.Name = "demo"
	for _, name := range []string{"Makefile", "megakernel.cu", "schedule.h", "amk/ring.cuh", "launcher/main.go",
		"launcher/go.mod", "program.json"} {
		put(t, dir, name, "x")
		m.Files[name] = codegen.Digest([]byte("x"))
	}
	for _, name := range []string{host.ManifestFile, host.WeightsFile} {
		put(t, dir, name, "x")
	}
	require.Empty(t, unlisted(dir, m))
	return dir, m
}

func TestUnlistedFiles(t *testing.T) {
	severities := map[diag.Severity][]string{
		diag.Error: {"launcher/evil.go", "launcher/internal/host/evil.go", "launcher/modules/evil/@v/v1.0.0.zip",
			"launcher/evil.s", "launcher/go.work",
			"launcher/default.pgo", "launcher/notes.txt", "launcher/_x.go", "GNUmakefile", "makefile", "MAKEFILE",
			"rules.mk", "Makefile.sh",
			"megakernel.cu.sh", "launcher/main.go.sh", "schedule.h.gch", "demo.c", "demo.sh", "cuda_runtime.h",
			"cstdint", "bits/types",
			"amk/amk/ring.cuh", "amk/evil.cuh", "amk/note.txt", "crt/host_config.h", "evil.cu", "EVIL.HPP", "evil.inc",
			"go.mod", "lib/evil.so",
			"schedule.h.edited.gch", "sub/megakernel.cu"},
		diag.Warning: {"notes.md", "results/bench.json", "out.npy", "run.sh", "schedule.h.edited",
			"schedule.h.edited.12", "launcher/main.go.edited.2",
			"amk/ring.cuh.edited", ".git/config", "launcher/.hidden", ".note", "other.fatbin"},
	}
	for severity, names := range severities {
		for _, name := range names {
			dir, m := small(t)
			if file := filepath.Join(dir, name); strings.HasSuffix(file, "MAKEFILE") {
				require.NoError(t, os.Remove(filepath.Join(dir, "Makefile")))
			}
			put(t, dir, name, "mine")
			found := unlisted(dir, m)
			require.Len(t, found, 1, name)
			require.Equal(t, severity, found[0].Severity, "%s: %v", name, found)
			if !strings.HasPrefix(name, ".git") {
				require.Equal(t, filepath.Join(dir, name), found[0].Pos)
			}
			link, m := small(t)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(link, name)), 0o755))
			if name == "MAKEFILE" {
				continue
			}
			require.NoError(t, os.Symlink("/nowhere", filepath.Join(link, name)))
			linked := unlisted(link, m)
			require.Len(t, linked, 1, name)
			require.Equal(t, severity, linked[0].Severity, "a link %s: %v", name, linked)
		}
	}
}

func TestUnlistedLinks(t *testing.T) {
	dir, m := small(t)
	require.NoError(t, os.Symlink("/bin/sh", filepath.Join(dir, "demo")))
	require.ErrorContains(t, unlisted(dir, m).Err(), "demo: error: is a link", "what make makes is a file")

	dir, m = small(t)
	elsewhere := t.TempDir()
	require.NoError(t, os.Rename(filepath.Join(dir, "launcher"), filepath.Join(elsewhere, "launcher")))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "launcher"), filepath.Join(dir, "launcher")))
	require.ErrorContains(t, unlisted(dir, m).Err(), "is a link to a directory")

	dir, m = small(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	put(t, dir, "GNUmakefile", "x")
	require.ErrorContains(t, unlisted(link, m).Err(), "link/GNUmakefile", "the build itself may be a link")
}

// What make makes has no digest if it was made after amkc. It is named, and it has to be what make makes.
func TestMadeLater(t *testing.T) {
	dir, m := small(t)
	put(t, dir, "megakernel.fatbin", fatbin)
	found := unlisted(dir, m)
	require.Len(t, found, 1)
	require.Equal(t, diag.Warning, found[0].Severity)
	require.Contains(t, found[0].Msg, "megakernel.fatbin: made after amkc had written the build")

	for name, make := range map[string]func(path string) error{
		"megakernel.fatbin": func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
		"demo":              func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\nevil\n"), 0o755) },
		"demo/x.txt":        func(path string) error { return os.Mkdir(filepath.Dir(path), 0o755) },
	} {
		dir, m := small(t)
		require.NoError(t, make(filepath.Join(dir, name)))
		require.Error(t, unlisted(dir, m).Err(), name)
	}
}

// fatbin is a file that begins as the kernels do which nvcc makes.
const fatbin = "\x50\xed\x55\xba"

// Any number of files, of any name, makes a short list that can be printed.
func TestUnlistedListIsBounded(t *testing.T) {
	dir, m := small(t)
	for i := range 3 * maxUnlisted {
		put(t, dir, fmt.Sprintf("notes%d.txt", i), "")
		put(t, dir, fmt.Sprintf("evil%d.h", i), "")
	}
	for i, hostile := range injection.Texts {
		name := fmt.Sprint(i, strings.NewReplacer("/", "-", "\x00", "0").Replace(hostile))
		put(t, dir, name[:min(len(name), 200)], "")
	}
	found := unlisted(dir, m)
	require.Len(t, found, 2*maxUnlisted+2)
	require.Empty(t, injection.Raw(found.Error()))
	require.Contains(t, found.Error(), "more files are not listed")
}

// Nothing but the Makefile decides what the Makefile makes: make has rules of its own that could replace it.
func TestMakeHasNoOtherRules(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make here")
	}
	dir := t.TempDir()
	put(t, dir, "Makefile", text(t, "../testdata/golden/llama-gqa_t4_fp16_split", "Makefile"))
	for _, name := range []string{"megakernel.cu", "measure.cu", "reference.cu", "schedule.h", "amk/ring.cuh",
		"launcher/main.go", "library/amk.h"} {
		put(t, dir, name, "good")
	}
	before := text(t, dir, "Makefile")
	for _, name := range []string{"Makefile", "megakernel.cu", "schedule.h", "amk/ring.cuh", "launcher/main.go",
		"library/amk.h"} {
		for _, suffix := range []string{".sh", ".c", ",v", ".o", ".y"} {
			put(t, dir, name+suffix, "echo evil; touch evil")
			put(t, dir, "RCS/"+name+suffix, "evil")
		}
	}
	cmd := exec.Command("make", "-n", "NVCC=true")
	cmd.Dir = dir
	cmd.Env = withoutMake(os.Environ())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, before, text(t, dir, "Makefile"))
	require.NotContains(t, string(out), ".sh")
	require.NotContains(t, string(out), "RCS")
	commands := strings.ReplaceAll(strings.TrimSpace(string(out)), "\\\n", "")
	for _, line := range strings.Split(commands, "\n") {
		require.Regexp(t, `^(true -O3|export CGO_ENABLED=[01] && cd launcher && .* "\$go" build )`, line)
		require.NotContains(t, line, "-I")
	}
}

// withoutMake is an environment without what make tells the makes that it starts: `make test` runs these tests, and
// a make below another prints the directories that it enters.
func withoutMake(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	})
}
