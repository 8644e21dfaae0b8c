package compiler

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/compiler/builddir"
	"amkc/compiler/diff"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
	"amkc/runtime/shape"
	"amkc/validate"
	"amkc/validate/kernel"
)

var (
	codeNotBuild = diag.New("AMK4901", "the directory is not a build of amkc", `
A build is what amkc MODEL -o DIR has written; it holds amkc.manifest.json, which names its files and their digests. The
manifest is missing, malformed, or of a format that this amkc does not know.`)

	codeFileChanged = diag.New("AMK4902", "a file of the build is not what amkc wrote", `
The manifest has a digest of every file that amkc wrote, and this file is missing or has another one: it was edited,
damaged, or comes from another build. Compile again; a file that was edited by hand is kept next to the new one as
NAME.edited.`)

	codeNotEmitted = diag.New("AMK4903", "a generated file is not what the program gives", `
amkc verify emits the build again from its program.json and its config.json, and compares bytes. This file differs, so
the sources do not say what the program says, or reference.cu not what the model says: a file was edited, or the build
was written by another version of amkc, which the message then says. A file that is missing, or
larger than amkc reads, differs too, and so does every file of a build without its program.json.`)
)

var codeOtherAmkc = diag.New("AMK4908", "the build was written by another version of amkc", `
Digests, the proof and the schedule that is read back do not depend on the version, unless the IR or the forms of the
headers have changed since. What amkc emits for a program does: only the amkc that wrote the build can say whether its
files are that. The manifest, README.md and ./NAME info have its version and commit.`)

// Verification is the result of Verify.
type Verification struct {
	Files    int             // compared with their digests, weights included
	Emitted  int             // compared with what the program gives
	Stages   int             // read back out of the headers, those of all variants
	Proof    validate.Report // of the program that was read back
	Findings diag.List       // what is not as it should be; empty for a good build

	tell   progress.Func
	writer string // another amkc that wrote the build; empty: this one did
}

// Verify reports whether a build matches its program: every file has the digest of the manifest, and there is no other
// file that a tool could load; the schedule that is read back from the headers is proved, and equals that of
// program.json; program.json is the result of the passes for config.json with its knobs; and the files that amkc emits
// for both equal those of the build, byte for byte. The error is for a directory that cannot be read.
func Verify(dir string, tell progress.Func) (*Verification, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	writer, written := otherWriter(m)
	v := &Verification{tell: tell, writer: writer}
	if writer != "" {
		v.Findings.Add(diag.Warningf(codeOtherAmkc, dir, "%s", written).With(
			"this amkc can say whether files have their digests, and whether it proves the program",
			"only the other one can say whether the files are what it emits for the program"))
	}
	eachFile(m, func(name, digest string, size int64) bool {
		v.Files++
		if what := mismatch(dir, name, digest, size, tell); what != "" {
			v.Findings.Add(diag.Errorf(codeFileChanged, filepath.Join(dir, filepath.FromSlash(name)), "%s", what))
		}
		return true
	})
	v.Findings.Add(unlisted(dir, m)...)
	known := len(v.Findings)
	p := v.readProgram(dir, "")
	if p == nil && v.writer != "" && len(v.Findings) > known {
		v.cannotRead(dir, known)
		return v, nil
	}
	v.readBack(dir, "", p)
	passes, all := []*ir.Program{}, p != nil && v.proves(p)
	var before shape.Pass
	for _, of := range m.Facts.Passes {
		if !of.HasKernel() || !of.Follows(before) {
			v.Findings.Add(diag.Errorf(codeNotEmitted, filepath.Join(dir, host.ManifestFile),
				"facts.passes has %v after %v, which no build has", of.Pass, before))
			return v, nil
		}
		before = of.Pass
		sub := of.Dir()
		q := v.readProgram(dir, sub)
		v.readBack(dir, sub, q)
		passes, all = append(passes, q), all && q != nil && v.proves(q)
	}
	if !all {
		return v, nil
	}
	return v, v.checkEmission(dir, m, p, passes...)
}

// otherWriter returns the amkc that wrote a build, and a sentence about it, if that is another one than this.
func otherWriter(m *codegen.Manifest) (writer, written string) {
	this := thisCompiler()
	if m.Compiler.Version == this.Version && (m.Compiler.Commit == this.Commit || m.Compiler.Commit == "" ||
		this.Commit == "") {
		return "", ""
	}
	writer = "amkc " + m.Compiler.Text()
	return writer, fmt.Sprintf("the build was written by %s, and this is amkc %s", writer, this.Text())
}

// read reads a file that every build has. One that cannot be read is a finding, whatever the manifest says: without it
// less is compared, or nothing is. It is one already if its digest could not be read either.
func (v *Verification) read(path string, kind infile.Kind) ([]byte, bool) {
	text, err := infile.Read(path, kind)
	if err != nil && v.found(path) == nil {
		v.Findings.Add(diag.Errorf(codeNotEmitted, path, "cannot be read: %v", infile.Reason(err)))
	}
	return text, err == nil
}

// cannotRead replaces the findings about the program of another amkc, from number known on, by one that says what to
// do. A reader that knows only its own IR finds something in every line of another one.
func (v *Verification) cannotRead(dir string, known int) {
	var notes []string
	if v.Findings[:known].Err() == nil {
		notes = append(notes, fmt.Sprintf("the %d files of the manifest have their digests", v.Files))
	}
	for _, d := range v.Findings[known:] {
		notes = append(notes, d.Msg)
	}
	v.Findings = append(v.Findings[:known], diag.Errorf(codeNotEmitted, filepath.Join(dir, ProgramFile),
		"this amkc cannot read the program of %s, so nothing is proved; verify the build with that amkc, or compile "+
			"the model again", v.writer).With(notes...))
}

// found returns the finding that a file is not what it should be, or nil.
func (v *Verification) found(path string) *diag.Diagnostic {
	for _, d := range v.Findings {
		if d.Pos == path && (d.Code == codeFileChanged.ID || d.Code == codeNotEmitted.ID) {
			return d
		}
	}
	return nil
}

// readProgram reads program.json, that of passes of several tokens if sub is their directory; nil if that cannot be
// done, or if it is not well-formed.
func (v *Verification) readProgram(dir, sub string) *ir.Program {
	path := filepath.Join(dir, sub, ProgramFile)
	text, ok := v.read(path, infile.Program)
	if !ok {
		return nil
	}
	p, diags := ir.LoadJSON(text, path)
	v.Findings.Add(diags...)
	return p
}

// proves proves program.json, which is what is emitted again. Its errors are reported unless the schedule of the
// headers has been rejected already: mostly they are the same.
func (v *Verification) proves(p *ir.Program) bool {
	proof := validate.ProgramFor(kernel.Backend, p)
	if v.Proof.OK || v.Stages == 0 {
		v.Findings.Add(proof.Diags...)
	}
	return proof.OK
}

// ProgramFile is the validated program in a build.
const ProgramFile = "program.json"

// readManifest reads the manifest of a build directory.
func readManifest(dir string) (*codegen.Manifest, error) {
	path := filepath.Join(dir, host.ManifestFile)
	text, err := infile.Read(path, infile.Manifest)
	if _, working := os.Lstat(filepath.Join(dir, builddir.Work)); working == nil && errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf(codeNotBuild, dir,
			"holds no complete build: amkc is writing it, or was interrupted; wait, or run the same amkc "+
				"MODEL -o DIR again")
	}
	if err != nil {
		return nil, diag.Errorf(codeNotBuild, dir,
			"cannot read %s: %v; want a directory that amkc MODEL -o DIR has written", host.ManifestFile,
			infile.Reason(err))
	}
	var m codegen.Manifest
	if err := infile.Unmarshal(text, &m); err != nil {
		return nil, diag.Errorf(codeNotBuild, path, "is malformed: %v; want the manifest as amkc wrote it",
			infile.Reason(err))
	}
	if m.Format != host.ManifestFormat || len(m.Files) == 0 {
		return nil, diag.Errorf(codeNotBuild, path,
			"has format %d and %d files; want format %d, as this amkc writes it", m.Format, len(m.Files),
			host.ManifestFormat)
	}
	if what := badText(text); what != "" {
		return nil, diag.Errorf(codeNotBuild, path,
			"holds %.40q; want lines of at most %d printable bytes, as amkc writes them", what, ir.MaxName)
	}
	return &m, nil
}

// badText returns a string of a manifest, or a key, that amkc writes no such string into. Paths, names, digests and
// versions are all short and printable. It reads words and not a tree, in which of two equal keys only the last would
// be.
func badText(manifest []byte) string {
	for words := json.NewDecoder(bytes.NewReader(manifest)); ; {
		word, err := words.Token()
		if err != nil {
			return ""
		}
		if text, is := word.(string); is && (len(text) > ir.MaxName || printable.Line(text) != text) {
			return text
		}
	}
}

// checkEmission compiles the build's model and emits the build again, and compares. A file that already differs from
// its digest is reported once.
func (v *Verification) checkEmission(dir string, m *codegen.Manifest, p *ir.Program, passes ...*ir.Program) error {
	again, model, err := compileAgain(dir, m, p, passes)
	if err != nil {
		path, what := filepath.Join(dir, host.ConfigFile), "gives no model"
		if model {
			path, what = filepath.Join(dir, ProgramFile), "gives no build at all"
		}
		v.Findings.Add(diag.Errorf(codeNotEmitted, path, "%s: %v", what, infile.Reason(err)))
		return nil
	}
	defer again.Close()
	if v.checkProgram(filepath.Join(dir, ProgramFile), p, again.Program) {
		v.checkWeights(filepath.Join(dir, host.WeightsFile), p, again.Graph, m.Facts.Invented)
	}
	for i, q := range passes {
		v.checkProgram(filepath.Join(dir, q.Pass.Dir(), ProgramFile), q, again.Passes[i])
	}
	files, err := codegen.Project(p, again.Graph, p.Model.Name, passes...)
	if err != nil {
		v.Findings.Add(diag.Errorf(codeNotEmitted, filepath.Join(dir, ProgramFile), "gives no build at all: %v",
			infile.Reason(err)))
		return nil
	}
	files[readmeFile] = append(files[readmeFile], m.Origin()...)
	var others []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		v.Emitted++
		path := filepath.Join(dir, filepath.FromSlash(name))
		kind := infile.Source
		kind.Max = max(kind.Max, int64(len(files[name])))
		have, _ := v.read(path, kind)
		inside := insideOf(name, have, files[name])
		if d := v.found(path); d != nil {
			d.With(inside...)
		} else if m.Files[name] == "" || !bytes.Equal(have, files[name]) {
			if v.writer != "" {
				others = append(others, name)
				continue
			}
			v.Findings.Add(diag.Errorf(codeNotEmitted, path, "differs from what %s gives", ProgramFile).With(inside...))
		}
	}
	if len(others) > 0 {
		v.Findings.Add(diag.Errorf(codeNotEmitted, dir, "%s not what this amkc emits for %s; verify the build with %s",
			these(len(others), "file"), ProgramFile, v.writer).With(firstFew(others)...))
	}
	for _, name := range strangers(files, p.Model.Name, m) {
		v.Findings.Add(diag.Errorf(codeNotEmitted, filepath.Join(dir, filepath.FromSlash(name)),
			"is listed by the manifest, and is not a file of a build of %s", ProgramFile))
	}
	facts, err := codegen.Facts(p, passes...)
	if err != nil {
		return err
	}
	facts.CUDA = m.Facts.CUDA // of the toolchain, which the program does not name
	if m.Facts.Invented != nil {
		facts.Invented = inventedOf(p, m.Facts.Invented.Seed)
	}
	if !reflect.DeepEqual(facts, m.Facts) {
		v.Findings.Add(diag.Errorf(codeNotEmitted, filepath.Join(dir, host.ManifestFile),
			"its facts differ from what %s gives", ProgramFile))
	}
	return nil
}

// these is the subject of a sentence: "1 file is", "3 files are".
func these(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// firstFew are some of many lines.
func firstFew(lines []string) []string {
	const most = 10
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most]), fmt.Sprintf("and %d more", len(lines)-most))
}

// insideOf says which files of an archive differ from those that it should have.
func insideOf(name string, have, want []byte) []string {
	if path.Ext(name) != ".zip" {
		return nil
	}
	var out []string
	for _, c := range diff.Archives(have, want, false) {
		what := map[diff.Kind]string{diff.OnlyInA: "is in it and should not be", diff.OnlyInB: "is not in it"}[c.Kind]
		out = append(out, fmt.Sprintf("%s %s", printable.Line(c.Path), cmp.Or(what, "differs")))
	}
	return firstFew(out)
}

// strangers are the files that a manifest lists and a build of the program does not have.
func strangers(emitted map[string][]byte, launcher string, m *codegen.Manifest) []string {
	made := map[string]bool{launcher: true, host.LibraryFile: true}
	for name := range emitted {
		if base, ok := strings.CutSuffix(name, ".cu"); ok {
			made[base+".fatbin"] = true
		}
	}
	var out []string
	for name := range m.Files {
		if emitted[name] == nil && !isCopied(name) {
			out = append(out, name)
		}
	}
	for name := range m.Built {
		if !made[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
