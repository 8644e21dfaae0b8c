package kernel

import (
	"fmt"
	"maps"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// checkFacts: generated code and the host that launches it take sizes, types and numbers from the model's facts, and
// the proof takes them from views and buffers. For the kernel the two agree: otherwise it would touch other memory
// than was proved. Each fact is compared with what it describes:
//
//	Name, Architecture   nothing: they are labels, from which nothing is computed
//	DTypes               weights, caches and 16-bit exchange words; one type for all three, or I8 for caches (AMK3121)
//	Layers               the number of caches
//	Hidden               the weights of norms but those of attention; the columns of the embedding table and of the
//	                     head's matrix; embeddings that the host gives, and the last hidden state
//	Kinds, LayerKinds    the facts below, which are those of each layer
//	Experts, PerToken    the scores and the choice of the router of the layer, and the matrices of its experts; where
//	                     there are experts there is a router
//	Shared, Intermediate the longest result of a gated activation of the layer, such as SILU_MUL: Shared where it has
//	                     experts
//	SharedGates          the numbers of the router besides scores
//	Channels, Taps       the taps of a convolution of the layer, their number, and the cache of the layer
//	StateHeads, StateKeyHeads, StateKeys, StateValues
//	                     the states of a recurrence of the layer; the taps before it, and the rows that these see
//	Heads                the query heads of an attention of the layer, times KVHeads
//	KVHeads, HeadDim     the cache of the layer; head_dim of its attention and rotation; the weights of norms of its
//	                     heads, and of norms of the heads of all tasks
//	Vocab                the rows of the embedding table; those of the head's matrix, and the logits, of all GPUs
//	MaxSeq               caches; the positions that the variants cover (AMK3023)
//	Tied                 whether the head's matrix is the embedding table
//	Eps                  eps of the norms, in the kernel's float32
//
// A part that a program does not have says nothing of its fact: without a gate, nothing depends on Intermediate.
func (p *contract) checkFacts(m *ir.Model) {
	c := &modelCheck{p: p, m: m, table: -1, head: -1, gated: map[int]gated{}, exact: p.exact()}
	c.checkBuffers()
	for t := range p.flat.Tasks {
		if p.Full() {
			return
		}
		c.checkTask(int32(t))
	}
	c.checkWhole()
}

// modelCheck compares a program with the facts of its model.
type modelCheck struct {
	p           *contract
	m           *ir.Model
	table, head int           // buffers of the embedding table and of the head; -1: none
	gated       map[int]gated // by layer, or of all where these are alike
	chooses     bool          // there is a router
	exact       map[int]bool  // weights of float32, whatever others are
	told        map[string]bool
}

// A gated is the longest result of a gated activation of a layer.
type gated struct {
	elements int
	by       ir.Opcode
}

// once reports whether a fact is contradicted for the first time: what one stage gets wrong, all of its tasks do.
func (c *modelCheck) once(what string) bool {
	if c.told[what] {
		return false
	}
	if c.told == nil {
		c.told = map[string]bool{}
	}
	c.told[what] = true
	return true
}

func (p *contract) disagree(at, format string, args ...any) *diag.Diagnostic {
	return p.Errorf(CodeModel, at, format, args...)
}

func (c *modelCheck) checkBuffers() {
	p, m, caches := c.p, c.m, 0
	if !m.OnDevice() {
		p.Errorf(CodeElements, "", "the model has %s", m.DTypes).
			Suggest("give all three the type %s, or another of F32, F16 and BF16; the cache may be I8", m.Weights)
	}
	for i := range p.flat.Buffers {
		b := &p.flat.Buffers[i]
		what, want := "", b.DType
		switch {
		case b.Layout.Kind == ir.Tile8x128: // has a type of its own
		case b.Kind == ir.Weight && !c.exact[i]:
			what, want = "weights", m.Weights
		case ofConvolution(b):
			what, want = "what a convolution convolves", ir.F32
		case b.Kind == ir.KVCache:
			what, want = "cache", m.Cache
		case b.Layout.Kind == ir.Word32:
			what, want = "activations", m.Activations
		}
		if b.DType != want && c.once("type of "+what) {
			p.disagree("buffer "+b.Name, "holds %s", b.DType).Suggest("the type of the model's %s is %s", what, want)
		}
		if b.HasRole(ir.RoleLogits) && b.Numel() != p.flat.Pass.NumTokens()*c.ownVocab() {
			p.disagree("buffer "+b.Name, "has %d elements", b.Numel()).
				Suggest("the model has a vocabulary of %d%s, and the host makes room for as many logits", m.Vocab,
					c.shares())
		}
		if (b.HasRole(ir.RoleEmbeddings) || b.HasRole(ir.RoleHidden)) && b.Numel() != p.flat.Pass.NumTokens()*m.Hidden {
			p.disagree("buffer "+b.Name, "has %d elements", b.Numel()).
				Suggest("the model has a hidden size of %d, and the host makes room for as many for each token",
					m.Hidden)
		}
		if b.Kind != ir.KVCache {
			continue
		}
		caches++
		s := b.Shape
		if p.flat.Pass.NumSequences() > 1 { // each has one: ir.Check
			s = s[1:]
		}
		if len(s) != 4 || !slices.ContainsFunc(m.Facts(), func(f ir.LayerFacts) bool {
			return f.State().Has(s, m.MaxSeq)
		}) {
			p.disagree("buffer "+b.Name, "has shape %v", b.Shape).
				Suggest("the model's caches are %s", m.Of(0).State().Spell(m.MaxSeq))
		}
	}
	with := 0 // layers
	for layer := range m.Layers {
		if m.Of(layer).State() != (ir.State{}) {
			with++
		}
	}
	if caches != with {
		p.disagree("", "there are %d caches", caches).Suggest("the model has %d layers with one cache each", with)
	}
}

// checkTask compares what the ops of one task take from the model.
func (c *modelCheck) checkTask(t int32) {
	p, m := c.p, c.m
	layer, ops := p.flat.Tasks[t].Layer, p.flat.Tasks[t].Ops
	of, kind := m.Of(layer), layer
	if len(m.Kinds) == 0 {
		kind = 0 // all are one, and a layer may have a part of what others have
	}
	for k := range ops {
		op := &ops[k]
		want := func(what string, have, want any) {
			if have != want && c.once(op.Code.String()+what) {
				p.disagree(p.Task(t), "%s has %s %v", op.Code, what, have).
					Suggest("by the model's facts it is %v", want)
			}
		}
		switch op.Code {
		case ir.ATTENTION:
			want("head_dim", op.IntAt("head_dim", 0, 0), of.HeadDim)
			c.checkCache(t, op, layer)
			want("n_kv_heads", op.IntAt("n_kv_heads", 0, 0), 1)
			if n := op.IntAt("n_heads", 0, 0); n*of.KVHeads != of.Heads && c.once("n_heads") {
				p.disagree(p.Task(t), "%s has %d query heads for a kv head", op.Code, n).
					Suggest("the model has %d query heads and %d kv heads", of.Heads, of.KVHeads)
			}
		case ir.ShortConv:
			want("taps", op.IntAt("taps", 0, 0), of.Taps)
			want("taps of all channels:", p.flat.Buffers[op.InBuf[2]].Numel(), of.Channels*of.Taps)
			c.checkCache(t, op, layer)
		case ir.StateConv:
			want("taps", op.IntAt("taps", 0, 0), of.Taps)
			want("taps of all channels:", p.flat.Buffers[op.InBuf[2]].Numel(), of.StateChannels()*of.Taps)
			want("rows of the positions before of length", c.lastOf(op.InBuf[1]), 2*of.StateKeys+of.StateValues)
		case ir.L2NORM:
			want("head_dim", op.IntAt("head_dim", 0, 0), of.StateKeys)
		case ir.DECAY:
			want("decays of length", p.flat.Buffers[op.InBuf[1]].Numel(), of.StateHeads)
		case ir.RECURRENCE:
			states := p.flat.Pass.NumSequences() * of.StateHeads * of.StateKeys * of.StateValues
			want("states of", p.flat.Buffers[op.InBuf[5]].Numel(), states)
			want("values of length", c.lastOf(op.InBuf[5]), of.StateValues)
		case ir.ROPE:
			want("head_dim", op.IntAt("head_dim", 0, 0), of.HeadDim)
		case ir.RMSNORM, ir.LAYERNORM:
			length, weights := m.Hidden, op.InBuf[1:]
			// a task has the queries or the keys of one kv head, of each of its tokens
			ofTask := of.KVHeads * width(op.In[0], p.flat.Lo)
			switch {
			case op.Has("head_dim") && of.StateHeads > 0:
				length = of.StateValues
			case op.Has("head_dim"):
				length = of.HeadDim
				if len(weights) > 0 && p.flat.Buffers[weights[0]].Numel() == ofTask { // of each head
					length = ofTask
				}
			case op.Code == ir.RMSNORM && len(op.In) == 3: // and the mean is that of all
				if weights = weights[:1]; op.OutBuf[0] < 0 { // of attention
					length = ofTask
				}
				if !op.In[2].IsTemp() { // it is not a sum of parts
					want("a whole of length", width(op.In[2], p.flat.Lo), length)
				}
			}
			for _, b := range weights {
				want("a weight of length", p.flat.Buffers[b].Numel(), length)
			}
			want("eps", float32(op.FloatOr("eps", 0)), float32(m.Eps))
		case ir.TOPK:
			c.chooses = true
			want("k", op.IntAt("k", 0, 0), of.PerToken)
			if first := &ops[0]; first.InBuf[0] >= 0 {
				want("scores of length", width(first.In[0], p.flat.Lo), of.Experts)
				want("scores, and gates, of length", p.flat.Buffers[first.InBuf[0]].Numel(),
					p.flat.Pass.NumTokens()*of.Scores())
			}
		case ir.SELECTED:
			want("ids of length", width(op.In[2], p.flat.Lo), of.PerToken)
			c.checkExperts(t, op, of)
		case ir.EMBED:
			c.table = op.InBuf[1]
			c.checkMatrix(t, "the embedding table", c.table, m.Vocab)
			want("a table of height", op.In[1].Dims[0].Len(p.flat.Lo), m.Vocab)
		case ir.SAMPLE:
			for _, before := range slices.Backward(ops[:k]) { // the last product is that of the logits
				if multiplies(before.Code) {
					c.head = before.InBuf[1]
					rows := c.ownVocab()
					if c.head == c.table { // which each GPU has as a whole
						rows = m.Vocab
					}
					c.checkMatrix(t, "the head's matrix", c.head, rows)
					break
				}
			}
		}
		if op.Code == ir.MUL && len(op.In) == 2 {
			continue // of a convolution
		}
		if b := op.OutBuf; ir.Ops[op.Code].Finisher != nil && b[0] >= 0 && p.flat.Buffers[b[0]].Layout.Words() {
			if n := p.flat.Buffers[b[0]].Numel() / p.flat.Pass.NumTokens(); n > c.gated[kind].elements {
				c.gated[kind] = gated{n, op.Code}
			}
		}
	}
}

// checkExperts: matrices that are selected are those of the experts of the layer, the rows of gate and up in turn, or
// what they hand back to the residual.
func (c *modelCheck) checkExperts(t int32, o *ir.FlatOp, of *ir.LayerFacts) {
	shape := c.p.flat.Buffers[o.InBuf[1]].Shape
	up, down := []int{of.Experts, 2 * of.Intermediate, c.m.Hidden}, []int{of.Experts, c.m.Hidden, of.Intermediate}
	if !slices.Equal(shape, up) && !slices.Equal(shape, down) && c.once("the matrices of experts") {
		c.p.disagree(c.p.Task(t), "%s selects of matrices of shape %v", o.Code, shape).
			Suggest("by the model's facts it is %v or %v", up, down)
	}
	if len(o.In) < 4 || o.InBuf[3] < 0 {
		return
	}
	if biases := c.p.flat.Buffers[o.InBuf[3]].Shape; !slices.Equal(biases, shape[:2]) && c.once("biases of experts") {
		c.p.disagree(c.p.Task(t), "%s adds biases of shape %v to what matrices of shape %v make", o.Code, biases,
			shape).
			Suggest("one for each row of each matrix")
	}
}

// checkCache: the cache that a stage reads is that of its layer.
func (c *modelCheck) checkCache(t int32, o *ir.FlatOp, layer int) {
	if len(o.InBuf) < 2 || o.InBuf[1] < 0 {
		return
	}
	of, s := c.m.Of(layer).State(), c.p.flat.Buffers[o.InBuf[1]].Shape
	if !of.Has(s, c.m.MaxSeq) && c.once("the cache of a layer") {
		c.p.disagree(c.p.Task(t), "%s reads a cache of shape %v", o.Code, s).
			Suggest("by the facts of layer %d it is %s", layer, of.Spell(c.m.MaxSeq))
	}
}

// lastOf is the last size of a buffer.
func (c *modelCheck) lastOf(buffer int) int {
	shape := c.p.flat.Buffers[buffer].Shape
	return shape[len(shape)-1]
}

// width is how many elements a view has of each row; those of a temporary are not said.
func width(o ir.Operand, pos int) int {
	if len(o.Dims) == 0 {
		return 0
	}
	return o.Dims[len(o.Dims)-1].Len(pos)
}

// checkMatrix: the table that a token's row is taken from and the matrix that makes the logits have a row for each
// token, the latter for each whose logit a GPU makes.
func (c *modelCheck) checkMatrix(t int32, what string, b, rows int) {
	buf := &c.p.flat.Buffers[b]
	if s := buf.Shape; (len(s) != 2 || s[0] != rows || s[1] != c.m.Hidden) && c.once(what) {
		c.p.disagree(c.p.Task(t), "takes %s for %s, and it has shape %v", buf.Name, what, s).
			Suggest("by the model's facts it is [%d, %d]", rows, c.m.Hidden)
	}
}

// ownVocab is how many tokens a GPU makes the logits of.
func (c *modelCheck) ownVocab() int { return c.m.Vocab / c.p.Ranks() }

// shares says among how many GPUs the logits are shared; nothing where one makes all.
func (c *modelCheck) shares() string {
	if n := c.p.Ranks(); n > 1 {
		return fmt.Sprintf(" on %d GPUs", n)
	}
	return ""
}

// checkWhole compares what no op says on its own.
func (c *modelCheck) checkWhole() {
	p, m := c.p, c.m
	if amiss := m.FactsAmiss(); amiss != "" {
		p.disagree("", "the model %s", amiss)
	}
	for _, layer := range slices.Sorted(maps.Keys(c.gated)) {
		of, g := m.Of(layer), c.gated[layer]
		what := "the intermediate size"
		if of.Experts > 0 {
			what = "the width of the expert that every token has"
		}
		if g.elements != of.MLP() && c.once("intermediate") {
			p.disagree("", "the longest result of %s has %d elements", g.by, g.elements).
				Suggest("by the model's facts %s is %d", what, of.MLP())
		}
	}
	for layer := range m.Layers {
		kind := layer
		if len(m.Kinds) == 0 {
			kind = 0
		}
		if of := m.Of(layer); of.Shared > 0 && c.gated[kind].elements == 0 && c.once("intermediate") {
			p.disagree("", "no stage of layer %d has an MLP", layer).
				Suggest("by the model's facts every token has an expert of width %d", of.Shared)
		}
	}
	for _, of := range m.Facts() {
		if of.Experts > 0 && !c.chooses && c.once("experts") {
			p.disagree("", "the model has %d experts in a layer, and the program no router", of.Experts).
				Suggest("prove the program with the facts of the model that it was made from")
		}
		if of.KVHeads < 1 || of.Heads%of.KVHeads != 0 {
			p.disagree("", "the model has %d query heads and %d kv heads", of.Heads, of.KVHeads).
				Suggest("kv heads have as many query heads each")
		}
	}
	if tied := c.table == c.head; c.table >= 0 && c.head >= 0 && tied != m.Tied {
		p.disagree("", "the embedding table is %s and the head's matrix %s", p.flat.Buffers[c.table].Name,
			p.flat.Buffers[c.head].Name).Suggest("the model says tied=%v", m.Tied)
	}
}
