package cli

import (
	"encoding/json"
	"math"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/interchange"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
)

// lowered is the last pass whose programs the AMK profile can express: one op per stage, nothing distributed over SMs.
func lowered() string { return passes.Lower.Name }

// exportProgram prints one step of a program of amkc in the AMK profile. theta is the base of the rotary embedding,
// which the program does not hold; 0 is not known.
func (d *dumpFlags) exportProgram(p *ir.Program, theta float64) ([]byte, error) {
	out, diags := interchange.ToAMK(p, d.pos, theta)
	if diags.Err() != nil {
		return nil, diags
	}
	return out.Marshal(), nil
}

// rotaryBase returns the base of a model's rotary embedding, which must not be scaled: the profile has no more than a
// base.
func rotaryBase(config *checkpoint.Document, g *ir.Graph) (float64, error) {
	theta := ropeTheta(config)
	if slices.ContainsFunc(g.Kinds, func(k ir.LayerKind) bool { return k.Rope != nil }) {
		return 0, diag.Errorf(codeNotExpressible, config.Name, "layers of two kinds have a rotary embedding each, and "+
			"the AMK profile has one; want one for all layers")
	}
	if g.Rope.Scale != 1 || !isPlainRope(g.Rope.InvFreq, theta, g.Model.HeadDim) {
		return 0, diag.Errorf(codeNotExpressible, config.Name,
			"the rotary embedding is scaled, and the AMK profile has a base alone; want rope type default")
	}
	return theta, nil
}

// ropeTheta reads the base of the rotary embedding in any of its spellings; import has checked them.
func ropeTheta(config *checkpoint.Document) float64 {
	objects := []*checkpoint.Object{config.Object}
	for _, field := range []string{"rope_parameters", "rope_scaling"} {
		if v, ok := config.Get(field); ok {
			if object, ok := v.(*checkpoint.Object); ok {
				objects = append(objects, object)
			}
		}
	}
	for _, object := range objects {
		if v, ok := object.Get("rope_theta"); ok {
			if number, ok := v.(json.Number); ok {
				if theta, err := number.Float64(); err == nil {
					return theta
				}
			}
		}
	}
	return 10000
}

// isPlainRope reports whether the frequencies are theta^(-2k/headDim), up to the rounding to float32.
func isPlainRope(freq []float32, theta float64, headDim int) bool {
	for k, f := range freq {
		want := math.Pow(theta, -float64(2*k)/float64(headDim))
		if math.Abs(float64(f)-want) > 1e-6*want {
			return false
		}
	}
	return true
}
