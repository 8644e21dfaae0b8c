package importers

import (
	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
)

// longrope divides each frequency by a factor of its own, which is one of two: for texts of up to as many positions as
// the model was first trained on, or for longer ones. transformers takes the long factors at all positions of a text
// that is longer, and computes its cache anew when it becomes so. A kernel keeps what it has cached: it is built for
// one side, that of the longest text that it can hold.
func (r *ropeReader) longrope() ir.Rope {
	original := r.originally()
	long := float64(r.maxSeq) > original
	short, scale := r.factors("short_factor"), r.longScale(original)
	factors := r.factors("long_factor")
	if r.diags.Err() != nil {
		return unscaled(nil)
	}
	freq, differ := powers(r.theta, r.turned), false
	for j, power := range freq {
		differ = differ || short[j] != factors[j]
		by := factors[j]
		if !long {
			by = short[j]
		}
		freq[j] = 1 / float32(by*power)
	}
	if differ {
		r.sayWhich(long, original)
	}
	return ir.Rope{InvFreq: freq, Scale: scale}
}

// sayWhich says which of the factors a build has, where that is not as transformers would have it for every text, or
// where nobody has chosen.
func (r *ropeReader) sayWhich(long bool, original float64) {
	if long {
		r.diags.Add(diag.Warningf(codeLongRope, r.pos(r.where), "long_factor is used for texts of every length, "+
			"because --max-seq %d is more than original_max_position_embeddings, %.0f; for texts of up to that many "+
			"positions, which transformers rotates by short_factor, compile with --max-seq %.0f", r.maxSeq, original,
			original))
	} else if r.importer.src.MaxSeq == 0 && float64(r.trained) > original {
		r.diags.Add(diag.Warningf(codeLongRope, r.pos(r.where), "short_factor is used, for texts of up to %d "+
			"positions; with --max-seq beyond original_max_position_embeddings, %.0f, long_factor is used for texts "+
			"of every length", r.maxSeq, original))
	}
}

// factors reads a list with a factor for each pair.
func (r *ropeReader) factors(key string) []float32 {
	v := get(r.params, key)
	list, isList := v.([]any)
	if len(list) != r.turned/2 {
		have := spell(v)
		if isList {
			have = fmt.Sprintf("an array of %d", len(list))
		}
		if r.diags.Err() == nil {
			r.fail(codeRope, r.at(key), "is %s; want an array of %d numbers, one for each pair of elements of a head "+
				"that is rotated", have, r.turned/2)
		}
		return nil
	}
	out := make([]float32, len(list))
	for j, v := range list {
		out[j] = float32(r.between(r.at(key), v, ropeBounds[key]))
	}
	return out
}

// longScale is what cos and sin are multiplied by: what the config says, or what follows from how much the positions
// have grown.
func (r *ropeReader) longScale(original float64) float64 {
	factor := r.optional("factor", r.grown(original))
	absent := 1.0
	if factor > 1 {
		if absent = math.Sqrt(1 + math.Log(factor)/math.Log(original)); r.diags.Err() == nil && !(original > 1) {
			r.fail(codeRope, r.where, "rope type longrope divides by the logarithm of "+
				"original_max_position_embeddings, which is %g; want more than 1", original)
		}
	}
	return r.optional("attention_factor", absent)
}
