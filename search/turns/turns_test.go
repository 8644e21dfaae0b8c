package turns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// A fake build writes down what is done to it.
type fake struct {
	dir    string
	log    *[]string
	failed error
}

func (f *fake) bench(_ context.Context, o host.BenchOptions) (*host.BenchReport, error) {
	*f.log = append(*f.log, fmt.Sprintf("bench %s %d/%d", f.dir, o.Position, o.StepsPerLaunch))
	if f.failed != nil {
		return nil, f.failed
	}
	return &host.BenchReport{Position: o.Position}, nil
}

func (f *fake) checked() *host.CheckReport { return &host.CheckReport{Passed: f.failed == nil} }

func (f *fake) close() error {
	*f.log = append(*f.log, "close "+f.dir)
	return nil
}

func run(t *testing.T, o Options, failed error, entrants ...Entrant) (log []string, turns []Turn, all bool) {
	t.Helper()
	open := func(_ context.Context, dir string, _ int, known *host.CheckReport) build {
		log = append(log, "open "+dir)
		if known != nil {
			log[len(log)-1] += ", which has passed"
		}
		return &fake{dir, &log, failed}
	}
	all, err := take(t.Context(), entrants, o, open, func(turn Turn) error {
		turns = append(turns, turn)
		return nil
	})
	require.NoError(t, err)
	return log, turns, all
}

// Entrants of one session share an open build; a twin has its own.
func TestSessions(t *testing.T) {
	log, turns, all := run(t, Options{Positions: []int{7}, Rounds: 1, Openings: 1}, nil, Entrant{Name: "a", Dir: "d"},
		Entrant{Name: "b", Dir: "d", Steps: 2}, Entrant{Name: "twin", Dir: "d", Session: "twin"})
	require.True(t, all)
	require.Equal(t, []string{"open d", "open d", "bench d 7/0", "bench d 7/2", "bench d 7/0", "close d", "close d"},
		log)
	require.Len(t, turns, 3)
	require.Equal(t, "twin", turns[2].Build)
	require.True(t, turns[2].Check.Passed)
}

// Over as many openings as there are builds each is at each place once, and over twice as many each comes before each
// other as often as after it.
func TestOrders(t *testing.T) {
	for n := 1; n <= 5; n++ {
		var all []Entrant
		for i := range n {
			all = append(all, Entrant{Name: string(rune('a' + i))})
		}
		places, before := map[string]int{}, map[string]int{}
		for k := range 2 * n {
			order := ordered(all, k)
			require.Len(t, order, n)
			for i, e := range order {
				places[fmt.Sprint(k/n, e.Name, i)]++
				for _, later := range order[i+1:] {
					before[e.Name+later.Name]++
				}
			}
		}
		require.Len(t, places, 2*n*n)
		for pair, count := range before {
			require.Equal(t, n, count, pair)
		}
	}
	require.Empty(t, ordered(nil, 3))
}

// Rounds are distributed to openings as evenly as possible.
func TestOpenings(t *testing.T) {
	for _, c := range []struct{ rounds, openings int }{{1, 2}, {3, 2}, {4, 4}, {8, 3}, {2, 4}} {
		_, turns, _ := run(t, Options{Positions: []int{0}, Rounds: c.rounds, Openings: c.openings}, nil,
			Entrant{Name: "a", Dir: "a"}, Entrant{Name: "b", Dir: "b"})
		require.Len(t, turns, 2*c.rounds)
		for i, turn := range turns {
			require.Equal(t, i/2, turn.Round)
			want := [][]string{{"a", "b"}, {"b", "a"}, {"b", "a"}, {"a", "b"}}
			require.Equal(t, want[turn.Opening][i%2], turn.Build)
		}
	}
	_, turns, _ := run(t, Options{Positions: []int{0}, Rounds: 3}, nil, Entrant{Name: "a", Dir: "a"})
	require.Equal(t, []int{0, 0, 1}, []int{turns[0].Opening, turns[1].Opening, turns[2].Opening})
}

// As many openings more are taken where they are asked for, in orders that go on, and once; not after an error.
func TestMoreOpenings(t *testing.T) {
	asked := 0
	o := Options{Positions: []int{7}, Rounds: 3, Openings: 3, More: func() bool { asked++; return true }}
	entrants := []Entrant{{Name: "a", Dir: "a", Trusted: true}, {Name: "b", Dir: "b"}, {Name: "c", Dir: "c"}}
	log, turns, all := run(t, o, nil, entrants...)
	require.True(t, all)
	require.Equal(t, 1, asked)
	require.Len(t, turns, 6*3)
	orders := map[int]string{}
	for _, turn := range turns {
		require.Equal(t, turn.Opening, turn.Round)
		orders[turn.Opening] += turn.Build
	}
	require.Equal(t, map[int]string{0: "abc", 1: "bca", 2: "cab", 3: "cba", 4: "acb", 5: "bac"}, orders)
	trusted := 0
	for _, line := range log {
		if line == "open a, which has passed" {
			trusted++
		}
	}
	require.Equal(t, 5, trusted, "for all of them")
	_, turns, all = run(t, o, errors.New("lost"), entrants...)
	require.False(t, all)
	require.Equal(t, 1, asked)
	require.Len(t, turns, 3*3)
}

// Builds that are trusted are checked once, by whichever entrant opens them first; the others whenever they are opened.
// One that has failed is not trusted.
func TestTrusted(t *testing.T) {
	entrants := []Entrant{{Name: "old", Dir: "d", Trusted: true}, {Name: "new", Dir: "e"},
		{Name: "twin", Dir: "d", Session: "twin", Trusted: true}}
	opened := func(failed error) (out []string) {
		log, turns, _ := run(t, Options{Positions: []int{7}, Rounds: 2, Openings: 2}, failed, entrants...)
		require.Len(t, turns, 6)
		for _, turn := range turns {
			require.Equal(t, failed == nil, turn.Check.Passed)
		}
		for _, line := range log {
			if strings.HasPrefix(line, "open ") {
				out = append(out, line[len("open "):])
			}
		}
		return out
	}
	const passed = ", which has passed"
	require.Equal(t, []string{"d", "e", "d" + passed, "e", "d" + passed, "d" + passed}, opened(nil))
	require.Equal(t, []string{"d", "e", "d", "e", "d", "d"}, opened(errors.New("off")))
}

func TestTurnsThatFailSayWhy(t *testing.T) {
	_, turns, all := run(t, Options{Positions: []int{0, 1}, Rounds: 1}, errors.New("off"), Entrant{Name: "a", Dir: "a"})
	require.False(t, all)
	require.Equal(t, []string{"off", "off"}, []string{turns[0].Error, turns[1].Error})
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	var log []string
	_, err := take(ctx, []Entrant{{Dir: "a"}}, Options{Positions: []int{0}, Rounds: 1},
		func(context.Context, string, int, *host.CheckReport) build { return &fake{"a", &log, nil} },
		func(Turn) error { return nil })
	require.EqualError(t, err, "enough")
	require.Contains(t, log, "close a")
}
