package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/explore"
)

// onCPU is the machine that programs of testdata run on, and what loads them: both are compiled once and stay in amkc's
// cache.
var onCPU = sync.OnceValues(func() (m onMachine, err error) {
	if m.cache, err = builder.CacheDir(); err != nil {
		return m, err
	}
	if m.Machine, err = explore.CompileMachine(context.Background(), m.cache, nil); err != nil {
		return m, err
	}
	source := filepath.Join("testdata", "load.cc")
	text, err := os.ReadFile(source)
	if err != nil {
		return m, err
	}
	dir := filepath.Dir(m.Library)
	m.load = filepath.Join(dir, fmt.Sprintf("load-%.8x", sha256.Sum256(text)))
	if _, err := os.Stat(m.load); err == nil {
		return m, nil
	}
	f, err := os.CreateTemp(dir, "load-*")
	if err != nil {
		return m, err
	}
	f.Close()
	out, err := exec.Command("c++", "-o", f.Name(), source, m.Library, "-Wl,-rpath,"+dir).CombinedOutput()
	if err != nil {
		os.Remove(f.Name())
		return m, fmt.Errorf("%w: %s", err, out)
	}
	return m, os.Rename(f.Name(), m.load)
})

type onMachine struct {
	*explore.Machine
	load, cache string
}

// onCPUProgram compiles a program of testdata with the headers of builds, those of the first directory before those of
// the others, unless amkc's cache has it, and returns a command that runs it on the machine.
func onCPUProgram(t *testing.T, source string, headers []string, defines ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("c++"); err != nil || runtime.GOOS != "linux" {
		t.Skip("the machine needs a C++ compiler, and Linux")
	}
	machine, err := onCPU()
	require.NoError(t, err)
	program, err := machine.CompileKernels(t.Context(), machine.cache, filepath.Join("testdata", source), headers,
		append(defines, explore.Called)...)
	require.NoError(t, err)
	return exec.Command(machine.load, program)
}

// outputOnCPU is what such a program writes, to which arguments and input are given. One that finds a difference prints
// it and fails, and so does one in which the machine finds something: then the message says where.
func outputOnCPU(t *testing.T, cmd *exec.Cmd, input io.Reader, arguments ...string) []byte {
	t.Helper()
	var out, findings bytes.Buffer
	cmd.Args = append(cmd.Args, arguments...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &findings
	err := cmd.Run()
	if err == nil {
		return out.Bytes()
	}
	text := strings.Split(findings.String(), "\n")
	for i, line := range text {
		if strings.HasPrefix(line, `{"findings":`) {
			said, err := explore.Explain([]byte(line), cmd.Args[1])
			require.NoError(t, err)
			text[i] = strings.Join(said, "\n")
		}
	}
	const most = 4000
	last := out.Bytes()[max(0, out.Len()-most):]
	if !utf8.Valid(last) { // of a program that writes numbers
		last = nil
	}
	require.NoError(t, err, "%s\n%s", last, strings.Join(text, "\n"))
	return nil
}

// runOnCPU compiles a program and returns what it writes.
func runOnCPU(t *testing.T, source string, headers []string, defines ...string) []byte {
	t.Helper()
	return outputOnCPU(t, onCPUProgram(t, source, headers, defines...), nil)
}

// structsWith lists the descriptors of a schedule that have a field.
func structsWith(t *testing.T, dir, field string) (names []string) {
	t.Helper()
	schedule, err := os.ReadFile(filepath.Join(dir, "schedule.h"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`struct (\w+) \{\n(?:  .*\n)*?  .* `+field+` `).FindAllSubmatch(schedule, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// stagesDefine lists the attention stages of a schedule for a program.
func stagesDefine(t *testing.T, dir string) string {
	t.Helper()
	stages := structsWith(t, dir, "kShareRows")
	require.NotEmpty(t, stages)
	return "-DSTAGES=" + strings.Join(stages, ",")
}
