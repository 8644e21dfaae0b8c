package cli

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

// special makes something other than a regular file, in ways that would make a careless reader wait or run out of
// memory.
var special = map[string]func(t *testing.T, path string){
	"pipe":   func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) },
	"device": func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/zero", path)) },
	"socket": func(t *testing.T, path string) {
		// The name of a socket has to be short, that of a temporary directory of a test is not.
		dir, err := os.MkdirTemp("", "s")
		require.NoError(t, err)
		s, err := net.Listen("unix", filepath.Join(dir, "s"))
		require.NoError(t, err)
		t.Cleanup(func() { s.Close(); os.RemoveAll(dir) })
		require.NoError(t, os.Symlink(filepath.Join(dir, "s"), path))
	},
	"link to nothing": func(t *testing.T, path string) { require.NoError(t, os.Symlink("nowhere", path)) },
	"directory":       func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
}

// instead puts something special instead of a file until the test ends.
func instead(t *testing.T, path, what string) {
	t.Helper()
	aside := filepath.Join(t.TempDir(), "aside")
	require.NoError(t, os.Rename(path, aside))
	special[what](t, path)
	t.Cleanup(func() {
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.Rename(aside, path))
	})
}

// answer is what amkc prints to stderr, with its exit code.
func answer(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	code, _, stderr = amkc(args...)
	return code, stderr
}

func copyModel(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../testdata/models/"+name)))
	return dir
}

// No file of a model is waited for, or read without end; every verb says which one it is.
func TestSpecialFilesInAModel(t *testing.T) {
	whole, sharded := copyModel(t, "pycoder-5m"), copyModel(t, "zoo/llama-sharded-fp16")
	out := filepath.Join(t.TempDir(), "out")
	compiling := []string{"-o", out, "--no-build", "--target", "t4"}
	run := []string{"run", whole, "--prompt", "x", "--max-tokens", "1", "--device", "ref"}
	files := map[string][][]string{
		filepath.Join(whole, "config.json"): {append([]string{whole}, compiling...), {"cost", whole, "--target", "t4"},
			{"dump", whole, "--target", "t4"}, {"pack", whole, "-o", out}, run},
		filepath.Join(whole, "generation_config.json"): {append([]string{whole}, compiling...), run},
		filepath.Join(whole, "tokenizer.json"):         {append([]string{whole}, compiling...), run},
		filepath.Join(whole, "model.safetensors"): {append([]string{whole}, compiling...),
			{"pack", whole, "-o", out}, run},
		filepath.Join(sharded, "model.safetensors.index.json"): {append([]string{sharded}, compiling...)},
	}
	shards, err := filepath.Glob(filepath.Join(sharded, "model-*.safetensors"))
	require.NoError(t, err)
	require.NotEmpty(t, shards)
	for _, shard := range shards {
		files[shard] = [][]string{append([]string{sharded}, compiling...)}
	}
	for path, calls := range files {
		for what := range special {
			t.Run(filepath.Base(path)+"/"+what, func(t *testing.T) {
				instead(t, path, what)
				for _, args := range calls {
					code, stderr := answer(t, args...)
					require.NotZero(t, code, "%s", args)
					require.Contains(t, stderr, filepath.Base(path), "%s", args)
					require.Contains(t, stderr, "it is a "+what+"; want a regular file", "%s", args)
					require.NoDirExists(t, out)
				}
			})
		}
	}
}

// The same of builds. verify looks at every file, and names all that are wrong.
func TestSpecialFilesInABuild(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	out := filepath.Join(t.TempDir(), "out")
	model := copyModel(t, "pycoder-5m")
	code, _, stderr := amkc(model, "-o", out, "--no-build", "--target", "t4", "--name", "demo")
	require.Zero(t, code, stderr)
	code, stderr = answer(t, "verify", out)
	require.Zero(t, code, stderr)

	for what := range special {
		run := []string{"run", out, "--prompt", "x", "--max-tokens", "1", "--device", "ref"}
		for name, calls := range map[string][][]string{
			"amkc.manifest.json":  {{"verify", out}, run, {"check", out}},
			"program.json":        {{"verify", out}, run},
			"weights.safetensors": {{"verify", out}, run},
			"tokenizer.json":      {{"verify", out}, run},
			"config.json":         {{"verify", out}, run},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				instead(t, filepath.Join(out, name), what)
				for _, args := range calls {
					code, stderr := answer(t, args...)
					require.NotZero(t, code, "%s", args)
					require.Regexp(t, `(?m)`+name+`.*it is a `+what+`; want a (regular file|directory)`, stderr, "%s",
						args)
				}
			})
		}
	}
	t.Run("all", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "other")
		require.NoError(t, os.CopyFS(other, os.DirFS(out)))
		var names []string
		require.NoError(t, filepath.WalkDir(other, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "amkc.manifest.json" {
				return err
			}
			name, err := filepath.Rel(other, path)
			names = append(names, name)
			require.NoError(t, os.Remove(path))
			special["pipe"](t, path)
			return err
		}))
		require.Greater(t, len(names), 50)
		_, stderr := answer(t, "verify", other, "-e")
		for _, name := range names {
			require.Contains(t, stderr, filepath.Join(other, name)+
				": error: cannot be read: it is a pipe; want a regular file")
		}
		code, stderr := answer(t, "diff", out, other)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "it is a pipe; want a regular file")
	})
}

// What is named on the command line.
func TestSpecialFilesAsArguments(t *testing.T) {
	for _, what := range []string{"pipe", "device", "socket"} {
		path := filepath.Join(t.TempDir(), "it")
		special[what](t, path)
		model := "../../testdata/models/zoo/llama-gqa"
		for _, args := range [][]string{
			{path, "-o", "unused"}, {"dump", path}, {"validate", path}, {"cost", path}, {"diff", path, path},
			{"verify", path}, {"check", path},
			{"pack", path, "-o", "unused"}, {"run", path, "--prompt", "x"},
			{"logits", path, "--ids", "1", "-o", "unused"},
			{"quality", path, "--against", model, "--ids", "1,2"},
			{"formats", path, "--ids", "1,2"}, {"formats", model, "--text", path},
			{"quality", model, "--against", path, "--ids", "1,2"},
			{"quality", model, "--against", model, "--text", path},
			{"quality", model, "--against", model, "--ids-file", path},
			{"dump", model, "--target", "t4", "--config", path}, {model, "--target", "t4", "--no-build", "-o", path},
		} {
			code, stderr := answer(t, args...)
			require.NotZero(t, code, "%s", args)
			require.NotEmpty(t, stderr, "%s", args)
		}
	}
}

// A prompt that does not end is refused.
func TestEndlessPrompt(t *testing.T) {
	var out, errs strings.Builder
	code := Main([]string{"run", "../../testdata/models/pycoder-5m", "--prompt", "-", "--device", "ref"}, endless{},
		&out, &errs)
	require.Equal(t, 2, code)
	require.Contains(t, errs.String(), "it is larger than 16 MiB, the most that a prompt may have")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
