package ir

import (
	"amkc/ir/transform"
)

// A Piece supplies rows of a packed buffer: a tensor of the checkpoint or a computed one, and its transforms.
type Piece struct {
	Key   string          // state-dict key, with {i} for the layer; "@inv_freq" is computed from the model's config
	Chain transform.Chain // from the tensor to the rows; empty: its rows as they are
}

// String is the text form: the key inside the transforms, the last one outermost, as in pairs:64(rows:0:512(KEY)).
func (pc Piece) String() string { return pc.Chain.Around(string(appendName(nil, pc.Key))) }

// ParsePiece reads what String prints.
func ParsePiece(s string) (Piece, error) {
	c := cursor{s: s}
	pc := c.piece()
	c.end()
	if c.err != nil {
		return Piece{}, c.err
	}
	return pc, nil
}

// piece reads TRANSFORM(TRANSFORM(…(KEY))). `rows` without arguments stands for no transform, so it stands alone.
func (c *cursor) piece() Piece {
	var pc Piece
	for {
		c.peek()
		start := c.i
		name := c.name("a transform or a state-dict key")
		if next := c.peek(); len(pc.Chain) > 0 && next != ':' && next != '(' {
			pc.Key = name
			break
		}
		kind, known := transform.ByName(name)
		if !known {
			c.fail(start, "unknown transform %s, want one of %s", clip(name), transform.Names())
		}
		if c.err != nil {
			return pc
		}
		if kind == transform.Rows && c.peek() == '(' {
			if len(pc.Chain) > 0 {
				c.fail(start, "rows without LO and HI inside another transform, want the key on its own")
			}
			c.accept("(")
			pc.Key = c.name("a state-dict key")
			c.expect(")")
			return pc
		}
		c.atMost(len(pc.Chain), transform.MaxChain, "transforms of a piece")
		pc.Chain = append(pc.Chain, c.transform(kind))
		c.expect("(")
	}
	for range pc.Chain {
		c.expect(")")
	}
	for i, n := 0, len(pc.Chain); i < n/2; i++ { // the outermost is the last one
		pc.Chain[i], pc.Chain[n-1-i] = pc.Chain[n-1-i], pc.Chain[i]
	}
	return pc
}

// transform reads the arguments of one, each after a colon.
func (c *cursor) transform(kind transform.Kind) transform.Transform {
	t := transform.Transform{Kind: kind}
	spec := t.Spec()
	for len(t.Ints) < len(spec.Ints) && c.accept(":") {
		t.Ints = append(t.Ints, c.int(spec.Ints[len(t.Ints)]+" of "+spec.Name))
	}
	if spec.Real != "" {
		c.expect(":")
		c.peek()
		end := c.i
		for end < len(c.s) && isNameByte(c.s[end]) {
			end++
		}
		t.By = c.float(end)
	}
	return t
}

// pieces checks each chain, and that the rows of all fill the buffer, as far as the program says how many there are.
func (c *checker) pieces(pos string, b *Buffer) {
	if len(b.Pieces) == 0 {
		return
	}
	if b.Kind != Weight && b.Kind != Const {
		c.fail(CodePiece, pos, "a %v buffer comes from no checkpoint, want WEIGHT or CONST", b.Kind)
	}
	wantRows, wantCols := b.Matrix()
	chains, rows := make([]transform.Chain, len(b.Pieces)), make([]transform.Count, len(b.Pieces))
	for i, pc := range b.Pieces {
		var cols transform.Count
		var err error
		rows[i], cols, err = pc.Chain.Shape(transform.Any, transform.Any)
		switch {
		case err != nil:
			c.fail(CodePiece, pos, "piece %s: %v", clip(pc.Key), err)
			return
		case !cols.Unknown && cols.N != wantCols, wantCols%cols.N != 0:
			c.fail(CodePiece, pos, "piece %s has rows of %d elements, want %d", clip(pc.Key), cols.N, wantCols)
		}
		chains[i] = pc.Chain
	}
	if _, err := transform.Fill(chains, rows, wantRows); err != nil {
		c.fail(CodePiece, pos, "%v", err)
	}
}

// Matrix returns the buffer as rows and columns, which is how it is packed: the last dimension counts columns. A vector
// is one column of as many rows as it has elements.
func (b *Buffer) Matrix() (rows, cols int) {
	if len(b.Shape) < 2 {
		return b.Numel(), 1
	}
	cols = b.Shape[len(b.Shape)-1]
	return b.Numel() / max(1, cols), cols
}
