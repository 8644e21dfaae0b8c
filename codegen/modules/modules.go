// Package modules supplies the third-party Go modules that an emitted launcher carries, so that it builds with no
// network. Each is the complete module as the public module proxy serves it, two files: the go.mod and the zip.
//
// The files come from this executable, in which `go generate` has embedded them, or else from the Go module cache of
// this machine. Both must match one digest, so a build does not depend on which it was.
//
// It imports the standard library, ir/diag and runtime/infile only.
package modules

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

//go:generate go run ./gen

// A Module is one that launchers carry. Path and Version follow amkc's own go.mod, and the two sums its go.sum, which a
// test holds them to: anybody can compare them with the public checksum database.
type Module struct {
	Path, Version string
	Sum, GoModSum string // lines of go.sum: of the files in the zip, and of the go.mod

	zip, goMod string // SHA-256 of the two files
}

// All lists the modules that launchers carry. No path has a capital letter, which file names would write specially.
var All = []Module{{
	Path: "github.com/ebitengine/purego", Version: "v0.11.3",
	Sum:      "h1:OB+JLpdm7ioymhyA+6s5kbb/uOuYycAgL8NNTFc5MLg=",
	GoModSum: "h1:DCHPP08djqhNSoTfImcnHYQRZmd0qhakvrozqaEYhGQ=",
	zip:      "794b433246c662b29a0b48f2f07b1814bfe15ca61744de88f05d18d7795f77c2",
	goMod:    "b63c9137b0c2608c4cd43a0234cbaeb777bc0d43a29744f2058c1da82b6d358e",
}, {
	Path: "golang.org/x/text", Version: "v0.43.0",
	Sum:      "h1:1QivrlhwAsnMOcqgOdl9my7s9OyZl8O5/UGUTJVXoWc=",
	GoModSum: "h1:hbSIYA/amXcRXTFSZqh8tWHEoqRvvbKPJ2uz/KU+a+s=",
	zip:      "b75131f628f6e2e4892fd638d33127e952a5027775e0162b94ba069cb4e13863",
	goMod:    "63270b8ca6290a720212e1d6e58b8d12a8aa315a1cb960411d7ec2998c0aab59",
}}

// Requirements returns the lines of the launcher's go.mod that require the modules.
func Requirements() string {
	var b strings.Builder
	for _, m := range All {
		fmt.Fprintf(&b, "require %s %s\n", m.Path, m.Version)
	}
	return b.String()
}

// GoSum returns the launcher's go.sum.
func GoSum() string {
	var b strings.Builder
	for _, m := range All {
		fmt.Fprintf(&b, "%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", m.Path, m.Version, m.Sum, m.GoModSum)
	}
	return b.String()
}

// Folder is where the modules lie below the folder of this package, and Files names them from there.
const Folder = "files/modules"

// The folder above always has its README, so the pattern matches with and without the modules.
//
//go:embed files
var embedded embed.FS

// Files returns the files of the modules, by slash-separated paths as below $GOMODCACHE/cache/download, which are those
// of a module proxy: "github.com/ebitengine/purego/@v/v0.11.3.zip". Errors are diagnostics, [CodeMissing] and
// [CodeChanged].
func Files() (map[string][]byte, error) {
	files, err := fromExecutable()
	if files != nil || err != nil {
		return maps.Clone(files), err
	}
	return Cached()
}

// fromExecutable reads and checks what is embedded, which does not change while amkc runs.
var fromExecutable = sync.OnceValues(func() (map[string][]byte, error) { return embeddedIn(embedded) })

// embeddedIn returns what `go generate` has put below this package, or nil where it has not been run since the last
// module was added.
func embeddedIn(fsys fs.FS) (map[string][]byte, error) {
	return collect("this amkc", "run `go generate ./codegen/modules` and build amkc again",
		func(name string) ([]byte, error) { return fs.ReadFile(fsys, path.Join(Folder, name)) })
}

// collect reads and checks the files of all modules, and returns nil if one is not there. Where they come from and what
// helps if they are not the expected ones is for the message.
func collect(where, remedy string, read func(name string) ([]byte, error)) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, m := range All {
		for _, file := range []struct{ extension, want string }{{".mod", m.goMod}, {".zip", m.zip}} {
			name := path.Join(m.Path, "@v", m.Version+file.extension)
			data, err := read(name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, nil
			}
			if err != nil {
				return nil, diag.Errorf(CodeChanged, where, "%s cannot be read: %s; %s", name, infile.Reason(err),
					remedy)
			}
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != file.want {
				return nil, diag.Errorf(CodeChanged, where,
					"%s is not the file that amkc was made for (SHA-256 %x, want %s); %s", name, sum, file.want, remedy)
			}
			files[name] = data
		}
	}
	return files, nil
}
