package builddir

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"

	"amkc/codegen"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

// olderLibraries are the packages of the library in builds of older releases.
var olderLibraries = []string{"launcher/internal/library/shared", "amkc.local/runtime/library/shared"}

// fatbinMagic is what a fatbin begins with.
var fatbinMagic = []byte{0x50, 0xed, 0x55, 0xba}

// IsProduct reports whether a file is an output of make under that name, with any toolkit.
func IsProduct(path, name string) bool {
	f, _, err := infile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if strings.HasSuffix(name, ".fatbin") {
		var head [4]byte
		_, err := io.ReadFull(f, head[:])
		return err == nil && bytes.Equal(head[:], fatbinMagic)
	}
	info, err := buildinfo.Read(f)
	if name == host.LibraryFile {
		return err == nil && (info.Path == codegen.LibraryPackage || slices.Contains(olderLibraries, info.Path))
	}
	return err == nil && info.Path == "launcher"
}

// isNotDir is the error for a path below something that is not a directory.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
