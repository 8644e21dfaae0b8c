//go:build unix

package infile

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var small = Kind{"a small file", 1 << 20}

func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(path("file"), []byte("text"), 0o600))
	require.NoError(t, os.Symlink("file", path("link")))
	require.NoError(t, os.Symlink("loop", path("loop")))
	require.NoError(t, os.Symlink("nowhere", path("dangling")))
	require.NoError(t, os.Symlink("/dev/zero", path("endless")))
	require.NoError(t, os.Mkdir(path("dir"), 0o700))
	require.NoError(t, syscall.Mkfifo(path("pipe"), 0o600))
	require.NoError(t, os.Symlink("pipe", path("link to pipe")))
	socket, err := net.Listen("unix", path("socket"))
	require.NoError(t, err)
	defer socket.Close()

	for _, name := range []string{"file", "link"} {
		text, err := Read(path(name), small)
		require.NoError(t, err)
		require.Equal(t, "text", string(text))
	}
	for name, want := range map[string]string{
		"pipe": "it is a pipe; want a regular file", "link to pipe": "it is a pipe; want a regular file",
		"socket": "it is a socket; want a regular file", "dir": "it is a directory; want a regular file",
		"endless": "it is a device; want a regular file", "dangling": "it is a link to nothing; want a regular file",
		"nothing": "no such file or directory", "file/below": "not a directory",
		"loop": "too many levels of symbolic links",
	} {
		func() {
			_, err := Read(path(name), small)
			require.EqualError(t, err, want, name)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, path(name), e.Path)
			_, _, err = Open(path(name))
			require.EqualError(t, err, want, name)
		}()
	}
	_, err = Read(path("nothing"), small)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Read(path("dangling"), small)
	require.NotErrorIs(t, err, fs.ErrNotExist, "a file that may be absent is not absent")
}

func TestNoMoreThanTheKindMayHave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for size, ok := range map[int64]bool{0: true, small.Max - 1: true, small.Max: true, small.Max + 1: false,
		1 << 40: false} {
		require.NoError(t, os.Truncate(path, size))
		text, err := Read(path, small)
		if !ok {
			require.EqualError(t, err, "it is larger than 1 MiB, the most that a small file may have")
			continue
		}
		require.NoError(t, err)
		require.Len(t, text, int(size))
	}
}

// A path may come to name something else between a look at it and its opening.
func TestTheOpenFileDecides(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	func() {
		_, _, err := openOnly(path, fs.FileMode.IsRegular, "a regular file")
		require.EqualError(t, err, "it is a pipe; want a regular file")
	}()
}

// Files of /proc say that they are regular and empty, whatever they are. Some are never done, as the kernel's log,
// which root may read.
func TestFilesWithoutSize(t *testing.T) {
	for _, path := range []string{"/proc/self/status", "/proc/kmsg", "/sys/kernel/tracing/trace_pipe",
		"/sys/kernel/debug/tracing/trace_pipe"} {
		func() {
			text, err := Read(path, small)
			if err == nil {
				require.Empty(t, text, path)
			}
			if size, _, err := Digest(path, nil); err == nil {
				require.Zero(t, size, path)
			}
		}()
	}
}

func TestSizeThatIsNotTold(t *testing.T) {
	text, err := ReadStream(strings.NewReader("text"), "stdin", small)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	var source endless
	_, err = ReadStream(&source, "stdin", small)
	require.ErrorContains(t, err, "larger than 1 MiB")
	require.Equal(t, small.Max+1, source.read)
}

type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "c"), 0o600))
	entries, err := List(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	require.Equal(t, "a", entries[0].Name())
	for name, want := range map[string]string{"a": "it is a file; want a directory",
		"c": "it is a pipe; want a directory",
		"d": "no such file or directory"} {
		func() {
			_, err := List(filepath.Join(dir, name))
			require.EqualError(t, err, want)
		}()
	}
}
