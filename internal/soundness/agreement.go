package soundness

import (
	"strings"

	"amkc/internal/population"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/simulate"
)

// misfitCodes are those by which validate refuses the operands or the parameters of an op.
var misfitCodes = map[string]bool{
	"AMK3011": true, // their number, and which parameters there are
	"AMK3012": true, // ranges of views
	"AMK3102": true, // values of parameters
	"AMK3103": true, // views outside their buffer
	"AMK3104": true, // shapes
	"AMK3105": true, // types
	"AMK3107": true, // writes of what is read-only
	"AMK3118": true, // an opcode that no backend runs
}

// earlierCodes are those of rules that come before the operands are looked at, or stop that: what validate thinks of
// them stays open.
var earlierCodes = map[string]bool{
	"AMK3010": true, "AMK3013": true, "AMK3020": true, "AMK3022": true, "AMK3101": true, "AMK3106": true,
	"AMK3151": true, "AMK3164": true, "AMK3190": true,
}

// fitOf is what validate says of the operands.
func fitOf(diags diag.List) simulate.Fit {
	fit := simulate.Fits
	for _, d := range diags {
		switch {
		case misfitCodes[d.Code], d.Code == "AMK3140" && strings.Contains(d.Msg, "temporary"):
			return simulate.Misfits
		case earlierCodes[d.Code], strings.HasPrefix(d.Code, "AMK39"):
			fit = simulate.Unknown
		}
	}
	return fit
}

// refvmFit is what the reference VM says of them, in any variant.
func refvmFit(c population.Case, fp *simulate.Footprints, e simulate.Effort) (simulate.Fit, string) {
	var flats []*ir.Flat
	switch {
	case c.Program != nil:
		for i := range c.Program.Variants {
			f, _ := ir.Unroll(c.Program, &c.Program.Variants[i])
			flats = append(flats, f)
		}
	case c.Profile != nil:
		f, _ := c.Profile.Flatten()
		flats = append(flats, f)
	default:
		flats = append(flats, c.Flat)
	}
	all, why := simulate.Fits, ""
	for _, f := range flats {
		if f == nil {
			return simulate.Unknown, "has no flat form"
		}
		switch fit, detail := simulate.Operands(f, fp, e); fit {
		case simulate.Misfits:
			return fit, detail
		case simulate.Unknown:
			all, why = fit, detail
		}
	}
	return all, why
}
