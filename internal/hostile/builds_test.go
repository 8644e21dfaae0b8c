package hostile

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/compiler/cli"
	"amkc/internal/watch"
)

func itoa(n int) string { return strconv.Itoa(n) }

// smallBuild makes a build of a small model, without tools, and returns its files by their paths.
func smallBuild(f *testing.F) map[string][]byte {
	dir := filepath.Join(f.TempDir(), "build")
	code := cli.Main([]string{"../../testdata/models/zoo/llama-gqa", "-o", dir, "--target", "h200", "--no-build", "-q"},
		strings.NewReader(""), io.Discard, os.Stderr)
	require.Zero(f, code)
	files := map[string][]byte{}
	require.NoError(f, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[name], err = os.ReadFile(path)
		return err
	}))
	return files
}

// damaged are the files of a build that amkc reads.
var damaged = []string{"amkc.manifest.json", "program.json", "weights.safetensors", "tokenizer.json", "config.json",
	"generation_config.json", "schedule.h", "pages.h", "model_config.h", "megakernel.cu"}

// writeBuild puts the files of a build into a directory.
func writeBuild(t testing.TB, dir string, files map[string][]byte) {
	for name, data := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}

// Verbs that read a build do so whatever one of its files holds.
func FuzzBuilds(f *testing.F) {
	if testing.Short() {
		f.Skip("make test-all runs it")
	}
	good := smallBuild(f)
	for i, name := range damaged {
		data, there := good[name]
		if !there {
			data = []byte("{}")
		}
		data = data[:min(len(data), 1<<14)]
		f.Add(uint8(i), data)
		f.Add(uint8(i), data[:len(data)/2])
		f.Add(uint8(i), []byte{})
	}
	whole, broken := f.TempDir(), f.TempDir()
	writeBuild(f, whole, good)
	writeBuild(f, broken, good)
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		defer watch.Execution()()
		name := damaged[int(which)%len(damaged)]
		path := filepath.Join(broken, name)
		if rest := good[name]; name == "weights.safetensors" && len(data) < len(rest) {
			data = append(bytes.Clone(data), rest[len(data):]...) // its header is what is read, and the rest is large
		}
		require.NoError(t, os.WriteFile(path, data, 0o600))
		defer func() { // the next execution damages another file
			if data, there := good[name]; there {
				require.NoError(t, os.WriteFile(path, data, 0o600))
			} else {
				require.NoError(t, os.Remove(path))
			}
		}()
		amkc(t, "verify", broken)
		amkc(t, "diff", whole, broken)
		if b, err := compiler.OpenBuild(broken); err == nil { // as check --bisect does, which needs a GPU before it
			for i := range b.Program.Buffers {
				_, _ = b.Floats(&b.Program.Buffers[i], 0)
			}
			require.NoError(t, b.Close())
		}
		amkc(t, "run", broken, "--device", "ref", "--ids", "1,2", "--max-tokens", "2")
		amkc(t, "run", broken, "--device", "ref", "--prompt", "a 12", "--max-tokens", "1")
		amkc(t, "logits", broken, "--device", "ref", "--ids", "1", "-o", filepath.Join(t.TempDir(), "x.npy"))
		amkc(t, "quality", broken, "--against", whole, "--device", "ref", "--ids", "1,2", "--greedy", "1")
		amkc(t, "check", broken)
	})
}

// diff compares whatever two files hold.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nc\n"))
	f.Add([]byte("a\x00"), []byte("a"))
	f.Add([]byte(strings.Repeat("x\n", 3000)), []byte(strings.Repeat("y\n", 3000)))
	f.Add([]byte(strings.Repeat("x\ny\n", 3000)), []byte(strings.Repeat("y\nz\n", 3000)))
	a, b := f.TempDir(), f.TempDir()
	f.Fuzz(func(t *testing.T, left, right []byte) {
		defer watch.Execution()()
		require.NoError(t, os.WriteFile(filepath.Join(a, "file"), left, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(b, "file"), right, 0o600))
		code, text := amkc(t, "diff", a, b)
		require.Equal(t, string(left) == string(right), code == 0)
		require.Equal(t, code == 0, text == "")
	})
}
