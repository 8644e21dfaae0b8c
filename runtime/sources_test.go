package runtime

import (
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app"
	"amkc/text"
)

func TestDeviceSources(t *testing.T) {
	src := DeviceSources()
	for _, name := range []string{"amk/launch.cuh", "amk/ring.cuh", "amk/info.cuh"} {
		require.NotEmpty(t, src[name], name)
	}
}

// A launcher builds from these sources, the standard library, and few packages of other modules, each of which one
// package imports.
func TestHostSourcesImportNothingElse(t *testing.T) {
	src := HostSources()
	for _, name := range []string{"driver/device.go", "host/session.go", "app/chrometrace/chrometrace.go",
		"app/cli/cli.go", "app/report/page.html", "infile/infile.go", "text/tokenizer/tokenizer.go"} {
		require.NotEmpty(t, src[name], name)
	}
	for name, source := range src {
		require.NotContains(t, name, "_test.go")
		require.NotContains(t, name, "hosttest")
		require.NotContains(t, name, "testdata")
		if path.Ext(name) != ".go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			folder, _, dotted := strings.Cut(imported, ".")
			require.False(t, imported == "C" && !strings.HasPrefix(name, "app/library/capi/"), "%s needs cgo", name)
			switch {
			case dotted && !strings.Contains(folder, "/"):
				user, known := map[string]string{"github.com/ebitengine/purego": "driver/",
					"github.com/reeflective/readline": "app/editor/",
					"golang.org/x/text/unicode/norm":  "text/tokenizer/"}[imported]
				require.True(t, known && strings.HasPrefix(name, user), "%s imports %s", name, imported)
			case strings.HasPrefix(imported, "amkc/"):
				below, found := Below(imported)
				require.True(t, found, "%s imports %s", name, imported)
				require.Contains(t, []string{
					"app/chrometrace", "app/dialogue", "app/editor", "app/engine", "app/front", "app/library",
					"app/library/capi", "app/prompts", "app/report", "app/serve", "driver", "host", "infile",
					"outfile", "printable", "progress", "shape", "text/chat", "text/draft", "text/grammar",
					"text/jinja", "text/reply", "text/sampling", "text/stopping", "text/tokenizer",
					"text/tokenizer/chars", "text/tokenizer/regex"}, below)
			}
		}
	}
}

// Every source is one that go compiles on the machines of a launcher, Linux on amd64 and arm64; and the sources that it
// would compile there are all carried. Those of library/capi alone need cgo, for the library.
func TestHostSourcesAreThoseOfLinux(t *testing.T) {
	src := HostSources()
	for _, arch := range []string{"amd64", "arm64"} {
		linux := build.Default
		linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", arch, false
		for tree, files := range map[string]fs.FS{"runtime": files, "text": text.Files, "app": app.Files} {
			require.NoError(t, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
				if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
					return err
				}
				compiled, err := linux.MatchFile(path.Join("..", tree, path.Dir(name)), path.Base(name))
				below, _ := Below(path.Join("amkc", tree, name))
				require.Equal(t, compiled, src[below] != nil, "%s/%s on %s", tree, name, arch)
				return err
			}))
		}
	}
}

// A build has the header that the library was compiled with, and all of the Python package.
func TestForeignSources(t *testing.T) {
	src := ForeignSources()
	require.Equal(t, HostSources()["app/library/capi/amk.h"], src["library/amk.h"])
	require.NotEmpty(t, src["library/example.c"])
	for _, name := range []string{"LICENSE", "pack.py", "pyproject.toml", "amk/__init__.py", "amk/_model.py",
		"amk/_text.py", "amk/_library.py", "amk/_prompt.py", "amk/_errors.py", "amk/py.typed"} {
		require.Contains(t, src, "python/"+name)
	}
	require.Len(t, src, 12)
}

// The license at the root of the repository is that of amkc, of its builds and of the Python package.
func TestLicense(t *testing.T) {
	root, err := os.ReadFile("../LICENSE")
	require.NoError(t, err)
	require.Equal(t, string(root), string(License()))
	require.Equal(t, string(root), string(ForeignSources()["python/LICENSE"]))
	require.Contains(t, string(root), "Apache License\n                           Version 2.0, January 2004\n")
	require.Contains(t, string(root), "Copyright 2026 The amkc authors\n")
	pyproject := string(ForeignSources()["python/pyproject.toml"])
	require.Contains(t, pyproject, "\nlicense = \"Apache-2.0\"\nlicense-files = [\"LICENSE\"]\n")
}
