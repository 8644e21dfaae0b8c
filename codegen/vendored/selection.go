package vendored

import (
	"bufio"
	"bytes"
	"fmt"
	"go/build/constraint"
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

// FromModule builds the vendor folder from the unpacked module at dir: what `go mod vendor` would copy for a program that
// imports the module's root package, for every platform, with and without cgo, and the modules.txt that goes with it.
func FromModule(dir string) (map[string][]byte, error) {
	files, err := fromModule(dir)
	if err != nil {
		return nil, diag.Errorf(CodeChanged, dir, "the sources of %s cannot be read: %v; %s", Require(), err, downloadAgain)
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
		if strings.HasSuffix(name, ".go") {
			if ignored(data) {
				continue
			}
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

// ignored says whether a file's build constraint can be met only with the tag "ignore", by which convention marks
// programs that are run by hand.
func ignored(src []byte) bool {
	lines := bufio.NewScanner(bytes.NewReader(src))
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "package ") {
		if !constraint.IsGoBuild(lines.Text()) {
			continue
		}
		expr, err := constraint.Parse(lines.Text())
		return err == nil && !possible(expr, true)
	}
	return false
}

// possible says whether a choice of tags other than "ignore" gives an expression the wanted value, each tag chosen anew
// wherever it stands.
func possible(e constraint.Expr, want bool) bool {
	switch e := e.(type) {
	case *constraint.NotExpr:
		return possible(e.X, !want)
	case *constraint.AndExpr:
		if want {
			return possible(e.X, true) && possible(e.Y, true)
		}
		return possible(e.X, false) || possible(e.Y, false)
	case *constraint.OrExpr:
		if want {
			return possible(e.X, true) || possible(e.Y, true)
		}
		return possible(e.X, false) && possible(e.Y, false)
	case *constraint.TagExpr:
		return e.Tag != "ignore" || !want
	}
	return true
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
