package loopsize

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler"
	"amkc/runtime"
	"amkc/validate"
	"amkc/validate/kernel"
)

// measure compiles a shape; what amkc does is done three times, and the fastest counts.
func measure(t *testing.T, layers, roll int) Row {
	row := Row{Layers: layers, Looped: roll == 1}
	var files map[string][]byte
	for range 3 {
		start := time.Now()
		p, steps, err := lower(t, layers, roll)
		if err != nil && roll == 0 && strings.Contains(err.Error(), "AMK3013") {
			row.Refused = err.Error()
			return row
		}
		require.NoError(t, err)
		at := time.Now()
		require.True(t, validate.ProgramFor(kernel.Backend, p).OK)
		steps = append(steps, Seconds{"proof", time.Since(at).Seconds()})
		at = time.Now()
		files, err = codegen.CUDA(p)
		require.NoError(t, err)
		steps = append(steps, Seconds{"emission", time.Since(at).Seconds()})
		if total := time.Since(start).Seconds(); row.Total == 0 || total < row.Total {
			row.Total, row.Steps = total, steps
		}
		row.Target, row.Arch = p.Target.Name, codegen.Gencode(p.Target.Arch)
	}
	row.Schedule = len(files["schedule.h"])
	for _, text := range files {
		row.Sources += len(text)
	}
	if roll == 0 && layers > *most {
		return row
	}
	dir := t.TempDir()
	for name, text := range runtime.DeviceSources() {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, text, 0o644))
	}
	cmd := exec.Command(compiler.FindNVCC(), append(codegen.NVCCFlags(), "-gencode", row.Arch, "-fatbin", "-o",
		"megakernel.fatbin", "megakernel.cu")...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	row.NVCC = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	info, err := os.Stat(filepath.Join(dir, "megakernel.fatbin"))
	require.NoError(t, err)
	row.Fatbin = int(info.Size())
	return row
}

// load is the machine's, of the last minute.
func load(t *testing.T) string {
	text, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(text), " ")
	return before
}

// hostCPU is the processor of this machine, which says enough of it.
func hostCPU(t *testing.T) string {
	text, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "a processor without a name"
}

func nvccOf(t *testing.T) string {
	said, err := exec.Command(compiler.FindNVCC(), "--version").Output()
	require.NoError(t, err, "want nvcc: make cuda")
	_, release, _ := strings.Cut(string(said), "release ")
	release, _, _ = strings.Cut(release, ",")
	return release
}
