package format

// tiles is what matrices are streamed in: tiles of 8 rows, in them blocks of 32 columns. Lane 4*row + quarter of a warp
// holds 8 columns of one row side by side, in the order of place.
type tiles struct{ e element }

const (
	tileRows     = 8
	blockColumns = 32
	laneColumns  = 8
	lanes        = 32
)

func (t tiles) Layout() string   { return "tile8x32" }
func (t tiles) DType() string    { return t.e.name }
func (t tiles) Loader() string   { return t.e.loader }
func (t tiles) Largest() float32 { return t.e.largest }

func (t tiles) Geometry() Geometry {
	return Geometry{Rows: tileRows, Columns: blockColumns, BlockBytes: tileRows * blockColumns * t.e.size}
}

func (t tiles) Bytes(rows, cols int) int {
	g := t.Geometry()
	return g.Tiles(rows) * g.TileBytes(cols)
}

// place is where a lane keeps column c of its 8, and the column that it keeps in place c: 0 1 4 5 2 3 6 7. Columns 0
// to 3 and 4 to 7 go to different rows of an mma operand, whose registers alternate between these rows; so what a lane
// loads is the operand as it is (runtime/cuda/amk/gemv_mma.cuh).
func place(c int) int { return c&1 | c&2<<1 | c&4>>1 }

// row and column are the bytes where a row begins in its tile, and where a lane's columns begin in their row: col is
// any of them.
func (t tiles) row(row, tileBytes int) int {
	return row/tileRows*tileBytes + row%tileRows*(lanes/tileRows)*laneColumns*t.e.size
}

func (t tiles) column(col int) int {
	return (col/blockColumns*tileRows*blockColumns + col%blockColumns/laneColumns*laneColumns) * t.e.size
}

func (t tiles) At(row, col, cols int) int {
	return t.row(row, t.Geometry().TileBytes(cols)) + t.column(col) + place(col%laneColumns)*t.e.size
}

func (t tiles) Tensor(rows, cols int) (dtype string, shape []int) {
	g := t.Geometry()
	return t.e.name, []int{g.Tiles(rows), g.Blocks(cols), lanes, laneColumns}
}

func (t tiles) Pack(dst []byte, values []float32, cols int) []byte {
	n := len(values) / cols
	dst = sized(dst, t.Bytes(n, cols))
	clear(dst)
	tileBytes := t.Geometry().TileBytes(cols)
	for row := range n {
		to := dst[t.row(row, tileBytes):]
		for col := 0; col < cols; col += laneColumns {
			var places [laneColumns]float32
			for c, v := range values[row*cols+col : row*cols+min(cols, col+laneColumns)] {
				places[place(c)] = v
			}
			t.e.encode(to[t.column(col):], places[:])
		}
	}
	return dst
}

func (t tiles) Unpack(dst []float32, packed []byte, cols int) {
	size, tileBytes := laneColumns*t.e.size, t.Geometry().TileBytes(cols)
	for row := range len(dst) / cols {
		from := packed[t.row(row, tileBytes):]
		for col := 0; col < cols; col += laneColumns {
			var places [laneColumns]float32
			at := t.column(col)
			t.e.decode(places[:], from[at:at+size])
			to := dst[row*cols+col : row*cols+min(cols, col+laneColumns)]
			for c := range to {
				to[c] = places[place(c)]
			}
		}
	}
}
