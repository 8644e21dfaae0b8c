package host

import (
	"fmt"
	"math"
	"strings"
)

// A Tolerance bounds the difference between the logits of two ways to compute them, which round at the same points and
// add in a different order. Both are relative to the reference logits of the same position.
type Tolerance struct {
	RMS float64 `json:"rms"` // RMS of the difference over the RMS of the logits
	Max float64 `json:"max"` // largest difference over the largest magnitude, at least 1
}

// tolerances by element type. One rounding of a 16-bit element is up to 2^-9 (BF16) or 2^-12 (F16) of it; sums in
// another order flip some of them in every layer, and the flips add up like noise: on an H200, with random BF16
// weights and a made-up cache, to 2.2e-2 RMS after 16 layers and 2.8e-2 after 30.
var tolerances = map[string]Tolerance{
	"F32":  {RMS: 2e-5, Max: 1e-4},
	"F16":  {RMS: 8e-3, Max: 2e-2},
	"BF16": {RMS: 6e-2, Max: 1e-1},
}

// deepLayers is how many layers the tolerances are for. In deeper models they grow like noise that adds up, with the
// square root: the shape of Llama-3.1-70B in int4, with 80 layers, differs by 6.1e-2 RMS on an H200.
const deepLayers = 32

// integerTolerances are for a cache of integers, besides an element type. A value in k or v that is different in its
// last bits may be rounded to the next integer, and a scale to the next BF16, with which a whole row of a head is
// rounded otherwise: by 1 in 127 of its largest element at most, and 3e-3 of it RMS. In F32 few values lie that close
// to where rounding changes, and one that does decides: on the reference VM, with weights moved by 2^-22 of them, the
// logits of 5 models with 24 layers or trained differ by 1.9e-4 RMS at most, and by 2e-6 where nothing is rounded. A
// model of few layers and one kv head has more of it. In F16 many values differ by a rounding: the logits differ by
// some 2e-3 RMS. In BF16 the rounding of the cache is lost in that of everything else.
var integerTolerances = map[string]Tolerance{
	"F32":  {RMS: 3e-3, Max: 6e-3},
	"F16":  {RMS: 1.5e-2, Max: 3.5e-2},
	"BF16": tolerances["BF16"],
}

// toleranceOf is the bound for the logits of a model.
func toleranceOf(m *Model) Tolerance {
	t := tolerances[m.DType]
	if m.Cache == integerCache {
		t = integerTolerances[m.DType]
	}
	noise := math.Sqrt(max(1, float64(m.Layers)/deepLayers))
	return Tolerance{RMS: noise * t.RMS, Max: noise * t.Max}
}

// StageTolerances bound the results of single stages, relative to their vector as it should be.
type StageTolerances struct {
	// Rounding is forgiven every element, relative to itself: one unit in the last place, because a result that is
	// exact but for the order of its sums may be rounded the other way. What is left after that counts.
	Rounding float64 `json:"rounding"`
	// which rounds inside: probabilities, relative to a maximum that depends on the order
	Attention Tolerance `json:"attention"`
	Other     Tolerance `json:"other"`
	// what the cache has for a position, if that is integers, which differ by 1 in 127 at least
	Cache *Tolerance `json:"cache,omitempty"`
}

// stageTolerances by element type, for stages that were given the same inputs.
var stageTolerances = map[string]StageTolerances{
	"F32":  {0, Tolerance{RMS: 5e-6, Max: 2e-5}, Tolerance{RMS: 5e-6, Max: 2e-5}, nil},
	"F16":  {0x1p-10, Tolerance{RMS: 1e-3, Max: 2.5e-3}, Tolerance{RMS: 5e-4, Max: 1e-3}, nil},
	"BF16": {0x1p-7, Tolerance{RMS: 8e-3, Max: 2e-2}, Tolerance{RMS: 5e-4, Max: 1e-3}, nil},
}

// integerAttention bounds what attention makes of a cache of integers, if it was given the same inputs: its own
// rounding, and that of a row to other integers.
var integerAttention = map[string]Tolerance{
	"F32":  {RMS: 5e-3, Max: 9e-3},
	"F16":  {RMS: 6e-3, Max: 1.2e-2},
	"BF16": {RMS: 8e-3, Max: 2e-2},
}

// TolerancesOfStages returns the bounds for a model. In a chain every stage was given what the one before it made,
// roundings included: then nothing is forgiven an element, and the bounds are twice those of the logits, because
// single vectors stray further than what is summed from them, and at least a row of a cache that was rounded with
// another scale. Without, every stage was given the same inputs.
func TolerancesOfStages(m *Model, chain bool) StageTolerances {
	if chain {
		of := toleranceOf(m)
		t := StageTolerances{Other: Tolerance{RMS: 2 * of.RMS, Max: 2 * of.Max}}
		t.Attention = t.Other
		if m.Cache == integerCache {
			t.Attention = Tolerance{RMS: max(1.5e-2, t.Other.RMS), Max: max(2e-2, t.Other.Max)}
			rounded := t.Attention
			t.Cache = &rounded
		}
		return t
	}
	t := stageTolerances[m.DType]
	if m.Cache == integerCache {
		t.Attention = integerAttention[m.DType]
		t.Cache = &Tolerance{RMS: 5e-3, Max: 9e-3}
	}
	return t
}

// of returns the bound of a stage.
func (t StageTolerances) of(stage string) Tolerance {
	if strings.HasSuffix(stage, ".attn") || strings.HasSuffix(stage, ".part") {
		return t.Attention
	}
	if t.Cache != nil && strings.HasSuffix(stage, ".kv") {
		return *t.Cache
	}
	return t.Other
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
	return measure(got, want, 0, 1)
}

// measure compares vectors of one length, and forgives every element an error relative to itself. The maximum is
// relative to the largest finite magnitude, at least floor. An infinity is right where one is expected, and
// elsewhere, like what is not a number, further off than anything else.
func measure(got, want []float32, forgiven, floor float64) difference {
	d := difference{largest: floor}
	var sum, scale, most float64
	for i := range want {
		if w := math.Abs(float64(want[i])); w <= math.MaxFloat32 {
			scale += w * w
			d.largest = max(d.largest, w)
		}
		e := distance(got[i], want[i], forgiven)
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

// distance is how far a value is off beyond what is forgiven it: 0 for equal ones, infinities included, and infinite
// where only one is finite.
func distance(got, want float32, forgiven float64) float64 {
	if got == want {
		return 0
	}
	e := math.Abs(float64(got) - float64(want))
	switch {
	case math.IsNaN(e) || math.IsInf(e, 1):
		return math.Inf(1)
	case e <= forgiven*math.Abs(float64(want)):
		return 0
	}
	return e
}

func (t Tolerance) holds(d difference) bool {
	return d.problem == "" && d.rms <= t.RMS && d.max <= t.Max
}

// exceededBy says how a difference is beyond the tolerance; empty within it.
func (t Tolerance) exceededBy(d difference, got, want []float32) string {
	switch {
	case d.problem != "":
		return d.problem
	case !t.holds(d):
		return fmt.Sprintf("the logits differ by %.2e (RMS) and %.2e (max, at id %d: %v instead of %v), and %.0e and "+
			"%.0e are allowed", d.rms, d.max, d.worst, got[d.worst], want[d.worst], t.RMS, t.Max)
	}
	return ""
}

func firstNonFinite(v []float32) (int, bool) {
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return i, false
		}
	}
	return 0, true
}
