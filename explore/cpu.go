package explore

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Where the CPU's side is: headers that kernels include, and the machine.
const (
	headersDir = "amk_cpu"
	machineDir = "machine"
)

//go:embed cpu/amk_cpu cpu/machine
var embedded embed.FS

// cpuSources are the files of explore/cpu that builds are compiled with, by their paths from there.
func cpuSources() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(embedded, "cpu", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[strings.TrimPrefix(name, "cpu/")], err = fs.ReadFile(embedded, name)
		return err
	})
	return files, err
}

var includeLine = regexp.MustCompile(`(?m)^\s*#\s*include\s*"([^"]+)"`)

// headersOfKernels are the files that kernels include: the headers that hw/*.cuh name, and what these include.
func headersOfKernels(cpu map[string][]byte) map[string]bool {
	all := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if all[name] || cpu[name] == nil {
			return
		}
		all[name] = true
		for _, m := range includeLine.FindAllSubmatch(cpu[name], -1) {
			add(path.Join(path.Dir(name), string(m[1])))
		}
	}
	for name := range cpu {
		if path.Dir(name) == headersDir {
			add(name)
		}
	}
	return all
}

// digestOf digests files that match, and further texts, which say what is made of them.
func digestOf(files map[string][]byte, match func(name string) bool, texts ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "amkc explore 1\n%q\n", texts)
	for _, name := range sorted(files) {
		if match(name) {
			fmt.Fprintf(h, "%x %q\n", sha256.Sum256(files[name]), name)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
