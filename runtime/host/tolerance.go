package host

import (
	"fmt"
	"math"
)

// A Tolerance bounds the difference between the logits of two ways to compute them, which round at the same points and
// add in a different order. Both are relative to the reference logits of the same position.
type Tolerance struct {
	RMS float64 `json:"rms"` // RMS of the difference over the RMS of the logits
	Max float64 `json:"max"` // largest difference over the largest magnitude, at least 1
}

// tolerances by element type. One rounding of a 16-bit element is up to 2^-9 (BF16) or 2^-12 (F16) of it; sums in another
// order flip some of them in every layer, and the flips add up like noise.
var tolerances = map[string]Tolerance{
	"F32":  {RMS: 2e-5, Max: 1e-4},
	"F16":  {RMS: 4e-3, Max: 2e-2},
	"BF16": {RMS: 3e-2, Max: 1e-1},
}

// A difference is how far one position's logits are from the reference.
type difference struct {
	rms, max float64 // relative, as in Tolerance
	worst    int     // id of the largest difference
	problem  string  // why they cannot be right at all, or empty
}

func compare(got, want []float32) difference {
	if i, ok := firstNonFinite(got); !ok {
		return difference{problem: fmt.Sprintf("the logit of id %d is %v", i, got[i])}
	}
	if i, ok := firstNonFinite(want); !ok {
		return difference{problem: fmt.Sprintf("the reference's logit of id %d is %v", i, want[i])}
	}
	var d difference
	var sum, scale, largest, most float64
	for i := range want {
		w := float64(want[i])
		e := math.Abs(float64(got[i]) - w)
		sum += e * e
		scale += w * w
		largest = max(largest, math.Abs(w))
		if e > most {
			most, d.worst = e, i
		}
	}
	if sum > 0 {
		d.rms = math.Sqrt(sum) / max(math.Sqrt(scale), math.SmallestNonzeroFloat32)
	}
	d.max = most / max(largest, 1)
	return d
}

func (t Tolerance) holds(d difference) bool {
	return d.problem == "" && d.rms <= t.RMS && d.max <= t.Max
}

func firstNonFinite(v []float32) (int, bool) {
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return i, false
		}
	}
	return 0, true
}
