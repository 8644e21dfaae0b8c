package passes

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/rewrite"
)

// Fuse is the pass that merges stages along dataflow, as far as one stage of the kernel can compute them together. That
// leaves five dependent stages per layer. Values that only the merged stage reads become temporaries of its tasks.
//
// A product stage gets the linears that read one vector, stacked, the norm before them if only they read it, and the
// ops after them that work row by row. Attention gets the appends of its rows to the cache.
var Fuse = Pass{
	Name:  "fuse",
	Doc:   "merge stages along dataflow: norms, products that read one vector, what is computed from their rows",
	After: []string{"lower"},
	Run:   runFuse,
}

func runFuse(s *State) error {
	p := s.Program
	if len(p.Variants) != 1 {
		return diag.Errorf(codeOrder, "pass fuse", "%d variants; want the one that lower makes", len(p.Variants))
	}
	v := &p.Variants[0]
	if len(v.Body) == 0 {
		return diag.Errorf(codeOrder, "pass fuse", "no stages; want those that lower makes")
	}
	f := &fuser{buffers: rewrite.NewBuffers(p), tokens: tokensOf(p.Pass), m: &p.Model, tables: map[string]bool{}}
	rewrite.EachStage(v, func(st *ir.Stage, _ *ir.Loop) {
		if st.Ops[0].Code == ir.EMBED {
			f.tables[st.Ops[0].In[1].Buf] = true
		}
	})
	err := eachBody(v, func(stages []*ir.Stage, loop *ir.Loop) ([]*ir.Stage, error) {
		return f.kinds(stages, loop)
	})
	if err != nil {
		return err
	}
	declareCounters(v, f.buffers)
	if err := setThresholds(p, v); err != nil {
		return err
	}
	for _, n := range v.Body {
		if loop, ok := n.(*ir.Loop); ok {
			shareKinds(loop, f.buffers)
		}
	}
	rewrite.Prune(p)
	return nil
}

// kinds merges the stages of each kind of layers on their own.
func (f *fuser) kinds(stages []*ir.Stage, loop *ir.Loop) ([]*ir.Stage, error) {
	var out []*ir.Stage
	for len(stages) > 0 {
		kind := stages[0].Kind
		n := slices.IndexFunc(stages, func(s *ir.Stage) bool { return s.Kind != kind })
		if n < 0 {
			n = len(stages)
		}
		f.indices = rewrite.Indices(stages[0], loop)
		f.index = f.indices[0]
		fused, err := f.body(stages[:n])
		if err != nil {
			return nil, err
		}
		for _, s := range fused {
			s.Kind = kind
		}
		out, stages = append(out, fused...), stages[n:]
	}
	return out, nil
}

// A fuser merges the stages of one body after the other.
type fuser struct {
	buffers rewrite.Buffers
	tokens  tokens
	m       *ir.Model
	tables  map[string]bool // weights that tokens are looked up in
	indices []int           // of the iterations of the body in hand
	index   int             // of the first of them

	stages  []*ir.Stage
	readers map[string][]*ir.Stage // of a buffer
	group   map[*ir.Stage]*fusion  // that a stage has been taken into
	stacked map[string]rowsOf      // values that are rows of a product's vector now
	signals map[string]string      // of who computed them, and that of the product
	waits   map[string][]string    // of a counter: what those that signal it wait for
	written map[string][]string    // of a counter: the values that those that signal it write
}

// A fusion is a group of stages on its way to becoming one.
type fusion struct {
	members []*ir.Stage // in the order in which they are listed
	make    func(g *fusion) (*ir.Stage, error)
}

// rowsOf says where a value is now.
type rowsOf struct {
	vector string
	first  int
}

func (f *fuser) body(stages []*ir.Stage) ([]*ir.Stage, error) {
	f.stages, f.readers, f.group = stages, map[string][]*ir.Stage{}, map[*ir.Stage]*fusion{}
	f.stacked, f.signals, f.waits = map[string]rowsOf{}, map[string]string{}, map[string][]string{}
	f.written = map[string][]string{}
	for _, s := range stages {
		for _, buf := range f.reads(s) {
			f.readers[buf] = append(f.readers[buf], s)
		}
	}
	for _, s := range stages {
		switch {
		case f.group[s] != nil:
		case multiplies(s):
			f.product(s)
		case s.Ops[0].Code == ir.ATTENTION:
			f.attention(s)
		case s.Ops[0].Code == ir.SELECTED:
			f.selected(s)
		}
	}
	var out []*ir.Stage
	for _, s := range stages {
		g := f.group[s]
		switch {
		case g == nil:
			f.alone(s)
			out = append(out, s)
			continue
		case s != last(stages, g.members):
			continue
		}
		fused, err := g.make(g)
		if err != nil {
			return nil, err
		}
		out = append(out, fused)
	}
	return out, nil
}

// last returns the member that comes last in a body.
func last(stages, members []*ir.Stage) *ir.Stage {
	return slices.MaxFunc(members, func(a, b *ir.Stage) int {
		return cmp.Compare(slices.Index(stages, a), slices.Index(stages, b))
	})
}

// reads returns the values that a stage reads: activations that it does not update in place.
func (f *fuser) reads(s *ir.Stage) []string {
	var out []string
	for _, op := range s.Ops {
		for _, o := range op.In {
			if b := f.buffers.Find(o.Buf, f.index); b != nil && (b.Kind == ir.Activation || b.Kind == ir.Output) &&
				!names(op.Out, o.Buf) && !slices.Contains(out, o.Buf) {
				out = append(out, o.Buf)
			}
		}
	}
	return out
}

// only reports whether none but the given stages read a buffer.
func (f *fuser) only(buf string, by []*ir.Stage) bool {
	for _, s := range f.readers[buf] {
		if !slices.Contains(by, s) {
			return false
		}
	}
	return true
}

// result is the value of a stage that is not one of a group: what its last op writes, rounded if there are several.
func result(s *ir.Stage) string {
	out := s.Ops[len(s.Ops)-1].Out
	return out[len(out)-1].Buf
}

// multiplies reports whether a stage begins with a product, of one vector or of those of all tokens.
func multiplies(s *ir.Stage) bool { return s.Ops[0].Code == ir.GEMV || s.Ops[0].Code == ir.GEMM }

// normalises reports whether a stage is a norm, which each task of a product may repeat: it keeps nothing.
func normalises(s *ir.Stage) bool { return has(s, ir.RMSNORM, ir.LAYERNORM) && !has(s, ir.RECURRENCE) }

// A product is a matrix stage: linears that read one vector, and what goes with them.
type product struct {
	norm    *ir.Stage // or nil
	linears []*ir.Stage
	alike   [][]*ir.Stage // what is computed next of the rows of all linears alike: a stage for each of them
	rotated []*ir.Stage   // rotations of what this makes of the first linears
	gated   *ir.Stage     // a product with a number that all rows share, or nil
	last    *ir.Stage     // an op of all rows together, or nil
	ends    []*ir.Stage   // those that make what others see of each linear
}

// finish returns the stages after the linears: for what one op of the stacked rows does, its first one.
func (p *product) finish() (ops, all []*ir.Stage) {
	for _, stages := range append(slices.Clone(p.alike), p.rotated, []*ir.Stage{p.gated}, []*ir.Stage{p.last}) {
		if len(stages) > 0 && stages[0] != nil {
			ops, all = append(ops, stages[0]), append(all, stages...)
		}
	}
	return ops, all
}

// product groups the linears that read what one of them reads.
func (f *fuser) product(first *ir.Stage) {
	in := first.Ops[0].In[0].Buf
	p := &product{}
	for _, s := range f.readers[in] {
		if multiplies(s) {
			p.linears = append(p.linears, s)
		}
	}
	for _, s := range f.stages {
		if normalises(s) && result(s) == in && f.only(in, p.linears) {
			p.norm = s
		}
	}
	f.finishers(p)
	g := &fusion{make: func(g *fusion) (*ir.Stage, error) { return f.makeProduct(p, g) }}
	if p.norm != nil {
		g.members = append(g.members, p.norm)
	}
	_, finish := p.finish()
	g.members = slices.Concat(g.members, p.linears, finish)
	for _, s := range g.members {
		f.group[s] = g
	}
}

// finishers finds what is computed row by row from the rows of a product, and by it alone: ops that all of its linears
// have alike, such as a bound, a soft cap, an activation; then a rotation of each of the first linears; or a product
// with one number, and an op of all rows together, such as their gated product, their sum with the residual, the
// largest of them.
func (f *fuser) finishers(p *product) {
	single := func(l *ir.Stage) *ir.Stage {
		if r := f.readers[result(l)]; len(r) == 1 && len(r[0].Ops) == 1 {
			return r[0]
		}
		return nil
	}
	p.ends = slices.Clone(p.linears)
	for {
		next := make([]*ir.Stage, len(p.ends))
		for i, s := range p.ends {
			next[i] = single(s)
		}
		if !computeAlike(next) {
			break
		}
		p.alike, p.ends = append(p.alike, next), slices.Clone(next)
	}
	for i, s := range p.ends {
		if s = single(s); s == nil || s.Ops[0].Code != ir.ROPE {
			break
		}
		p.rotated, p.ends[i] = append(p.rotated, s), s
	}
	if s := single(p.ends[0]); s != nil && s.Ops[0].Code == ir.ScaleBlocks && len(p.ends) == 1 {
		p.gated, p.ends[0] = s, s
	}
	s := single(p.ends[0])
	if s == nil || len(p.rotated) > 0 {
		return
	}
	switch code := s.Ops[0].Code; {
	case ir.Ops[code].Gated() && len(p.ends) == 2 && single(p.ends[1]) == s && result(p.ends[0]) == s.Ops[0].In[0].Buf,
		(code == ir.ADD || code == ir.SAMPLE) && len(p.ends) == 1:
		p.last = s
	}
}

// computeAlike reports whether stages compute the same of one row each.
func computeAlike(stages []*ir.Stage) bool {
	text := func(o ir.Op) string {
		o.In, o.Out = nil, nil
		return ir.PrintOp(&o)
	}
	return !slices.ContainsFunc(stages, func(s *ir.Stage) bool {
		if s == nil {
			return true
		}
		o := s.Ops[0]
		spec := ir.Ops[o.Code]
		return spec.Finisher == nil || spec.Gated() || text(o) != text(stages[0].Ops[0]) ||
			len(o.In) > 1 && len(stages) > 1
	})
}

// normsOfAttention reports whether an op normalises queries or keys: head by head, or over all of them.
func normsOfAttention(op *ir.Op) bool {
	return op.Has("head_dim") && (op.Code == ir.RMSNORM || op.Code == ir.LAYERNORM) || takesPart(op)
}

// takesPart reports whether an op normalises elements by the mean of all queries, or of all keys, that they are of.
func takesPart(op *ir.Op) bool {
	return op.Code == ir.RMSNORM && len(op.In) == 3
}

// selected groups a product with selected matrices with the norm before it, if only the product reads that, and with
// what follows: a multiplication of its result, and the sum of that with the residual.
func (f *fuser) selected(s *ir.Stage) {
	g := &fusion{members: []*ir.Stage{s}, make: f.makeSelected}
	in := s.Ops[0].In[0].Buf
	for _, before := range f.stages {
		if normalises(before) && result(before) == in && f.only(in, g.members) {
			g.members = append([]*ir.Stage{before}, g.members...)
			break
		}
	}
	for end := s; end.Ops[0].Code != ir.ADD; {
		r := f.readers[result(end)]
		if len(r) != 1 || len(r[0].Ops) != 1 || r[0].Ops[0].Code != ir.ADD && r[0].Ops[0].Code != ir.MUL {
			break
		}
		end = r[0]
		g.members = append(g.members, end)
	}
	for _, m := range g.members {
		f.group[m] = g
	}
}

// attention groups attention with the appends of the rows that it reads besides the cache, and with what is computed of
// whole heads before: their norm, and the rotation after it.
func (f *fuser) attention(s *ir.Stage) {
	g := &fusion{members: []*ir.Stage{s}, make: f.makeAttention}
	own := func(buf string) bool {
		return slices.ContainsFunc(s.Ops[0].In, func(o ir.Operand) bool { return o.Buf == buf })
	}
	for _, a := range f.stages {
		if a.Ops[0].Code == ir.KVAppend && own(a.Ops[0].In[0].Buf) {
			g.members = append(g.members, a)
		}
	}
	for _, before := range slices.Backward(f.stages) {
		if op := &before.Ops[0]; (op.Code == ir.ROPE || normsOfAttention(op)) &&
			f.group[before] == nil && len(before.Ops) == 1 && f.only(result(before), g.members) {
			g.members = append([]*ir.Stage{before}, g.members...)
		}
	}
	for _, m := range g.members {
		f.group[m] = g
	}
}
