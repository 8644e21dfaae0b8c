//go:build linux

package outfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func TestCompleteOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, Write(path, writeText("1")))
	boom := errors.New("boom")
	require.Equal(t, boom, Write(path, func(w io.Writer) error { io.WriteString(w, "half"); return boom }))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "1", string(text))
	require.Equal(t, []string{"file"}, listing(t, dir))

	f, err := Create(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.MkdirAll(filepath.Join(path, "sub"), 0o755))
	require.Error(t, f.Commit(), "a directory has taken the place")
	require.NoError(t, f.Release(), "releasing twice is harmless")
	require.Equal(t, []string{"file"}, listing(t, dir))
}

// Every name that a file system takes can be written to.
func TestLongNames(t *testing.T) {
	for _, length := range []int{1, 200, 240, 241, 255} {
		path := filepath.Join(t.TempDir(), strings.Repeat("x", length))
		f, err := Create(path)
		require.NoError(t, err, length)
		other, err := Create(path)
		require.ErrorIs(t, err, ErrBusy)
		require.Nil(t, other)
		require.NoError(t, f.Commit())
		require.Len(t, listing(t, filepath.Dir(path)), 1)
	}
}

// A new file has what the umask leaves, and one that is replaced keeps what it has.
func TestPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	mode := func() fs.FileMode {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	before := syscall.Umask(0o027)
	err := Write(path, writeText("1"))
	syscall.Umask(before)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), mode())
	require.NoError(t, os.Chmod(path, 0o604))
	require.NoError(t, Write(path, writeText("2")))
	require.Equal(t, fs.FileMode(0o604), mode())
}

func TestLinksStay(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "sub", "file"), filepath.Join(dir, "link")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte("1"), 0o644))
	require.NoError(t, os.Symlink("sub/file", link))
	require.NoError(t, Write(link, writeText("2")))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "2", string(text))
	require.Equal(t, []string{"link", "sub"}, listing(t, dir))
	require.Equal(t, []string{"file"}, listing(t, filepath.Dir(file)))
}

func TestTargets(t *testing.T) {
	dir := t.TempDir()
	pipe, dangling := filepath.Join(dir, "pipe"), filepath.Join(dir, "dangling")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink("nowhere", dangling))
	for path, want := range map[string]string{
		pipe:        "it is a pipe; want a file, or a name that is free",
		dir:         "it is a directory; want a file, or a name that is free",
		"/dev/null": "it is a device; want a file, or a name that is free",
		dangling:    "it is a link to nothing; want a file, or a name that is free",
		filepath.Join(dir, "none", "file"): "there is no directory " + filepath.Join(dir, "none") +
			"; want one that is there",
		filepath.Join(pipe, "file"): "not a directory", "": "no such file or directory",
	} {
		require.EqualError(t, Target(path), want, path)
		_, err := Create(path)
		require.EqualError(t, err, want, path)
		_, err = Clean(path)
		require.EqualError(t, err, want, path)
	}
	require.Equal(t, []string{"dangling", "pipe"}, listing(t, dir))
}

// Of two that write the same file the second is refused; what one that was killed has left is removed.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	f, err := Create(path)
	require.NoError(t, err)
	_, err = Create(path)
	require.ErrorIs(t, err, ErrBusy)
	_, err = Clean(path)
	require.ErrorIs(t, err, ErrBusy)
	_, err = f.WriteString("1")
	require.NoError(t, err)

	f.File.Close() // as when the process is killed
	found, err := Clean(path)
	require.NoError(t, err)
	require.True(t, found)
	require.Empty(t, listing(t, dir))
	found, err = Clean(path)
	require.NoError(t, err)
	require.False(t, found)

	f, err = Create(path)
	require.NoError(t, err)
	f.File.Close()
	require.NoError(t, Write(path, writeText("2")))
	require.Equal(t, []string{"file"}, listing(t, dir))
}

// Something of the hidden file's name that amkc has not made is neither followed nor removed.
func TestStrangersUnderTheHiddenName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("mine"), 0o644))
	require.NoError(t, os.Symlink("mine", partial(path)))
	_, err := Create(path)
	require.ErrorContains(t, err, "is a symbolic link, where amkc has its temporary file; move it away")
	text, err := os.ReadFile(filepath.Join(dir, "mine"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	require.NoError(t, os.Remove(partial(path)))
	require.NoError(t, syscall.Mkfifo(partial(path), 0o600))
	_, err = Create(path)
	require.ErrorContains(t, err, "is a pipe")
}

// Many at once: never do two hold the same path, however they come in between each other.
func TestManyHolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var inside sync.Mutex
	var all sync.WaitGroup
	var held atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 500 {
				c, _, err := Hold(path)
				if errors.Is(err, ErrBusy) {
					continue
				}
				if err != nil || !inside.TryLock() {
					t.Error("two at once", err)
					return
				}
				held.Add(1)
				runtime.Gosched()
				inside.Unlock()
				if err := c.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NotZero(t, held.Load())
	require.NoFileExists(t, path)
}
