package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"

	"amkc/ir/diag"
)

// A safetensors file is 8 bytes with the length N of the header, N bytes of JSON, and the data. The rules are those of
// the format's reference implementation, github.com/huggingface/safetensors, except that unknown and repeated fields,
// which it ignores, are refused.
const (
	lengthBytes   = 8
	maxHeaderSize = 100_000_000
)

// An entry is one tensor of a header.
type entry struct {
	Spec
	begin, end int64 // bytes, counted from the end of the header
}

// A header is the contents of one, checked against the size of its file.
type header struct {
	metadata map[string]string
	entries  []entry // in the order of the data
	dataAt   int64   // offset of the data in the file
}

// readHeader reads and checks the header of a file of the given size.
func readHeader(name string, r region, size int64) (*header, *diag.Diagnostic) {
	if err := pointerIn(r, name, size); err != nil {
		return nil, err
	}
	if size < lengthBytes {
		return nil, diag.Errorf(codeTruncated, name, "%d bytes long; a safetensors file has at least 8", size)
	}
	var prefix [lengthBytes]byte
	if err := copyOut(r, name, prefix[:], 0); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > maxHeaderSize {
		return nil, diag.Errorf(codeHeaderSize, name,
			"the header is said to have %d bytes, more than the %d that the format allows", length, maxHeaderSize)
	}
	dataAt := lengthBytes + int64(length)
	if dataAt > size {
		return nil, diag.Errorf(codeTruncated, name,
			"the header ends at byte %d, the file at byte %d", dataAt, size)
	}
	text := make([]byte, length)
	if err := copyOut(r, name, text, lengthBytes); err != nil {
		return nil, err
	}
	h, err := parseHeader(name, text)
	if err != nil {
		return nil, err
	}
	h.dataAt = dataAt
	return h, checkExtents(name, h.entries, size-dataAt)
}

// parseHeader reads the JSON of a header token by token, so that a hostile one costs no more than a multiple of its
// length.
func parseHeader(name string, text []byte) (*header, *diag.Diagnostic) {
	r, err := newJSONReader(name, text)
	if err != nil {
		return nil, diag.Errorf(codeHeader, name, "the header is malformed: %s", err.Msg)
	}
	h := &header{}
	seen := map[string]bool{}
	err = r.object(name, "the header", func(key string) *diag.Diagnostic {
		if seen[key] {
			return diag.Errorf(codeDuplicateTensor, tensorPos(name, key), "the header has this name twice")
		}
		seen[key] = true
		if key == "__metadata__" {
			var err *diag.Diagnostic
			h.metadata, err = r.metadata()
			return err
		}
		e, err := r.entry(tensorPos(name, key), key)
		h.entries = append(h.entries, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(h.entries, byExtent)
	return h, nil
}

// object reads an object, calling read for each key; what names it in errors.
func (r *jsonReader) object(pos, what string, read func(key string) *diag.Diagnostic) *diag.Diagnostic {
	token, err := r.token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return diag.Errorf(codeHeader, pos, "%s is %s; an object is needed", what, tokenKind(token))
	}
	return r.members(read)
}

func (r *jsonReader) metadata() (map[string]string, *diag.Diagnostic) {
	pos := r.name + ": __metadata__"
	m := map[string]string{}
	err := r.object(pos, "__metadata__", func(key string) *diag.Diagnostic {
		token, err := r.token()
		if err != nil {
			return err
		}
		text, ok := token.(string)
		if !ok {
			return diag.Errorf(codeHeader, pos, "%q is %s; only strings are allowed", key, tokenKind(token))
		}
		if _, twice := m[key]; twice {
			return diag.Errorf(codeHeader, pos, "%q appears twice", key)
		}
		m[key] = text
		return nil
	})
	return m, err
}

// entry reads {"dtype": ..., "shape": ..., "data_offsets": ...}, in any order.
func (r *jsonReader) entry(pos, name string) (entry, *diag.Diagnostic) {
	e := entry{Spec: Spec{Name: name, Shape: []int{}}}
	var seen [3]bool
	fields := []string{"dtype", "shape", "data_offsets"}
	err := r.object(pos, "the entry", func(key string) *diag.Diagnostic {
		field := slices.Index(fields, key)
		if field < 0 {
			return diag.Errorf(codeHeader, pos, "unknown field %q; dtype, shape and data_offsets are defined", key)
		}
		if seen[field] {
			return diag.Errorf(codeHeader, pos, "%s appears twice", key)
		}
		seen[field] = true
		switch key {
		case "dtype":
			token, err := r.token()
			if err != nil {
				return err
			}
			text, ok := token.(string)
			if !ok {
				return diag.Errorf(codeHeader, pos, "dtype is %s; a string is needed", tokenKind(token))
			}
			e.DType = DType(text)
		case "shape":
			return r.integers(pos, key, func(n int64) *diag.Diagnostic {
				if len(e.Shape) == maxRank {
					return diag.Errorf(codeShape, pos, "more than %d dimensions", maxRank)
				}
				if int64(int(n)) != n {
					return diag.Errorf(codeShape, pos, "a dimension of %d overflows", n)
				}
				e.Shape = append(e.Shape, int(n))
				return nil
			})
		case "data_offsets":
			var offsets []int64
			err := r.integers(pos, key, func(n int64) *diag.Diagnostic {
				if offsets = append(offsets, n); len(offsets) > 2 {
					return diag.Errorf(codeHeader, pos, "data_offsets has more than two numbers")
				}
				return nil
			})
			if err == nil && len(offsets) != 2 {
				err = diag.Errorf(codeHeader, pos, "data_offsets has %d numbers; [begin, end] is needed", len(offsets))
			}
			if err != nil {
				return err
			}
			e.begin, e.end = offsets[0], offsets[1]
		}
		return nil
	})
	if i := slices.Index(seen[:], false); err == nil && i >= 0 {
		err = diag.Errorf(codeHeader, pos, "%s is missing", fields[i])
	}
	return e, err
}

// integers reads an array of non-negative integers that fit 63 bits.
func (r *jsonReader) integers(pos, what string, each func(int64) *diag.Diagnostic) *diag.Diagnostic {
	token, err := r.token()
	if err != nil {
		return err
	}
	if token != json.Delim('[') {
		return diag.Errorf(codeHeader, pos, "%s is %s; an array is needed", what, tokenKind(token))
	}
	for r.dec.More() {
		token, err := r.token()
		if err != nil {
			return err
		}
		number, ok := token.(json.Number)
		if !ok {
			return diag.Errorf(codeHeader, pos, "%s holds %s; non-negative integers are needed", what, tokenKind(token))
		}
		n, bad := strconv.ParseUint(string(number), 10, 63)
		if bad != nil {
			return diag.Errorf(codeHeader, pos, "%s holds %.40s; non-negative integers below 2^63 are needed", what,
				number)
		}
		if err := each(int64(n)); err != nil {
			return err
		}
	}
	_, err = r.token() // ]
	return err
}

func tokenKind(token json.Token) string {
	if token == json.Delim('[') {
		return "an array"
	}
	return kindOf(token)
}
