package format

// tiles is what matrices are streamed in: tiles of 8 rows, in them blocks of 32 columns. A block is four matrices of 8
// rows by 8 elements, row after row, as tensor cores take them (ldmatrix, and wgmma without swizzle). Matrix 2*h + c
// has elements 8t + 4h + 2c + e of each row, in the order of t and then e. So the first two matrices have columns 0 to
// 3 of every 8, and the other two columns 4 to 7.
type tiles struct{ e element }

const (
	tileRows     = 8
	blockColumns = 32
	laneColumns  = 8  // of a row of a matrix
	matrices     = 4  // of a block
	lanes        = 32 // of a warp
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

// columnAt is the column of a block that element i of a row of matrix m is.
func columnAt(m, i int) int { return i/2*8 + m/2*4 + m%2*2 + i%2 }

// place is the matrix that has a column of a block, and which element of a row it is there.
func place(col int) (m, i int) { return col / 2 % 4, col/8*2 + col%2 }

// row is the byte in its block where the elements begin that a row has of matrix m.
func (t tiles) row(row, m int) int { return (m*tileRows + row%tileRows) * laneColumns * t.e.size }

func (t tiles) At(row, col, cols int) int {
	g := t.Geometry()
	m, i := place(col % blockColumns)
	return row/tileRows*g.TileBytes(cols) + col/blockColumns*g.BlockBytes + t.row(row, m) + i*t.e.size
}

func (t tiles) Tensor(rows, cols int) (dtype string, shape []int) {
	g := t.Geometry()
	return t.e.name, []int{g.Tiles(rows), g.Blocks(cols), matrices, tileRows, laneColumns}
}

func (t tiles) Pack(dst []byte, values []float32, cols int) []byte {
	n := len(values) / cols
	dst = sized(dst, t.Bytes(n, cols))
	clear(dst)
	g := t.Geometry()
	for row := range n {
		tile := dst[row/tileRows*g.TileBytes(cols):]
		for col := 0; col < cols; col += blockColumns {
			var of [blockColumns]float32
			copy(of[:], values[row*cols+col:row*cols+min(cols, col+blockColumns)])
			block := tile[col/blockColumns*g.BlockBytes:]
			for m := range matrices {
				var places [laneColumns]float32
				for i := range places {
					places[i] = of[columnAt(m, i)]
				}
				t.e.encode(block[t.row(row, m):], places[:])
			}
		}
	}
	return dst
}

func (t tiles) Unpack(dst []float32, packed []byte, cols int) {
	size, g := laneColumns*t.e.size, t.Geometry()
	for row := range len(dst) / cols {
		tile := packed[row/tileRows*g.TileBytes(cols):]
		for col := 0; col < cols; col += blockColumns {
			var of [blockColumns]float32
			block := tile[col/blockColumns*g.BlockBytes:]
			for m := range matrices {
				var places [laneColumns]float32
				at := t.row(row, m)
				t.e.decode(places[:], block[at:at+size])
				for i, v := range places {
					of[columnAt(m, i)] = v
				}
			}
			copy(dst[row*cols+col:row*cols+min(cols, col+blockColumns)], of[:])
		}
	}
}
