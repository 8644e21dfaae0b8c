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
// publishes, the other one stores it in that order as it finishes its rows (prompt_pairs.cuh).

// A promptOperand is the operand of a product that another one writes.
type promptOperand struct {
	Writer, Reader string // descriptors
	Page           string // that it is in
	of             *kernel.Stage
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
		if len(others) == 0 || slices.ContainsFunc(others, func(o placedStage) bool { return o != others[0] }) {
			continue
		}
		writer := others[0]
		w := b.plainProduct(writer)
		if w == nil || !slices.Equal(b.declared(w.of.Out, writer), vectors) {
			continue
		}
		turns := slices.ContainsFunc(vectors, func(k int) bool { return len(b.p.Buffers[k].Pages) > 1 })
		if page, err := b.page(p.of.In, reader.at); err == nil && !turns { // which is a constant then
			out = append(out, promptOperand{writer.Struct, reader.Struct, page, p.of})
		}
	}
	return out
}

// plainProduct is the product of a stage if wgmma multiplies elements as they are in it, and one place has its
// descriptor; nil: it is something else.
func (b *builder) plainProduct(at placedStage) *promptProduct {
	if slices.ContainsFunc(b.placed, func(o placedStage) bool { return o.stage == at.stage && o != at }) {
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
