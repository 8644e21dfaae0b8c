package diff

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// An entry is a file of an archive, by name.
type entry struct{ name, text string }

func archive(t *testing.T, method uint16, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		to, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: method})
		require.NoError(t, err)
		_, err = to.Write([]byte(e.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func described(changes []Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, string(c.Kind)+" "+c.Path+" "+string(c.Hunks))
	}
	return out
}

// Archives that differ are compared file by file.
func TestArchives(t *testing.T) {
	a := archive(t, zip.Store, entry{"same", "same"}, entry{"gone", "1\n"}, entry{"text.go", "x\n"},
		entry{"bin", "\xff"})
	b := archive(t, zip.Store, entry{"text.go", "y\n"}, entry{"new", ""}, entry{"bin", "\xfe"}, entry{"same", "same"})
	dirA, dirB := t.TempDir(), t.TempDir()
	for dir, text := range map[string][]byte{dirA: a, dirB: b} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "m.zip"), text, 0o666))
	}
	changes, err := Trees(dirA, dirB)
	require.NoError(t, err)
	require.Equal(t, []string{"binary m.zip/bin ", "only_in_a m.zip/gone ", "only_in_b m.zip/new ",
		"text m.zip/text.go @@ -1 +1 @@\n-x\n+y\n"}, described(changes))
	require.Equal(t, &File{2, "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac"}, changes[3].A)
}

// An archive that is not ours, or that was made to be much work, is a file without an inside.
func TestArchivesThatAreNotOpened(t *testing.T) {
	file := entry{"a.go", "package evil\n"}
	good, other := archive(t, zip.Store, file), archive(t, zip.Store, entry{"a.go", "package good\n"})
	for _, hunks := range []bool{false, true} {
		changes := Archives(good, other, hunks)
		require.Len(t, changes, 1)
		require.Equal(t, hunks, changes[0].Hunks != nil)
	}
	require.Len(t, entries(bytes.Join([][]byte{make([]byte, 9), good}, nil)), 1)
	require.Len(t, entries(manyNames(archive(t, zip.Store, entry{"a", "x"}))), 41)
	for name, bad := range map[string][]byte{
		"no archive": []byte("PK"),
		"cut":        good[:len(good)-1],
		"compressed": archive(t, zip.Deflate, file),
		"twice":      archive(t, zip.Store, file, file),
		"changed":    bytes.Replace(slices.Clone(good), []byte("evil"), []byte("Evil"), 1),
		"too large":  bytes.Join([][]byte{make([]byte, maxArchive), good}, nil),
		"many names": manyNames(archive(t, zip.Store, entry{"a", string(make([]byte, 10_000))})),
	} {
		require.Nil(t, entries(bad), name)
		require.Nil(t, Archives(bad, other, true), name)
		require.Nil(t, Archives(other, bad, true), name)
	}
	require.Nil(t, Archives(good, archive(t, zip.Store, file), true), "the same files")
}

// manyNames gives the one entry of an archive, "a", forty names more.
func manyNames(archive []byte) []byte {
	list, end := bytes.LastIndex(archive, []byte("PK\x01\x02")), bytes.LastIndex(archive, []byte("PK\x05\x06"))
	out := slices.Clone(archive[:list])
	const names = 41
	for k := range byte(names) {
		record := slices.Clone(archive[list:end])
		record[46] += k
		out = append(out, record...)
	}
	last := slices.Clone(archive[end:])
	last[8], last[10] = names, names
	binary.LittleEndian.PutUint32(last[12:], uint32(names*(end-list)))
	return append(out, last...)
}
