// Package checkpoint opens a Hugging Face model directory: config.json with its keys in order and its numbers as
// spelled, and safetensors weights, in one file or in shards with an index. Files are memory-mapped and tensors are
// decoded when they are read, a block of rows at a time, so that a model of any size costs little memory. It also makes
// random weights for a model that has none (NewRandom) and writes safetensors files (Writer).
//
// Files are untrusted: each file is checked in full before any of it is used, and faults are reported as coded
// diagnostics. The package does not depend on model families; it imports ir/diag, ir/half and runtime/infile, and must
// import no other package of amkc.
package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// A Checkpoint is a model with its weights.
type Checkpoint struct {
	Config   *Config
	Warnings diag.List // of what was read otherwise than another reader might
	tensors  []Tensor  // sorted by name
	files    []*File

	adapters []*adapter
	stored   []Tensor        // tensors without what adapters change, once they are merged
	changed  map[string]bool // tensors that adapters change, once they are merged
}

// Open opens a model directory. It reads model.safetensors if it exists, else model.safetensors.index.json and its
// shards; other safetensors files are not part of the model. If a tensor is in several shards, the index selects one.
// Errors: those of OpenConfig, AMK1004 and AMK1005 without weights, AMK1010 to AMK1023 for files that are damaged or do
// not fit together.
//
// dir may also be a GGUF file; errors are then AMK1050 to AMK1058 too.
//
// adapters are directories of adapters, which Merge applies. Errors: AMK1038 for those that are not modelled.
func Open(dir string, adapters ...string) (*Checkpoint, error) {
	c, err := open(dir, adapters)
	if err != nil {
		return nil, err
	}
	if c.adapters, err = openAdapters(adapters); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func open(dir string, adapters []string) (*Checkpoint, *diag.Diagnostic) {
	if IsGGUF(dir) {
		g, err := openGGUF(dir)
		if err != nil {
			return nil, err
		}
		c, err := g.checkpoint()
		if err != nil {
			g.close()
			return nil, err
		}
		if warning := ignoredAdapter(dir, adapters); warning != nil {
			c.Warnings.Add(warning)
		}
		return c, nil
	}
	config, err := openConfig(dir, adapters)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Config: config}
	switch {
	case isThere(dir, singleName):
		var f *File
		if f, err = openFile(filepath.Join(dir, singleName)); err == nil {
			c.files, c.tensors = []*File{f}, f.Tensors()
		}
	case isThere(dir, indexName):
		var warning *diag.Diagnostic
		c.files, c.tensors, warning, err = openShards(dir)
		c.Warnings.Add(warning)
	default:
		err = noWeights(dir)
	}
	if err != nil {
		return nil, err
	}
	c.sort()
	return c, nil
}

// Tensors returns all tensors, sorted by name.
func (c *Checkpoint) Tensors() []Tensor { return slices.Clone(c.tensors) }

// Tensor returns the tensor of that name, and whether there is one.
func (c *Checkpoint) Tensor(name string) (Tensor, bool) {
	i, ok := slices.BinarySearchFunc(c.tensors, name,
		func(t Tensor, name string) int { return strings.Compare(t.Name, name) })
	if !ok {
		return Tensor{}, false
	}
	return c.tensors[i], true
}

// Close releases the files. Reading a tensor afterwards is an error, and results of Tensor.Raw must no longer be used.
// Closing twice is harmless.
func (c *Checkpoint) Close() error {
	var errs diag.List
	closeAdapters(c.adapters)
	for _, f := range c.files {
		if err := f.region.close(); err != nil {
			errs.Add(diag.Errorf(codeRead, f.name, "cannot close: %v", infile.Reason(err)))
		}
	}
	return errs.Err()
}

func (c *Checkpoint) sort() {
	slices.SortFunc(c.tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
}

const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
)

// isThere is also true of a dangling link, so that opening it reports what is wrong.
func isThere(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

func noWeights(dir string) *diag.Diagnostic {
	if d := onlyAdapter(dir); d != nil {
		return d
	}
	names, err := fileNames(dir)
	if err != nil {
		return err
	}
	var safetensors []string
	for _, name := range names {
		if strings.HasSuffix(name, ".safetensors") {
			safetensors = append(safetensors, name)
		}
	}
	if len(safetensors) > 0 {
		return diag.Errorf(codeNoWeights, dir, "there is neither %s nor %s", singleName, indexName).
			With(firstFew("not taken without an index:", safetensors)...)
	}
	for _, name := range names {
		if format := foreignFormat(name); format != "" {
			return diag.Errorf(codeForeignWeights, dir, "%s is %s; accepted are %s, or %s with its shards",
				name, format, singleName, indexName)
		}
	}
	return diag.Errorf(codeNoWeights, dir, "there are no weights; %s is needed, or %s with its shards", singleName,
		indexName)
}

// firstFew formats a list of names as notes, cut to a length that can be read.
func firstFew(what string, names []string) []string {
	const few = 8
	notes := make([]string, 0, few+1)
	for i, name := range names {
		if i == few {
			return append(notes, what+" and "+plural(len(names)-few, "other"))
		}
		notes = append(notes, what+" "+name)
	}
	return notes
}
