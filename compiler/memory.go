package compiler

import (
	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// Memory is what a program takes of the memory of its target.
func Memory(p *ir.Program) (host.Footprint, error) { return codegen.Footprint(p) }

// CheckMemory compares what a program takes with the memory of its target, if that is known: an error where it cannot
// fit, and a warning where it leaves less than a sixteenth. That is what error correction takes on boards without
// HBM, and more than the driver does.
func CheckMemory(t *ir.Target, f host.Footprint) diag.List {
	if t.HBMBytes <= 0 {
		return nil
	}
	has := uint64(t.HBMBytes)
	usable := has - has/16
	if f.Bytes() <= usable {
		return nil
	}
	format := host.FormatBytes
	tight := f.Bytes() <= has
	report, why := diag.Errorf, ""
	if tight {
		report, why = diag.Warningf, ", of which the driver and error correction take up to a sixteenth"
	}
	d := report(codeMemory, "target "+t.Name,
		"has %s of memory%s, and this build needs %s: weights %s, KV cache for %d positions %s, scratch %s",
		format(has), why, format(f.Bytes()), format(f.Weights), f.MaxSeq, format(f.Cache), format(f.Other))
	fits := f.Fits(usable)
	if fits == 0 {
		fits = f.Fits(has)
	}
	if fits > 0 {
		d.Suggest("want --max-seq %d or less, or --memory GIB if the GPU has more", fits)
	} else {
		d.Suggest("the weights leave no room for a cache: want a GPU with more memory, --memory GIB if this one has " +
			"more, or a smaller model")
	}
	return diag.List{d}
}
