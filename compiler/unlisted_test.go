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
	"amkc/compiler/version"
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
		"launcher/go.mod", "launcher/modules/golang.org/x/text/@v/v0.1.0.zip", "program.json", "config.json",
		"README.md", "library/amk.h", "python/pack.py", "python/amk/__init__.py"} {
		put(t, dir, name, "x")
		m.Files[name] = codegen.Digest([]byte("x"))
	}
	for _, name := range []string{host.ManifestFile, host.WeightsFile} {
		put(t, dir, name, "x")
	}
	require.Empty(t, unlisted(dir, m))
	return dir, m
}

// What tools load without being told is an error, each by its way in; what nothing loads is a warning.
func TestUnlistedFiles(t *testing.T) {
	severities := map[diag.Severity][]string{
		diag.Error: {
			// go, in launcher/
			"launcher/evil.go", "launcher/host/evil.go", "launcher/modules/evil/@v/v1.0.0.zip",
			"launcher/modules/evil/@v/list", "launcher/evil.s", "launcher/go.work", "launcher/vendor/modules.txt",
			"launcher/default.pgo", "launcher/notes.txt", "launcher/_x.go", "launcher/.hidden", "go.mod", "go.work",
			"Launcher/vendor/modules.txt",
			// make
			"GNUmakefile", "makefile", "MAKEFILE", "rules.mk", "Makefile.sh", "megakernel.cu.sh", "launcher/main.go.sh",
			"RCS/Makefile,v", "demo.c", "demo.sh", "Makefile.1", "s.Makefile",
			// nvcc and gcc
			"schedule.h.gch", "cuda_runtime.h", "cstdint", "bits/types", "amk/amk/ring.cuh", "amk/evil.cuh",
			"amk/hw/evil.cuh", "amk_cpu/thread.h",
			"amk/note.txt", "crt/host_config.h", "evil.cu", "EVIL.HPP", "evil.inc", "evil.def", "nvcc.profile", "specs",
			"schedule.h.edited.gch", "sub/megakernel.cu", "launcher/vendor/x.edited", "python/json/x.edited.2",
			"x-1.0.dist-info/entry_points.txt", "X.EGG-INFO/entry_points.txt", "lib/evil.so", "evil.ptx",
			"other.fatbin",
			// Python and pip
			"python/__pycache__/pack.cpython-312.pyc", "python/amk/__pycache__/__init__.cpython-312.pyc",
			"python/pack.pyc", "python/amk/_library.cpython-312-x86_64-linux-gnu.so", "python/amk/_library.pyd",
			"python/amk/_library.abi3.so", "python/json.py", "python/json/__init__.py", "python/setup.py",
			"python/setup.cfg", "python/sitecustomize.py", "python/evil.pth", "python/conftest.py", "python/PKG-INFO",
			"python/notes.md", "python/amk.egg-info/entry_points.txt", "python/pip.conf", "Python/json.py", "json.py",
			"zipfile.PY", "usercustomize.py", "json.pyc", "__pycache__/json.cpython-312.pyc", "evil.pth",
			"pyvenv.cfg", "amk-1.0-py3-none-any.whl", "python/dist/amk-1.0-py3-none-any.whl", "evil.pkl",
			// the launcher, and amkc
			"generation_config.json", "chat_template.jinja", "additional_chat_templates/tool_use.jinja",
			"additional_chat_templates/notes.md", "special_tokens_map.json", "quantize_config.json",
			"adapter_config.json", "Config.json", "CONFIG.JSON", "model.safetensors", "model.safetensors.index.json",
			".amkc-partial/ready/x",
			// the loader, shells, editors and other tools
			"library/libc.so.6", "libc.so.6", "ls", "run.sh", "-rf", ".git/config", ".gdbinit", ".envrc", ".note",
			"core.123", "package.json", "--checkpoint-action=exec=sh notes.txt",
			// names that file systems take for others
			"con\u200cfig.json", "notes\u200d.md", "n\u043etes.md", "results./bench.json", "results /bench.json",
			"LAUNCH~1/x.md", "README.MD"},
		diag.Warning: {"notes.md", "results/bench.json", "results/day 2/answers.jsonl", "out.npy", "out.html",
			"out.json", "trace.json", "report.html", "nohup.out", "serve.log", "NOTES.TXT", "schedule.h.edited",
			"schedule.h.edited.12", "launcher/main.go.edited.2", "amk/ring.cuh.edited", "rows4/schedule.h.edited",
			"launcher/modules/golang.org/x/text/@v/v0.1.0.zip.edited"},
	}
	for severity, names := range severities {
		for _, name := range names {
			dir, m := small(t)
			if strings.EqualFold(name, "makefile") {
				require.NoError(t, os.Remove(filepath.Join(dir, "Makefile")))
			}
			put(t, dir, name, "mine")
			found := unlisted(dir, m)
			require.Len(t, found, 1, name)
			require.Equal(t, severity, found[0].Severity, "%s: %v", name, found)
			require.Equal(t, "AMK4905", found[0].Code)
			require.True(t, strings.HasPrefix(filepath.Join(dir, name), found[0].Pos), found[0].Pos)
			if severity == diag.Error {
				continue
			}
			link, m := small(t)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(link, name)), 0o755))
			require.NoError(t, os.Symlink("/nowhere", filepath.Join(link, name)))
			linked := unlisted(link, m)
			require.Len(t, linked, 1, name)
			require.Equal(t, diag.Error, linked[0].Severity, "a link %s: %v", name, linked)
		}
	}
}

// A directory alone can change what a tool does: Go takes launcher/vendor, Python an empty package.
func TestUnlistedDirectories(t *testing.T) {
	for name, bad := range map[string]bool{"launcher/vendor": true, "launcher/empty": true,
		"python/json": true,
		"amk/x":       true, "AMK/x": true, "Launcher": true, "demo": true, "megakernel.fatbin": true,
		"library/libamk.so": true, ".git": true, ".amkc-partial": true, "additional_chat_templates": true,
		"-x": true, "x\u200c": true, "results": false, "results/day 2": false, "rows4": false} {
		dir, m := small(t)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		found := unlisted(dir, m)
		if !bad {
			require.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		require.Error(t, found.Err(), name)
		require.Equal(t, filepath.Join(dir, name), found[0].Pos)
	}
}

// Bytecode that Python has cached runs instead of the source next to it, whatever the source says: here pip would
// run it, on a build that is verified otherwise.
func TestVerifyRefusesCachedBytecode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	_, err := Compile(t.Context(), emitted("../testdata/models/zoo/llama-gqa", dir))
	require.NoError(t, err)
	v, err := Verify(dir, nil)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
	put(t, dir, "python/__pycache__/pack.cpython-312.pyc", "evil")
	v, err = Verify(dir, nil)
	require.NoError(t, err)
	require.ErrorContains(t, v.Findings.Err(), "pack.cpython-312.pyc: error: is not listed by the manifest, and tools "+
		"load what is in python/; want it elsewhere [AMK4905]")
}

// What pip does with a build leaves it as it was.
func TestPackingLeavesNoBytecode(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../app/python")))
	before := listFiles(t, dir)
	pack := exec.Command(python, "-c", "import sys\nsys.path.insert(0, sys.argv[1])\nimport pack\n"+
		"print(pack.build_wheel(sys.argv[2]))", dir, t.TempDir())
	pack.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PYTHON") })
	out, err := pack.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "amk-"+version.Release+"-py3-none-any.whl\n", string(out))
	require.Equal(t, before, listFiles(t, dir))
	require.NoDirExists(t, filepath.Join(dir, "__pycache__"))
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
		"amk/hw/copy.cuh", "launcher/main.go", "library/amk.h"} {
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
