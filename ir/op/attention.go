package op

import (
	"fmt"
	"strings"
)

var ATTENTION = declare(Spec{
	Code: 7,
	Name: "ATTENTION_TILE",
	Doc: "Attention of the heads of q over rows of k and v. nh is n_heads, nkv is n_kv_heads, of which nh is a " +
		"multiple, and hd is head_dim: nh query heads share nkv heads of keys and values. The views of k and v " +
		"have the shape [rows,hd] if nkv is 1, [rows,nkv,hd], [nkv,rows,1,hd] or [1,nkv,rows,1,hd], and all " +
		"queries share them; or each query has its own rows, [B,rows,nkv,hd]. Dimension hd is not distributed, and " +
		"k and v have the same number of rows at each position. If their rows are distributed to parts, block, " +
		"part and parts state the same distribution. k_row and v_row, which come together, are the rows that are " +
		"being appended, one for each query: a query sees those up to its own. The row of query t is at position " +
		"row, and belongs to the task whose share of the rows contains it, (row/block) % parts == part; other " +
		"tasks ignore it. With window, a query sees its own row and window-1 before it, where row e of a cache is " +
		"at position e. With cap, a scaled score s becomes cap · tanh(s / cap). With flags=2 the result is " +
		"partial, (acc[hd], m, l) per head: acc is not divided by l, and m is the largest score in natural units. " +
		"A task without rows yields acc = 0, m = −Inf and l = 0. If rows of the cache are integers with a scale, " +
		"k_row and v_row are rounded as KV_APPEND rounds them. With rows, the result is that of `rows` queries of " +
		"q, from query first_row on. sinks are a score for each head that has no value: it counts in m and in l, of " +
		"several parts in those of part 0 alone.",
	Params: []Param{
		need(headDim), need(heads), need(kvHeads), need(scale),
		{Key: "flags", Lo: -MaxInt, Hi: MaxInt, Doc: "2: the result is partial; other bits are ignored"},
		{Key: "row", Lo: 0, Hi: MaxInt, Moves: true, Doc: "the position of a query, of its k_row and v_row"},
		firstRow, rowCount,
		{Key: "window", Lo: 1, Hi: MaxInt, Doc: "the number of rows that a query sees, its own included; needs row"},
		bound,
		block,
		{Key: "part", Lo: 0, Hi: MaxInt, Doc: "the part of the rows that the task takes"},
		parts,
	},
	Kernel: true,
	Forms: []Form{{
		In: []Operand{
			{Name: "q", Shape: "[B,nh,hd]"},
			{Name: "k", Shape: "[rows*,nkv,hd]", Role: Cache},
			{Name: "v", Shape: "[rows*,nkv,hd]", Role: Cache},
			{Name: "k_row", Shape: "[B,nkv,hd]", Optional: true},
			{Name: "v_row", Shape: "[B,nkv,hd]", Optional: true},
			{Name: "sinks", Shape: "[nh]", Role: Gain, Optional: true},
		},
		Out:   results("[B,nh,hd], or [B,nh,hd+2] with flags=2; B is rows if there is one"),
		Shape: attentionShape,
	}},
})

// attentionShape: q is whole rows of heads. Keys and values are as many rows, in one of the forms of a cache.
func attentionShape(c *Call) (n, last int) {
	hd, nh, nkv := c.positive("head_dim"), c.positive("n_heads"), c.positive("n_kv_heads")
	q, k, v := c.In[0].N(), &c.In[1], &c.In[2]
	if nh%nkv != 0 {
		c.Fail("%d heads are not a multiple of %d kv heads", nh, nkv)
		return 0, 0
	}
	if !(q > 0 && q%(nh*hd) == 0) {
		c.Fail("q has %d elements, want rows of n_heads*head_dim = %d", q, nh*hd)
		return 0, 0
	}
	if k.Temp || v.Temp {
		c.Fail("k or v is a temporary, want buffers")
		return 0, 0
	}
	batch := q / (nh * hd)
	for i := 1; i <= 2; i++ {
		if !c.In[i].isCache(batch, nkv, hd) {
			c.Fail("operand %d has the shape %s, want %s", i+1, c.In[i].cacheShape(), cacheForms(batch, nkv, hd))
			return 0, 0
		}
	}
	switch len(c.In) {
	case 4:
		c.Fail("has k_row but no v_row")
	case 6:
		if n := c.In[5].N(); n != nh {
			c.Fail("has %d sinks, want one for each of %d heads", n, nh)
		}
		fallthrough
	case 5:
		if n, m := c.In[3].N(), c.In[4].N(); n != batch*nkv*hd || m != batch*nkv*hd {
			c.Fail("k_row and v_row have %d and %d elements, want %d", n, m, batch*nkv*hd)
		}
		if batch > 1 && (k.ofEach(batch, nkv) || v.ofEach(batch, nkv)) {
			c.Fail("has %d queries with rows of their own and rows to append, want rows that they share", batch)
		}
		if batch > 1 && !c.Has("row") {
			c.Fail("has %d rows to append and no parameter row, want the position of each", batch)
		}
	}
	if c.Has("window") && !c.Has("row") {
		c.Fail("has a window and no parameter row, want the position of each query")
	}
	last = hd
	if c.Int("flags", 0)&2 != 0 {
		last += 2
	}
	return c.rowsOf(batch) * nh * last, last
}

// isCache reports whether a view has one of the forms that cacheForms names. The number of rows is free, and head_dim
// elements are side by side.
func (v *View) isCache(batch, nkv, hd int) bool {
	last := len(v.Lens) - 1
	if last < 1 || v.Lens[last] != hd || v.Dealt>>last&1 != 0 {
		return false
	}
	switch last {
	case 1:
		return nkv == 1
	case 2:
		return v.Lens[1] == nkv
	case 3:
		return v.ofEach(batch, nkv) || v.Lens[0] == nkv && v.Lens[2] == 1
	}
	return v.Lens[0] == 1 && v.Lens[1] == nkv && v.Lens[3] == 1
}

// ofEach reports whether each query has rows of its own in a cache.
func (v *View) ofEach(batch, nkv int) bool {
	return len(v.Lens) == 4 && v.Lens[0] == batch && v.Lens[2] == nkv
}

// cacheShape prints the shape of a view, of which the rows may depend on the position.
func (v *View) cacheShape() string {
	var b strings.Builder
	for d, n := range v.Lens {
		switch {
		case d == RowsOf(len(v.Lens)):
			b.WriteString(" rows")
		case v.Dealt>>d&1 != 0:
			fmt.Fprintf(&b, " %d in blocks", n)
		default:
			fmt.Fprintf(&b, " %d", n)
		}
	}
	return "[" + strings.TrimSpace(b.String()) + "]"
}

func cacheForms(batch, nkv, hd int) string {
	switch {
	case nkv > 1:
		return fmt.Sprintf("[rows %d %d], [%d rows %d %d], [%d rows 1 %d] or [1 %d rows 1 %d]", nkv, hd, batch, nkv, hd,
			nkv, hd, nkv, hd)
	case batch > 1:
		return fmt.Sprintf("[rows %d], [rows 1 %d], [%d rows 1 %d], [1 rows 1 %d] or [1 1 rows 1 %d]", hd, hd, batch,
			hd, hd, hd)
	}
	return fmt.Sprintf("[rows %d], [rows 1 %d], [1 rows 1 %d] or [1 1 rows 1 %d]", hd, hd, hd, hd)
}
