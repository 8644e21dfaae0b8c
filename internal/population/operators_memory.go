package population

import (
	"slices"

	"amkc/ir"
)

var pageOperators = []Operator{
	operator("merge-pages", ruleRace, func(d *draft) bool {
		from := d.find(len(d.pages), func(p int) bool { return d.pageLike(p) >= 0 && d.paged(d.pages[p].Name) })
		if from < 0 {
			return false
		}
		to := d.pageLike(from)
		d.pages[to].Bytes = max(d.pages[to].Bytes, d.pages[from].Bytes)
		for i := range d.buffers {
			b := &d.buffers[i]
			b.Pages = slices.Clone(b.Pages)
			for k := range b.Pages {
				if b.Pages[k] == d.pages[from].Name {
					b.Pages[k] = d.pages[to].Name
				}
			}
		}
		return true
	}),
	operator("move-to-another-page", ruleRace, func(d *draft) bool {
		if len(d.pages) == 0 {
			return false
		}
		to := d.r.IntN(len(d.pages))
		pg := &d.pages[to]
		b := d.findBuffer(func(b *ir.Buffer) bool {
			return b.Layout.Words() && b.Layout == pg.Layout && b.Bytes() <= pg.Bytes &&
				(len(b.Pages) == 0 || b.Pages[0] != pg.Name)
		})
		if b >= 0 {
			d.buffers[b].Pages = []string{pg.Name}
		}
		return b >= 0
	}),
	operator("swap-pages-of-a-family", ruleRace, func(d *draft) bool {
		b := d.findBuffer(func(b *ir.Buffer) bool { return len(b.Pages) > 1 && b.Pages[0] != b.Pages[1] })
		if b >= 0 {
			p := slices.Clone(d.buffers[b].Pages)
			p[0], p[1] = p[1], p[0]
			d.buffers[b].Pages = p
		}
		return b >= 0
	}),
	operator("one-page-less", ruleRace, func(d *draft) bool {
		b := d.findBuffer(func(b *ir.Buffer) bool { return len(b.Pages) > 1 })
		if b >= 0 {
			d.buffers[b].Pages = d.buffers[b].Pages[:len(d.buffers[b].Pages)-1]
		}
		return b >= 0
	}),
	operator("page-too-small", ruleMemory, func(d *draft) bool {
		return d.changePage(func(pg *ir.Page) {
			for i := range d.buffers {
				if slices.Contains(d.buffers[i].Pages, pg.Name) {
					pg.Bytes = min(pg.Bytes, d.buffers[i].Bytes()-1)
				}
			}
		})
	}),
	operator("page-layout", ruleMemory, func(d *draft) bool {
		return d.changePage(func(pg *ir.Page) {
			switch pg.Layout.Copies++; {
			case !pg.Layout.Words():
				pg.Layout = ir.Layout{Kind: ir.Word64}
			case d.r.IntN(2) == 0:
				pg.Layout = ir.Layout{}
			default:
				pg.Layout.Copies = max(2, pg.Layout.Copies)
			}
		})
	}),
	operator("page-space", ruleMemory, func(d *draft) bool {
		return d.changePage(func(pg *ir.Page) { pg.Space = ir.SMEM })
	}),
	operator("page-missing", ruleStructure, func(d *draft) bool {
		b := d.findBuffer(func(b *ir.Buffer) bool { return len(b.Pages) > 0 })
		if b >= 0 {
			d.buffers[b].Pages = []string{"nowhere"}
		}
		return b >= 0
	}),
}

func (d *draft) findBuffer(ok func(*ir.Buffer) bool) int {
	return d.find(len(d.buffers), func(i int) bool { return ok(&d.buffers[i]) })
}

func (d *draft) paged(page string) bool {
	return slices.ContainsFunc(d.buffers, func(b ir.Buffer) bool { return slices.Contains(b.Pages, page) })
}

// pageLike returns a page of the same space and layout as page p, or -1.
func (d *draft) pageLike(p int) int {
	return slices.IndexFunc(d.pages, func(q ir.Page) bool {
		return q.Name != d.pages[p].Name && q.Layout == d.pages[p].Layout && q.Space == d.pages[p].Space
	})
}

// changePage changes a page that some buffer is on.
func (d *draft) changePage(change func(*ir.Page)) bool {
	p := d.find(len(d.pages), func(p int) bool { return d.paged(d.pages[p].Name) })
	if p >= 0 {
		change(&d.pages[p])
	}
	return p >= 0
}

var bufferOperators = []Operator{
	operator("buffer-dtype", ruleMemory, func(d *draft) bool {
		return d.changeBuffer(func(b *ir.Buffer) {
			next := map[ir.DType]ir.DType{ir.F32: ir.I32, ir.I32: ir.F32, ir.F16: ir.F32, ir.BF16: ir.I8}
			b.DType = next[b.DType]
		})
	}),
	operator("buffer-layout", ruleMemory, func(d *draft) bool {
		return d.changeBuffer(func(b *ir.Buffer) {
			b.Layout.Kind = (b.Layout.Kind + 1 + ir.LayoutKind(d.r.IntN(5))) % 6
		})
	}),
	operator("words-to-plain", ruleEdges, func(d *draft) bool {
		b := d.findBuffer(func(b *ir.Buffer) bool { return b.Layout.Words() })
		if b >= 0 {
			d.buffers[b].Layout, d.buffers[b].Pages = ir.Layout{}, nil
		}
		return b >= 0
	}),
	operator("buffer-space", ruleMemory, func(d *draft) bool {
		return d.changeBuffer(func(b *ir.Buffer) { b.Space = (b.Space + 1 + ir.Space(d.r.IntN(3))) % 4 })
	}),
	operator("buffer-kind", ruleProvenance, func(d *draft) bool {
		return d.changeBuffer(func(b *ir.Buffer) { b.Kind = (b.Kind + 1 + ir.BufferKind(d.r.IntN(5))) % 6 })
	}),
	operator("buffer-shape", ruleMemory, func(d *draft) bool {
		return d.changeBuffer(func(b *ir.Buffer) {
			b.Shape = slices.Clone(b.Shape)
			b.Shape[d.r.IntN(len(b.Shape))]--
		})
	}),
}

func (d *draft) changeBuffer(change func(*ir.Buffer)) bool {
	b := d.r.IntN(len(d.buffers))
	change(&d.buffers[b])
	return true
}

// Rows of the cache and everything else that depends on pos.
var cacheOperators = []Operator{
	operator("position-off-by-one", ruleMemory, func(d *draft) bool {
		x, k, ok := d.findPos(anyUse)
		if ok {
			r := &d.ownView(x.viewAt).Dims[k]
			r.Hi = r.Hi.Add(ir.Int(1 - 2*d.r.IntN(2)))
		}
		return ok
	}),
	operator("position-to-the-end", ruleMemory, func(d *draft) bool {
		x, k, ok := d.findPos(anyUse)
		if ok {
			r := &d.ownView(x.viewAt).Dims[k]
			r.Hi = ir.Int(x.buf.Shape[k])
		}
		return ok
	}),
	operator("append-beside-pos", ruleStep, func(d *draft) bool {
		x, k, ok := d.findPos(func(x use) bool { return x.op.Code == ir.KVAppend && x.write })
		if ok {
			shift(&d.ownView(x.viewAt).Dims[k], 1-2*d.r.IntN(2))
		}
		return ok
	}),
	operator("attend-to-new-row", ruleProvenance, func(d *draft) bool {
		x, k, ok := d.findPos(func(x use) bool {
			return x.op.Code == ir.ATTENTION && !x.write && x.arg == 1 &&
				len(x.op.In) > 2
		})
		if ok {
			o := d.own(x.opAt)
			for _, i := range []int{1, 2} { // k and v go together
				if k < len(o.In[i].Dims) {
					o.In[i].Dims[k].Hi = o.In[i].Dims[k].Hi.Add(ir.Int(1))
				}
			}
		}
		return ok
	}),
	operator("window-before-the-first-row", ruleMemory, func(d *draft) bool {
		x, k, ok := d.findPos(func(x use) bool {
			return x.op.Code == ir.ATTENTION && !x.write && x.arg == 1 &&
				len(x.op.In) > 2
		})
		if ok {
			o, lo := d.own(x.opAt), ir.Symbol(ir.Pos).Sub(ir.Int(1+d.r.IntN(3)))
			for _, i := range []int{1, 2} { // k and v go together
				if k < len(o.In[i].Dims) {
					o.In[i].Dims[k].Lo = lo
				}
			}
		}
		return ok
	}),
	operator("another-share", ruleRace, func(d *draft) bool {
		x, ok := d.findView(func(x use) bool { return slices.ContainsFunc(x.dims, ir.Range.Shared) })
		if ok {
			v := d.ownView(x.viewAt)
			r := &v.Dims[slices.IndexFunc(v.Dims, ir.Range.Shared)]
			r.Part = r.Part.Add(ir.Int(1)).Mod(r.Parts)
		}
		return ok
	}),
	operator("another-block", ruleRace, func(d *draft) bool {
		x, ok := d.findView(func(x use) bool { return x.write && slices.ContainsFunc(x.dims, ir.Range.Shared) })
		if ok {
			v := d.ownView(x.viewAt)
			v.Dims[slices.IndexFunc(v.Dims, ir.Range.Shared)].Block++
		}
		return ok
	}),
	operator("other-head", ruleRace, func(d *draft) bool {
		x, ok := d.findView(func(x use) bool {
			return x.buf.Kind == ir.KVCache && len(x.dims) == 4 &&
				x.buf.Shape[0] > 1
		})
		if ok {
			r := &d.ownView(x.viewAt).Dims[0]
			lo := r.Lo.Add(ir.Int(1)).Mod(x.buf.Shape[0])
			r.Lo, r.Hi = lo, lo.Add(ir.Int(1))
		}
		return ok
	}),
}

// findPos returns a view with a bound that depends on pos, and the dimension.
func (d *draft) findPos(ok func(use) bool) (use, int, bool) {
	depends := func(r ir.Range) bool { return r.Lo.Uses(ir.Pos) || r.Hi.Uses(ir.Pos) }
	x, found := d.findView(func(x use) bool {
		return len(x.dims) == len(x.buf.Shape) && slices.ContainsFunc(x.dims, depends) && ok(x)
	})
	return x, slices.IndexFunc(x.dims, depends), found
}
