package codegen

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime"
	"amkc/templates"
)

// Project renders every generated file of a build but the manifest: sources, device runtime, launcher, both forms of the
// program, Makefile and README. name is the base name of the executable.
func Project(p *ir.Program, name string) (map[string][]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	files, err := CUDA(p)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, runtime.DeviceSources())
	facts, err := Facts(p)
	if err != nil {
		return nil, err
	}
	launcher, err := Launcher(facts.Model)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, launcher)
	if files["program.json"], err = p.MarshalJSON(); err != nil {
		return nil, err
	}
	files["schedule.amk"] = ir.Print(p)
	data := struct {
		Name, Gencode string
		LastPosition  int
		Model         ir.Model
		Target        *ir.Target
	}{name, Gencode(p.Target.Arch), p.Model.MaxSeq - 1, p.Model, p.Target}
	set, err := template.ParseFS(templates.FS, "*.tmpl")
	if err != nil {
		return nil, err
	}
	for _, file := range []string{"Makefile", "README.md"} {
		var b bytes.Buffer
		if err := set.ExecuteTemplate(&b, file+".tmpl", data); err != nil {
			return nil, err
		}
		files[file] = b.Bytes()
	}
	return files, nil
}

// checkName holds the name of the executable to what is a file name, a make target and a comment at once.
func checkName(name string) error {
	const want = "want letters, digits and . _ - + (--name)"
	outside := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-+", r)
	}
	switch {
	case name == "" || strings.Trim(name, ".") == "" || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, outside):
		return diag.Errorf(codeName, fmt.Sprintf("name %q", name), "cannot be the name of a build's executable; %s", want)
	case slices.Contains([]string{"all", "amk", "launcher", "Makefile"}, name) || slices.Contains(ownExtensions, path.Ext(name)):
		return diag.Errorf(codeName, fmt.Sprintf("name %q", name), "is that of another file of the build; want another (--name)")
	}
	return nil
}

// ownExtensions are those of the files beside the executable.
var ownExtensions = []string{".amk", ".cu", ".fatbin", ".h", ".json", ".md", ".safetensors"}

// Origin says which source of amkc a file of the build's CUDA sources comes from, by its path in the build; "" for files
// that are not amkc's.
func Origin(file string) string {
	switch name := path.Base(file); {
	case file == "amk/"+name && strings.HasSuffix(name, ".cuh"):
		return "runtime/cuda/amk/" + name
	case file == name && slices.Contains(cudaFiles, name):
		return "templates/" + name + ".tmpl"
	}
	return ""
}

// Gencode is nvcc's -gencode argument for an architecture: sm_90a -> arch=compute_90a,code=sm_90a.
func Gencode(arch string) string {
	return "arch=compute_" + strings.TrimPrefix(arch, "sm_") + ",code=" + arch
}
