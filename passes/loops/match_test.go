package loops

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
)

// letters is a matcher of stages whose shapes are letters, none of them rotated.
func letters(shapes string) *matcher {
	m := &matcher{}
	for i := range shapes {
		m.shapes, m.rots, m.sms, m.layers = append(m.shapes, int(shapes[i])), append(m.rots, 0), append(m.sms, 10),
			append(m.layers, -1)
	}
	return m
}

func all(w window) int { return w.count }

func TestRunsAreFound(t *testing.T) {
	for shapes, want := range map[string][]window{
		"":                        nil,
		"a":                       nil,
		"abcab":                   nil,
		"aa":                      {{0, 1, 2}},
		"aaaa":                    {{0, 1, 4}},
		"abababab":                {{0, 2, 4}},
		"xabcabcy":                {{1, 3, 2}},
		"aabaab":                  {{0, 3, 2}},
		"xababyabababz":           {{1, 2, 2}, {6, 2, 3}},
		"abcabcabddd":             {{0, 3, 2}, {8, 1, 3}},
		"aabbaabbaabb":            {{0, 4, 3}},
		"aaaaaaabababab":          {{0, 1, 6}, {6, 2, 4}},
		strings.Repeat("abc", 50): {{0, 3, 50}},
		strings.Repeat("x", 2000): {{0, 1, 2000}},
	} {
		require.Equal(t, want, letters(shapes).find(all), shapes)
	}
}

// Of places where a run could start, it starts where its body carries fewest layers; of equal bodies, at the leftmost.
func TestRunsStartWhereALayerDoes(t *testing.T) {
	m := letters("bcabcabcab")
	m.layers = []int{0, 0, 1, 1, 1, 2, 2, 2, 3, 3}
	require.Equal(t, []window{{0, 3, 3}}, m.find(all),
		"most stages, from the leftmost: none starts with a layer throughout")
	m = letters("bcabcabca")
	m.layers = []int{0, 0, 1, 1, 1, 2, 2, 2, 3}
	require.Equal(t, []window{{0, 3, 3}}, m.find(all))
	m = letters("xbcabcabcy")
	m.layers = []int{-1, 0, 0, 1, 1, 1, 2, 2, 2, -1}
	require.Equal(t, []window{{3, 3, 2}}, m.find(all), "as many stages from three places")
}

func TestRotationsAdvanceByOneStep(t *testing.T) {
	m := letters("aaaa")
	m.rots = []int{7, 9, 1, 3}
	require.Equal(t, []window{{0, 1, 4}}, m.find(all))
	m = letters("aaa")
	m.rots = []int{7, 9, 2}
	require.Equal(t, []window{{0, 1, 2}}, m.find(all))
	m = letters("ababab")
	m.rots = []int{0, 5, 1, 7, 2, 8}
	require.Equal(t, []window{{0, 2, 2}}, m.find(all), "the last b is off")
	m = letters("aaaa")
	m.rots = []int{7, 9, 1, 4}
	require.Equal(t, []window{{0, 2, 2}}, m.find(all), "two bodies are steady whatever they are")
}

// What a run keeps to in part is rolled in parts, and what is refused leaves others their place.
func TestRunsAreCut(t *testing.T) {
	require.Equal(t, []window{{0, 2, 3}, {6, 2, 2}}, letters("ababababab").find(func(w window) int {
		if w.start < 6 && w.end() > 6 {
			return (6 - w.start) / w.period
		}
		return w.count
	}))
	require.Equal(t, []window{{0, 4, 2}}, letters("abababab").find(func(w window) int {
		if w.period == 2 {
			return 0
		}
		return w.count
	}))
	require.Nil(t, letters("abababab").find(func(window) int { return 0 }))
}

// On any sequence the runs are runs, do not overlap, and leave no other run.
func TestRunsOfRandomSequences(t *testing.T) {
	for seed := range uint64(10 * modeltest.Samples()) {
		rng := rand.New(rand.NewPCG(seed, 5))
		m := letters(randomLetters(rng))
		for i := range m.rots {
			m.rots[i] = rng.IntN(2)
		}
		got := m.find(all)
		require.Equal(t, got, (&matcher{shapes: m.shapes, rots: m.rots, sms: m.sms, layers: m.layers}).find(all),
			"the same each time")
		free := make([]bool, len(m.shapes))
		for i := range free {
			free[i] = true
		}
		for _, w := range got {
			require.True(t, m.isRun(w), "%v", w)
			for i := w.start; i < w.end(); i++ {
				require.True(t, free[i])
				free[i] = false
			}
		}
		for p := 1; 2*p <= len(free); p++ {
			for s := 0; s+2*p <= len(free); s++ {
				rest := true
				for i := s; i < s+2*p; i++ {
					rest = rest && free[i]
				}
				require.False(t, rest && m.isRun(window{s, p, 2}), "a run at %d of period %d is left, besides %v", s, p,
					got)
			}
		}
	}
}

func randomLetters(rng *rand.Rand) string {
	var b strings.Builder
	for b.Len() < 60 {
		word := make([]byte, 1+rng.IntN(4))
		for i := range word {
			word[i] = byte('a' + rng.IntN(3))
		}
		b.WriteString(strings.Repeat(string(word), 1+rng.IntN(5)))
	}
	return b.String()
}

// isRun reports whether the bodies of a window are alike, and their rotations steady.
func (m *matcher) isRun(w window) bool {
	for t := w.start; t < w.end()-w.period; t++ {
		if m.shapes[t] != m.shapes[t+w.period] || t+2*w.period < w.end() &&
			m.turn(t, w.period) != m.turn(t+w.period, w.period) {
			return false
		}
	}
	return w.count >= 2
}
