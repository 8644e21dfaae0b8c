package codegen

import (
	"bytes"
	"strings"
	"text/template"

	"amkc/ir"
	"amkc/runtime"
	"amkc/templates"
)

// Project renders every generated file of a build but the manifest: sources, device runtime, launcher, both forms of the
// program, Makefile and README. name is the base name of the executable.
func Project(p *ir.Program, name string) (map[string][]byte, error) {
	files, err := CUDA(p)
	if err != nil {
		return nil, err
	}
	for path, text := range runtime.DeviceSources() {
		files[path] = text
	}
	facts, err := Facts(p)
	if err != nil {
		return nil, err
	}
	launcher, err := Launcher(facts.Model)
	if err != nil {
		return nil, err
	}
	for path, text := range launcher {
		files[path] = text
	}
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

// Gencode is nvcc's -gencode argument for an architecture: sm_90a -> arch=compute_90a,code=sm_90a.
func Gencode(arch string) string {
	return "arch=compute_" + strings.TrimPrefix(arch, "sm_") + ",code=" + arch
}
