package exploration

import (
	"maps"
	"slices"
)

// A pair are two properties that a build may have, of different axes.
type pair struct{ a, value, b, other string }

// pairsOf are the pairs that a form has. Axes of the model come before the others, and each pair is in that order.
func pairsOf(f form) []pair {
	var all []pair
	names := axisNames()
	for i, a := range names {
		for _, b := range names[i+1:] {
			all = append(all, pair{a, f[a], b, f[b]})
		}
	}
	return all
}

func axisNames() []string {
	names := make([]string, 0, len(axes)+1)
	for _, a := range axes {
		names = append(names, a.name)
	}
	return append(names, "ends")
}

// missing are the pairs of values that forms have, each in one of them, of which no form has both and which are not
// impossible; and of those that are said to be impossible the ones that a form has.
func missing(forms []form) (without, possible []pair) {
	values, there := map[string][]string{}, map[pair]bool{}
	for _, f := range forms {
		for name, value := range f {
			if !slices.Contains(values[name], value) {
				values[name] = append(values[name], value)
			}
		}
		for _, p := range pairsOf(f) {
			there[p] = true
		}
	}
	for _, list := range values {
		slices.Sort(list)
	}
	names := axisNames()
	for i, a := range names {
		for _, b := range names[i+1:] {
			for _, value := range values[a] {
				for _, other := range values[b] {
					p := pair{a, value, b, other}
					if _, not := impossible[p]; !not && !there[p] {
						without = append(without, p)
					}
				}
			}
		}
	}
	for p := range maps.Keys(impossible) {
		if there[p] {
			possible = append(possible, p)
		}
	}
	return without, possible
}
