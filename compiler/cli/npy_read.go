package cli

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// npyHead is what NumPy writes into the head of a file: a dictionary, in Python, whose keys are sorted.
var npyHead = regexp.MustCompile(
	`^\{'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \(((?:\d+, ?)*\d*)\),? *\} *\n$`)

// npyMagic is what a NumPy file begins with.
const npyMagic = "\x93NUMPY"

// parseNPY reads a NumPy file of integers, of any version, as token ids in the order of the array's elements.
func parseNPY(raw []byte) ([]int, error) {
	head, data, err := cutNPYHead(raw)
	if err != nil {
		return nil, err
	}
	m := npyHead.FindSubmatch(head)
	if m == nil {
		return nil, errors.New("the head of the file is damaged; want what numpy.save writes")
	}
	descr, fortran, dims := string(m[1]), string(m[2]) == "True", strings.Split(string(m[3]), ",")
	size, signed, err := integerType(descr)
	if err != nil {
		return nil, err
	}
	count, rank := 1, 0
	for _, dim := range dims {
		if dim = strings.TrimSpace(dim); dim == "" {
			continue // after the last comma, or of an array of no dimension
		}
		n, err := strconv.Atoi(dim)
		if err != nil || n > 0 && count > len(data)/n {
			return nil, fmt.Errorf("it says that it has more elements than its %d bytes hold", len(data))
		}
		count, rank = count*n, rank+1
	}
	switch {
	case fortran && rank > 1:
		return nil, errors.New("its columns are stored one after the other; want numpy.ascontiguousarray of it")
	case len(data) != count*size:
		return nil, fmt.Errorf("it has %d bytes of elements and says %d of %d bytes", len(data), count, size)
	}
	ids := make([]int, count)
	for i := range ids {
		v := integerAt(data[i*size:][:size], signed)
		if v < 0 || v > math.MaxInt32 {
			return nil, fmt.Errorf("element %d is no id; want integers from 0 to %d", i, math.MaxInt32)
		}
		ids[i] = int(v)
	}
	return ids, nil
}

// cutNPYHead takes a file apart.
func cutNPYHead(raw []byte) (head, data []byte, err error) {
	const short, long = len(npyMagic) + 4, len(npyMagic) + 6 // with version, and size of the head in 2 or 4 bytes
	if len(raw) < long || string(raw[:len(npyMagic)]) != npyMagic {
		return nil, nil, errors.New("it is no NumPy file; want what numpy.save writes")
	}
	at, size := short, int(binary.LittleEndian.Uint16(raw[len(npyMagic)+2:]))
	if major := raw[len(npyMagic)]; major > 1 {
		at, size = long, int(binary.LittleEndian.Uint32(raw[len(npyMagic)+2:]))
	}
	if size > len(raw)-at {
		return nil, nil, errors.New("it ends in its head; want what numpy.save writes")
	}
	return raw[at : at+size], raw[at+size:], nil
}

// integerType reads a type of NumPy's, such as <i4.
func integerType(descr string) (size int, signed bool, err error) {
	known := map[string]int{"|i1": 1, "|u1": 1, "<i2": 2, "<u2": 2, "<i4": 4, "<u4": 4, "<i8": 8, "<u8": 8}
	size, ok := known[descr]
	if !ok {
		return 0, false, fmt.Errorf("its elements are %q; want little-endian integers, as <i4", descr)
	}
	return size, descr[1] == 'i', nil
}

// integerAt is the little-endian integer of some bytes. One above what int64 holds is below 0.
func integerAt(raw []byte, signed bool) int64 {
	var v uint64
	for i, b := range raw {
		v |= uint64(b) << (8 * i)
	}
	if shift := 64 - 8*len(raw); signed {
		return int64(v<<shift) >> shift
	}
	return int64(v)
}
