package vendored

import (
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"amkc/ir/diag"
)

// platforms are those that a launcher builds on, with and without cgo: GPU machines run Linux on amd64 or arm64.
var platforms = func() (out []build.Context) {
	for _, arch := range []string{"amd64", "arm64"} {
		for _, cgo := range []bool{false, true} {
			c := build.Default
			c.GOOS, c.GOARCH, c.CgoEnabled, c.BuildTags = "linux", arch, cgo, nil
			out = append(out, c)
		}
	}
	return out
}()

// FromModule builds the vendor folder from the unpacked module at dir: of what `go mod vendor` would copy for a program
// that imports the module's root package, the files that some of the platforms compile, and the licence; and the
// modules.txt that goes with it.
func FromModule(dir string) (map[string][]byte, error) {
	files, err := fromModule(dir)
	if err != nil {
		return nil, diag.Errorf(CodeChanged, dir, "the sources of %s cannot be read: %v; %s", Require(), err,
			downloadAgain)
	}
	return files, nil
}

func fromModule(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	packages := []string{Module}
	for i := 0; i < len(packages); i++ { // grows as imports are found
		pkg := packages[i]
		imports, err := addPackage(files, filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(pkg, Module))), pkg)
		if err != nil {
			return nil, err
		}
		for _, imp := range imports {
			if strings.HasPrefix(imp, Module+"/") && !slices.Contains(packages, imp) {
				packages = append(packages, imp)
			}
		}
	}
	version, err := goVersion(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	slices.Sort(packages)
	files["vendor/modules.txt"] = fmt.Appendf(nil, "# %s %s\n## explicit; go %s\n%s\n",
		Module, Version, version, strings.Join(packages, "\n"))
	return files, nil
}

// addPackage adds the files of one package and returns what they import.
func addPackage(files map[string][]byte, dir, pkg string) (imports []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasSuffix(name, "_test.go") || name == "go.mod" || name == "go.sum" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		used, err := compiled(dir, name)
		if err != nil {
			return nil, err
		}
		if !used && name != "LICENSE" {
			continue
		}
		if strings.HasSuffix(name, ".go") {
			file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
			if err != nil {
				return nil, err
			}
			for _, imp := range file.Imports {
				p, err := strconv.Unquote(imp.Path.Value)
				if err != nil {
					return nil, err
				}
				imports = append(imports, p)
			}
		}
		files[path.Join("vendor", pkg, name)] = data
	}
	return imports, nil
}

// compiled says whether one of the platforms compiles a file, by its name and its build constraint.
func compiled(dir, name string) (bool, error) {
	for i := range platforms {
		if used, err := platforms[i].MatchFile(dir, name); used || err != nil {
			return used, err
		}
	}
	return false, nil
}

// goVersion reads the go line of a go.mod: vendored code is compiled for the language version of its own module.
func goVersion(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "go" {
			return f[1], nil
		}
	}
	return "", fmt.Errorf("%s has no go line", path)
}
