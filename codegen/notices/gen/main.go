// Command gen writes the notices that codegen/notices embeds, from the license files of the modules that the go command
// links. `go generate ./codegen/notices` runs it, in that folder. It imports only the standard library and
// codegen/modules.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"amkc/codegen/modules"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	build, err := linked("amkc/app/cli", "amkc/app/library/shared")
	if err != nil {
		return err
	}
	for _, m := range modules.All {
		carried, err := listed("-m", m.Path)
		if err != nil {
			return err
		}
		build = append(build, carried...)
	}
	build = append(build, marked)
	own, err := linked("amkc/cmd/amkc", "amkc/cmd/libamkref")
	if err != nil {
		return err
	}
	err = write("build.txt", "The executable, the library and the folder launcher/modules of this build contain the\n"+
		"following third-party software.\n", build)
	return errors.Join(err, write("amkc.txt", "amkc and its builds contain the following third-party "+
		"software.\n", append(own, build...)))
}

// A module is what `go list -m` knows of one.
type module struct {
	Path, Version, Dir string
}

// marked is part of the page of the server.
var marked = module{"marked", "18.2.1", "../../app/serve/page/marked"}

// linked returns the modules of the packages that some packages are linked with, on each system that amkc runs on.
func linked(packages ...string) ([]module, error) {
	var all []module
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"}, packages...)...)
		// With cgo, whose packages are those without it and more. Listing them takes no C compiler.
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=1")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		modules, err := listed(append([]string{"-m"}, strings.Fields(string(out))...)...)
		if err != nil {
			return nil, err
		}
		all = append(all, modules...)
	}
	return all, nil
}

// listed is what `go list -json` prints of modules.
func listed(args ...string) ([]module, error) {
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	var all []module
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m module
		if err := d.Decode(&m); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		all = append(all, m)
	}
}

// write writes the license files of Go and of modules, each once, in the order of paths.
func write(file, opening string, of []module) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	once := map[string]module{}
	for _, m := range of {
		once[m.Path] = m
	}
	all := []module{{Path: "Go, its runtime and its standard library", Dir: strings.TrimSpace(string(root))}}
	for _, name := range slices.Sorted(maps.Keys(once)) {
		all = append(all, once[name])
	}
	text := opening
	for _, m := range all {
		text += "\n" + strings.Repeat("=", 80) + "\n" + strings.TrimSpace(m.Path+" "+m.Version) + "\n"
		files, err := notices(m)
		if err != nil {
			return err
		}
		for _, name := range files {
			data, err := os.ReadFile(filepath.Join(m.Dir, name))
			if err != nil {
				return err
			}
			text += "\n" + name + ":\n\n" + strings.TrimRight(string(data), "\n") + "\n"
		}
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// notices lists the files of a module that have to be passed on, by path in it: a part that was taken from elsewhere
// has its own license. Of Go itself it lists those at its root. A module without a license may not be linked.
func notices(m module) ([]string, error) {
	var names []string
	licensed := false
	err := fs.WalkDir(os.DirFS(m.Dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (m.Version == "" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		stem, _, _ := strings.Cut(strings.ToUpper(d.Name()), ".")
		if slices.Contains([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, stem) {
			names = append(names, name)
			licensed = licensed || path.Dir(name) == "." && stem != "NOTICE" && stem != "PATENTS"
		}
		return nil
	})
	if err == nil && !licensed {
		err = fmt.Errorf("%s has no license", m.Dir)
	}
	return names, err
}
