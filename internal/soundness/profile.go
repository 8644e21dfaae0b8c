package soundness

import (
	"fmt"

	"amkc/interchange"
	"amkc/interchange/judge"
	"amkc/simulate"
)

// runProfile judges a program of the AMK profile as amkc simulate does. One without a flat form is malformed.
func runProfile(p *interchange.Program, fp *simulate.Footprints, e simulate.Effort) simulate.Verdict {
	f, diags := p.Flatten()
	if f == nil {
		return simulate.Verdict{Complete: true, Hazard: &simulate.Hazard{Kind: simulate.Malformed, Where: "profile",
			Detail: fmt.Sprintf("has no meaning: %v", diags)}}
	}
	return judge.Judge(p, f, fp, e)
}
