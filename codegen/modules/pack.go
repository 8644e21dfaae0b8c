package modules

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"maps"
	"path"
	"slices"
)

// Pack makes a module of files by path in it, and returns it with its two files, named as those of [Files]. Entries of
// the zip are sorted, stored and without times: the same files give the same bytes with any release of Go, and their
// text can be searched and compared in place.
func Pack(module, version string, files map[string][]byte) (Module, map[string][]byte, error) {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	root, listed := module+"@"+version+"/", map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		listed[root+name] = text
		// Raw, so that sizes precede the text.
		entry, err := w.CreateRaw(&zip.FileHeader{Name: root + name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(text),
			CompressedSize64: uint64(len(text)), UncompressedSize64: uint64(len(text))})
		if err != nil {
			return Module{}, nil, err
		}
		if _, err := entry.Write(text); err != nil {
			return Module{}, nil, err
		}
	}
	if err := w.Close(); err != nil {
		return Module{}, nil, err
	}
	const goMod = "go.mod"
	at := path.Join(module, "@v", version)
	return Module{Path: module, Version: version, Sum: hash1(listed),
			GoModSum: hash1(map[string][]byte{goMod: files[goMod]})},
		map[string][]byte{at + ".zip": packed.Bytes(), at + ".mod": files[goMod]}, nil
}

// hash1 is the sum of files that go.sum has, by the algorithm that it calls h1.
func hash1(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return "h1:" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
