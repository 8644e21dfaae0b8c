package cli

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected outputs of the scripts")

// TestMain lets the test binary be amkc for the scripts: they run it in directories and environments of their own. A
// search and a server of tools run their own executable, and here that is the test binary.
func TestMain(m *testing.M) {
	nvccHere = func() bool { return false } // it would take seconds for each final prediction
	if len(os.Args) > 1 {
		if _, _, is := findVerb(os.Args[1:]); is {
			os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		}
	}
	testscript.Main(m, map[string]func(){
		"amkc": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs one script a behaviour. `exit N amkc ...` runs amkc and demands the exit code; `cmp stdout FILE` and
// `cmp stderr FILE` compare what it printed.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join(root, "testdata/script"),
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("MODELS", filepath.Join(root, "testdata/models"))
			env.Setenv("AMK_IR", filepath.Join(root, "testdata/amk_ir"))
			env.Setenv("GOMODCACHE", strings.TrimSpace(string(cache))) // scripts have no home to find it in
			env.Setenv("CUDA_VISIBLE_DEVICES", "")                     // the same outputs on a machine with a GPU
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exit": demandExit},
	})
}

func demandExit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit N amkc ARGS")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
