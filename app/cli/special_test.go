package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/cli"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/text/chat"
)

// No file of a build is waited for, or read without end, by any command of a launcher.
func TestSpecialFiles(t *testing.T) {
	hosttest.NeedDriver(t)
	run := []string{"run", "--prompt", "x", "--max-tokens", "1"}
	for name, commands := range map[string][][]string{
		host.ManifestFile:  {run, {"bench"}, {"check"}, {"info"}, {"info", "--json"}},
		host.FatbinFile:    {run, {"bench"}, {"check"}},
		host.WeightsFile:   {run, {"bench"}, {"check"}},
		host.TokenizerFile: {run},
		host.ConfigFile:    {run},
		host.GenConfigFile: {run},
		chat.TemplateFile:  {{"run", "--messages", messages(t)}},
		chat.ConfigFile:    {{"run", "--messages", messages(t)}},
		host.MeasureFile:   {{"bench"}},
		host.ReferenceFile: {{"check"}},
		host.ProgramFile:   {{"bench", "--report", filepath.Join(t.TempDir(), "page.html")}},
	} {
		for what, make := range map[string]func(path string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				dir := build(t, "")
				path := filepath.Join(dir, name)
				os.Remove(path)
				require.NoError(t, make(path))
				for _, args := range commands {
					code, stderr := answer(t, dir, args)
					require.NotZero(t, code, "%s", args)
					require.Contains(t, stderr, name, "%s", args)
					require.Contains(t, stderr, "it is a "+what+"; want a regular file", "%s", args)
				}
			})
		}
	}
}

// answer runs the launcher as it is emitted, with the reference kernels of the build.
func answer(t *testing.T, dir string, args []string) (code int, stderr string) {
	t.Helper()
	var out, err strings.Builder
	l := cli.Launcher{Model: hosttest.Facts().Model, Dir: dir}
	if args[0] == "bench" {
		l.Check = func(r host.Resident) (host.Reference, error) { return &hosttest.Twin{Resident: r}, nil }
	}
	code = l.Main(args, strings.NewReader(""), &out, &err)
	return code, err.String()
}
