package compiler

import (
	"errors"
	"path/filepath"
	"reflect"

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
	// What the file does not have, and where that is.
	invented *host.Invented
	places   map[string]int64
}

// OpenBuild reads the program of a build, proves it again, and opens its weights. Close it after use. The proof is
// needed because a program that was changed after emission could make the reference VM use any amount of memory, and
// its results would be meaningless.
func OpenBuild(dir string) (*PackedBuild, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	b := &PackedBuild{dir: dir, tensors: map[string]checkpoint.Tensor{}, places: map[string]int64{}}
	if b.Program, err = b.Pass(""); err != nil {
		return nil, err
	}
	if b.file, err = checkpoint.OpenFile(filepath.Join(dir, host.WeightsFile)); err != nil {
		return nil, err
	}
	if has := b.file.Metadata()["format"]; has != packedFormat {
		return nil, errors.Join(diag.Errorf(codeFileChanged, filepath.Join(dir, host.WeightsFile),
			"has weights as %q; want %q, as this amkc packs them: compile the model again", has, packedFormat),
			b.file.Close())
	}
	for _, t := range b.file.Tensors() {
		b.tensors[t.Name] = t
	}
	if m.Facts.Invented != nil {
		b.invented = inventedOf(b.Program, m.Facts.Invented.Seed)
		if !reflect.DeepEqual(b.invented, m.Facts.Invented) {
			return nil, errors.Join(diag.Errorf(codeFileChanged, filepath.Join(dir, host.ManifestFile),
				"has other random matrices than this amkc makes for %s; compile the model again", ProgramFile),
				b.file.Close())
		}
		places, _ := ir.PackedWeights(b.Program)
		for _, pl := range places {
			b.places[pl.Name] = int64(pl.Offset)
		}
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
	raw, err := b.raw(name, buf)
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

// raw are the packed bytes of a buffer, from the file or made up.
func (b *PackedBuild) raw(name string, buf *ir.Buffer) ([]byte, error) {
	if at, known := b.places[name]; known {
		if m := b.invented.Find(at); m != nil {
			out := make([]byte, m.Bytes)
			b.invented.Fill(out, m, 0)
			return out, nil
		}
	}
	t, ok := b.tensors[name]
	if !ok || t.Size() < int64(buf.Bytes()) {
		return nil, diag.Errorf(codeFileChanged, host.WeightsFile,
			"tensor %s has %d bytes, and the program needs %d; compile again", name, t.Size(), buf.Bytes())
	}
	return t.Raw()
}
