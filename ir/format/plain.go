package format

// plain is row-major, without padding: vectors, which the kernel reads through the read-only path. A tile is one row.
type plain struct{ e element }

func (p plain) Layout() string   { return "rowmajor" }
func (p plain) DType() string    { return p.e.name }
func (p plain) Loader() string   { return p.e.loader }
func (p plain) Largest() float32 { return p.e.largest }

func (p plain) Geometry() Geometry { return Geometry{Rows: 1, Columns: 1, BlockBytes: p.e.size} }

func (p plain) Bytes(rows, cols int) int { return rows * cols * p.e.size }

func (p plain) At(row, col, cols int) int { return (row*cols + col) * p.e.size }

func (p plain) Tensor(rows, cols int) (dtype string, shape []int) {
	return p.e.name, []int{rows * cols}
}

func (p plain) Pack(dst []byte, values []float32, _ int) []byte {
	dst = sized(dst, len(values)*p.e.size)
	p.e.encode(dst, values)
	return dst
}

func (p plain) Unpack(dst []float32, packed []byte, _ int) {
	p.e.decode(dst, packed[:len(dst)*p.e.size])
}
