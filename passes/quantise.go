package passes

import (
	"maps"
	"slices"
	"strings"

	"amkc/importers"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
)

// Quantise is the pass that chooses how the matrices of the graph are stored: as in the checkpoint, or as integers or
// fp8 with scales if the user asks for it. Vectors, matrices with fewer columns than a block, and the cache unless the
// user asks for another type, do not change.
//
// A default leaves the linear of a router in the dtype of the model, and that of the sigmoid by which a shared expert
// is multiplied: they are small, and decide what is computed. A default below 8 bits leaves the head and the embedding
// at 8: every token depends on them, and no later layers average out their errors.
var Quantise = Pass{
	Name:  "quantise",
	Doc:   "choose how matrices and the cache are stored: as the checkpoint has them, or quantised",
	After: []string{"import"},
	Run:   runQuantise,
}

func runQuantise(s *State) error {
	if s.Cache != nil {
		s.Graph.Model.Cache = *s.Cache
	}
	if len(s.Formats) == 0 {
		return nil
	}
	q := &quantiser{g: s.Graph, formats: s.Formats, used: make([]bool, len(s.Formats)),
		chosen: map[string]choiceOf{}}
	for i := range q.formats {
		f := &q.formats[i]
		if d, plain := plainTypes[f.Type]; plain && d != q.g.Model.Weights {
			return q.fail(f.text, "unquantised weights are %s, the dtype of the model; want none, or another --dtype",
				q.g.Model.Weights)
		}
	}
	if err := q.run(); err != nil {
		return err
	}
	for i, used := range q.used {
		if !used {
			return q.fail(q.formats[i].text, "matches no matrix; roles are %s, and keys are those of the checkpoint",
				strings.Join(q.roles, ", "))
		}
	}
	return nil
}

// A quantiser gives the matrices of a graph their formats.
type quantiser struct {
	g       *ir.Graph
	formats WeightFormats
	used    []bool              // items that match a matrix
	chosen  map[string]choiceOf // by role, of the layer in hand
	roles   []string            // of all matrices
	decides bool                // whether the matrix in hand decides about experts
}

// choiceOf is the format of a matrix.
type choiceOf struct {
	format WeightFormat
	key    string // of its tensor
}

func (q *quantiser) fail(item, format string, args ...any) error {
	return diag.Errorf(codeStorage, "--weights "+item, format, args...)
}

// run chooses for every matrix. The head comes before the embedding, whose format is that of the head where both are
// one.
func (q *quantiser) run() error {
	if err := q.body(q.g.After, 0, true); err != nil {
		return err
	}
	for i := range q.g.After {
		if n := &q.g.After[i]; n.Op == "linear" {
			n.Weights[0].Storage = q.storage(n, q.chosen[n.Name])
		}
	}
	layers := make([]map[string]choiceOf, len(q.g.Layers))
	for layer, kind := range q.g.Layers {
		if err := q.body(q.g.Kinds[kind].Nodes, layer, false); err != nil {
			return err
		}
		layers[layer] = maps.Clone(q.chosen)
	}
	for i := range q.g.Before {
		n := &q.g.Before[i]
		switch {
		case n.Op != "embed":
		case q.g.Model.Tied:
			n.Weights[0].Storage = q.storage(n, q.chosen["lm_head"])
		default:
			if err := q.choose(n, 0, true); err != nil {
				return err
			}
			n.Weights[0].Storage = q.storage(n, q.chosen[n.Name])
		}
	}
	bad := importers.StoreLayers(q.g, func(layer int, n *ir.GraphNode) *ir.Storage {
		return q.storage(n, layers[layer][n.Name])
	})
	if bad != nil {
		return bad
	}
	return nil
}

// body chooses for the linears of a layer, or of what stands in none. Those that read one vector are one matrix of the
// kernel.
func (q *quantiser) body(nodes []ir.GraphNode, layer int, outer bool) error {
	for i := range nodes {
		if n := &nodes[i]; n.Streams() {
			q.decides = decides(nodes, n.Name)
			if err := q.choose(n, layer, outer); err != nil {
				return err
			}
		}
	}
	for _, of := range addStacks(nil, nodes) {
		a := q.chosen[of[0]]
		for _, name := range of[1:] {
			if b := q.chosen[name]; a.format.describe() != b.format.describe() {
				return q.fail(b.format.text, "%s is %s, and %s %s; want one format for both, because the kernel "+
					"multiplies them as one matrix", b.key, b.format.describe(), a.key, a.format.describe())
			}
		}
	}
	return nil
}

// decides reports whether the result of a linear chooses experts.
func decides(nodes []ir.GraphNode, name string) bool {
	return slices.ContainsFunc(nodes, func(n ir.GraphNode) bool {
		return n.Op == "route" && n.Inputs[0] == name
	})
}

// choose finds the format of a node's matrix in a layer.
func (q *quantiser) choose(n *ir.GraphNode, layer int, outer bool) error {
	if !slices.Contains(q.roles, n.Name) {
		q.roles = append(q.roles, n.Name)
	}
	for k, t := range n.Weights[0].Tensors() {
		key, err := ir.ResolveKey(t.Key, layer)
		if err != nil {
			return err
		}
		c := choiceOf{WeightFormat{Type: asStored}, key}
		if n.Weights[0].Storage == nil {
			c.format = q.formatOf(n.Name, key, outer)
		} else if f := q.named(n.Name, key); f != nil {
			return q.fail(f.text, "%s is quantised in the checkpoint; want items for matrices that are not", key)
		}
		if have := q.chosen[n.Name]; k > 0 && have.format.describe() != c.format.describe() {
			return q.fail(c.format.text, "%s is %s, and %s %s; want one format for the tensors of one matrix", c.key,
				c.format.describe(), have.key, have.format.describe())
		}
		q.chosen[n.Name] = c
	}
	return nil
}

// asStored is the format of matrices that the checkpoint has quantised: a default is not for them.
const asStored = "as it is stored"

// named is an item with a name that matches a matrix, or nil.
func (q *quantiser) named(role, key string) *WeightFormat {
	for i := range q.formats {
		if f := &q.formats[i]; f.Name != "" && f.matches(role, key) {
			return f
		}
	}
	return nil
}

// formatOf is the format that the items give a matrix.
func (q *quantiser) formatOf(role, key string, outer bool) WeightFormat {
	chosen := WeightFormat{Type: unquantised}
	for i, f := range q.formats {
		if !f.matches(role, key) {
			continue
		}
		if q.used[i] = true; f.Name == "" && q.decides {
			continue
		}
		if f.Name == "" && f.Type == "int4" && outer {
			f.Type, f.group, f.zeros = "int8", quantisedTypes["int8"].group, false
		}
		chosen = f
	}
	return chosen
}

// storage is how a node's matrix is stored that a format was chosen for: as it is where the checkpoint has quantised
// it, and where it has fewer columns than a block.
func (q *quantiser) storage(n *ir.GraphNode, c choiceOf) *ir.Storage {
	if w := &n.Weights[0]; w.Storage != nil || w.Shape[len(w.Shape)-1] < format.QuadColumns {
		return w.Storage
	}
	return c.format.storage(q.g.Model.Weights)
}

// mostStreamed is the format that most bytes of the layers' matrices are in, or the first of those.
func mostStreamed(g *ir.Graph) format.Format {
	usual := ir.MatrixFormat(g.Model.Weights)
	most, bytes := usual, map[format.Format]int{}
	var formats []format.Format
	for k := range g.Kinds {
		for _, n := range g.Kinds[k].Nodes {
			for _, w := range n.Weights {
				f := usual
				if w.Storage != nil {
					f = w.Storage.Format()
				}
				if f == nil || len(w.Shape) < 2 {
					continue
				}
				rows, cols := (&ir.Buffer{Shape: w.Shape}).Matrix()
				if bytes[f] == 0 {
					formats = append(formats, f)
				}
				bytes[f] += f.Bytes(rows, cols) * len(g.Of(k))
			}
		}
	}
	for _, f := range formats {
		if bytes[f] > bytes[most] {
			most = f
		}
	}
	return most
}

// Stacks are the roles of the matrices of a graph that may have different formats. Those that the kernel multiplies as
// one matrix are one entry, since they have one format (see Quantise). They are in the order of the graph: those of
// layers, then the head. The embedding is not included, because a step reads one row of it.
func Stacks(g *ir.Graph) [][]string {
	var all [][]string
	for _, kind := range g.Kinds {
		all = addStacks(all, kind.Nodes)
	}
	return addStacks(all, g.After)
}

// addStacks adds the linears of some nodes. What stands together in one kind of layers has one format in all of them.
func addStacks(all [][]string, nodes []ir.GraphNode) [][]string {
	read := map[string]string{} // by what it reads, the first role of a stack
	for i := range nodes {
		n := &nodes[i]
		if !n.Streams() {
			continue
		}
		own := slices.IndexFunc(all, func(of []string) bool { return slices.Contains(of, n.Name) })
		if own < 0 {
			own = len(all)
			all = append(all, []string{n.Name})
		}
		if n.OfExperts() {
			continue // with nothing else
		}
		first, stacked := read[n.Inputs[0]]
		if !stacked {
			read[n.Inputs[0]] = n.Name
			continue
		}
		with := slices.IndexFunc(all, func(of []string) bool { return slices.Contains(of, first) })
		if with != own {
			all[with] = append(all[with], all[own]...)
			all = slices.Delete(all, own, own+1)
		}
	}
	return all
}
