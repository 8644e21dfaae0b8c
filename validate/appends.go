package validate

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate/views"
)

// Rows of a cache below pos count as initial state. That holds because the steps before wrote them: the step at
// position p writes row p of every cache, in every head and dimension that some step reads later. checkAppends proves
// it of every variant, so that no read below pos finds a row that nobody wrote.
//
// A pass of several rows writes that many of the cache of each sequence, from its position on. What becomes of a cache
// depends on the position of its sequence alone (operands.go), so that all sequences may be looked at together.
//
// A cache may have fewer rows than there are positions, and use them over again: once each row has been written by the
// step of its position, all of them are defined, and from then on all are below pos. Which position's row each one
// holds is a matter of values, which are not part of the proof.
//
// A program of the AMK profile is one step; what its cache holds before is the host's.
func checkAppends(proofs []*Proof) diag.List {
	c := &carried{needs: map[string]*need{}}
	for _, p := range proofs {
		c.collect(p)
	}
	for _, p := range proofs {
		d := c.check(p)
		if d == nil {
			continue
		}
		if len(proofs) > 1 {
			name(diag.List{d}, p.flat.Name)
		}
		c.diags.Add(d)
		if c.over() {
			break
		}
	}
	return c.diags
}

// carried is what steps leave to each other in caches.
type carried struct {
	needs map[string]*need // by buffer
	names []string
	spent int // contiguous pieces looked at
	diags diag.List
	x     expander
}

// need is what later steps read of one row of a cache.
type need struct {
	buffer ir.Buffer // with a single row
	rows   int       // that the cache has
	runs   []run     // elements of the row
	reader string    // a task that reads it
}

func (c *carried) over() bool { return c.spent > maxRuns }

// expand returns the elements of one row that a view covers, valid until the next call.
func (c *carried) expand(n *need, dims []ir.Range, pos int) []run {
	runs := c.x.expand(&n.buffer, dims, pos, false)
	c.spent += 1 + len(runs) + c.x.dropped
	return runs
}

// collect notes what the tasks of a variant read below pos. Layers mostly use their caches alike, through the very
// same views, and then have one need together.
func (c *carried) collect(p *Proof) {
	reads := p.ofCaches(false)
	last, before := -1, (*need)(nil) // the cache before this one, and its need before this variant
	for b, list := range reads {
		if len(list) == 0 || c.over() {
			continue
		}
		buf := &p.flat.Buffers[b]
		n := c.needs[buf.Name]
		if n == nil {
			c.names = append(c.names, buf.Name)
		}
		if last >= 0 && p.sameViews(list, reads[last]) && slices.Equal(buf.Shape, p.flat.Buffers[last].Shape) {
			if n == before {
				c.needs[buf.Name] = c.needs[p.flat.Buffers[last].Name]
				last = b
				continue
			}
		}
		c.needs[buf.Name] = c.extend(p, n, buf, list)
		last, before = b, n
	}
}

// extend returns a need with the reads of one variant added, in memory of its own.
func (c *carried) extend(p *Proof, n *need, b *ir.Buffer, reads []*access) *need {
	out := &need{buffer: *b, rows: b.Shape[views.RowsDim(b)], reader: p.flat.Tasks[reads[0].task].Name}
	if n != nil {
		out.runs, out.reader = slices.Clone(n.runs), n.reader
		c.spent += len(n.runs)
	}
	out.buffer.Layout, out.buffer.Shape = ir.Layout{}, slices.Clone(b.Shape)
	out.buffer.Shape[views.RowsDim(b)] = 1
	for _, a := range reads {
		dims := a.dims(p.flat)
		pos := positionOf(dims)
		if c.over() || p.positions.AtMost(pos, dims[views.RowsDim(b)].Lo) {
			continue
		}
		out.runs = append(out.runs, c.expand(out,
			out.row(dims, func(d int) ir.Range { return ir.Span(ir.Int(0), ir.Int(b.Shape[d])) }), 0)...)
	}
	out.runs = merge(out.runs)
	return out
}

// check returns the first row that a step of a variant leaves out; the other caches are mostly alike.
func (c *carried) check(p *Proof) *diag.Diagnostic {
	writes := map[string][]*access{}
	for b, list := range p.ofCaches(true) {
		writes[p.flat.Buffers[b].Name] = list
	}
	var proved *need
	var by []*access
	for _, name := range c.names {
		n := c.needs[name]
		if n == proved && p.sameViews(writes[name], by) {
			continue
		}
		if d := c.checkAppended(p, n, name, writes[name]); d != nil {
			return d
		}
		if c.over() {
			return diag.Errorf(CodeBudget, "buffer "+name,
				"the proof of what steps append needs more than %d contiguous pieces of views; it stops here, and "+
					"what is not proved is refused", maxRuns)
		}
		proved, by = n, writes[name]
	}
	return nil
}

// ofCaches lists the views that tasks write, or read, of each cache.
func (p *Proof) ofCaches(write bool) [][]*access {
	out := make([][]*access, len(p.flat.Buffers))
	for i := range p.mem.accesses {
		if a := &p.mem.accesses[i]; a.write == write && p.flat.Buffers[a.buf].Kind == ir.KVCache {
			out[a.buf] = append(out[a.buf], a)
		}
	}
	return out
}

// sameViews reports whether two lists are of the very same views, as those of a loop's iterations are.
func (p *Proof) sameViews(a, b []*access) bool {
	return slices.EqualFunc(a, b, func(x, y *access) bool { return &x.dims(p.flat)[0] == &y.dims(p.flat)[0] })
}

// row returns the part of a view that is in one row. Ranges that depend on pos are replaced.
func (n *need) row(dims []ir.Range, instead func(d int) ir.Range) []ir.Range {
	out := slices.Clone(dims)
	for d := range out {
		if d == views.RowsDim(&n.buffer) {
			out[d] = ir.Span(ir.Int(0), ir.Int(1))
		} else if !views.Constant(&out[d]) {
			out[d] = instead(d)
		}
	}
	return out
}

// checkAppended: at every position, each row of the pass that the cache has is covered by the writes.
func (c *carried) checkAppended(p *Proof, n *need, name string, writes []*access) *diag.Diagnostic {
	for row := range p.flat.Pass.NumRows() {
		if d := c.checkRow(p, n, name, writes, row); d != nil {
			return d
		}
	}
	return nil
}

// checkRow: the writes cover one row of the pass. All at once where they are of row pos+t as a whole, or of all parts
// of it; else position by position.
func (c *carried) checkRow(p *Proof, n *need, name string, writes []*access, t int) *diag.Diagnostic {
	if missing(n.runs, c.alwaysWritten(p, n, writes, t)) == nil {
		return nil
	}
	rows := views.RowsDim(&n.buffer)
	for pos := p.flat.Lo; pos <= min(p.flat.Hi, n.rows-1-t); pos++ {
		var have []run
		for _, a := range writes {
			if c.over() {
				return nil // check refuses it
			}
			dims, row := a.dims(p.flat), pos+t
			if r := &dims[rows]; r.Lo.At(pos) <= row && row < r.Hi.At(pos) && views.Holds(r, row, pos) {
				have = append(have, c.expand(n, n.row(dims, func(d int) ir.Range { return dims[d] }), pos)...)
			} else {
				c.spent++
			}
		}
		if gap := missing(n.runs, merge(have)); gap != nil {
			return p.reportUnwritten(n, name, *gap, pos, t)
		}
		if c.spent += 1 + len(n.runs); c.over() {
			return nil // check refuses it
		}
	}
	return nil
}

func (p *Proof) reportUnwritten(n *need, name string, gap run, pos, t int) *diag.Diagnostic {
	lo, hi := coordinates(&n.buffer, gap.lo), coordinates(&n.buffer, gap.hi-1)
	d := views.RowsDim(&n.buffer)
	lo[d], hi[d] = pos+t, pos+t
	at := pos
	out := diag.Errorf(CodeAppend, "buffer "+name,
		"elements %v to %v are not written by the step at pos %d, and %s reads that row in later steps", lo, hi, pos,
		n.reader)
	locate(out)
	out.Other, out.Position = n.reader, &at
	if t > 0 {
		return out.Suggest("let a task of every step append row pos+%d to it", t)
	}
	return out.Suggest("let a task of every step append row pos to it")
}

// positionOf is the position of the sequence that a view of a cache is of.
func positionOf(dims []ir.Range) ir.Expr {
	s, _ := ir.Sequence(dims)
	return ir.PosOf(ir.Int(max(0, s)))
}

// alwaysWritten returns the elements of row pos+t that are written whatever pos is.
func (c *carried) alwaysWritten(p *Proof, n *need, writes []*access, t int) []run {
	type dealt struct {
		lo, hi       [ir.MaxRank]int // of a box
		block, parts int             // in which its rows are distributed
	}
	parts := map[dealt]map[int]bool{} // the parts of a box that are written
	var have []run
	for _, a := range writes {
		if c.over() {
			return nil // check refuses it
		}
		dims := a.dims(p.flat)
		r := &dims[views.RowsDim(&n.buffer)]
		row := positionOf(dims).Add(ir.Int(t))
		if !p.positions.AtMost(r.Lo, row) || !p.positions.AtMost(row.Add(ir.Int(1)), r.Hi) {
			continue
		}
		box := n.row(dims, func(int) ir.Range { return ir.Range{} }) // nothing is written there at every position
		if r.Shared() {
			part, ok := r.Part.IsConst()
			if !ok {
				continue
			}
			key := dealt{block: r.Block, parts: r.Parts}
			for d := range box {
				key.lo[d], _ = box[d].Lo.IsConst()
				key.hi[d], _ = box[d].Hi.IsConst()
				ok = ok && !box[d].Shared()
			}
			if parts[key] == nil {
				parts[key] = map[int]bool{}
			}
			if parts[key][part] = true; !ok || len(parts[key]) < r.Parts {
				continue
			}
		}
		have = append(have, c.expand(n, box, 0)...)
	}
	return merge(have)
}

// merge sorts runs and joins those that touch.
func merge(runs []run) []run {
	slices.SortFunc(runs, func(a, b run) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi)) })
	out := runs[:0]
	for _, r := range runs {
		if k := len(out) - 1; k >= 0 && r.lo <= out[k].hi {
			out[k].hi = max(out[k].hi, r.hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

// missing returns the first piece of want that have leaves out, both merged; nil if there is none.
func missing(want, have []run) *run {
	i := 0
	for _, w := range want {
		for i < len(have) && have[i].hi <= w.lo {
			i++
		}
		switch {
		case i == len(have) || have[i].lo >= w.hi:
			return &w
		case have[i].lo > w.lo:
			return &run{w.lo, have[i].lo}
		case have[i].hi < w.hi:
			rest := run{have[i].hi, w.hi}
			if i+1 < len(have) {
				rest.hi = min(rest.hi, have[i+1].lo)
			}
			return &rest
		}
	}
	return nil
}
