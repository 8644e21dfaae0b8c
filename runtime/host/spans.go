package host

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// What amk_profile writes (amk/profile.cuh): a header, a recording of each role of each SM, and their spans.
const (
	profileHeaderSize = 64
	recordingSize     = 64
	spanSize          = 16
)

var (
	profileRoles = [...]string{"consumer", "producer"}
	profileKinds = [...]string{"exchange wait", "compute", "signal", "slot wait", "step wait"}
)

// profileBytes is the size of the buffer for n spans of each role of each SM.
func profileBytes(sms, capacity int) int {
	return profileHeaderSize + len(profileRoles)*sms*(recordingSize+capacity*spanSize)
}

// recorded are the spans of a launch, in µs since about the moment when the first SM began.
type recorded struct {
	spans   []Span // by SM, role, start; steps of the launch
	dropped int
}

// decodeSpans reads the buffer after a launch, and aligns the SMs.
func decodeSpans(raw []byte, sms, capacity int, stages []string) (recorded, error) {
	var out recorded
	le := binary.LittleEndian
	recording := func(sm, role int) []byte {
		return raw[profileHeaderSize+(len(profileRoles)*sm+role)*recordingSize:][:recordingSize]
	}
	first := uint64(math.MaxUint64)
	for sm := range sms {
		first = min(first, le.Uint64(recording(sm, 0)[8:]))
	}
	for sm := range sms {
		consumers := recording(sm, 0)
		clock, time := le.Uint64(consumers), le.Uint64(consumers[8:])
		clocks, times := le.Uint64(consumers[16:])-clock, le.Uint64(consumers[24:])-time
		if int64(clocks) <= 0 || int64(times) <= 0 {
			return out, fmt.Errorf("SM %d: its clock went on by %d cycles, and the GPU's timer by %d ns", sm,
				int64(clocks), int64(times))
		}
		// A cycle is a low half: its distance from the beginning is signed, because the producer begins without
		// waiting for the clock to be read.
		at := func(cycle uint32) float64 {
			cycles := float64(int32(cycle - uint32(clock)))
			return (float64(time-first) + cycles*float64(times)/float64(clocks)) / 1000
		}
		for role, name := range profileRoles {
			n := int(le.Uint32(recording(sm, role)[32:]))
			out.dropped += max(0, n-capacity)
			before := (sm*len(profileRoles) + role) * capacity * spanSize // of other SMs and roles
			list := raw[profileHeaderSize+len(profileRoles)*sms*recordingSize+before:]
			for i := range min(n, capacity) {
				word := func(k int) uint32 { return le.Uint32(list[i*spanSize+4*k:]) }
				kind := word(2) >> 16
				if kind >= uint32(len(profileKinds)) {
					return out, fmt.Errorf("SM %d, %s: span %d is of kind %d, which this program does not know", sm,
						name, i, kind)
				}
				out.add(Span{SM: sm, Role: name, Kind: profileKinds[kind],
					Stage: stageName(stages, word(2)&0xffff, word(3)&0xffff),
					Step:  int(word(3) >> 16), Start: at(word(0)), End: at(word(1))})
			}
		}
	}
	out.align(sms)
	return out, nil
}

// add appends a span, or lengthens the last one where it goes on without a gap.
func (r *recorded) add(s Span) {
	if n := len(r.spans); n > 0 {
		if last := &r.spans[n-1]; last.SM == s.SM && last.Role == s.Role && last.Kind == s.Kind &&
			last.Stage == s.Stage &&
			last.Step == s.Step && last.End == s.Start {
			last.End = s.End
			return
		}
	}
	r.spans = append(r.spans, s)
}

// window returns what the consumers did in steps from first on, and what the producers did during that time, cut off
// at its ends; steps and times are counted from there.
func (r *recorded) window(first, steps int) []Span {
	begin, end := math.Inf(1), math.Inf(-1)
	inSteps := func(s *Span) bool { return s.Step >= first && s.Step < first+steps }
	for i := range r.spans {
		if s := &r.spans[i]; s.Role == profileRoles[0] && inSteps(s) {
			begin, end = min(begin, s.Start), max(end, s.End)
		}
	}
	var out []Span
	for _, s := range r.spans {
		if s.Role == profileRoles[0] {
			if !inSteps(&s) {
				continue
			}
		} else if s.Start, s.End = max(s.Start, begin), min(s.End, end); s.Start >= s.End {
			continue
		}
		s.Step -= first
		s.Start, s.End = s.Start-begin, s.End-begin
		out = append(out, s)
	}
	return out
}

// leastExchanges is how many exchanges tell how far an SM's times are off; a median of fewer is no better than the
// timer.
const leastExchanges = 5

// An exchange that all SMs wait for: a stage of a step may have several waits.
type exchange struct {
	stage         string
	step, ordinal int
}

// align takes out what is left between the clocks of two SMs. The GPU's timer is not one clock for all of them: on an
// H200 it differs by up to 2 µs between groups of 16 or 18 SMs, by as much throughout a launch. But an exchange ends
// for all SMs at about the same time, a trip to the L2 after its last word was written. So an SM's times are off by
// the median, over the exchanges that every SM waited for, of how much later than the median SM it had the vector; by
// that they are moved. That one SM always has a vector some 100 ns after another cannot be seen afterwards.
func (r *recorded) align(sms int) {
	ends := map[exchange][]float64{} // by SM, in the order of spans
	var all []exchange
	for i := 0; i < len(r.spans); {
		sm, seen := r.spans[i].SM, map[exchange]int{}
		for ; i < len(r.spans) && r.spans[i].SM == sm; i++ {
			s := &r.spans[i]
			if s.Role != profileRoles[0] || s.Kind != profileKinds[0] {
				continue
			}
			e := exchange{stage: s.Stage, step: s.Step}
			seen[e]++
			e.ordinal = seen[e]
			if _, known := ends[e]; !known {
				all = append(all, e)
			}
			ends[e] = append(ends[e], s.End)
		}
	}
	late := make([][]float64, sms)
	for _, e := range all {
		if len(ends[e]) < sms {
			continue
		}
		middle := medianOf(ends[e])
		for sm, end := range ends[e] {
			late[sm] = append(late[sm], end-middle)
		}
	}
	if sms == 0 || len(late[0]) < leastExchanges {
		return
	}
	off := make([]float64, sms)
	for sm := range off {
		off[sm] = medianOf(late[sm])
	}
	for i := range r.spans {
		s := &r.spans[i]
		s.Start, s.End = s.Start-off[s.SM], s.End-off[s.SM]
	}
}

// medianOf needs a value.
func medianOf(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
