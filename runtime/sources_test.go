package runtime

import (
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeviceSources(t *testing.T) {
	src := DeviceSources()
	for _, name := range []string{"amk/launch.cuh", "amk/ring.cuh", "amk/info.cuh"} {
		require.NotEmpty(t, src[name], name)
	}
}

// A launcher builds from these sources, the standard library, purego and the normalization of x/text alone: purego is
// for the driver, and normalization for the tokenizer.
func TestHostSourcesImportNothingElse(t *testing.T) {
	src := HostSources()
	for _, name := range []string{"driver/device.go", "host/session.go", "host/chrometrace/chrometrace.go",
		"host/cli/cli.go", "host/report/page.html", "infile/infile.go", "tokenizer/tokenizer.go"} {
		require.NotEmpty(t, src[name], name)
	}
	for name, text := range src {
		require.NotContains(t, name, "_test.go")
		require.NotContains(t, name, "hosttest")
		require.NotContains(t, name, "testdata")
		if strings.HasSuffix(name, ".html") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			folder, _, dotted := strings.Cut(path, ".")
			switch {
			case dotted && !strings.Contains(folder, "/"):
				user, known := map[string]string{"github.com/ebitengine/purego": "driver/",
					"golang.org/x/text/unicode/norm": "tokenizer/"}[path]
				require.True(t, known && strings.HasPrefix(name, user), "%s imports %s", name, path)
			case strings.HasPrefix(path, "amkc/"):
				below, found := strings.CutPrefix(path, HostImport+"/")
				require.True(t, found, "%s imports %s", name, path)
				require.Contains(t, []string{"chat", "dialogue", "draft", "driver", "host", "host/chrometrace",
					"host/engine", "host/report", "infile", "jinja", "outfile", "printable", "progress", "prompts",
					"sampling", "serve", "tokenizer", "tokenizer/chars", "tokenizer/regex"}, below)
			}
		}
	}
}

// Every source is one that go compiles on the machines of a launcher, Linux on amd64 and arm64, without cgo; and the
// sources that it would compile there are all carried.
func TestHostSourcesAreThoseOfLinux(t *testing.T) {
	src := HostSources()
	for _, arch := range []string{"amd64", "arm64"} {
		linux := build.Default
		linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", arch, false
		require.NoError(t, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			compiled, err := linux.MatchFile(path.Dir(name), path.Base(name))
			require.Equal(t, compiled, src[name] != nil, "%s on %s", name, arch)
			return err
		}))
	}
}
