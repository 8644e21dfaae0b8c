package cli

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/sbinet/npyio"
)

// An npy writes a matrix of float32 as a NumPy file, version 1.0, row by row, so that no more than a row is held.
// (github.com/sbinet/npyio would want the whole matrix as one value of a fixed array type; tests read the files with
// it.)
type npy struct {
	out        *bufio.Writer
	rows, cols int
	raw        []byte
}

// newNPY writes the head of the file.
func newNPY(w io.Writer, rows, cols int) (*npy, error) {
	const magic = "\x93NUMPY\x01\x00"
	const align = 64 // of the data, as NumPy has it
	dict := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	head := len(magic) + 2 + len(dict) + 1
	dict += strings.Repeat(" ", (align-head%align)%align) + "\n"

	n := &npy{out: bufio.NewWriter(w), rows: rows, cols: cols, raw: make([]byte, 0, 4*cols)}
	n.out.WriteString(magic)
	n.out.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(dict))))
	_, err := n.out.WriteString(dict) // a bufio.Writer keeps its first error
	return n, err
}

// append writes the next row.
func (n *npy) append(row []float32) error {
	if len(row) != n.cols || n.rows == 0 {
		return fmt.Errorf("a row of %d elements, want %d rows more of %d", len(row), n.rows, n.cols)
	}
	n.rows--
	n.raw = n.raw[:0]
	for _, v := range row {
		n.raw = binary.LittleEndian.AppendUint32(n.raw, math.Float32bits(v))
	}
	_, err := n.out.Write(n.raw)
	return err
}

// close ends the file; it does not close what it was written to.
func (n *npy) close() error {
	if n.rows > 0 {
		return fmt.Errorf("%d rows are missing", n.rows)
	}
	return n.out.Flush()
}

// npyHead is what NumPy writes into the header of a file: a dictionary, in Python, whose keys are sorted.
var npyHead = regexp.MustCompile(
	`^\{'descr': '[^'{}]*', 'fortran_order': (True|False), 'shape': \((\d+, ?)*\d*\), \} *\n$`)

// npyMagic is what a NumPy file begins with.
const npyMagic = "\x93NUMPY"

var errDamagedNPY = errors.New("the header of the file is damaged; want what numpy.save writes")

// parseNPY reads a NumPy file of integers, of any version, as token ids in the order of the array's elements. npyio
// takes the sizes in a file at their word, so that they are checked first.
func parseNPY(raw []byte) ([]int, error) {
	raw, data, err := checkNPYHead(raw)
	if err != nil {
		return nil, err
	}
	file, err := npyio.NewReader(bytes.NewReader(raw))
	tooMany := fmt.Errorf("it says that it has more elements than its %d bytes hold", len(data))
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, tooMany
	case err != nil:
		return nil, errDamagedNPY
	}
	array := file.Header.Descr
	count := 1
	for _, n := range array.Shape {
		if n > 0 && count > len(data)/n {
			return nil, tooMany
		}
		count *= n
	}
	if array.Fortran && len(array.Shape) > 1 {
		return nil, errors.New("its columns are stored one after the other; want numpy.ascontiguousarray of it")
	}
	switch array.Type {
	case "|i1":
		return idsIn[int8](file, count, len(data))
	case "|u1":
		return idsIn[uint8](file, count, len(data))
	case "<i2":
		return idsIn[int16](file, count, len(data))
	case "<u2":
		return idsIn[uint16](file, count, len(data))
	case "<i4":
		return idsIn[int32](file, count, len(data))
	case "<u4":
		return idsIn[uint32](file, count, len(data))
	case "<i8":
		return idsIn[int64](file, count, len(data))
	case "<u8":
		return idsIn[uint64](file, count, len(data))
	}
	return nil, fmt.Errorf("its elements are %q; want little-endian integers, as <i4", array.Type)
}

// checkNPYHead checks that the header of a file is one of NumPy's, and returns the file and its elements. Version 3
// differs from 2 in that names of fields need not be ASCII; integers have none, and npyio knows 2.
func checkNPYHead(raw []byte) (file, data []byte, err error) {
	const short, long = len(npyMagic) + 4, len(npyMagic) + 6 // with version, and size of the header in 2 or 4 bytes
	if len(raw) < long || string(raw[:len(npyMagic)]) != npyMagic {
		return nil, nil, errors.New("it is not a NumPy file; want what numpy.save writes")
	}
	at, size := short, int(binary.LittleEndian.Uint16(raw[len(npyMagic)+2:]))
	if major := raw[len(npyMagic)]; major > 1 {
		at, size = long, int(binary.LittleEndian.Uint32(raw[len(npyMagic)+2:]))
		raw = append([]byte(npyMagic+"\x02"), raw[len(npyMagic)+1:]...)
	}
	if size > len(raw)-at {
		return nil, nil, errors.New("it ends in its header; want what numpy.save writes")
	}
	if !npyHead.Match(raw[at : at+size]) {
		return nil, nil, errDamagedNPY
	}
	return raw, raw[at+size:], nil
}

// idsIn reads count elements of a file, which are bytes bytes.
func idsIn[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64](file *npyio.Reader, count, bytes int) (
	[]int, error) {
	elements := make([]T, count)
	if size := binary.Size(elements); size != bytes {
		return nil, fmt.Errorf("it has %d bytes of elements and says %d of %d bytes", bytes, count, binary.Size(T(0)))
	}
	if err := file.Read(&elements); err != nil {
		return nil, fmt.Errorf("its elements cannot be read; want what numpy.save writes: %w", err)
	}
	ids := make([]int, count)
	for i, v := range elements {
		if v < 0 || uint64(v) > math.MaxInt32 {
			return nil, fmt.Errorf("element %d is not an id; want integers from 0 to %d", i, math.MaxInt32)
		}
		ids[i] = int(v)
	}
	return ids, nil
}
