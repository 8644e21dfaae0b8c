package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// The shared memory of a block must hold the scratch of the program and a ring of kernel.MinSlots chunks. Where it does
// not, these say what takes the room, and where there is more.

// need is what a program asks of the shared memory of a block.
type need struct {
	stage   string // matrix stage with most columns
	widest  int    // its columns
	columns []int  // of every matrix stage
	kept    kernel.Kept
}

// needs lists what the descriptors ask for.
func (b *builder) needs() need {
	n := need{kept: kernel.Kept{Rotations: len(b.d.Rotations), Pass: b.pass}}
	for _, s := range b.d.Descriptors {
		if columns := b.columnsOf(s.IR); columns > 0 {
			sums := s.Of.Sums()
			if cut := b.cut(s.IR, s.Matrix, columns, sums); s.Of.ByExperts() {
				n.kept.MultipliesEach(cut, b.p.Model.Activations)
			} else {
				n.kept.Multiplies(cut, &s.IR.Dist, b.p.Model.Activations)
			}
			if sums > 1 { // the columns of each begin with a block
				columns = sums * ((columns + 31) / 32 * 32)
			}
			n.add(s.IR.Name, columns)
		}
		n.kept.Chosen = max(n.kept.Chosen, s.Of.Chosen)
		if s.Body.Replicated() {
			n.kept.Rows = b.p.Model.Hidden
		}
		if s.Body.Keeps&kernel.OwnRows != 0 || addsToResidual(s.IR) {
			for _, span := range s.IR.Dist.Tasks(0) {
				n.kept.Rows = max(n.kept.Rows, span.B-span.A)
			}
		}
	}
	return n
}

// add is for a matrix stage.
func (n *need) add(stage string, columns int) {
	n.columns = append(n.columns, columns)
	if columns > n.widest {
		n.stage, n.widest = stage, columns
	}
}

// scratch is the scratch in so much shared memory, if a target has tensor cores for the dtype or not.
func (n *need) scratch(shared, slot int, m *ir.Model, tensorCores bool) kernel.Scratch {
	return kernel.ScratchIn(shared, slot, m, tensorCores, n.kept, n.columns...)
}

// checkShared bounds the scratch, which must leave room for the smallest ring.
func (b *builder) checkShared(shared, slot int, s *kernel.Scratch, n *need) error {
	if s.Slots(shared, slot) >= kernel.MinSlots {
		return nil
	}
	m := &b.p.Model
	scratch, ring := s.Bytes(kernel.MinSlots), kernel.MinSlots*slot
	part, bytes := fmt.Sprintf("the %s that stage %s reads", values(m, n.widest), n.stage), s.Activation*s.Vector
	if b.pass.NumTokens() > 1 {
		part = fmt.Sprintf("the columns of the vectors of %d tokens that products without tensor cores keep",
			b.pass.NumTokens())
	}
	if attention := s.AttentionBytes(); attention > bytes {
		part, bytes = fmt.Sprintf("the results of %d query heads of %d elements in each of %d warps, and what "+
			"they read", m.Most((*ir.LayerFacts).Group), m.Most(ir.HeadDimOf), kernel.Warps), attention
	}
	if b.pass.NumTokens() > 1 && s.Digits > bytes {
		part, bytes = fmt.Sprintf("the sums that products with quantised matrices keep of %d tokens from slab to slab",
			b.pass.NumTokens()), s.Digits
	}
	least := max(kernel.MinChunk, b.cacheBytes(16))
	smaller := n.scratch(shared, least, m, b.usesMMA())
	var want string
	switch {
	case smaller.Slots(shared, least) >= kernel.MinSlots:
		want = fmt.Sprintf("tiling.ring.chunk_bytes of %d", least)
	case shared < b.p.Target.SMemOptin && n.hasRoom(m, b.p.Target):
		want = "a larger smem_bytes_per_block"
	default:
		want = b.wantRoom(n)
	}
	if b.pass.NumTokens() > 1 {
		want += "; or passes of fewer rows"
	}
	return diag.Errorf(codeLimit, "program",
		"a block of %s has %d bytes of shared memory, and needs %d: %d for %s, %d for a ring of %d chunks, and %d "+
			"for the rest; want %s",
		b.p.Target.Name, shared, scratch+ring, bytes, part, ring, kernel.MinSlots, scratch-bytes, want)
}

// values is the text for n values, with the field of config.json that has this size if there is one.
func values(m *ir.Model, n int) string {
	switch n {
	case m.Intermediate:
		return fmt.Sprintf("%d values (intermediate_size)", n)
	case m.Hidden:
		return fmt.Sprintf("%d values (hidden_size)", n)
	}
	return fmt.Sprintf("%d values", n)
}

// wantRoom names what has room for the program: another dtype, or other targets.
func (b *builder) wantRoom(n *need) string {
	var wants, names []string
	m, t := b.p.Model, b.p.Target
	other, flag := ir.F32, "--dtype fp32"
	if m.Weights == ir.F32 {
		other, flag = ir.F16, "--dtype fp16 or bf16"
	}
	cache := m.Cache
	if m.DTypes = ir.Uniform(other); cache == ir.I8 {
		m.Cache = cache
	}
	if n.hasRoom(&m, t) {
		wants = append(wants, flag)
	}
	others := 0
	for i := range ir.Targets {
		if other := &ir.Targets[i]; other.Name != t.Name {
			others++
			if n.hasRoom(&b.p.Model, other) {
				names = append(names, other.Name)
			}
		}
	}
	switch {
	case len(names) == others:
		wants = append(wants, "any other target")
	case len(names) > 0:
		wants = append(wants, "one of the targets "+strings.Join(names, ", "))
	case len(wants) == 0:
		return "a narrower model: no target has room for this one"
	}
	return strings.Join(wants, "; or ")
}

// hasRoom reports whether the program would fit a target, with the settings that take least room.
func (n *need) hasRoom(m *ir.Model, t *ir.Target) bool {
	tensorCores := t.RunsOnTensorCores(m.Weights)
	if tensorCores && (n.widest > maxColumns || m.Most(ir.HeadDimOf) > maxMMAHead ||
		slices.ContainsFunc(m.Facts(), func(f ir.LayerFacts) bool { return f.HeadDim%4 != 0 })) {
		return false
	}
	least := max(kernel.MinChunk, cacheBytes(m, 16))
	s := n.scratch(t.SMemOptin, least, m, tensorCores)
	return least <= kernel.MaxChunk && s.Slots(t.SMemOptin, least) >= kernel.MinSlots
}
