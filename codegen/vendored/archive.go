package vendored

import (
	"archive/zip"
	"bytes"
	"embed"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"

	"amkc/ir/diag"
)

// ArchiveName is where the generator puts the archive, from this package's folder.
const ArchiveName = "files/purego.zip"

// The folder always has its README, so the pattern matches with and without the archive.
//
//go:embed files
var embedded embed.FS

// Pack writes the archive that is embedded in amkc: [FromModule]'s files in name order, without times or modes, so
// that the same files give the same bytes.
func Pack(w io.Writer, files map[string][]byte) error {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		if _, err := f.Write(files[name]); err != nil {
			return err
		}
	}
	return z.Close()
}

// fromArchive reads the archive back, and returns nil when there is none.
func fromArchive(fsys fs.FS) (map[string][]byte, error) {
	data, err := fs.ReadFile(fsys, ArchiveName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := unpack(data)
	if err != nil {
		return nil, diag.Errorf(CodeChanged, ArchiveName, "the archive embedded in amkc cannot be read: %v; run "+
			"`go generate ./codegen/vendored` and build amkc again", err)
	}
	return files, nil
}

func unpack(data []byte) (map[string][]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return files, nil
}
