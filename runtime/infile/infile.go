// Package infile opens and reads untrusted files: models, builds, programs and settings. A path may refer to anything,
// so the open file is checked before it is read: it must be a regular file, and at most the size that its kind may have
// is read. Symbolic links are followed, because model caches consist of them. [Reason] and [InJSON] describe errors of
// files, and of JSON in them, in plain words; no other code translates the errors of Go's library.
//
// It is copied into every launcher. It imports the standard library only, and must not import any package of amkc.
package infile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// An Error says why a file could not be opened or read. Its text has no path: the caller that reports it says where. It
// wraps the operating system's error, where there is one.
type Error struct {
	Path   string
	Reason string
	Err    error
}

func (e *Error) Error() string { return e.Reason }

func (e *Error) Unwrap() error { return e.Err }

// Open opens a regular file for reading and returns it with its size in bytes. It never waits, whatever the path names:
// anything but a regular file, and a file that cannot be opened, is an *Error.
func Open(path string) (*os.File, int64, error) {
	f, info, err := open(path, fs.FileMode.IsRegular, "a regular file")
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// open opens what is wanted. The look at the path spares devices being opened at all, which some of them notice. The
// one at the open file decides: what the path names may have changed in between.
func open(path string, want func(fs.FileMode) bool, words string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		if _, there := os.Lstat(path); there == nil && errors.Is(err, fs.ErrNotExist) {
			return nil, nil, &Error{Path: path, Reason: "it is a link to nothing; want " +
				words} // not the same as no file
		}
		return nil, nil, refused(path, err)
	}
	if !want(info.Mode()) {
		return nil, nil, notWanted(path, info.Mode(), words)
	}
	return openOnly(path, want, words)
}

// openOnly never waits either, and the file that it returns is what is wanted.
func openOnly(path string, want func(fs.FileMode) bool, words string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, nil, refused(path, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = refused(path, err)
	case !want(info.Mode()):
		err = notWanted(path, info.Mode(), words)
	default:
		return f, info, nil
	}
	f.Close()
	return nil, nil, err
}

// Read returns the contents of a regular file that is no larger than its kind may be. At most one byte more than that
// is read, even of a file that grows. A file of size 0 is empty: reads of regular files of size 0 in /proc may block.
// Errors are as for [Open]. Below a path of [Mount] it returns what that has.
func Read(path string, kind Kind) ([]byte, error) {
	if text, found, err := mounted(path, kind); found {
		return text, err
	}
	f, size, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case size == 0:
		return nil, nil
	case size > kind.Max:
		return nil, tooLarge(path, kind)
	}
	return readAll(f, path, size, kind)
}

// ReadStream returns the contents of a stream, such as standard input, up to the maximum size of the kind. The name
// stands for the path in errors.
func ReadStream(r io.Reader, name string, kind Kind) ([]byte, error) {
	return readAll(r, name, 0, kind)
}

func readAll(r io.Reader, path string, size int64, kind Kind) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(size) + bytes.MinRead) // one more read finds the end without growing
	switch n, err := b.ReadFrom(io.LimitReader(r, kind.Max+1)); {
	case err != nil:
		return nil, refused(path, err)
	case n > kind.Max:
		return nil, tooLarge(path, kind)
	}
	return b.Bytes(), nil
}

// mounts are the files of each mounted path, by their names.
var mounts sync.Map // of map[string]func() ([]byte, error)

// Mount makes [Read] find files below a path that is a file itself, as if it were a directory: those that a model in
// one file stands for. Each is made when it is read; one whose function fails with an error that wraps
// [fs.ErrNotExist] is not there, for that reason. No other file is below the path then. Mounting again replaces them.
func Mount(path string, files map[string]func() ([]byte, error)) {
	mounts.Store(filepath.Clean(path), files)
}

// mounted reads a file below a mounted path; found is false of a path that is below none.
func mounted(path string, kind Kind) (text []byte, found bool, err error) {
	of, ok := mounts.Load(filepath.Dir(filepath.Clean(path)))
	if !ok {
		return nil, false, nil
	}
	file := of.(map[string]func() ([]byte, error))[filepath.Base(path)]
	if file == nil {
		return nil, true, &Error{Path: path, Reason: Reason(fs.ErrNotExist), Err: fs.ErrNotExist}
	}
	if text, err = file(); err == nil && int64(len(text)) > kind.Max {
		err = tooLarge(path, kind)
	}
	return text, true, err
}

// belowMount reports whether a directory would be below a mounted path, which has none.
func belowMount(dir string) bool {
	_, ok := mounts.Load(filepath.Dir(filepath.Clean(dir)))
	return ok
}

// Digest returns the size and the SHA-256, in hex, of a regular file of any size. seen, if not nil, is called
// occasionally with the number of bytes read and the total. Errors are as for [Open].
func Digest(path string, seen func(done, total int64)) (size int64, digest string, err error) {
	f, size, err := Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	read, err := io.Copy(h, &metered{io.LimitReader(f, size), 0, size, seen}) // a file that grows is not followed
	if err != nil {
		return 0, "", refused(path, err)
	}
	return read, hex.EncodeToString(h.Sum(nil)), nil
}

// metered tells how much has been read.
type metered struct {
	io.Reader
	done, total int64
	seen        func(done, total int64)
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if m.done += int64(n); m.seen != nil {
		m.seen(m.done, m.total)
	}
	return n, err
}

// List returns the entries of a directory, sorted by name. It never waits; anything but a directory is an *Error.
func List(dir string) ([]fs.DirEntry, error) {
	if belowMount(dir) {
		return nil, &Error{Path: dir, Reason: Reason(fs.ErrNotExist), Err: fs.ErrNotExist}
	}
	f, _, err := open(dir, fs.FileMode.IsDir, "a directory")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, refused(dir, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Reason returns the text of an error without the name of the call and the path that package os puts before the
// operating system's message, however deep they are wrapped.
func Reason(err error) string {
	return reword(err, func(_, reason string) string { return reason })
}

// Describe is [Reason] with the path, for messages that do not name the file otherwise.
func Describe(err error) string {
	return reword(err, func(path, reason string) string { return path + ": " + reason })
}

func reword(err error, words func(path, reason string) string) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		return strings.Replace(text, path.Error(), words(path.Path, path.Err.Error()), 1)
	case errors.As(err, &link):
		return strings.Replace(text, link.Error(), words(link.New, link.Err.Error()), 1)
	case errors.As(err, &call):
		return strings.Replace(text, call.Error(), call.Err.Error(), 1)
	}
	return text
}

func refused(path string, err error) error {
	return &Error{Path: path, Reason: Reason(err), Err: err}
}

func notWanted(path string, mode fs.FileMode, words string) error {
	return &Error{Path: path, Reason: "it is " + What(mode) + "; want " + words}
}

func tooLarge(path string, kind Kind) error {
	return &Error{Path: path, Reason: fmt.Sprintf("it is larger than %d MiB, the most that %s may have", kind.Max>>20,
		kind.Name)}
}

// What names the type of a file, with an article: "a pipe".
func What(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "something special"
}

// A Kind is a kind of file that is read as a whole, with its maximum size.
type Kind struct {
	Name string // in errors, with its article: "a tokenizer.json"
	Max  int64  // bytes
}

// The kinds of files, each with several times the size of the largest one that is published or that amkc writes.
var (
	ModelConfig = Kind{"a JSON file of a model",
		16 << 20} // config.json and its like; a large one has a megabyte, of labels
	Index        = Kind{"an index of shards", 32 << 20} // 9 MB for a mixture of 256 experts in 61 layers
	Tokenizer    = Kind{"a tokenizer.json", 128 << 20}  // 33 MB for a vocabulary of 262,144
	ChatTemplate = Kind{"a chat template", 1 << 20}     // 20 kB for a long one
	Program      = Kind{"a program", 128 << 20}         // some 50 MB for an unrolled model of 70B
	Schedule     = Kind{"a ScheduleConfig", 16 << 20}
	Manifest     = Kind{"a manifest", 16 << 20}
	Source       = Kind{"a generated source", 64 << 20}
	Module       = Kind{"a module of kernels", 512 << 20}
	Prompt       = Kind{"a prompt", 16 << 20}
	Script       = Kind{"a script of an explored schedule", 16 << 20}
	Trace        = Kind{"a trace of a GPU", 256 << 20}
	Text         = Kind{"a text", 64 << 20}
	TokenIDs     = Kind{"an array of token ids", 64 << 20}
	HubRef       = Kind{"a revision of a hub", 1 << 20}
	GoModule     = Kind{"a file of a Go module", 64 << 20}
	MemInfo      = Kind{"what Linux says of the memory", 64 << 10}
)
