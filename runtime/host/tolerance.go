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

// stageTolerances bound one stage that was given the same inputs: its sums are added in another order, and its result may
// be rounded the other way, which is one unit in the last place. Relative to the largest magnitude of the vector.
var stageTolerances = map[string]Tolerance{
	"F32":  {RMS: 5e-6, Max: 2e-5},
	"F16":  {RMS: 5e-4, Max: 2e-3},
	"BF16": {RMS: 4e-3, Max: 1.6e-2},
}

// StageTolerance bounds the difference of a stage's result. In a chain every stage was given what the one before it made,
// roundings included: then the bounds are twice those of the logits, because single vectors stray further than what is
// summed from them. Without, every stage was given the same inputs.
func StageTolerance(dtype string, chain bool) Tolerance {
	if chain {
		t := tolerances[dtype]
		return Tolerance{RMS: 2 * t.RMS, Max: 2 * t.Max}
	}
	return stageTolerances[dtype]
}

// A difference is how far one vector is from what it should be.
type difference struct {
	rms, max float64 // relative, as in Tolerance
	worst    int     // index of the largest difference
	largest  float64 // magnitude that max is relative to
	norm     float64 // Euclidean, of the vector as it should be
	problem  string  // why the vector cannot be right at all, or empty
}

// compare is for the logits of one position. Differences of small logits are absolute.
func compare(got, want []float32) difference {
	if i, ok := firstNonFinite(got); !ok {
		return difference{problem: fmt.Sprintf("the logit of id %d is %v", i, got[i])}
	}
	if i, ok := firstNonFinite(want); !ok {
		return difference{problem: fmt.Sprintf("the reference's logit of id %d is %v", i, want[i])}
	}
	return measure(got, want, 1)
}

// measure compares vectors of one length. The maximum is relative to the largest finite magnitude, at least floor. An
// infinity is right where one is expected, and elsewhere, like what is not a number, further off than anything else.
func measure(got, want []float32, floor float64) difference {
	d := difference{largest: floor}
	var sum, scale, most float64
	for i := range want {
		if w := math.Abs(float64(want[i])); w <= math.MaxFloat32 {
			scale += w * w
			d.largest = max(d.largest, w)
		}
		e := distance(got[i], want[i])
		sum += e * e
		if e > most {
			most, d.worst = e, i
		}
	}
	d.norm = math.Sqrt(scale)
	if sum > 0 {
		d.rms = math.Sqrt(sum) / max(d.norm, math.SmallestNonzeroFloat32)
		d.max = most / max(d.largest, math.SmallestNonzeroFloat32)
	}
	if most > math.MaxFloat32 {
		d.rms, d.max = math.MaxFloat32, math.MaxFloat32
	}
	return d
}

// distance is how far a value is off: 0 for equal ones, infinities included, and infinite where only one is finite.
func distance(got, want float32) float64 {
	if got == want {
		return 0
	}
	e := math.Abs(float64(got) - float64(want))
	if math.IsNaN(e) {
		return math.Inf(1)
	}
	return e
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
