// Package gguf reads the header of GGUF files, the format of llama.cpp: typed fields, and the names, types, shapes and
// places of tensors. It knows the block types of tensors and what their bytes mean, and turns fields and names into
// those of a Hugging Face checkpoint, which the importers read.
//
// Files are untrusted: counts, lengths, types and places are checked against the size of the file before anything is
// allocated for them, so that memory is linear in the header. The package reads no data of tensors and opens no file.
// It imports ir/diag and ir/half, and must import no other package of amkc.
package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"amkc/ir/diag"
)

// Magic is what a file begins with.
const Magic = "GGUF"

// Bounds, each far above what files have.
const (
	maxHeader = 256 << 20 // bytes; a vocabulary of 262,144 with its scores and merges has 15 million
	maxKey    = 1<<16 - 1
	maxRank   = 4

	usualAlignment = 32
)

// A Header is what a file says of itself and its tensors.
type Header struct {
	Name    string // of the file, which positions of diagnostics begin with
	Fields  map[string]Value
	Tensors []Tensor // in the order of the file
}

// A Value of a field: bool, string, int64, uint64 for what an int64 does not hold, float32, float64, or *Array.
type Value any

// An Array is a value with elements of one type.
type Array struct {
	Strings []string // of an array of strings
	kind    kind
	raw     []byte // of others, little-endian
}

// A Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	Type  *Type
	Shape []int // outermost dimension first
	At    int64 // the byte of the file where it begins
	Size  int64 // in bytes
}

// A kind is the type of a value, as files number them.
type kind uint32

const (
	kindU8 kind = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindString
	kindArray
	kindU64
	kindI64
	kindF64
	kinds
)

// size is the number of bytes of a value; 0 for strings and arrays.
func (k kind) size() int {
	return [kinds]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}[k]
}

// value reads a value that size bytes hold. A bool other than 0 and 1 is nil.
func (k kind) value(b []byte) Value {
	le := binary.LittleEndian
	switch k {
	case kindU8:
		return int64(b[0])
	case kindI8:
		return int64(int8(b[0]))
	case kindU16:
		return int64(le.Uint16(b))
	case kindI16:
		return int64(int16(le.Uint16(b)))
	case kindU32:
		return int64(le.Uint32(b))
	case kindI32:
		return int64(int32(le.Uint32(b)))
	case kindF32:
		return math.Float32frombits(le.Uint32(b))
	case kindBool:
		if b[0] > 1 {
			return nil
		}
		return b[0] == 1
	case kindU64:
		if n := le.Uint64(b); n > math.MaxInt64 {
			return n
		}
		return int64(le.Uint64(b))
	case kindI64:
		return int64(le.Uint64(b))
	}
	return math.Float64frombits(le.Uint64(b))
}

// Len is the number of elements.
func (a *Array) Len() int {
	if a.kind == kindString {
		return len(a.Strings)
	}
	return len(a.raw) / a.kind.size()
}

// At is an element of an array that is not of strings.
func (a *Array) At(i int) Value {
	n := a.kind.size()
	return a.kind.value(a.raw[i*n : (i+1)*n])
}

// Read reads the header of a file of the given size, which starts at byte 0 of r.
func Read(name string, r io.ReaderAt, size int64) (*Header, *diag.Diagnostic) {
	section := io.NewSectionReader(r, 0, min(size, maxHeader))
	in := &reader{name: name, size: size, in: bufio.NewReaderSize(section, 1<<16)}
	h, err := in.header()
	if err != nil {
		return nil, err
	}
	return h, h.place(in.at, size)
}

// A reader walks over a header.
type reader struct {
	name     string
	size, at int64 // of the file; read so far
	in       *bufio.Reader
	scratch  [8]byte
}

func (r *reader) bad(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(codeHeader, r.name, format, args...)
}

// take fills b with the next bytes.
func (r *reader) take(b []byte) *diag.Diagnostic {
	n, err := io.ReadFull(r.in, b)
	r.at += int64(n)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return r.bad("cannot be read: %v", err)
	case r.size > maxHeader:
		return r.bad("the header has more than %d bytes, the most that is read", maxHeader)
	}
	return diag.Errorf(codeTruncated, r.name, "the header is not over at byte %d, where the file ends", r.size)
}

func (r *reader) u32() (uint32, *diag.Diagnostic) {
	err := r.take(r.scratch[:4])
	return binary.LittleEndian.Uint32(r.scratch[:]), err
}

func (r *reader) u64() (uint64, *diag.Diagnostic) {
	err := r.take(r.scratch[:8])
	return binary.LittleEndian.Uint64(r.scratch[:]), err
}

// count reads a number of things that take at least `each` bytes, which the rest of the file must have room for.
func (r *reader) count(what string, each int64) (int, *diag.Diagnostic) {
	n, err := r.u64()
	if err == nil && n > uint64((r.size-r.at)/each) {
		err = r.bad("%d %s are said to begin at byte %d, more than the file of %d bytes has room for", n, what, r.at,
			r.size)
	}
	return int(n), err
}

func (r *reader) text(what string, most int) (string, *diag.Diagnostic) {
	n, err := r.count("bytes of "+what, 1)
	if err != nil {
		return "", err
	}
	if n > most {
		return "", r.bad("%s before byte %d has %d bytes; want at most %d", what, r.at, n, most)
	}
	b := make([]byte, n)
	if err := r.take(b); err != nil {
		return "", err
	}
	if !utf8.Valid(b) && what != token {
		return "", r.bad("%s before byte %d is not UTF-8", what, r.at)
	}
	return string(b), nil
}

// token is what elements of an array of strings are called: tokens need not be text.
const token = "a string"

func (r *reader) header() (*Header, *diag.Diagnostic) {
	var magic [4]byte
	if r.size < int64(len(magic)) {
		return nil, diag.Errorf(codeTruncated, r.name, "%d bytes long; a GGUF file has at least 24", r.size)
	}
	if err := r.take(magic[:]); err != nil {
		return nil, err
	}
	if string(magic[:]) != Magic {
		return nil, diag.Errorf(codeVersion, r.name, "begins with %q; a GGUF file begins with %q", magic[:], Magic)
	}
	version, err := r.u32()
	switch {
	case err != nil:
		return nil, err
	case version == bits.ReverseBytes32(2) || version == bits.ReverseBytes32(3):
		return nil, diag.Errorf(codeVersion, r.name, "is big-endian; little-endian files are read")
	case version != 2 && version != 3:
		return nil, diag.Errorf(codeVersion, r.name, "has version %d; versions 2 and 3 are read", version)
	}
	tensors, err := r.count("tensors", 24)
	if err != nil {
		return nil, err
	}
	fields, err := r.count("fields", 13)
	if err != nil {
		return nil, err
	}
	h := &Header{Name: r.name, Fields: map[string]Value{}}
	for range fields {
		if err := r.field(h); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for range tensors {
		t, err := r.tensor()
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, r.bad("tensor %q appears twice", t.Name)
		}
		seen[t.Name] = true
		h.Tensors = append(h.Tensors, t)
	}
	return h, nil
}

func (r *reader) field(h *Header) *diag.Diagnostic {
	key, err := r.text("a key", maxKey)
	if err != nil {
		return err
	}
	if _, twice := h.Fields[key]; twice {
		return r.bad("field %q appears twice", key)
	}
	n, err := r.u32()
	if err != nil {
		return err
	}
	k := kind(n)
	switch {
	case k >= kinds:
		return r.bad("field %q has type %d, which does not exist; want 0 to %d", key, n, kinds-1)
	case k == kindString:
		h.Fields[key], err = r.text("the value of "+strconv.Quote(key), maxHeader)
	case k == kindArray:
		h.Fields[key], err = r.array(key)
	default:
		if err = r.take(r.scratch[:k.size()]); err == nil {
			if h.Fields[key] = k.value(r.scratch[:]); h.Fields[key] == nil {
				err = r.bad("field %q is a boolean of %d; want 0 or 1", key, r.scratch[0])
			}
		}
	}
	return err
}

func (r *reader) array(key string) (*Array, *diag.Diagnostic) {
	n, err := r.u32()
	if err != nil {
		return nil, err
	}
	a := &Array{kind: kind(n)}
	switch {
	case a.kind >= kinds || a.kind == kindArray:
		return nil, r.bad("field %q is an array of type %d; want a type from 0 to %d other than %d", key, n, kinds-1,
			kindArray)
	case a.kind == kindString:
		n, err := r.count("strings", 8)
		if err != nil {
			return nil, err
		}
		for range n {
			text, err := r.text(token, maxHeader)
			if err != nil {
				return nil, err
			}
			a.Strings = append(a.Strings, text)
		}
		return a, nil
	}
	length, err := r.count("elements", int64(a.kind.size()))
	if err != nil {
		return nil, err
	}
	if int64(length) > maxHeader/int64(a.kind.size()) {
		return nil, r.bad("field %q has %d elements, more than a header of %d bytes, the most that is read", key,
			length, maxHeader)
	}
	a.raw = make([]byte, length*a.kind.size())
	err = r.take(a.raw)
	if err == nil && a.kind == kindBool && slices.ContainsFunc(a.raw, func(b byte) bool { return b > 1 }) {
		err = r.bad("field %q has a boolean other than 0 and 1", key)
	}
	return a, err
}

func (r *reader) tensor() (Tensor, *diag.Diagnostic) {
	var t Tensor
	var err *diag.Diagnostic
	if t.Name, err = r.text("the name of a tensor", maxKey); err != nil {
		return t, err
	}
	pos := tensorPos(r.name, t.Name)
	rank, err := r.u32()
	if err != nil {
		return t, err
	}
	if rank < 1 || rank > maxRank {
		return t, diag.Errorf(codeTensor, pos, "has %d dimensions; want 1 to %d", rank, maxRank)
	}
	for range rank {
		n, err := r.u64()
		if err != nil {
			return t, err
		}
		if n < 1 || n > math.MaxInt32 {
			return t, diag.Errorf(codeTensor, pos, "has a dimension of %d; want 1 to %d", n, math.MaxInt32)
		}
		t.Shape = append(t.Shape, int(n))
	}
	slices.Reverse(t.Shape) // a file has the innermost one first
	number, err := r.u32()
	if err != nil {
		return t, err
	}
	if t.Type = typeOf(number); t.Type == nil {
		return t, diag.Errorf(codeType, pos, "is of type %s; accepted: %s", typeName(number), typeNames())
	}
	columns := t.Shape[rank-1]
	if columns%t.Type.Elements != 0 {
		return t, diag.Errorf(codeTensor, pos, "has rows of %d elements; want a multiple of the %d of a block of %s",
			columns, t.Type.Elements, t.Type.Name)
	}
	t.Size = t.Type.RowBytes(columns)
	for _, n := range t.Shape[:rank-1] {
		high, low := bits.Mul64(uint64(t.Size), uint64(n))
		if high != 0 || low > math.MaxInt64/2 {
			return t, diag.Errorf(codeTensor, pos, "shape %v overflows: more than 2^62 bytes", t.Shape)
		}
		t.Size = int64(low)
	}
	at, err := r.u64()
	t.At = int64(min(at, math.MaxInt64/2))
	return t, err
}

// place checks where tensors begin, and makes it bytes of the file: each where the one before ends, but for padding.
// The header ends at a byte.
func (h *Header) place(header, size int64) *diag.Diagnostic {
	alignment := int64(usualAlignment)
	if v, ok := h.Fields["general.alignment"]; ok {
		n, isInt := v.(int64)
		if !isInt || n < 8 || n > 1<<20 || n%8 != 0 {
			return diag.Errorf(codeHeader, h.Name, "general.alignment is %s; want a multiple of 8 up to %d", spell(v),
				1<<20)
		}
		alignment = n
	}
	padded := func(n int64) int64 { return (n + alignment - 1) / alignment * alignment }
	data, end := padded(header), int64(0) // of what follows the header
	for i := range h.Tensors {
		t := &h.Tensors[i]
		pos := tensorPos(h.Name, t.Name)
		if begin := padded(end); t.At != begin {
			return diag.Errorf(codeTensor, pos, "begins at byte %d of the data; want %d, where the tensor before it "+
				"ends", t.At, begin)
		}
		if t.Size > size-data-t.At {
			return diag.Errorf(codeTruncated, pos, "ends at byte %d of the file, which has %d", data+t.At+t.Size, size)
		}
		end = t.At + t.Size
		t.At += data
	}
	if size > data+padded(end) && len(h.Tensors) > 0 {
		return diag.Errorf(codeTensor, h.Name, "the tensors end at byte %d, and the file at byte %d", data+end, size)
	}
	return nil
}

// tensorPos is how diagnostics point at a tensor of a file.
func tensorPos(file, tensor string) string { return fmt.Sprintf("%s: tensor %q", file, tensor) }

// Split says what is wrong with a part of a split file.
func (h *Header) Split(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(codeSplit, h.Name, format, args...)
}
