package explore

// Deviations from the default schedule: {index of the choice, what was chosen}.
type deviation = [2]uint64

// shrink takes deviations out of a schedule for as long as what went wrong still goes wrong. try judges several
// candidates at once and returns for each whether it does. The number of candidates is bounded. What is returned
// has been judged, unless nothing could be taken out.
//
// It is delta debugging: halves are taken out first, then ever smaller parts, down to single deviations.
func shrink(all []deviation, most, atOnce int, try func([][]deviation) []bool) []deviation {
	judge := func(candidates [][]deviation) (taken []deviation, ok bool) {
		for len(candidates) > 0 && most > 0 {
			n := min(len(candidates), atOnce, most)
			most -= n
			for i, fails := range try(candidates[:n]) {
				if fails {
					return candidates[i], true
				}
			}
			candidates = candidates[n:]
		}
		return nil, false
	}
	if len(all) == 0 {
		return all
	}
	if none, ok := judge([][]deviation{{}}); ok {
		return none
	}
	for parts := 2; len(all) > 1 && most > 0; {
		parts = min(parts, len(all))
		var candidates [][]deviation
		for i := range parts {
			from, to := i*len(all)/parts, (i+1)*len(all)/parts
			rest := make([]deviation, 0, len(all)-(to-from))
			candidates = append(candidates, append(append(rest, all[:from]...), all[to:]...))
		}
		switch smaller, ok := judge(candidates); {
		case ok:
			all, parts = smaller, max(2, parts-1)
		case parts == len(all):
			return all
		default:
			parts *= 2
		}
	}
	return all
}
