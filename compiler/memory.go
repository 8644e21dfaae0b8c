package compiler

import (
	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// Memory is the memory of the target that a program uses.
func Memory(p *ir.Program) (host.Footprint, error) { return codegen.Footprint(p) }

// CheckMemory compares the memory of a program with that of its target, if known: it returns an error if the program
// cannot fit, and a warning if less than a sixteenth is left. Error correction takes that much on boards without HBM,
// and the driver takes less.
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
