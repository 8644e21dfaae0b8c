package formats

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/quality"
)

// A model made up: of each matrix and format what a step gains and what it costs. Errors of two matrices that follow
// one another make another one.
func madeUp(most float64) Options {
	gains := map[string]float64{"q=int8": 10, "q=int4": 14, "down=int8": 20, "down=int4": 30, "head=int8": 8,
		"small=int8": 0}
	costs := map[string]float64{"q=int8": 0.001, "q=int4": 0.08, "down=int8": 0.002, "down=int4": 0.02,
		"head=int8": 0.01}
	return Options{Stacks: [][]string{{"q", "k"}, {"down"}, {"small"}, {"head"}}, Formats: []string{"int8", "int4"},
		Most: most,
		Predict: func(spec string) (Step, error) {
			s := Step{US: 100, Bytes: 1000}
			for item := range strings.SplitSeq(spec, ",") {
				s.US -= gains[item]
				s.Bytes -= int64(10 * gains[item])
			}
			return s, nil
		},
		Measure: func(_ context.Context, spec string) (*quality.Report, error) {
			r := &quality.Report{Agreement: 0.9, Perplexity: quality.Perplexity{Model: 5, Against: 4}}
			for item := range strings.SplitSeq(spec, ",") {
				r.KL.Mean += costs[item]
			}
			if strings.Contains(spec, "down=int4") && strings.Contains(spec, "head") {
				r.KL.Mean += 0.05
			}
			return r, nil
		}}
}

func TestSearch(t *testing.T) {
	r, err := Search(t.Context(), madeUp(0.05))
	require.NoError(t, err)
	require.Len(t, r.Alone, 5, "not what gains nothing")
	require.Equal(t, Tried{"q=int8,k=int8", "q=int8,k=int8", Step{90, 900}, 0.001, 0.9, 5, false}, r.Alone[0])
	var specs []string
	for _, tried := range r.Together {
		specs = append(specs, tried.Weights)
	}
	require.Equal(t, []string{"q=int8,k=int8", "q=int8,k=int8,down=int8", "q=int8,k=int8,down=int4",
		"q=int8,k=int8,down=int4,head=int8", "q=int4,k=int4,down=int4"}, specs)
	require.Equal(t, []bool{true, true, true, false, false}, []bool{r.Together[0].Accepted, r.Together[1].Accepted,
		r.Together[2].Accepted, r.Together[3].Accepted, r.Together[4].Accepted})
	require.Equal(t, "q=int8,k=int8,down=int4", r.Best.Weights)
	require.Equal(t, r.Together[2], r.Best)
}

// Where nothing is allowed, nothing is chosen, and that is a result.
func TestNothingIsGoodEnough(t *testing.T) {
	r, err := Search(t.Context(), madeUp(0))
	require.NoError(t, err)
	require.Equal(t, Tried{Step: Step{100, 1000}, Agreement: 1, Perplexity: 4, Accepted: true}, r.Best)
	require.Equal(t, r.AsIs, r.Best)
	require.Len(t, r.Together, 5)
	for _, tried := range r.Together {
		require.False(t, tried.Accepted)
		require.NotContains(t, tried.Weights, "q=int8,k=int8,down", "on top of what was rejected")
	}
}

// What is measured already is not measured again, and an error ends the search.
func TestMeasurements(t *testing.T) {
	o := madeUp(0.05)
	measured, of := 0, o.Measure
	o.Measure = func(ctx context.Context, spec string) (*quality.Report, error) {
		measured++
		return of(ctx, spec)
	}
	told := 0
	o.Tell = func(Tried) { told++ }
	_, err := Search(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, 5+4, measured, "the first one on the way is one on its own")
	require.Equal(t, measured, told)
	failed := errors.New("no memory")
	o.Measure = func(context.Context, string) (*quality.Report, error) { return nil, failed }
	_, err = Search(t.Context(), o)
	require.ErrorIs(t, err, failed)
	o = madeUp(0.05)
	o.Predict = func(string) (Step, error) { return Step{}, failed }
	_, err = Search(t.Context(), o)
	require.ErrorIs(t, err, failed)
}
