package host

import "slices"

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
