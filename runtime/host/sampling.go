package host

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"amkc/runtime/driver"
	"amkc/runtime/sampling"
)

// Sampling is how the kernel chooses the tokens of a sequence: amk::Sampling (amk/launch.cuh). The zero value chooses
// the largest logit, the lowest id among equals.
type Sampling struct {
	Temperature float64
	Seed        uint64
}

// samplingSize is sizeof(amk::Sampling).
const samplingSize = 16

// ChosenOnHost says how tokens are chosen by options that the kernel does not choose by.
const ChosenOnHost = "tokens are chosen on the host, a launch for each: the kernel draws with a temperature alone"

// SamplingOf returns how the kernel chooses by options, and whether it can: what it cannot is chosen from logits on the
// host, to the same tokens.
func SamplingOf(o *sampling.Options) (Sampling, bool) {
	if !o.ByKernel() {
		return Sampling{}, false
	}
	if o.Temperature == 0 {
		return Sampling{}, true
	}
	return Sampling{Temperature: o.Temperature, Seed: o.Seed}, true
}

// Choose implements [sampling.Chooser].
func (s *Session) Choose(o *sampling.Options) bool {
	choice, can := SamplingOf(o)
	if can {
		s.sampling = nil
		if choice != (Sampling{}) {
			s.sampling = []Sampling{choice}
		}
	}
	return can
}

// setSampling puts settings where the kernel looks for them, unless they are there.
func (s *Session) setSampling(of []Sampling) error {
	if slices.Equal(of, s.mem.set) {
		return nil
	}
	s.mem.set = nil
	var b bytes.Buffer
	for _, v := range of {
		_ = binary.Write(&b, binary.LittleEndian, []uint64{math.Float64bits(v.Temperature), v.Seed}) // it does not fail
	}
	if err := s.dev.CopyHtoD(s.mem.scratch+driver.Ptr(s.mem.sampling), b.Bytes(), nil); err != nil {
		return err
	}
	s.mem.set = slices.Clone(of)
	return nil
}
