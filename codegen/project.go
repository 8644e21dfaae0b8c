package codegen

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"amkc/codegen/notices"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime"
	"amkc/runtime/shape"
)

// Project renders every generated file of a build but the manifest: sources, device runtime, launcher, header of its
// library, Python package, both forms of the program, Makefile, README and licenses. g is the graph of the program's
// model, and name the base name of the executable. passes are programs of the same model for passes of several tokens,
// each in a separate directory. Calls share the bytes of files that are the same in every build; callers must not
// modify them.
func Project(p *ir.Program, g *ir.Graph, name string, passes ...*ir.Program) (map[string][]byte, error) {
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
	maps.Copy(files, copiedSources())
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
		Passes        []string // their directories
		Prompt        int      // tokens that the kernel for prompts takes; 0: there is none
		Library       string   // package of libamk.so
	}{name, Gencode(p.Target.Arch), p.Model.MaxSeq - 1, p.Model, p.Target, nil, facts.Prompt, LibraryPackage}
	var before shape.Pass
	for _, q := range passes {
		if !q.Pass.HasKernel() || !q.Pass.Follows(before) {
			return nil, diag.Errorf(codeStructure, fmt.Sprintf("pass of %v", q.Pass), "want programs of passes of 2 "+
				"to %d tokens, one of each size: rows of one sequence, by their number, then a row of each of "+
				"several, and then several rows of each of as many", shape.MaxTokens)
		}
		before = q.Pass
		dir := q.Pass.Dir()
		data.Passes = append(data.Passes, dir)
		if err := passFiles(files, dir, p, q); err != nil {
			return nil, err
		}
	}
	includeHeaders(files)
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

// copiedSources are what C and Python need to use a build, and its licenses: reading embedded files copies them.
var copiedSources = sync.OnceValue(func() map[string][]byte {
	files := runtime.ForeignSources()
	files["LICENSE"], files[notices.File] = runtime.License(), []byte(notices.Build)
	return files
})

// A header is one of the device runtime, with the paths that it includes.
type header struct {
	text     []byte
	includes []string
}

// deviceHeaders are read once: a search emits thousands of builds.
var deviceHeaders = sync.OnceValue(func() map[string]header {
	headers := map[string]header{}
	for name, text := range runtime.DeviceSources() {
		headers[name] = header{text, includesOf(name, text)}
	}
	return headers
})

var includeLine = regexp.MustCompile(`(?m)^ *# *include *"([^"]+)"`)

// includesOf are the paths that a source includes, under whatever condition.
func includesOf(name string, text []byte) []string {
	var out []string
	for _, m := range includeLine.FindAllSubmatch(text, -1) {
		out = append(out, path.Join(path.Dir(name), string(m[1])))
	}
	return out
}

// includeHeaders adds the headers of the device runtime that the sources of a build include, and those that these
// include in turn.
func includeHeaders(files map[string][]byte) {
	var included []string
	for name, text := range files {
		if slices.Contains([]string{".cu", ".h", ".cuh"}, path.Ext(name)) {
			included = append(included, includesOf(name, text)...)
		}
	}
	headers := deviceHeaders()
	for len(included) > 0 {
		name := included[len(included)-1]
		included = included[:len(included)-1]
		if h, ok := headers[name]; ok && files[name] == nil {
			files[name] = h.text
			included = append(included, h.includes...)
		}
	}
}

// passFiles adds what a program for passes of several tokens gives to the files of a build, all but what it has in
// common with the program p of one token: the weights and caches, and in which order sums are added up.
func passFiles(files map[string][]byte, dir string, p, q *ir.Program) error {
	where := fmt.Sprintf("pass of %v", q.Pass)
	if knob := knobs.OtherOrder(&p.Config, &q.Config); knob != "" {
		return diag.Errorf(codeStructure, where, "has another %s than the program of one token; want the same, for "+
			"logits that do not depend on the pass", knob)
	}
	sources, err := CUDA(q)
	if err != nil {
		return err
	}
	if !bytes.Equal(sources[ModelFile], files[ModelFile]) {
		return diag.Errorf(codeStructure, where, "has weights or caches elsewhere than the program of one token, or "+
			"other facts of the model; want the same")
	}
	for _, name := range []string{"megakernel.cu", "pages.h", "schedule.h", "stages.h"} {
		files[dir+"/"+name] = sources[name]
	}
	files[dir+"/schedule.amk"] = ir.Print(q)
	files[dir+"/program.json"], err = q.MarshalJSON()
	return err
}

// ModelFile is the header with the constants that all programs of a build share.
const ModelFile = "model_config.h"

// checkName holds the name of the executable to what is a file name, a make target and a comment at once. After a dot
// comes a digit, as in versions: no tool loads files by such an extension.
func checkName(name string) error {
	const want = "want letters, digits and _ - +, and dots before digits (--name)"
	outside := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-+", r)
	}
	switch {
	case len(name) > maxExecutable:
		return diag.Errorf(codeName, fmt.Sprintf("name %.40q…", name),
			"has %d bytes, and an executable's may have %d; want a shorter one (--name)", len(name), maxExecutable)
	case ir.CheckName(name) != nil || name[0] == '.' || name[0] == '-' || strings.ContainsFunc(name, outside):
		return diag.Errorf(codeName, fmt.Sprintf("name %q", name), "cannot be the name of a build's executable; %s",
			want)
	case slices.Contains(ownNames, strings.ToLower(name)):
		return diag.Errorf(codeName, fmt.Sprintf("name %q", name),
			"is that of another file of the build; want another (--name)")
	}
	for _, part := range strings.Split(name, ".")[1:] {
		if part == "" || part[0] < '0' || part[0] > '9' {
			return diag.Errorf(codeName, fmt.Sprintf("name %q", name),
				"has the extension %q, by which tools could load the executable; %s", "."+part, want)
		}
	}
	return nil
}

// maxExecutable is the longest name of an executable, in bytes: a file next to it, such as NAME.edited.12, must have a
// name too. Hubs allow 96.
const maxExecutable = 128

// ownNames are those that files and targets of make have, in lower case: not every file system tells cases apart.
// make prefers GNUmakefile and makefile to the Makefile of the build.
var ownNames = []string{"all", "amk", "launcher", "library", "python", "makefile", "gnumakefile",
	"license", strings.ToLower(notices.File)}

// Origin returns the source file of amkc for a file of the build's CUDA sources, given its path in the build; "" for
// files that are not amkc's.
func Origin(file string) string {
	switch dir, name := path.Split(file); {
	case (dir == "amk/" || dir == "amk/hw/") && strings.HasSuffix(name, ".cuh"):
		return "runtime/cuda/" + file
	case dir == "" && (name == referenceFile || name == promptFile),
		(dir == "" || isPassDir(dir)) && slices.Contains(cudaFiles, name):
		return "templates/" + name + ".tmpl"
	}
	return ""
}

// isPassDir reports whether a directory, with a trailing slash, is that of a program for passes of several tokens.
func isPassDir(dir string) bool {
	for sequences := range shape.MaxTokens {
		for rows := range shape.MaxTokens {
			if of := ir.PassOf(1+sequences, 1+rows); of.HasKernel() && dir == of.Dir()+"/" {
				return true
			}
		}
	}
	return false
}

// NVCCFlags are the flags with which nvcc compiles a kernel, as in the Makefile of a project. A product is fused with a
// sum only where the code has fmaf: when the compiler chose, kernels of one build differed in the last bits of the same
// row (docs/passes.md).
func NVCCFlags() []string { return []string{"-O3", "-std=c++17", "-fmad=false"} }

// Gencode is nvcc's -gencode argument for an architecture: sm_90a -> arch=compute_90a,code=sm_90a.
func Gencode(arch string) string {
	return "arch=compute_" + strings.TrimPrefix(arch, "sm_") + ",code=" + arch
}
