package builddir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

func TestSomebodyElsesDirectoryIsRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"files":            {"thesis.tex": "x"},
		"not JSON":         {host.ManifestFile: "{"},
		"other manifest":   {host.ManifestFile: `{"name": "web app"}`},
		"only a dot file":  {".git/HEAD": "x"},
		"null file digest": {host.ManifestFile: `{"files": null}`},
		"outside":          {host.ManifestFile: `{"files": {"../x": ""}}`},
		"absolute":         {host.ManifestFile: `{"files": {"/etc/passwd": ""}}`},
		"launcher outside": {host.ManifestFile: `{"files": {}, "facts": {"model": {"name": "../x"}}}`},
		"the protocol's":   {host.ManifestFile: `{"files": {".amkc-partial/lock": ""}}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			put(t, dir, files)
			_, err := first.write(dir, same)
			requireCode(t, err, CodeUnusable)
			require.Equal(t, files, contents(t, dir))
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	dangling := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink("nowhere", dangling))
	for _, path := range []string{file, dangling} {
		_, err := first.write(path, same)
		requireCode(t, err, CodeUnusable)
	}
	_, err := first.write(filepath.Join(file, "below"), same)
	require.Error(t, err)
}

// The working directory may be the output, and a link to it, and a directory that is nobody else's business.
func TestDirectoriesThatAreThere(t *testing.T) {
	t.Run("working directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		for _, b := range []build{first, second} {
			_, err := b.write(".", same)
			require.NoError(t, err)
			require.Equal(t, b.contents(t), contents(t, "."))
		}
	})
	t.Run("link", func(t *testing.T) {
		dir := t.TempDir()
		link := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(dir, link))
		for _, b := range []build{first, second} {
			_, err := b.write(link, same)
			require.NoError(t, err)
			require.Equal(t, b.contents(t), contents(t, dir))
		}
		target, err := os.Readlink(link)
		require.NoError(t, err)
		require.Equal(t, dir, target)
	})
}

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs permissions")
	}
	mode := func(path string) fs.FileMode {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	for umask, want := range map[int][2]fs.FileMode{0o077: {0o700, 0o600}, 0o022: {0o755, 0o644},
		0o002: {0o775, 0o664}} {
		before := syscall.Umask(umask)
		dir := filepath.Join(t.TempDir(), "out")
		_, err := first.write(dir, same)
		syscall.Umask(before)
		require.NoError(t, err)
		require.Equal(t, want[0], mode(dir))
		require.Equal(t, want[0], mode(filepath.Join(dir, "sub")))
		require.Equal(t, want[1], mode(filepath.Join(dir, "sub", "b.h")))
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	for _, b := range []build{first, second} {
		_, err := b.write(dir, same)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), mode(dir))
	}
}

// Of two processes that write to one directory the second is refused, or waits.
func TestTwoWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	one, err := Begin(t.Context(), dir, nil)
	require.NoError(t, err)
	require.NoError(t, one.Reserve([]string{"a.h"}))
	require.NoError(t, one.Write("a.h", []byte("1")))
	_, err = Begin(t.Context(), dir, nil)
	requireCode(t, err, CodeBusy)
	require.FileExists(t, filepath.Join(dir, newDir, "a.h"), "the first one's")

	ctx, cancel := context.WithCancel(t.Context())
	_, err = Begin(ctx, dir, cancel)
	require.ErrorIs(t, err, context.Canceled)
	require.FileExists(t, filepath.Join(dir, newDir, "a.h"))

	waits, done := make(chan struct{}), make(chan error)
	go func() {
		two, err := Begin(t.Context(), dir, func() { close(waits) })
		if err == nil {
			_, err = first.fill(two)
			err = errors.Join(err, two.Close())
		}
		done <- err
	}()
	<-waits
	require.NoError(t, one.Close())
	require.NoError(t, <-done)
	require.Equal(t, first.contents(t), contents(t, dir))
}

// A run that fails leaves nothing, not even the directories that it has made.
func TestFailureLeavesNothing(t *testing.T) {
	root := t.TempDir()
	d, err := Begin(t.Context(), filepath.Join(root, "a", "b"), nil)
	require.NoError(t, err)
	require.NoError(t, d.Reserve(nil))
	require.NoError(t, d.Write("sub/a.h", []byte("1")))
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "closing twice is harmless")
	require.Empty(t, contents(t, root))
	require.NoDirExists(t, filepath.Join(root, "a"))

	dir := filepath.Join(root, "out")
	_, err = first.write(dir, same)
	require.NoError(t, err)
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	d, err = Begin(t.Context(), dir, nil)
	require.NoError(t, err)
	require.NoError(t, d.Reserve(nil))
	d.tree = fullDisk{d.tree}
	err = d.Write("a.h", []byte("2"))
	requireCode(t, err, CodeWrite)
	require.Contains(t, err.Error(), "cannot be written: no space left on device")
	require.NoError(t, d.Close())
	require.Equal(t, first.contents(t), contents(t, dir))
}

type fullDisk struct{ tree }

func (d fullDisk) OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error) {
	if strings.HasSuffix(name, ".h") {
		return os.OpenFile("/dev/full", os.O_WRONLY, 0)
	}
	return d.tree.OpenFile(name, flag, mode)
}

// When the disk refuses in the midst of putting files in place, the error says what to do, and doing it helps.
func TestFailureWhilePuttingInPlace(t *testing.T) {
	dir := t.TempDir()
	_, err := first.write(dir, same)
	require.NoError(t, err)
	put(t, dir, map[string]string{"mine": "mine"})
	_, err = second.write(dir, func(root *os.Root) tree { return failing{root} })
	requireCode(t, err, CodeWrite)
	require.Contains(t, err.Error(), "new/deep/d.h: no space left on device")
	require.Contains(t, err.Error(), "the same command once more does the rest")
	require.NoFileExists(t, filepath.Join(dir, host.ManifestFile), "half a build is not a build")
	warnings, err := second.write(dir, same)
	require.NoError(t, err)
	require.Contains(t, warnings.Error(),
		"an earlier run was interrupted while it put a build in place; that is done now")
	require.Equal(t, with(second.contents(t), map[string]string{"mine": "mine"}), contents(t, dir))
}

type failing struct{ tree }

func (f failing) Rename(from, to string) error {
	if to == "new/deep/d.h" {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.ENOSPC}
	}
	return f.tree.Rename(from, to)
}
