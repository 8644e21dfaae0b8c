// Package runtime contains the hand-written code that is copied into every build: the device runtime, the Go packages
// of the launcher, and the C and Python files with which other programs use a build. It exposes their sources and has
// no other code; it imports the standard library, and text and app, which contain the other packages of a launcher.
package runtime

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"amkc/app"
	"amkc/text"
)

//go:embed cuda/amk/*.cuh cuda/amk/hw/*.cuh driver/*.go host/*.go infile/*.go outfile/*.go printable/*.go progress/*.go
//go:embed shape/*.go
var files embed.FS

// Below returns where a package of this module is in that of a launcher, and reports whether it is one of this module:
// packages of runtime are below its root, those of text and app keep the name of their tree.
func Below(imported string) (path string, ours bool) {
	path, ours = strings.CutPrefix(imported, "amkc/")
	return strings.TrimPrefix(path, "runtime/"), ours
}

// DeviceSources returns the headers of the device runtime, by the paths they are included by: "amk/ring.cuh".
func DeviceSources() map[string][]byte {
	return collect(files, "cuda", func(string) bool { return true })
}

// HostSources returns the sources of the launcher's packages, what they embed included, by path in its module
// ([Below]): "host/session.go", "text/jinja/jinja.go". Tests are left out, and so are files for other systems than
// Linux, on which a launcher runs: with those, NAME_other.go, the packages that amkc itself uses compile there too.
func HostSources() map[string][]byte {
	out := map[string][]byte{}
	for tree, files := range map[string]fs.FS{"": files, "text": text.Files, "app": app.Files} {
		for name, source := range collect(files, ".", func(name string) bool {
			return name != "sources.go" && (slices.Contains([]string{".css", ".h", ".html", ".js"}, path.Ext(name)) ||
				path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") &&
					!strings.HasSuffix(name, "_other.go"))
		}) {
			out[path.Join(tree, name)] = source
		}
	}
	return out
}

// ForeignSources returns what C and Python need to use a build, by path in it: the header of libamk.so with an example,
// and the Python package.
func ForeignSources() map[string][]byte {
	out := collect(app.Files, "python", func(string) bool { return true })
	for _, name := range slices.Collect(maps.Keys(out)) {
		out["python/"+name] = out[name]
		delete(out, name)
	}
	all := collect(app.Files, "library", func(name string) bool { return path.Ext(name) != ".go" })
	for _, name := range []string{"capi/amk.h", "example/example.c"} {
		out["library/"+path.Base(name)] = all[name]
	}
	return out
}

// License returns the license of amkc and of its builds, which the Python package has too, as a file of its own: it is
// installed without the rest.
func License() []byte { return ForeignSources()["python/LICENSE"] }

// collect returns the embedded files below dir that keep wants, by path relative to it.
func collect(from fs.FS, dir string, keep func(name string) bool) map[string][]byte {
	root, err := fs.Sub(from, dir)
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
