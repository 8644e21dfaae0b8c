// Package runtime holds the hand-written code that is copied into every build: the device runtime, the Go packages of
// the launcher, and what C and Python need to use a build. It exposes their sources and has no other code; it imports
// the standard library only.
package runtime

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

//go:embed cuda/amk/*.cuh cuda/amk/hw/*.cuh
//go:embed driver/*.go host/*.go host/chrometrace/*.go host/cli/*.go host/engine/*.go
//go:embed host/report/*.go host/report/*.html
//go:embed chat/*.go dialogue/*.go jinja/*.go
//go:embed draft/*.go grammar/*.go infile/*.go outfile/*.go printable/*.go progress/*.go prompts/*.go
//go:embed reply/*.go sampling/*.go serve/*.go serve/*.html
//go:embed library/*.go library/capi/*.go library/capi/amk.h library/example/example.c library/shared/*.go stopping/*.go
//go:embed python/LICENSE python/*.py python/pyproject.toml python/amk/*.py python/amk/py.typed
//go:embed tokenizer/*.go tokenizer/chars/*.go tokenizer/regex/*.go
var files embed.FS

// HostImport is the import path that the Go sources are known by in this module; those of HostSources lie below it.
const HostImport = "amkc/runtime"

// DeviceSources returns the headers of the device runtime, by the paths they are included by: "amk/ring.cuh".
func DeviceSources() map[string][]byte {
	return collect("cuda", func(string) bool { return true })
}

// HostSources returns the sources of the launcher's packages, what they embed included, by path below [HostImport]:
// "host/session.go". Tests are left out, and so are files for other systems than Linux, on which a launcher runs: with
// those, NAME_other.go, the packages that amkc itself uses compile there too.
func HostSources() map[string][]byte {
	return collect(".", func(name string) bool {
		return path.Ext(name) == ".html" || path.Ext(name) == ".h" || path.Ext(name) == ".go" &&
			!strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, "_other.go")
	})
}

// ForeignSources returns what C and Python need to use a build, by path in it: the header of libamk.so with an example,
// and the Python package.
func ForeignSources() map[string][]byte {
	out := collect("python", func(string) bool { return true })
	for _, name := range slices.Collect(maps.Keys(out)) {
		out["python/"+name] = out[name]
		delete(out, name)
	}
	all := collect("library", func(name string) bool { return path.Ext(name) != ".go" })
	for _, name := range []string{"capi/amk.h", "example/example.c"} {
		out["library/"+path.Base(name)] = all[name]
	}
	return out
}

// License returns the license of amkc and of its builds, which the Python package has too, as a file of its own: it is
// installed without the rest.
func License() []byte { return ForeignSources()["python/LICENSE"] }

// collect returns the embedded files below dir that keep wants, by path relative to it.
func collect(dir string, keep func(name string) bool) map[string][]byte {
	root, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // only a malformed dir, which is a constant above
	}
	out := map[string][]byte{}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !keep(name) {
			return err
		}
		out[name], err = fs.ReadFile(root, name)
		return err
	})
	if err != nil {
		panic(err) // embedded files are always readable
	}
	return out
}
