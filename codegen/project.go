package codegen

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime"
)

// Project renders every generated file of a build but the manifest: sources, device runtime, launcher, both forms of
// the program, Makefile and README. g is the graph of the program's model, and name the base name of the executable.
func Project(p *ir.Program, g *ir.Graph, name string) (map[string][]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	files, err := CUDA(p)
	if err != nil {
		return nil, err
	}
	if files[referenceFile], err = Reference(p, g); err != nil {
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
	for _, file := range []string{"Makefile", "README.md"} {
		if files[file], err = execute(file, data); err != nil {
			return nil, err
		}
	}
	for base := name; path.Ext(base) != ""; { // Makefile.sh, schedule.h.gch
		base = strings.TrimSuffix(base, path.Ext(base))
		if files[base] != nil {
			return nil, diag.Errorf(codeName, fmt.Sprintf("name %q", name),
				"begins with that of the build's file %s, and tools look for such files; want another (--name)", base)
		}
	}
	return files, nil
}

// checkName holds the name of the executable to what is a file name, a make target and a comment at once.
func checkName(name string) error {
	const want = "want letters, digits and . _ - + (--name)"
	outside := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-+", r)
	}
	extension := strings.ToLower(path.Ext(name))
	switch {
	case len(name) > maxExecutable:
		return diag.Errorf(codeName, fmt.Sprintf("name %.40q…", name),
			"has %d bytes, and an executable's may have %d; want a shorter one (--name)", len(name), maxExecutable)
	case ir.CheckName(name) != nil || name[0] == '.' || name[0] == '-' || strings.ContainsFunc(name, outside):
		return diag.Errorf(codeName, fmt.Sprintf("name %q", name), "cannot be the name of a build's executable; %s",
			want)
	case slices.Contains(ownNames, strings.ToLower(name)) || slices.Contains(ownExtensions, extension):
		return diag.Errorf(codeName, fmt.Sprintf("name %q", name),
			"is that of another file of the build; want another (--name)")
	case slices.Contains(ToolExtensions, extension):
		return diag.Errorf(codeName, fmt.Sprintf("name %q", name),
			"ends in %s, and compilers read such files; want another (--name)", extension)
	}
	return nil
}

// maxExecutable is the longest name of an executable, in bytes: a file beside it, such as NAME.edited.12, must have a
// name too. Hubs allow 96.
const maxExecutable = 128

// ownNames are those that files and targets of make have, in lower case: not every file system tells cases apart.
// make prefers GNUmakefile and makefile to the Makefile of the build.
var ownNames = []string{"all", "amk", "launcher", "makefile", "gnumakefile"}

// ownExtensions are those of the files beside the executable.
var ownExtensions = []string{".amk", ".cu", ".fatbin", ".h", ".json", ".md", ".safetensors"}

// ToolExtensions are those of what compilers, assemblers, linkers, make and go read, in lower case.
var ToolExtensions = []string{".a", ".asm", ".c", ".c++", ".cc", ".cpp", ".cu", ".cubin", ".cuh", ".cxx", ".def", ".f",
	".f90", ".for",
	".gch", ".go", ".h", ".h++", ".hh", ".hpp", ".hxx", ".i", ".ii", ".inc", ".inl", ".ipp", ".m", ".mak", ".make",
	".mk", ".mm",
	".mod", ".o", ".pch", ".pgo", ".ptx", ".s", ".so", ".sum", ".swig", ".swigcxx", ".sx", ".syso", ".tcc", ".work"}

// Origin says which source of amkc a file of the build's CUDA sources comes from, by its path in the build; "" for
// files that are not amkc's.
func Origin(file string) string {
	switch name := path.Base(file); {
	case file == "amk/"+name && strings.HasSuffix(name, ".cuh"):
		return "runtime/cuda/amk/" + name
	case file == name && (name == referenceFile || slices.Contains(cudaFiles, name)):
		return "templates/" + name + ".tmpl"
	}
	return ""
}

// Gencode is nvcc's -gencode argument for an architecture: sm_90a -> arch=compute_90a,code=sm_90a.
func Gencode(arch string) string {
	return "arch=compute_" + strings.TrimPrefix(arch, "sm_") + ",code=" + arch
}
