package compiler

import (
	"path/filepath"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/validate"
	"amkc/validate/kernel"
)

// A PackedBuild is the program of a build directory with its packed weights, for running the program without the
// kernels.
type PackedBuild struct {
	Program *ir.Program
	dir     string
	file    *checkpoint.File
	tensors map[string]checkpoint.Tensor
}

// OpenBuild reads the program of a build, proves it again, and opens its weights. Close it after use. The proof is
// needed because a program that was changed after emission could make the reference VM use any amount of memory, and
// its results would be meaningless.
func OpenBuild(dir string) (*PackedBuild, error) {
	if _, err := readManifest(dir); err != nil {
		return nil, err
	}
	b := &PackedBuild{dir: dir, tensors: map[string]checkpoint.Tensor{}}
	var err error
	if b.Program, err = b.Pass(""); err != nil {
		return nil, err
	}
	if b.file, err = checkpoint.OpenFile(filepath.Join(dir, host.WeightsFile)); err != nil {
		return nil, err
	}
	for _, t := range b.file.Tensors() {
		b.tensors[t.Name] = t
	}
	return b, nil
}

// Pass reads the program of a kernel for several tokens, which is in a subdirectory of the build, and proves it.
func (b *PackedBuild) Pass(sub string) (*ir.Program, error) {
	path := filepath.Join(b.dir, sub, ProgramFile)
	text, err := infile.Read(path, infile.Program)
	if err != nil {
		return nil, diag.Errorf(codeFileChanged, path, "cannot be read: %v", infile.Reason(err))
	}
	p, diags := ir.LoadJSON(text, path)
	if diags.Err() != nil {
		if m, err := readManifest(b.dir); err == nil {
			if _, written := otherWriter(m); written != "" {
				diags.Errors()[0].With(written + "; use that amkc, or compile the model again")
			}
		}
		return nil, diags
	}
	if proof := validate.ProgramFor(kernel.Backend, p); !proof.OK {
		return nil, proof.Diags.Errors()
	}
	return p, nil
}

// Close releases the weights.
func (b *PackedBuild) Close() error { return b.file.Close() }

// Floats returns all elements of a WEIGHT or CONST buffer (member i, if it is a family) in row-major order, unpacked
// from its layout.
func (b *PackedBuild) Floats(buf *ir.Buffer, i int) ([]float32, error) {
	name, err := ir.Resolve(buf.Name, i)
	if err != nil {
		return nil, err
	}
	t, ok := b.tensors[name]
	if !ok || t.Size() < int64(buf.Bytes()) {
		return nil, diag.Errorf(codeFileChanged, host.WeightsFile,
			"tensor %s has %d bytes, and the program needs %d; compile again", name, t.Size(), buf.Bytes())
	}
	raw, err := t.Raw()
	if err != nil {
		return nil, err
	}
	f := buf.Format()
	if f == nil {
		return nil, diag.Errorf(codeFileChanged, host.WeightsFile, "tensor %s is %v of %v; want %s", name,
			buf.Layout.Kind, buf.DType, format.Names())
	}
	out := make([]float32, buf.Numel())
	_, cols := buf.Matrix()
	f.Unpack(out, raw, cols)
	return out, nil
}
