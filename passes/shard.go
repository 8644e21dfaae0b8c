package passes

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/transform"
)

// Shard is the pass that gives each of several GPUs, or ranks, its share of a model. What it leaves is the graph of one
// rank: that of a model with fewer heads, a narrower MLP and fewer rows of the head, whose weights are shares of the
// tensors. All ranks have the same graph, so one program is made of it.
//
// A linear that reads the residual has some rows of its matrix on each rank, and one that reads what these make has the
// columns for it: its result is a sum that lower lets the ranks push to each other. Norms, the embedding table and the
// residual are whole everywhere. A table costs memory; a share of it would cost an exchange more.
var Shard = Pass{
	Name:  "shard",
	Doc:   "with --gpus, give each GPU its share of heads, of the width of the MLP, and of the vocabulary",
	After: []string{"import", "quantise"},
	Run:   runShard,
}

func runShard(s *State) error {
	if s.Ranks <= 1 {
		return nil
	}
	if n := s.Ranks; n&(n-1) != 0 || n > ir.MaxRanks {
		return refuseShare("%d GPUs; want 2, 4 or 8, whose sums are added in pairs", n)
	}
	if s.Pass.NumTokens() > 1 || s.Most.NumTokens() > 1 {
		return refuseShare("passes of several tokens; want --rows, --sequences and --sequence-rows of 1")
	}
	if len(s.Matrices) > 0 {
		return refuseShare("a checkpoint of quantised matrices; want one of weights that are not, and --weights")
	}
	g := *s.Graph
	sh := &sharder{ranks: s.Ranks, tied: g.Model.Tied}
	if err := sh.model(&g.Model); err != nil {
		return err
	}
	g.Kinds = slices.Clone(g.Kinds)
	for k := range g.Kinds {
		facts := s.Graph.Model.Of(g.Of(k)[0])
		var err error
		if g.Kinds[k].Nodes, err = sh.body(g.Kinds[k].Nodes, facts); err != nil {
			return err
		}
	}
	var err error
	if g.After, err = sh.body(g.After, nil); err != nil {
		return err
	}
	s.Graph = &g
	return nil
}

func refuseShare(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(codeShares, "--gpus", format, args...)
}

type sharder struct {
	ranks   int
	tied    bool
	inLayer bool                     // the body in hand is one of layers
	shares  map[string]int           // into how many shares its nodes have their values cut
	sums    map[string]bool          // its nodes whose values are sums of what all ranks make
	readBy  map[string]*ir.GraphNode // the op on finished rows that reads a node
}

// model makes the facts of a model those of one rank.
func (sh *sharder) model(m *ir.Model) error {
	layers := make([]ir.LayerFacts, m.Layers)
	for i := range layers {
		f := *m.Of(i)
		switch {
		case f.Experts > 0:
			return refuseShare("layers with experts; want an MLP that every token has")
		case f.Heads%sh.ranks != 0 || f.Intermediate%sh.ranks != 0:
			return refuseShare("%d heads and an MLP of %d on %d GPUs; want equal shares", f.Heads, f.Intermediate,
				sh.ranks)
		case f.KVHeads%sh.ranks != 0 && sh.ranks%f.KVHeads != 0:
			return refuseShare("%d kv heads on %d GPUs; want equal shares, or as many GPUs for each", f.KVHeads,
				sh.ranks)
		}
		f.Heads, f.Intermediate = f.Heads/sh.ranks, f.Intermediate/sh.ranks
		f.KVHeads /= sh.ofKVHeads(&f)
		layers[i] = f
	}
	if m.Vocab%sh.ranks != 0 {
		return refuseShare("a vocabulary of %d on %d GPUs; want equal shares", m.Vocab, sh.ranks)
	}
	m.SetFacts(layers)
	return nil
}

// ofKVHeads is into how many shares the kv heads are cut.
func (sh *sharder) ofKVHeads(f *ir.LayerFacts) int { return min(sh.ranks, f.KVHeads) }

// body returns the nodes of a body as a rank has them. facts are those of the whole model; nil: of no layer.
func (sh *sharder) body(nodes []ir.GraphNode, facts *ir.LayerFacts) ([]ir.GraphNode, error) {
	sh.shares, sh.sums, sh.inLayer = map[string]int{}, map[string]bool{}, facts != nil
	sh.readBy = map[string]*ir.GraphNode{}
	for _, n := range slices.Backward(nodes) {
		sh.read(&n, facts)
	}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		if err := sh.node(&nodes[i]); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// read notes into how many shares a node has its inputs cut. Its own are known: those who read it come after it.
func (sh *sharder) read(n *ir.GraphNode, facts *ir.LayerFacts) {
	own := sh.shares[n.Name]
	cut := func(in, shares int) {
		if shares > 0 && n.Inputs[in] != ir.Stream {
			sh.shares[n.Inputs[in]] = shares
		}
	}
	switch {
	case n.Op == "attention":
		sh.shares[n.Name] = sh.ranks
		cut(0, sh.ranks)
		cut(1, sh.ofKVHeads(facts))
		cut(2, sh.ofKVHeads(facts))
	case n.Op == "argmax":
		cut(0, sh.ranks)
	case n.Op == "rope", normsHeads(n):
		cut(0, own)
	case ir.FinishedBy(n.Op) != nil:
		if own == 0 {
			own, sh.shares[n.Name] = sh.ranks, sh.ranks
		}
		for i, in := range n.Inputs {
			sh.readBy[in] = n
			cut(i, own)
		}
	}
}

// node makes a node that of a rank.
func (sh *sharder) node(n *ir.GraphNode) error {
	own, whole := sh.shares[n.Name], true
	for _, in := range n.Inputs {
		whole = whole && sh.shares[in] == 0
	}
	switch {
	case n.Op == "linear":
		return sh.linear(n, own, whole)
	case n.Op == "attention":
		if err := sh.rows(n, own); err != nil {
			return err
		}
	case normsHeads(n):
		if len(n.Weights) > 0 && n.Weights[0].Shape[0] > n.IntOr("head_dim", 0) {
			return refuseShare("node %s: norms of heads with weights of their own; want the same for all", n.Name)
		}
	case n.Op == "rope", ir.FinishedBy(n.Op) != nil:
	case n.Op == "kv_append":
		return sh.shape(n, sh.shares[n.Inputs[0]])
	case n.Op == "argmax":
		return nil
	case n.Op == "add":
		return nil
	case isNorm(n) && sh.sums[n.Inputs[0]]:
		return refuseShare("node %s: a norm of the sum of what GPUs compute; want norms before branches", n.Name)
	case isNorm(n) && whole:
		return nil
	case isNorm(n):
		return refuseShare("node %s: a norm of all heads at once; want norms of each, or none", n.Name)
	default:
		return refuseShare("node %s: %s; want layers of attention and an MLP", n.Name, n.Op)
	}
	return sh.shape(n, own)
}

// shape makes the size of a result that of a share.
func (sh *sharder) shape(n *ir.GraphNode, shares int) error {
	if n.Shape[0]%shares != 0 {
		return refuseShare("node %s: %d elements in %d shares; want equal ones", n.Name, n.Shape[0], shares)
	}
	n.Shape = []int{n.Shape[0] / shares}
	return nil
}

// linear gives a rank rows of a matrix, or the columns for what it has of the vector.
func (sh *sharder) linear(n *ir.GraphNode, shares int, whole bool) error {
	switch {
	case whole && shares == 0:
		return refuseShare("node %s: a product whose rows are not those of heads or of an MLP", n.Name)
	case whole && n.Weights[0].Key == "":
		return refuseShare("node %s: a matrix of several tensors; want one", n.Name)
	case whole && sh.tied && !sh.inLayer: // the head, whose matrix is the table
		return sh.shape(n, shares)
	case whole:
		if err := sh.rows(n, shares); err != nil {
			return err
		}
		return sh.shape(n, shares)
	case shares > 0 && sh.readBy[n.Name] != nil:
		by := sh.readBy[n.Name]
		return refuseShare("node %s: %s of the sum of what GPUs compute; want sums that are added as they are", by.Name,
			by.Op)
	case shares > 0:
		return refuseShare("node %s: a product of a share, whose own rows would be shares; want a sum of all first",
			n.Name)
	case len(n.Weights) > 1:
		return refuseShare("node %s: a bias after the sum of what GPUs compute; want none", n.Name)
	}
	return sh.columns(n)
}

// rows makes the weights of a node shares of their rows.
func (sh *sharder) rows(n *ir.GraphNode, shares int) error {
	n.Weights = slices.Clone(n.Weights)
	for i := range n.Weights {
		w := &n.Weights[i]
		if w.Shape[0]%shares != 0 {
			return refuseShare("node %s: %d rows in %d shares; want equal ones", n.Name, w.Shape[0], shares)
		}
		ints := []int{w.Shape[0] / shares}
		if each := sh.ranks / shares; each > 1 {
			ints = append(ints, each)
		}
		sh.take(w, 0, transform.Of(transform.Share, ints...)...)
	}
	return nil
}

// columns makes the matrix of a node a share of its columns.
func (sh *sharder) columns(n *ir.GraphNode) error {
	n.Weights = slices.Clone(n.Weights)
	w := &n.Weights[0]
	cols := w.Shape[1]
	if cols%sh.ranks != 0 {
		return refuseShare("node %s: %d columns on %d GPUs; want equal shares", n.Name, cols, sh.ranks)
	}
	cols /= sh.ranks
	if w.Storage != nil && w.Storage.Quantised() && cols%w.Storage.Scales.Group != 0 {
		return refuseShare("node %s: %d columns each, and scales for groups of %d; want whole groups", n.Name, cols,
			w.Storage.Scales.Group)
	}
	turn := transform.Transform{Kind: transform.Transpose}
	sh.take(w, 1, turn, transform.Of(transform.Share, cols)[0], turn)
	sh.sums[n.Name] = true
	return nil
}

// take makes a weight the share of it that a chain takes, of one of its dimensions.
func (sh *sharder) take(w *ir.GraphWeight, dim int, share ...transform.Transform) {
	if w.Stored == nil {
		w.Stored = w.Shape
	}
	w.Shape = slices.Clone(w.Shape)
	for _, t := range share {
		if t.Kind == transform.Share {
			w.Shape[dim] = t.Ints[0]
		}
	}
	w.Chain = w.Chain.Then(share...)
}
