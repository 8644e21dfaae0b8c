package browser

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// keyword is that of the text in a picture which says what the picture shows.
const keyword = "Description"

// Picture compares a picture of the page with a file, or writes the file. What is compared is the size, and the text
// that the page showed then, which the file has: glyphs and their edges depend on the fonts and the release of the
// browser. vary replaces in a text what differs from one run to another.
func (b *Browser) Picture(file string, update bool, text string, vary func(string) string) {
	b.t.Helper()
	var shot struct{ Data string }
	require.NoError(b.t, json.Unmarshal(b.Call("Page.captureScreenshot", map[string]any{"format": "png"}), &shot))
	taken, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	if update {
		require.NoError(b.t, os.WriteFile(file, describe(taken, text), 0o644))
	}
	kept, err := os.ReadFile(file)
	require.NoError(b.t, err, "run the test with -update")
	want := description(b.t, kept)
	require.NotEmpty(b.t, want)
	require.Equal(b.t, vary(want), vary(text), "%s is out of date: make pictures", filepath.Base(file))
	old, now := decoded(b.t, kept), decoded(b.t, taken)
	require.Equal(b.t, old.Bounds(), now.Bounds())
}

// decoded decodes a picture and requires that it is not blank.
func decoded(t *testing.T, text []byte) image.Image {
	t.Helper()
	p, err := png.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	colours := map[any]bool{}
	for x := p.Bounds().Min.X; x < p.Bounds().Max.X; x += 3 {
		for y := p.Bounds().Min.Y; y < p.Bounds().Max.Y; y += 3 {
			colours[p.At(x, y)] = true
		}
	}
	require.Greater(t, len(colours), 10, "an empty picture")
	return p
}

// head is the length of a signature and of a header chunk, with which a picture begins.
const head = 8 + 12 + 13

// describe adds a text in UTF-8 to a picture, as a chunk of type iTXt.
func describe(picture []byte, text string) []byte {
	chunk := append([]byte("iTXt"+keyword), 0, 0, 0, 0, 0) // not compressed, in no language
	chunk = append(chunk, text...)
	out := binary.BigEndian.AppendUint32(bytes.Clone(picture[:head]), uint32(len(chunk)-4))
	out = binary.BigEndian.AppendUint32(append(out, chunk...), crc32.ChecksumIEEE(chunk))
	return append(out, picture[head:]...)
}

// description returns the text that describe added to a picture.
func description(t *testing.T, picture []byte) string {
	t.Helper()
	require.Greater(t, len(picture), head+8)
	size := binary.BigEndian.Uint32(picture[head:])
	require.Less(t, int64(size), int64(len(picture)-head-8))
	text, ok := bytes.CutPrefix(picture[head+4:head+8+int(size)], append([]byte("iTXt"+keyword), 0, 0, 0, 0, 0))
	require.True(t, ok, "no text in the picture: run the test with -update")
	return string(text)
}
