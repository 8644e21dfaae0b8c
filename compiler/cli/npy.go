package cli

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
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
