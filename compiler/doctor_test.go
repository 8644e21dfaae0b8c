package compiler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

// tools writes programs that are shell scripts, by name, into a directory that is all of PATH.
func tools(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	t.Setenv("PATH", dir)
	t.Setenv(CacheVariable, filepath.Join(dir, "no", "such", "cache"))
	return dir
}

// good answer as the programs that are needed do.
var good = map[string]string{
	"nvcc": `[ "$1" = --version ] && echo "Cuda compilation tools, release 13.0, V13.0.48" || true`, "g++": "true",
	"go": "echo go version go1.99.1 linux/amd64",
}

func with(changes map[string]string) map[string]string {
	all := map[string]string{}
	for name, script := range good {
		all[name] = script
	}
	for name, script := range changes {
		if all[name] = script; script == "" {
			delete(all, name)
		}
	}
	return all
}

func TestDoctor(t *testing.T) {
	freeSpace = func(string) (uint64, bool) { return 5 << 30, true }
	defer func() { freeSpace = fileSystemSpace }()
	dir := tools(t, good)
	checks := Doctor(t.Context(), []string{"sm_90a", "sm_75"}, 13000)
	want := []string{"13.0 (" + dir + "/nvcc); compiles for sm_90a, sm_75", dir + "/g++", "1.99.1 (" + dir + "/go)",
		"5.0 GiB free (.)", "5.0 GiB free (" + dir + "/no/such/cache)"}
	require.Len(t, checks, len(want))
	for i, c := range checks {
		require.Nil(t, c.Fault, c.Name)
		require.Equal(t, want[i], c.Found)
	}

	for _, c := range []struct {
		name    string
		scripts map[string]string
		driver  int
		at      int // of the check
		says    string
		warning bool
	}{
		{"no g++", map[string]string{"g++": ""}, 13000, 1, "install g++", false},
		{"no go", map[string]string{"go": ""}, 13000, 2, "install Go 1.", true},
		{"an old go", map[string]string{"go": "echo go version go1.19 linux/amd64"}, 13000, 2,
			"go1.19 is older than", true},
		{"a go that says nothing", map[string]string{"go": "exit 1"}, 13000, 2, "does not say its version", true},
		{"nvcc fails", map[string]string{"nvcc": "echo 'error: unsupported GNU version' >&2; exit 1"}, 13000, 0,
			"does not compile a small kernel (for sm_90a)", false},
		{"an old driver", nil, 12040, 0, "need a driver of CUDA 13, and the one here goes as far as 12.4", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tools(t, with(c.scripts))
			for i, check := range Doctor(t.Context(), []string{"sm_90a"}, c.driver) {
				if i != c.at {
					require.Nil(t, check.Fault, check.Name)
					continue
				}
				require.NotNil(t, check.Fault)
				require.Contains(t, check.Fault.Msg, c.says)
				require.Equal(t, c.warning, check.Fault.Severity == diag.Warning)
			}
		})
	}
	tools(t, with(map[string]string{"nvcc": "echo 'error: unsupported GNU version' >&2; exit 1"}))
	require.Contains(t, Doctor(t.Context(), []string{"sm_90a"}, 0)[0].Fault.Related, "error: unsupported GNU version")
	freeSpace = func(string) (uint64, bool) { return 1 << 30, true }
	require.Contains(t, Doctor(t.Context(), nil, 0)[4].Fault.Msg, "1.0 GiB are available in ")
}
