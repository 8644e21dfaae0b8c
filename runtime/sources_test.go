package runtime

import (
	"go/parser"
	"go/token"
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

// A launcher builds from these sources, the standard library and purego alone, and purego is for the driver.
func TestHostSourcesImportNothingElse(t *testing.T) {
	src := HostSources()
	for _, name := range []string{"driver/api.go", "host/open.go", "host/chrometrace/chrometrace.go", "host/cli/cli.go",
		"host/report/page.html", "infile/infile.go", "tokenizer/tokenizer.go"} {
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
				require.Equal(t, "github.com/ebitengine/purego", path)
				require.True(t, strings.HasPrefix(name, "driver/"), "%s imports %s", name, path)
			case strings.HasPrefix(path, "amkc/"):
				below, found := strings.CutPrefix(path, HostImport+"/")
				require.True(t, found, "%s imports %s", name, path)
				require.Contains(t, []string{"driver", "host", "host/chrometrace", "host/report", "infile", "outfile",
					"printable", "progress", "tokenizer"}, below)
			}
		}
	}
}
