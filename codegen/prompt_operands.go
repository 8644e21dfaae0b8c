package codegen

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/format"
	"amkc/kernel"
)

// A product of a prompt by wgmma reads its vectors in an order of its own. Mostly a pass of its own brings them into
// it, because several products read a vector, or a norm comes before. Where one product alone reads what another one
// or attention publishes, it is stored in this order as it comes out (prompt_pairs.cuh, prompt_attention_wgmma.cuh).

// A promptOperand is the operand of a product that another stage writes.
type promptOperand struct {
	Writers []string // descriptors: of a product, or of attention and what combines its splits
	Reader  string
	Page    string // that it is in
	of      *kernel.Stage
}

// A placedStage is a stage where it is emitted.
type placedStage struct {
	*stage
	at site
}

// promptOperands are those of a kernel for prompts whose passes have a number of tokens. They fill their pages in tiles
// of tokens, and all places of a tile have columns.
func (b *builder) promptOperands(tokens int) (out []promptOperand) {
	if !b.d.WGMMA() || tokens == 0 || tokens%(2*tokenTile) != 0 {
		return nil
	}
	users := b.users()
	for _, reader := range b.placed {
		p := b.plainProduct(reader)
		if p == nil || reader.IR.Ops[0].Code != ir.GEMV || p.of.Resident || b.promptShape(*p).columns() != p.Columns {
			continue
		}
		vectors := b.declared(p.of.In, reader)
		var others []placedStage
		for _, k := range vectors {
			others = append(others, users[k]...)
		}
		others = slices.DeleteFunc(others, func(o placedStage) bool { return o == reader })
		writers := b.writers(others, vectors)
		if len(writers) == 0 {
			continue
		}
		turns := slices.ContainsFunc(vectors, func(k int) bool { return len(b.p.Buffers[k].Pages) > 1 })
		if page, err := b.page(p.of.In, reader.at); err == nil && !turns { // which is a constant then
			out = append(out, promptOperand{writers, reader.Struct, page, p.of})
		}
	}
	return out
}

// writers are the stages that may store vectors as an operand, if nothing else but what reads it has to do with these:
// a product, or attention.
func (b *builder) writers(others []placedStage, vectors []int) (names []string) {
	if len(others) == 0 {
		return nil
	}
	if w := b.plainProduct(others[0]); w != nil {
		if slices.ContainsFunc(others, func(o placedStage) bool { return o != others[0] }) ||
			!slices.Equal(b.declared(w.of.Out, others[0]), vectors) {
			return nil
		}
		return []string{others[0].Struct}
	}
	add := func(p placedStage) {
		if !slices.Contains(names, p.Struct) {
			names = append(names, p.Struct)
		}
	}
	for _, o := range others {
		if o.Body != kernel.Attend && o.Body != kernel.Combine || !b.once(o) || !b.wideAttention(o) ||
			!slices.Equal(b.declared(o.Of.Out, o), vectors) {
			return nil
		}
		add(o)
		if o.Body != kernel.Combine {
			continue
		}
		for _, p := range b.placed {
			if p.Body == kernel.Attend && slices.Equal(b.declared(p.Of.Out, p), b.declared(o.Of.In, o)) {
				if !b.once(p) {
					return nil
				}
				add(p)
			}
		}
	}
	return names
}

// once reports whether one place alone has the descriptor of a stage.
func (b *builder) once(at placedStage) bool {
	return !slices.ContainsFunc(b.placed, func(o placedStage) bool { return o.stage == at.stage && o != at })
}

// wideAttention reports whether wgmma attends in a stage (kWideAttention of prompt_shape.cuh), to heads of whole
// quarters of quads.
func (b *builder) wideAttention(p placedStage) bool {
	head, m := b.factsOf(p.IR, p.at).HeadDim, &b.p.Model
	return b.d.WGMMA() && m.Cache == m.Weights && (head%32 == 0 && head <= 128 || head%64 == 0)
}

// plainProduct is the product of a stage if wgmma multiplies elements as they are in it, and one place has its
// descriptor; nil: it is something else.
func (b *builder) plainProduct(at placedStage) *promptProduct {
	if !b.once(at) {
		return nil
	}
	for i := range b.products {
		p := &b.products[i]
		if _, quantised := p.Matrix.(format.Quantised); p.of == at.Of && !quantised && b.wide(*p) {
			return p
		}
	}
	return nil
}

// users are the stages that read or write each buffer.
func (b *builder) users() map[int][]placedStage {
	users := map[int][]placedStage{}
	for _, p := range b.placed {
		for i := range p.IR.Ops {
			for _, o := range slices.Concat(p.IR.Ops[i].In, p.IR.Ops[i].Out) {
				for _, k := range b.declared(o.Buf, p) {
					users[k] = append(users[k], p)
				}
			}
		}
	}
	return users
}

// declared are the buffers that a name stands for where a stage is, each once.
func (b *builder) declared(name string, p placedStage) (out []int) {
	if name == "" || strings.HasPrefix(name, "%") {
		return nil
	}
	for _, n := range p.at.indicesOf(p.IR) {
		if m, err := b.names.At(name, n); err == nil && !slices.Contains(out, m.Declared) {
			out = append(out, m.Declared)
		}
	}
	return out
}
