package simulate

import (
	"fmt"

	"amkc/ir"
)

// wellFormed looks for what has no meaning in the machine: indices, names and sizes.
func wellFormed(f *ir.Flat) *Hazard {
	bad := func(who, format string, args ...any) *Hazard {
		return &Hazard{Kind: Malformed, Where: who, Detail: fmt.Sprintf(format, args...)}
	}
	if f.Lo < 0 || f.Hi < f.Lo {
		return bad("", "has positions %d to %d; want 0 or more, the first no later than the last", f.Lo, f.Hi)
	}
	named := map[string]bool{}
	for _, list := range []struct {
		what string
		n    int
		name func(int) string
	}{
		{"buffer ", len(f.Buffers), func(i int) string { return f.Buffers[i].Name }},
		{"page ", len(f.Pages), func(i int) string { return f.Pages[i].Name }},
		{"counter ", len(f.Counters), func(i int) string { return f.Counters[i].Name }},
		{"task ", len(f.Tasks), func(i int) string { return f.Tasks[i].Name }},
	} {
		for i := range list.n {
			name := list.what + list.name(i)
			if list.name(i) == "" {
				return bad(list.what+fmt.Sprint(i), "has no name; want one that no other has")
			}
			if named[name] {
				return bad(name, "is defined twice; want a name that no other has")
			}
			named[name] = true
		}
	}
	for i := range f.Counters {
		switch c := &f.Counters[i]; {
		case c.How != ir.ByCounter && c.How != ir.Flagged:
			return bad("counter "+c.Name, "is %s; want counter or flagged", c.How)
		case c.Scope < ir.ScopeGPU || c.Scope > ir.ScopeSystem:
			return bad("counter "+c.Name, "has scope %s; want gpu, sm or system", c.Scope)
		case c.Init < 0 || c.Init > ir.MaxTasks:
			return bad("counter "+c.Name, "starts at %d; want 0 to %d", c.Init, ir.MaxTasks)
		case c.Init > 0 && c.How == ir.Flagged:
			return bad("counter "+c.Name, "is flagged and starts at %d; want 0", c.Init)
		}
	}
	for i := range f.Pages {
		if p := &f.Pages[i]; p.Bytes < 0 || p.Layout.Kind != ir.RowMajor && !p.Layout.Words() {
			return bad("page "+p.Name, "has %d bytes as %s; want 0 or more as rowmajor, word32 or word64", p.Bytes,
				p.Layout)
		}
	}
	pages := pagesOf(f)
	for i := range f.Buffers {
		if h := wellFormedBuffer(f, pages, &f.Buffers[i]); h != "" {
			return bad("buffer "+f.Buffers[i].Name, "%s", h)
		}
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		if t.SM < -1 || t.SM >= f.SMs {
			return bad("task "+t.Name, "runs on SM %d; want one of %d, from 0 on, or none", t.SM, f.SMs)
		}
		if t.Signal < -1 || t.Signal >= len(f.Counters) {
			return bad("task "+t.Name, "signals counter %d; want one of %d, from 0 on, or none", t.Signal,
				len(f.Counters))
		}
		for _, w := range t.Waits {
			if w.Counter < 0 || w.Counter >= len(f.Counters) {
				return bad("task "+t.Name, "waits on counter %d; want one of %d, from 0 on", w.Counter, len(f.Counters))
			}
		}
		for k := range t.Ops {
			if h := wellFormedOp(f, &t.Ops[k]); h != "" {
				return bad("task "+t.Name, "%s", h)
			}
		}
	}
	return nil
}

// pagesOf returns the pages of a program by their names.
func pagesOf(f *ir.Flat) map[string]*ir.Page {
	pages := make(map[string]*ir.Page, len(f.Pages))
	for i := range f.Pages {
		pages[f.Pages[i].Name] = &f.Pages[i]
	}
	return pages
}

func wellFormedBuffer(f *ir.Flat, pages map[string]*ir.Page, b *ir.Buffer) string {
	if len(b.Shape) < 1 || len(b.Shape) > ir.MaxRank || b.DType.Bits() == 0 {
		return fmt.Sprintf("has shape %v of %s; want 1 to %d dimensions of a type with a size", b.Shape, b.DType,
			ir.MaxRank)
	}
	for _, n := range b.Shape {
		if n < 1 || n > 1<<30 {
			return fmt.Sprintf("has shape %v; want dimensions of 1 to %d", b.Shape, 1<<30)
		}
	}
	if b.Space < ir.HBM || b.Space > ir.PeerScratch || b.Kind < ir.Weight || b.Kind > ir.Recurrent ||
		b.Layout.Kind < ir.RowMajor || b.Layout.Kind > ir.Tile8x128 {
		return "has a kind, a space or a layout that does not exist"
	}
	exchanged := b.Space == ir.GlobalScratch || b.Space == ir.PeerScratch
	if b.Layout.Words() && (!exchanged || b.Kind != ir.Activation || b.Layout.Kind == ir.Word32 &&
		b.DType.Bits() != 16 || b.Layout.Kind == ir.Word64 && b.DType.Bits() != 32) {
		return fmt.Sprintf("holds %s %s in %s as %s", b.Kind, b.DType, b.Space, b.Layout)
	}
	rank := len(b.Shape)
	kv := b.Layout.Kind == ir.KVBlock16 || b.Layout.Kind == ir.KVRows16
	tiles := b.Layout.Kind == ir.Tile8x32 || b.Layout.Kind == ir.Tile8x128
	if kv && (b.Kind != ir.KVCache || rank != 4 && rank != 5) ||
		tiles && rank != 2 && (rank != 3 || b.Kind != ir.Weight) {
		return fmt.Sprintf("has layout %s and shape %v", b.Layout, b.Shape)
	}
	if b.Kind == ir.KVCache && len(b.Shape) < 3 {
		return fmt.Sprintf("is a cache of shape %v", b.Shape)
	}
	sequences, tokens := f.Pass.NumSequences(), f.Pass.NumTokens()
	if sequences > 1 && b.Kind.OfSequences() && b.Shape[0] != sequences ||
		tokens > 1 && (b.Kind == ir.Output || b.Role == ir.RoleToken) && b.Shape[0] != tokens {
		return fmt.Sprintf("has shape %v, and a pass %d sequences with %d tokens", b.Shape, sequences, tokens)
	}
	for _, name := range b.Pages {
		p := pages[name]
		if p != nil && (p.Space != b.Space || p.Layout.Kind != b.Layout.Kind ||
			max(1, p.Layout.Copies) != max(1, b.Layout.Copies) || b.Kind != ir.Activation) {
			return fmt.Sprintf("is %s %s in %s on page %s of %s in %s", b.Kind, b.Layout, b.Space, name, p.Layout,
				p.Space)
		}
		if p == nil || len(b.Pages) > 1 {
			return fmt.Sprintf("is on pages %v", b.Pages)
		}
	}
	return misplaced(f, b)
}

func wellFormedOp(f *ir.Flat, op *ir.FlatOp) string {
	if op.Code < 0 || int(op.Code) >= len(ir.Ops) || len(op.In) != len(op.InBuf) || len(op.Out) != len(op.OutBuf) {
		return fmt.Sprintf("has opcode %d with %d and %d operands of %d and %d buffers", op.Code, len(op.In),
			len(op.Out), len(op.InBuf), len(op.OutBuf))
	}
	spec := ir.Ops[op.Code]
	for _, p := range op.Params {
		if spec.Param(p.Key) == nil {
			return fmt.Sprintf("%s has no parameter %s", op.Code, p.Key)
		}
		if !p.IsFloat && (p.Int.Uses(ir.SpanA) || p.Int.Uses(ir.SpanB) || p.Int.Uses(ir.OnSM)) {
			return fmt.Sprintf("parameter %s of %s is not bound", p.Key, op.Code)
		}
	}
	check := func(o *ir.Operand, buf int) string {
		switch {
		case buf < -1 || buf >= len(f.Buffers):
			return fmt.Sprintf("names buffer %d; want one of %d, from 0 on", buf, len(f.Buffers))
		case buf == -1 && !o.IsTemp() || buf >= 0 && o.IsTemp():
			return fmt.Sprintf("operand %s is buffer %d", o.Buf, buf)
		case buf >= 0 && len(o.Dims) != len(f.Buffers[buf].Shape):
			return fmt.Sprintf("has a view of %s with %d ranges; want %d", f.Buffers[buf].Name, len(o.Dims),
				len(f.Buffers[buf].Shape))
		}
		if s, known := ir.Sequence(o.Dims); !known || s >= f.Pass.NumSequences() {
			return fmt.Sprintf("has view %s, and a pass has %d sequences", o, f.Pass.NumSequences())
		}
		for _, r := range o.Dims {
			for _, s := range []ir.Sym{ir.SpanA, ir.SpanB, ir.OnSM, ir.Row} {
				if r.Lo.Uses(s) || r.Hi.Uses(s) || r.Part.Uses(s) {
					return fmt.Sprintf("has a view of %s that is not bound", o.Buf)
				}
			}
		}
		return ""
	}
	scaled := func(buf int) bool { return buf >= 0 && f.Buffers[buf].ScaledRows() }
	for i := range op.In {
		if h := check(&op.In[i], op.InBuf[i]); h != "" {
			return h
		}
		if scaled(op.InBuf[i]) && op.Code != ir.ATTENTION {
			return fmt.Sprintf("%s reads rows of %s without their scales", op.Code, op.In[i].Buf)
		}
	}
	for i := range op.Out {
		if h := check(&op.Out[i], op.OutBuf[i]); h != "" {
			return h
		}
		if scaled(op.OutBuf[i]) && op.Code != ir.KVAppend {
			return fmt.Sprintf("%s writes rows of %s without their scales", op.Code, op.Out[i].Buf)
		}
	}
	return ""
}

// misplaced says what is wrong with where a buffer lies; "" if nothing is.
func misplaced(f *ir.Flat, b *ir.Buffer) string {
	if c := b.Layout.Copies; c < 0 || f.Copies(b) > 64 || c > 1 && !b.Layout.Words() {
		return fmt.Sprintf("has %d copies; want 1, or up to 64 of exchange words", f.Copies(b))
	}
	if b.Space == ir.PeerScratch && !b.Layout.Words() {
		return fmt.Sprintf("is in %s as %s, and ranks push words alone", b.Space, b.Layout)
	}
	if (b.Space == ir.SMEM || b.Space == ir.Register) && (b.Kind != ir.Activation || b.Layout.Kind != ir.RowMajor) {
		return fmt.Sprintf("is %s in %s as %s, and nobody puts it there", b.Kind, b.Space, b.Layout)
	}
	return ""
}
