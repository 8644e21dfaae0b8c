package diag

import "strings"

// Guess returns a hint for an unknown word: "did you mean X?" if one or a few known words are near, and otherwise the
// given alternative.
func Guess(word string, known []string, otherwise string) string {
	near := Nearest(word, known)
	switch n := len(near); {
	case n == 0 || n > 3:
		return otherwise
	case n == 1:
		return "did you mean " + near[0] + "?"
	default:
		return "did you mean " + strings.Join(near[:n-1], ", ") + " or " + near[n-1] + "?"
	}
}

// Nearest returns the known words that a mistyped word most likely means: the near ones with the smallest distance, in
// the given order. A word is near if at most a third of its letters differ, or if one word is part of the other (4090,
// a100-80gb). One that the typed word begins, --temp of --temperature, is farther than one letter and nearer than two.
// Case does not matter.
func Nearest(word string, known []string) []string {
	const longest = 64 // no flag, verb or target is that long, and the distance takes the product of both lengths
	typed := []rune(strings.ToLower(word))
	if len(typed) == 0 || len(typed) > longest {
		return nil
	}
	var best []string
	least := 0
	for _, candidate := range known {
		lower := strings.ToLower(candidate)
		d := 2 * distance(typed, []rune(lower))
		if d > 2*max(1, len(typed)/3) && !partOf(string(typed), lower) {
			continue
		}
		if len(typed) >= 3 && strings.HasPrefix(lower, string(typed)) {
			d = min(d, 3)
		}
		if best == nil || d < least {
			best, least = nil, d
		}
		if d == least {
			best = append(best, candidate)
		}
	}
	return best
}

// partOf reports whether one of two words holds the other, of at least three letters.
func partOf(a, b string) bool {
	return min(len(a), len(b)) >= 3 && (strings.Contains(a, b) || strings.Contains(b, a))
}

// distance counts the letters to insert, delete, replace or swap with their neighbour to turn one word into the other
// (optimal string alignment).
func distance(a, b []rune) int {
	var before, last []int // rows i-2 and i-1
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
