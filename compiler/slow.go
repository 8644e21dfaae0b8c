package compiler

import (
	"time"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
)

// nvccLeast is how many seconds nvcc takes at least for a source with code for each of n layers. The time grows
// faster than their number, because all are in one kernel. docs/search.md has what was measured; this is at least a
// quarter less, to hold for faster processors.
func nvccLeast(layers int) float64 {
	n := float64(layers)
	return 2*n + 0.23*n*n
}

// tooSlow refuses the programs of a build for whose sources nvcc certainly takes longer than the limit, if that is not
// 0. What it lets pass may still take longer.
func tooSlow(limit time.Duration, programs ...*ir.Program) error {
	layers, name := 0, ""
	for _, p := range programs {
		layers, name = max(layers, codegen.WrittenLayers(p)), p.Model.Name
	}
	if limit == 0 || layers <= 1 || nvccLeast(layers) <= limit.Seconds() {
		return nil
	}
	most := layers
	for most > 1 && nvccLeast(most) > limit.Seconds() {
		most--
	}
	return diag.Errorf(codeTooSlow, name, "the sources have code for each of %d layers, for which nvcc takes more "+
		"than the %v that a build may take; want code for at most %d, as where equal layers are a loop "+
		"(tiling.loop.roll 1), or a larger --timeout", layers, limit, most)
}
