package checkpoint

import (
	"path/filepath"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// A File is one open safetensors file, its header checked.
type File struct {
	name   string
	region region
	header *header
}

// OpenFile opens one safetensors file. Errors: AMK1006, AMK1010 to AMK1019.
func OpenFile(path string) (*File, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func openFile(path string) (*File, *diag.Diagnostic) {
	name := filepath.Base(path)
	file, size, err := infile.Open(path)
	if err != nil {
		return nil, diag.Errorf(codeRead, name, "cannot open the file: %v", infile.Reason(err))
	}
	return newFile(name, openRegion(file, size), size)
}

// newFile takes the region over, and closes it if it does not hold a safetensors file.
func newFile(name string, r region, size int64) (*File, *diag.Diagnostic) {
	h, err := readHeader(name, r, size)
	if err != nil {
		r.close()
		return nil, err
	}
	return &File{name: name, region: r, header: h}, nil
}

// Metadata returns the __metadata__ of the header, nil if it has none.
func (f *File) Metadata() map[string]string { return f.header.metadata }

// Tensors returns the tensors in the order of their data.
func (f *File) Tensors() []Tensor {
	tensors := make([]Tensor, len(f.header.entries))
	for i, e := range f.header.entries {
		tensors[i] = Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, size: e.end - e.begin,
			data: stored{f.region, f.name, e.DType, f.header.dataAt + e.begin}}
	}
	return tensors
}

// Close unmaps the file. Results of Tensor.Raw must no longer be used. Closing twice is harmless.
func (f *File) Close() error {
	if err := f.region.close(); err != nil {
		return diag.Errorf(codeRead, f.name, "cannot close: %v", infile.Reason(err))
	}
	return nil
}
