package explore

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"amkc/compiler/objects"
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

// headersOfKernels are the files that kernels include: the headers that hw/*.cuh name, and what these include.
func headersOfKernels(cpu map[string][]byte) map[string][]byte {
	var named []string
	for name := range cpu {
		if path.Dir(name) == headersDir {
			named = append(named, name)
		}
	}
	return objects.Included(cpu, named...)
}
