package codegen

import (
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// checkExperts refuses a product with matrices of experts that its body has no form for: the flush has room for the
// sums of a tile with each matrix, and registers for the vectors of all.
func (b *builder) checkExperts(s *ir.Stage, k *kernel.Stage, warps int) error {
	switch {
	case kernel.ProductOf(s.Ops).Code != ir.SELECTED:
		return nil
	case !k.ByExperts():
		return diag.Errorf(codeStage, "stage "+s.Name, "multiplies by one expert alone; the kernel chooses two for a "+
			"token, or more")
	case k.Summed > kernel.FlushTiles || k.Summed > 1 && warps != kernel.Warps:
		return diag.Errorf(codeLimit, "stage "+s.Name, "adds up products with %d matrices, %d warps each; want at "+
			"most %d, and all %d warps", k.Summed, warps, kernel.FlushTiles, kernel.Warps)
	case b.usesMMA() && k.Columns%4 != 0:
		return diag.Errorf(codeLimit, "stage "+s.Name, "experts of %d columns; want a multiple of 4", k.Columns)
	}
	return nil
}

// chosen holds what a stage takes of a choice, of the experts or of their weights, to what the router of its SM has
// left last: the kernel has one place for it. The producer of an SM waits for a choice by the number of its layer, in a
// loop that of the iteration: the next router has a larger one, and what takes the choice the same.
func (h *waitOrder) chosen(s *ir.Stage, kind *kernel.Body, at site, index int) error {
	var k kernel.Stage
	kind.Read(&k, s.Ops)
	if kind != kernel.Route && k.Ids == "" && k.Shares == "" && k.Gate == "" {
		return nil
	}
	layer := index
	if at.loop == nil {
		layer, _ = s.Layer.At(0)
	}
	switch {
	case kind == kernel.Route && (layer < h.routed || layer >= h.b.p.Model.Layers):
		return diag.Errorf(codeStructure, "stage "+s.Name, "chooses in iteration %d, of %d layers, after a router of "+
			"iteration %d; want one router in an iteration, or in a layer, in their order", layer,
			h.b.p.Model.Layers, h.routed-1)
	case kind == kernel.Route:
		h.routed = layer + 1
	case layer != h.routed-1:
		return diag.Errorf(codeStructure, "stage "+s.Name, "takes in iteration %d what a router has chosen in "+
			"iteration %d; want the same: the producer of an SM waits for a choice by its number", layer, h.routed-1)
	}
	for _, of := range []struct {
		name  string
		dtype ir.DType
		last  *string
	}{{k.Ids, ir.I32, &h.ids}, {k.Shares, ir.F32, &h.shares}, {k.Gate, ir.F32, &h.gate}} {
		if of.name == "" {
			continue
		}
		buf, name := h.b.buffer(of.name, at), of.name
		if resolved, err := ir.Resolve(name, index); err == nil {
			name = resolved
		}
		switch {
		case buf == nil || buf.Space != ir.SMEM || buf.DType != of.dtype || len(buf.Shape) != 2:
			return diag.Errorf(codeStructure, "stage "+s.Name, "has %s for what a router chooses; want one row of %s "+
				"in SMEM for each SM", of.name, of.dtype)
		case kind == kernel.Route:
			*of.last = name
		case *of.last != name:
			return diag.Errorf(codeStructure, "stage "+s.Name, "takes %s, and the router before it has left %s; want "+
				"that, for an SM keeps the last choice alone", name, counterName(*of.last))
		}
	}
	return nil
}
