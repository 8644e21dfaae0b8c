package compiler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"amkc/codegen"
	"amkc/compiler/version"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/validate"
)

var (
	codeNotBuild = diag.New("AMK4901", "the directory is not a build of amkc", `
A build is what amkc MODEL -o DIR has written; it holds amkc.manifest.json, which names its files and their digests. The
manifest is missing, malformed, or of a format that this amkc does not know.`)

	codeFileChanged = diag.New("AMK4902", "a file of the build is not what amkc wrote", `
The manifest has a digest of every file that amkc wrote, and this file is missing or has another one: it was edited, damaged,
or comes from another build. Compile again; a file that was edited by hand is kept beside the new one as NAME.edited.`)

	codeNotEmitted = diag.New("AMK4903", "a generated file is not what the program gives", `
amkc verify emits the build again from its program.json and compares bytes. This file differs, so the sources do not say what
the program says: it was edited, or the build was written by another version of amkc, which the message then says.`)
)

// Verification is what Verify has found.
type Verification struct {
	Files    int             // compared with their digests, weights included
	Emitted  int             // compared with what the program gives
	Stages   int             // read back out of the headers, those of all variants
	Proof    validate.Report // of the program that was read back
	Findings diag.List       // what is not as it should be; empty for a good build
}

// Verify answers whether a build is what its program says: every file has the digest of the manifest; the schedule that is
// read back out of the headers is proved, and is that of program.json; and what program.json gives is byte for byte what is
// there. The error is for a directory that cannot be looked at.
func Verify(dir string) (*Verification, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	v := &Verification{}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		v.checkDigest(dir, name, m.Files[name], -1)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Built)) {
		v.checkDigest(dir, name, m.Built[name], -1)
	}
	v.checkDigest(dir, host.WeightsFile, m.Weights.SHA256, m.Weights.Bytes)
	p := v.readProgram(dir)
	v.readBack(dir, p)
	if p == nil || !v.proves(p) {
		return v, nil
	}
	return v, v.checkEmission(dir, p, m)
}

// readProgram reads program.json; nil if that cannot be done, or if it is not well-formed. Its absence is among the findings of its digest.
func (v *Verification) readProgram(dir string) *ir.Program {
	path := filepath.Join(dir, programFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	p, diags := ir.ParseJSON(text, path)
	if diags.Err() == nil {
		diags.Add(ir.Check(p)...)
	}
	v.Findings.Add(diags...)
	if diags.Err() != nil {
		return nil
	}
	return p
}

// proves proves program.json, which is what is emitted again. Its errors are reported unless the schedule of the headers has
// been rejected already: mostly they are the same.
func (v *Verification) proves(p *ir.Program) bool {
	proof := validate.ProgramFor(validate.Kernel, p)
	if v.Proof.OK || v.Stages == 0 {
		v.Findings.Add(proof.Diags...)
	}
	return proof.OK
}

// programFile is the validated program in a build.
const programFile = "program.json"

// readManifest reads the manifest of a build directory.
func readManifest(dir string) (*codegen.Manifest, error) {
	path := filepath.Join(dir, host.ManifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, diag.Errorf(codeNotBuild, dir, "cannot read %s; want a directory that amkc MODEL -o DIR has written", host.ManifestFile)
	}
	var m codegen.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, diag.Errorf(codeNotBuild, path, "is malformed: %v; want the manifest as amkc wrote it", err)
	}
	if m.Format != codegen.ManifestFormat || len(m.Files) == 0 {
		return nil, diag.Errorf(codeNotBuild, path, "has format %d and %d files; want format %d, as this amkc writes it", m.Format, len(m.Files), codegen.ManifestFormat)
	}
	return &m, nil
}

// checkDigest compares a file with its digest, and with its size unless that is negative.
func (v *Verification) checkDigest(dir, name, want string, size int64) {
	v.Files++
	path := filepath.Join(dir, filepath.FromSlash(name))
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		v.Findings.Add(diag.Errorf(codeFileChanged, filepath.Join(dir, host.ManifestFile), "names the file %q, which is outside the build", name))
		return
	}
	n, got, err := fileDigest(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.Findings.Add(diag.Errorf(codeFileChanged, path, "is missing"))
	case err != nil:
		v.Findings.Add(diag.Errorf(codeFileChanged, path, "cannot be read: %v", err))
	case got != want || size >= 0 && n != size:
		v.Findings.Add(diag.Errorf(codeFileChanged, path, "has SHA-256 %s; the manifest says %s", got, want))
	}
}

// checkEmission emits the build again and compares. A file that already differs from its digest is reported once.
func (v *Verification) checkEmission(dir string, p *ir.Program, m *codegen.Manifest) error {
	files, err := codegen.Project(p, p.Model.Name)
	if err != nil {
		v.Findings.Add(diag.Errorf(codeNotEmitted, filepath.Join(dir, programFile), "gives no build at all: %v", err))
		return nil
	}
	var notes []string
	if this := version.Get().Version; m.Compiler.Version != this {
		notes = append(notes, fmt.Sprintf("the build was written by amkc %s, and this is amkc %s", m.Compiler.Version, this))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		v.Emitted++
		path := filepath.Join(dir, filepath.FromSlash(name))
		have, err := os.ReadFile(path)
		changed := err != nil || codegen.Digest(have) != m.Files[name]
		if !changed && !bytes.Equal(have, files[name]) || changed && m.Files[name] == "" {
			v.Findings.Add(diag.Errorf(codeNotEmitted, path, "differs from what %s gives", programFile).With(notes...))
		}
	}
	facts, err := codegen.Facts(p)
	if err != nil {
		return err
	}
	facts.CUDA = m.Facts.CUDA // of the toolchain, which the program does not name
	if !reflect.DeepEqual(facts, m.Facts) {
		v.Findings.Add(diag.Errorf(codeNotEmitted, filepath.Join(dir, host.ManifestFile), "its facts differ from what %s gives", programFile).With(notes...))
	}
	return nil
}
