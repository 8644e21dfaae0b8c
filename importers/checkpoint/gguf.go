package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"amkc/importers/gguf"
	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// A GGUF file is a whole model: package gguf turns its fields into the files of a model directory, which infile.Mount
// puts below the path of the file, so that whatever reads a model directory reads them too.

const ggufEnding = ".gguf"

// namedGGUF reports whether a path is named like a GGUF file.
func namedGGUF(path string) bool { return strings.EqualFold(filepath.Ext(path), ggufEnding) }

// IsGGUF reports whether a path is a file, or a link to one, that is named like a GGUF file.
func IsGGUF(path string) bool {
	info, err := os.Stat(path)
	return namedGGUF(path) && err == nil && info.Mode().IsRegular()
}

// part matches the name of a part of a split file.
var part = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})(\.[A-Za-z]+)$`)

// onlyGGUF is the path of the model in the directory: its one GGUF file, or the first part of it; "": there is none, or
// the directory has weights in safetensors, or a file that says that it is a build. Error: AMK1003 for several.
func onlyGGUF(dir string) (string, *diag.Diagnostic) {
	const ofBuild = "weights.safetensors"
	if isThere(dir, singleName) || isThere(dir, indexName) || isThere(dir, ofBuild) {
		return "", nil
	}
	entries, err := infile.List(dir)
	if err != nil {
		return "", nil // which opening it says
	}
	var names []string
	for _, e := range entries {
		m := part.FindStringSubmatch(e.Name())
		if namedGGUF(e.Name()) && (m == nil || m[2] == "00001") {
			names = append(names, e.Name())
		}
	}
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return filepath.Join(dir, names[0]), nil
	}
	return "", diag.Errorf(codeNoConfig, dir, "there are %s; give one of them instead of the directory",
		plural(len(names), "GGUF file")).With(firstFew("file:", under(dir, names))...)
}

// A ggufModel is a GGUF file, or several that it is split into.
type ggufModel struct {
	path   string
	header *gguf.Header // of all parts
	model  *gguf.Model
	parts  []*File
	region map[string]region // of tensors, by their names in the file
}

// openGGUF opens a model in a GGUF file, and mounts the files that it stands for.
func openGGUF(path string) (*ggufModel, *diag.Diagnostic) {
	g := &ggufModel{path: path, region: map[string]region{}}
	err := g.open()
	if err == nil {
		g.model, err = g.header.Model(g.values)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	infile.Mount(path, map[string]func() ([]byte, error){
		"config.json":            func() ([]byte, error) { return g.model.Config, nil },
		"generation_config.json": func() ([]byte, error) { return g.model.Generation, nil },
		"tokenizer_config.json":  func() ([]byte, error) { return g.header.TokenizerConfig(), nil },
		"tokenizer.json": func() ([]byte, error) {
			text, err := g.header.Tokenizer()
			if err != nil {
				return nil, errors.Join(err, fs.ErrNotExist)
			}
			return text, nil
		},
	})
	return g, nil
}

func (g *ggufModel) close() {
	for _, f := range g.parts {
		f.region.close()
	}
}

// A regionReader reads a region like a file.
type regionReader struct {
	region
	size int64
}

func (r regionReader) ReadAt(p []byte, off int64) (int, error) {
	n := int64(len(p))
	if off >= r.size {
		return 0, fs.ErrInvalid
	}
	n = min(n, r.size-off)
	at := 0
	err := r.each(off, n, func(block []byte) { at += copy(p[at:], block) })
	return at, err
}

// readPart opens a file and reads its header.
func (g *ggufModel) readPart(path string) (*gguf.Header, *diag.Diagnostic) {
	name := filepath.Base(path)
	file, size, err := infile.Open(path)
	if err != nil {
		return nil, diag.Errorf(codeRead, name, "cannot open the file: %v", infile.Reason(err))
	}
	r := openRegion(file, size)
	g.parts = append(g.parts, &File{name: name, region: r})
	if err := pointerIn(r, name, size); err != nil {
		return nil, err
	}
	h, bad := gguf.Read(name, regionReader{r, size}, size)
	if bad != nil {
		return nil, bad
	}
	for _, t := range h.Tensors {
		if g.region[t.Name] != nil {
			return nil, diag.Errorf(codeDuplicateTensor, tensorPos(name, t.Name), "is in another part too")
		}
		g.region[t.Name] = r
	}
	return h, nil
}

// open reads the header of the file, and of all parts if it is the first of several.
func (g *ggufModel) open() *diag.Diagnostic {
	h, err := g.readPart(g.path)
	if err != nil {
		return err
	}
	g.header = h
	paths, err := partsOf(g.path, h)
	if err != nil {
		return err
	}
	for i, path := range paths {
		other, err := g.readPart(path)
		if err != nil {
			return err
		}
		no, _ := other.Fields["split.no"].(int64)
		count, _ := other.Fields["split.count"].(int64)
		if no != int64(i+1) || count != int64(len(paths)+1) {
			return other.Split("is part %d of %d; want part %d of %d", no+1, count, i+2, len(paths)+1)
		}
		h.Tensors = append(h.Tensors, other.Tensors...)
	}
	if all, _ := h.Fields["split.tensors.count"].(int64); len(paths) > 0 && all != int64(len(h.Tensors)) {
		return h.Split("split.tensors.count is %d, and the parts have %d tensors", all, len(h.Tensors))
	}
	return nil
}

// partsOf are the paths of the other parts of a file, in order.
func partsOf(path string, h *gguf.Header) ([]string, *diag.Diagnostic) {
	count, _ := h.Fields["split.count"].(int64)
	no, _ := h.Fields["split.no"].(int64)
	m := part.FindStringSubmatch(filepath.Base(path))
	switch {
	case count <= 1 && no == 0:
		return nil, nil
	case no != 0:
		return nil, h.Split("is part %d of %d; give the first one", no+1, count)
	case m == nil || m[2] != "00001" || m[3] != fmt.Sprintf("%05d", count):
		return nil, h.Split("is the first of %d parts, whose names end in -00001-of-%05d.gguf; this one has "+
			"another name", count, count)
	}
	var paths []string
	for i := range count - 1 {
		name := fmt.Sprintf("%s-%05d-of-%s%s", m[1], i+2, m[3], m[4])
		if !isThere(filepath.Dir(path), name) {
			return nil, h.Split("is the first of %d parts, and %s is not there", count, name)
		}
		paths = append(paths, filepath.Join(filepath.Dir(path), name))
	}
	return paths, nil
}

// values reads a tensor of F32 that a configuration depends on.
func (g *ggufModel) values(t gguf.Tensor) ([]float32, *diag.Diagnostic) {
	out := make([]float32, t.Shape[0])
	return out, g.tensor(&gguf.NamedTensor{Tensor: t, Name: t.Name}).data.floats(out, 0)
}

func (g *ggufModel) tensor(t *gguf.NamedTensor) Tensor {
	rows, columns := 1, t.Shape[len(t.Shape)-1]
	for _, n := range t.Shape[:len(t.Shape)-1] {
		rows *= n
	}
	if t.Heads > 0 && len(t.Shape) == 1 { // a bias has an element for each row
		rows, columns = columns, 1
	}
	place := func(t *gguf.Tensor) stored {
		return stored{g.region[t.Name], filepath.Base(g.path), DType(t.Type.Name), t.At}
	}
	of := Tensor{Name: t.Name, DType: DType(t.Type.Name), Shape: t.Shape, size: t.Size, data: blockRows{
		stored: place(&t.Tensor), kind: t.Type, rows: rows, columns: columns, heads: t.Heads, minus: t.Minus}}
	if t.Other != nil {
		of.data = inTurn{place(&t.Tensor), place(t.Other)}
	}
	return of
}

// inTurn are two tensors of F32 as one, whose elements are those of both in turn.
type inTurn [2]stored

func (s inTurn) floats(dst []float32, first int64) *diag.Diagnostic {
	for i, from := range s {
		at := int64(i) // of the first element that is taken from it
		if first%2 == 1 {
			at = int64(1 - i)
		}
		part := make([]float32, max(0, (int64(len(dst))-at+1)/2))
		if err := from.floats(part, (first+at)/2); err != nil {
			return err
		}
		for k, v := range part {
			dst[at+2*int64(k)] = v
		}
	}
	return nil
}

func (s inTurn) bytes(dst []byte, off int64) *diag.Diagnostic {
	first, last := off/4, (off+int64(len(dst))+3)/4
	values := make([]float32, last-first)
	if err := s.floats(values, first); err != nil {
		return err
	}
	encoded := make([]byte, 0, 4*len(values))
	for _, v := range values {
		encoded = binary.LittleEndian.AppendUint32(encoded, math.Float32bits(v))
	}
	copy(dst, encoded[off%4:])
	return nil
}

func (s inTurn) pieces(dst []byte, off, size, stride int64) *diag.Diagnostic {
	return pieces(s, dst, off, size, stride)
}

func (inTurn) view(int64) []byte { return nil }

// config is what the file says in the words of config.json. Positions of diagnostics begin with the file's name.
func (g *ggufModel) config() (*Config, *diag.Diagnostic) {
	as := func(name string, text []byte) (*Document, *diag.Diagnostic) {
		return parseDocument(filepath.Base(g.path)+", as "+name, text)
	}
	model, err := as("config.json", g.model.Config)
	if err != nil {
		return nil, err
	}
	generation, err := as("generation_config.json", g.model.Generation)
	return &Config{Dir: g.path, Model: model, Generation: generation}, err
}

// checkpoint is the model with its weights.
func (g *ggufModel) checkpoint() (*Checkpoint, *diag.Diagnostic) {
	config, err := g.config()
	c := &Checkpoint{Config: config, files: g.parts}
	names := map[string]bool{}
	for i := range g.model.Tensors {
		t := g.tensor(&g.model.Tensors[i])
		if names[t.Name] && err == nil {
			err = diag.Errorf(codeDuplicateTensor, tensorPos(filepath.Base(g.path), t.Name), "two tensors have this "+
				"name in a checkpoint")
		}
		names[t.Name] = true
		c.tensors = append(c.tensors, t)
	}
	c.sort()
	return c, err
}

// blockRows is a tensor of a GGUF file: rows of blocks, in another order or with another offset than a checkpoint has.
type blockRows struct {
	stored
	kind          *gguf.Type
	rows, columns int
	heads         int     // above 0: in each of them, rows are pairs of one from each half
	minus         float32 // what is subtracted from each element, of F32
}

// place is the row of the file that a row of the checkpoint is in.
func (b *blockRows) place(row int) int {
	if b.heads == 0 {
		return row
	}
	size := b.rows / b.heads
	head, at := row/size, row%size
	return head*size + at%(size/2)*2 + at/(size/2)
}

func (b blockRows) floats(dst []float32, first int64) *diag.Diagnostic {
	n := b.kind.Elements
	var scratch []float32
	for len(dst) > 0 {
		row, column := int(first)/b.columns, int(first)%b.columns
		count := min(len(dst), b.columns-column)
		block0, block1 := column/n, (column+count+n-1)/n
		at := b.at + int64(b.place(row))*b.kind.RowBytes(b.columns) + int64(block0*b.kind.Bytes)
		values := dst[:count]
		if whole := (block1 - block0) * n; whole != count {
			scratch = slices.Grow(scratch[:0], whole)[:whole]
			values = scratch
		}
		todo := values
		err := b.region.each(at, int64(block1-block0)*int64(b.kind.Bytes), b.decode(&todo))
		if err != nil {
			return diag.Errorf(codeRead, b.file, "cannot read: %s", infile.Reason(err))
		}
		if len(values) != count {
			copy(dst[:count], values[column-block0*n:])
		}
		if b.minus != 0 {
			for i := range dst[:count] {
				dst[i] -= b.minus
			}
		}
		dst, first = dst[count:], first+int64(count)
	}
	return nil
}

// decode fills values from the stretches of bytes that it is called with, which may end within a block.
func (b *blockRows) decode(values *[]float32) func([]byte) {
	var rest []byte
	return func(bytes []byte) {
		if len(rest) > 0 {
			n := min(len(bytes), b.kind.Bytes-len(rest))
			rest, bytes = append(rest, bytes[:n]...), bytes[n:]
			if len(rest) < b.kind.Bytes {
				return
			}
			b.kind.Decode((*values)[:b.kind.Elements], rest)
			*values, rest = (*values)[b.kind.Elements:], rest[:0]
		}
		whole := len(bytes) / b.kind.Bytes
		b.kind.Decode((*values)[:whole*b.kind.Elements], bytes)
		*values, rest = (*values)[whole*b.kind.Elements:], append(rest, bytes[whole*b.kind.Bytes:]...)
	}
}

// bytes are those of the file, in the order of rows of the checkpoint; where an offset is subtracted, of what is left.
func (b blockRows) bytes(dst []byte, off int64) *diag.Diagnostic {
	if b.minus != 0 {
		for len(dst) > 0 {
			var one [1]float32
			var encoded [4]byte
			if err := b.floats(one[:], off/4); err != nil {
				return err
			}
			binary.LittleEndian.PutUint32(encoded[:], math.Float32bits(one[0]))
			n := copy(dst, encoded[off%4:])
			dst, off = dst[n:], off+int64(n)
		}
		return nil
	}
	if b.heads == 0 {
		return b.stored.bytes(dst, off)
	}
	size := b.kind.RowBytes(b.columns)
	for len(dst) > 0 {
		row, in := off/size, off%size
		n := min(int64(len(dst)), size-in)
		if err := b.stored.bytes(dst[:n], int64(b.place(int(row)))*size+in); err != nil {
			return err
		}
		dst, off = dst[n:], off+n
	}
	return nil
}

func (b blockRows) pieces(dst []byte, off, size, stride int64) *diag.Diagnostic {
	if b.minus == 0 && b.heads == 0 {
		return b.stored.pieces(dst, off, size, stride)
	}
	return pieces(b, dst, off, size, stride)
}

// pieces reads the bytes of a source piece by piece.
func pieces(s source, dst []byte, off, size, stride int64) *diag.Diagnostic {
	for ; len(dst) > 0; dst, off = dst[size:], off+stride {
		if err := s.bytes(dst[:size], off); err != nil {
			return err
		}
	}
	return nil
}

func (b blockRows) view(n int64) []byte {
	if b.minus == 0 && b.heads == 0 {
		return b.stored.view(n)
	}
	return nil
}

// extension matches a dot that does not stand before a digit.
var extension = regexp.MustCompile(`\.([^0-9])`)

// nameOfGGUF is the name of a model in a GGUF file: that of the file without its ending and the number of its part, and
// with dashes for dots that would make an extension of the name of the launcher: Llama-3.2-1B.Q8_0 has one.
func nameOfGGUF(path string) string {
	name := filepath.Base(path)
	if m := part.FindStringSubmatch(name); m != nil {
		name = m[1]
	} else {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return extension.ReplaceAllString(name, "-$1")
}

// ggufFiles are the paths of the parts of a file, as far as their names say.
func ggufFiles(path string) []string {
	m := part.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return []string{path}
	}
	count, _ := strconv.Atoi(m[3])
	var out []string
	for i := range min(count, 1000) {
		out = append(out, filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%s%s", m[1], i+1, m[3], m[4])))
	}
	return out
}
