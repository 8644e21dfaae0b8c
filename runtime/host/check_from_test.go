package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// CheckFrom finds what is wrong at its positions, leaves the others alone, and stands for no Check.
func TestCheckFrom(t *testing.T) {
	twin := func(r host.Resident) (host.Reference, error) { return &hosttest.Twin{Resident: r}, nil }
	s := openWith(t, variants, host.Options{Reference: twin})
	report, err := s.CheckFrom(t.Context(), 15, 2) // across the end of a variant
	require.NoError(t, err)
	require.True(t, report.Passed, report.Failures)
	require.Len(t, report.Spans, 1)
	require.Equal(t, 15, report.Spans[0].First)
	require.Equal(t, 16, report.Spans[0].Last)
	require.Zero(t, s.Position())
	require.ErrorIs(t, s.Trust(report), host.ErrNotChecked)
	for _, span := range [][2]int{{-1, 2}, {0, 0}, {127, 2}} {
		_, err := s.CheckFrom(t.Context(), span[0], span[1])
		require.ErrorAs(t, err, new(*host.PositionError), "%v", span)
	}

	wrong := openWith(t, "nan_at=3", host.Options{Reference: twin})
	report, err = wrong.CheckFrom(t.Context(), 2, 2)
	require.NoError(t, err)
	require.False(t, report.Passed)
	require.Len(t, report.Failures, 1)
	require.Contains(t, report.Failures[0], "position 3")
	report, err = wrong.CheckFrom(t.Context(), 0, 3)
	require.NoError(t, err)
	require.True(t, report.Passed, report.Failures)
}

// ReadCache returns what decoding has left: the fake kernels put their token plus one into its row.
func TestReadCache(t *testing.T) {
	s := open(t, "")
	_, err := s.Feed(t.Context(), []int{5, 9}, nil)
	require.NoError(t, err)
	cache, err := s.ReadCache()
	require.NoError(t, err)
	require.Len(t, cache, int(s.Info().CacheBytes))
	row := len(cache) / s.Info().MaxSeq
	require.Equal(t, []byte{6, 0, 0, 0}, cache[:4])
	require.Equal(t, []byte{10, 0, 0, 0}, cache[row:row+4])
}
