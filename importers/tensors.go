package importers

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/importers/quantised"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/half"
)

const weightsPos = "weights"

// matchTensors holds the tensors of the files against the graph: each one that a node needs must be there with its
// shape, and there must be no other, except those that comparison shows to be redundant.
func (m *importer) matchTensors(g *ir.Graph) {
	// Of another kind of checkpoint nearly every tensor differs, and one reason says more than all of them.
	if d := cmp.Or(m.strayParts(), m.otherHead()); d != nil {
		m.diags.Add(d)
		return
	}
	var missing []string
	for w := range g.Weights() {
		if len(missing) > mostMissing {
			break
		}
		if m.matchMatrix(&w) {
			continue
		}
		t, ok := m.src.Weights.Tensor(w.Key)
		switch {
		case !ok:
			missing = append(missing, fmt.Sprintf("%s %v", w.Key, w.Shape))
			continue
		case !slices.Equal(t.Shape, w.Shape):
			m.diags.Add(diag.Errorf(codeShape, "tensor "+w.Key, "has shape %v; the config makes it %v", t.Shape,
				w.Shape))
		case !t.HasValues():
			m.diags.Add(diag.Errorf(quantised.NotRead, "tensor "+w.Key, "is stored as %s; accepted: F32, F16, BF16",
				t.DType))
		}
		m.consumed[w.Key] = true
	}
	if len(missing) > mostMissing {
		m.diags.Add(diag.Errorf(codeMissing, weightsPos, "more than %d tensors that the config describes are not in "+
			"the files", mostMissing).With(few(missing)...))
		return
	}
	if len(missing) > 0 {
		m.diags.Add(diag.Errorf(codeMissing, weightsPos, "%s that the config describes %s not in the files",
			counted(len(missing), "tensor"), isOrAre(len(missing))).With(few(missing)...))
	}
	m.matchRest(g)
}

// mostMissing bounds how many tensors are looked for in vain: a config describes millions in a line.
const mostMissing = 1 << 14

// storedFreq matches the buffers that old checkpoints hold the rotary frequencies in.
var storedFreq = regexp.MustCompile(`^(model|gpt_neox)\.(layers\.\d+\.(self_attn|attention)\.)?rotary_emb\.inv_freq$`)

// storedMask matches the causal masks that checkpoints of GPT-2 and GPT-NeoX hold.
var storedMask = regexp.MustCompile(`\.(attn|attention)\.(masked_)?bias$`)

func (m *importer) matchRest(g *ir.Graph) {
	var extra []string
	var unused unusedBiases
	biases := m.biasesOf(g)
	for _, t := range m.src.Weights.Tensors() {
		var bad *diag.Diagnostic
		size, isBias := biases[t.Name]
		switch {
		case m.consumed[t.Name]:
			continue
		case slices.ContainsFunc(m.leftOut, func(part string) bool { return strings.HasPrefix(t.Name, part) }):
		case t.Name == m.names.logits() && g.Model.Tied && m.consumed[m.names.embedding()]:
			bad = m.matchTied(t)
		case storedMask.MatchString(t.Name): // which no class reads
		case storedFreq.MatchString(t.Name):
			bad = m.matchInvFreq(t, g.Rope.InvFreq)
		case isBias && t.HasValues() && slices.Equal(t.Shape, []int{size}):
			bad = unused.match(t)
		default:
			extra = append(extra, fmt.Sprintf("%s %s %v", t.Name, t.DType, t.Shape))
			continue
		}
		m.diags.Add(bad)
		m.consumed[t.Name] = true
	}
	m.diags.Add(unused.report()...)
	if len(extra) > 0 {
		m.diags.Add(diag.Errorf(codeExtra, weightsPos, "the files hold %s that no operation of the model consumes",
			counted(len(extra), "tensor")).With(few(extra)...))
	}
}

// matchTied demands that a stored head equals the embedding bit for bit.
func (m *importer) matchTied(head checkpoint.Tensor) *diag.Diagnostic {
	embedding, _ := m.src.Weights.Tensor(m.names.embedding())
	same, err := head.SameBits(embedding)
	switch {
	case err != nil:
		return asDiagnostic(err)
	case !same:
		return diag.Errorf(codeTied, "tensor "+head.Name,
			"differs from %s, but tie_word_embeddings is true; want the same bits, or false", embedding.Name)
	}
	return nil
}

// matchInvFreq demands that stored frequencies are the computed ones, or those before they are scaled, which older
// classes stored and divided positions instead: each class of transformers computes its own and reads neither.
func (m *importer) matchInvFreq(t checkpoint.Tensor, want []float32) *diag.Diagnostic {
	pos := "tensor " + t.Name
	if len(t.Shape) != 1 || t.Shape[0] != len(want) {
		return diag.Errorf(codeInvFreq, pos, "has shape %v; want [%d]", t.Shape, len(want))
	}
	got := make([]float32, len(want))
	if err := t.ReadRowsF32(got, 0, len(got)); err != nil {
		return asDiagnostic(err)
	}
	j := differentFreq(got, want, t.DType)
	if j < 0 {
		return nil
	}
	made := fmt.Sprintf("the config makes it %g", want[j])
	for _, plain := range m.unscaled {
		if len(plain) != len(want) {
			continue
		}
		k := differentFreq(got, plain, t.DType)
		if k < 0 {
			return nil
		}
		if !slices.Equal(plain, want) {
			j, made = k, fmt.Sprintf("the config makes it %g, and %g before it is scaled", want[k], plain[k])
		}
	}
	return diag.Errorf(codeInvFreq, pos, "element %d is %g; %s", j, got[j], made)
}

// differentFreq is the first stored frequency that is not the computed one rounded to the dtype it is stored in, or -1.
// The last bit of a power depends on the maths library, so float32 may differ by two units in the last place.
func differentFreq(got, want []float32, dtype checkpoint.DType) int {
	const slack = 0x1p-22
	d := ModelDTypes[dtype]
	for j := range want {
		low, high := roundTo(d, want[j]*(1-slack)), roundTo(d, want[j]*(1+slack))
		if !(low <= got[j] && got[j] <= high) {
			return j
		}
	}
	return -1
}

// roundTo rounds a value to what a dtype can hold.
func roundTo(d ir.DType, f float32) float32 {
	switch d {
	case ir.F16:
		return half.RoundF16(f)
	case ir.BF16:
		return half.RoundBF16(f)
	}
	return f
}

// asDiagnostic returns the diagnostic that packages of amkc hand out as an error.
func asDiagnostic(err error) *diag.Diagnostic {
	if d, ok := err.(*diag.Diagnostic); ok {
		return d
	}
	return diag.Errorf(CodeWeights, weightsPos, "%v", err)
}

// few cuts a list of notes to a length that can be read.
func few(notes []string) []string {
	const limit = 8
	if len(notes) <= limit {
		return notes
	}
	return append(notes[:limit:limit], fmt.Sprintf("and %d more", len(notes)-limit))
}

func counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// RequiredTensors lists the tensors that a graph needs, for random weights stored in the given dtype.
func RequiredTensors(g *ir.Graph, dtype checkpoint.DType) []checkpoint.Spec {
	var specs []checkpoint.Spec
	for w := range g.Weights() {
		specs = append(specs, checkpoint.Spec{Name: w.Key, DType: dtype, Shape: w.Shape})
	}
	return specs
}

// UnitOffsets returns the tensors of norms that multiply by 1 + w.
func UnitOffsets(g *ir.Graph) map[string]bool {
	keys := map[string]bool{}
	add := func(nodes []ir.GraphNode, layer int) {
		for i := range nodes {
			if n := &nodes[i]; n.IntOr("unit_offset", 0) == 1 {
				for _, w := range n.Weights[0].Tensors() {
					if key, err := ir.ResolveKey(w.Key, layer); err == nil {
						keys[key] = true
					}
				}
			}
		}
	}
	add(g.Before, 0)
	for layer, kind := range g.Layers {
		add(g.Kinds[kind].Nodes, layer)
	}
	add(g.After, 0)
	return keys
}

// biasesOf are the sizes of the biases that modules of the graph could have, by the names of their tensors: one element
// for each row of a matrix, or each element of a norm's weight.
func (m *importer) biasesOf(g *ir.Graph) map[string]int {
	out := map[string]int{m.names.head + ".bias": g.Model.Vocab}
	for w := range g.Weights() {
		if module, ok := strings.CutSuffix(w.Key, ".weight"); ok && w.Key != m.names.embedding() {
			out[module+".bias"] = w.Shape[0]
		}
	}
	return out
}

// unusedBiases are biases that the files hold of modules that have none in the model. Tools that quantise write one for
// each matrix, of zeros.
type unusedBiases struct{ zero, others []string }

// match looks at every element of a bias. Errors: AMK1006.
func (b *unusedBiases) match(t checkpoint.Tensor) *diag.Diagnostic {
	elements := make([]float32, t.Rows())
	if err := t.ReadRowsF32(elements, 0, len(elements)); err != nil {
		return asDiagnostic(err)
	}
	if i := slices.IndexFunc(elements, func(x float32) bool { return x != 0 }); i >= 0 {
		b.others = append(b.others, fmt.Sprintf("%s: element %d is %g", t.Name, i, elements[i]))
	} else {
		b.zero = append(b.zero, t.Name)
	}
	return nil
}

// report says which were left out, and refuses those that are not zero.
func (b *unusedBiases) report() (out diag.List) {
	if len(b.others) > 0 {
		out.Add(diag.Errorf(codeExtra, weightsPos, "the files hold %s that the model has no place for; accepted: "+
			"zeros throughout, or a config with which the model has biases", counted(len(b.others), "bias")).
			With(few(b.others)...))
	}
	if len(b.zero) > 0 {
		out.Add(diag.Warningf(codeZeros, weightsPos, "the files hold %s of zeros that the model has no place for; "+
			"they change nothing, and are left out", counted(len(b.zero), "bias")).With(few(b.zero)...))
	}
	return out
}
