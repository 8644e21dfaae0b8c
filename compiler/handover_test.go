package compiler

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// Of two equal keys of a manifest both are looked at, though only the last one counts.
func TestEqualKeysOfManifest(t *testing.T) {
	dir := linked(t, goodBuild(t))
	edit(t, dir, host.ManifestFile, `"weights": `, `"weights": {"key": "\u001b[2J"}, "weights": `)
	require.Equal(t, []string{"AMK4901"}, verdict(t, dir))
}

// A build from somebody else can have anything in place of each of its files. Verify finds it, and never waits. With
// AMKC_LONG that is tried with every file, and else with every 80th.
func TestAnythingInPlaceOfAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	good := goodBuild(t)
	elsewhere := t.TempDir()
	stride := 80
	if os.Getenv("AMKC_LONG") != "" {
		stride = 1
	}
	for i, name := range listFiles(t, good) {
		top := slices.Contains([]string{host.ManifestFile, ProgramFile, host.WeightsFile, host.FatbinFile, "Makefile",
			"schedule.h"}, name)
		if !top && i%stride != 0 {
			continue
		}
		dir := linked(t, good)
		path := filepath.Join(dir, name)
		away := filepath.Join(elsewhere, fmt.Sprint(i))
		require.NoError(t, os.Link(filepath.Join(good, name), away))
		for what, put := range map[string]func() error{
			"nothing":          func() error { return nil },
			"an empty file":    func() error { return os.WriteFile(path, nil, 0o644) },
			"a link to it":     func() error { return os.Symlink(away, path) },
			"a link to itself": func() error { return os.Symlink(path, path) },
			"a device":         func() error { return os.Symlink("/dev/zero", path) },
			"a directory":      func() error { return os.Mkdir(path, 0o755) },
			"a pipe":           func() error { return syscall.Mkfifo(path, 0o644) },
		} {
			if was, err := os.Stat(away); what == "an empty file" && err == nil && was.Size() == 0 {
				continue // the file is empty as it is
			}
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, put())
			require.NotEmpty(t, errorsIn(verdict(t, dir)), "%s in place of %s", what, name)
		}
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.Link(away, path))
		require.Empty(t, verdict(t, dir))
	}
}

func errorsIn(codes []string) []string {
	return slices.DeleteFunc(codes, func(code string) bool { return strings.HasSuffix(code, " (warning)") })
}
