package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// A session of the same build may be timed by what check has found in another one, and of no other build.
func TestTrust(t *testing.T) {
	hosttest.NeedDriver(t)
	in := func(dir string, try func(s *host.Session)) {
		t.Helper()
		s, err := host.Open(t.Context(), dir, host.Options{Reference: func(r host.Resident) (host.Reference, error) {
			return &hosttest.Twin{Resident: r}, nil
		}})
		require.NoError(t, err)
		try(s)
		require.NoError(t, s.Close())
	}
	bench := func(s *host.Session) error {
		_, err := s.Bench(t.Context(), host.BenchOptions{Position: 40, Launches: 2}, nil)
		return err
	}
	dir := hosttest.Build(t, "", nil)
	var report *host.CheckReport
	in(dir, func(s *host.Session) {
		var err error
		report, err = s.Check(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, report.Passed)
	})
	in(dir, func(s *host.Session) {
		require.ErrorIs(t, bench(s), host.ErrNotChecked)
		failed := *report
		failed.Passed = false
		require.ErrorIs(t, s.Trust(&failed), host.ErrNotChecked)
		require.ErrorIs(t, bench(s), host.ErrNotChecked)
		require.NoError(t, s.Trust(report))
		require.NoError(t, s.FillCache())
		require.NoError(t, bench(s), "of rows that somebody has written")
		require.Zero(t, s.Position())
	})
	in(hosttest.Build(t, "", nil), func(s *host.Session) { require.ErrorIs(t, s.Trust(report), host.ErrNotChecked) })
	hosttest.Write(t, dir, host.FatbinFile, []byte("FAKE ceiling_us=1 \x00"))
	in(dir, func(s *host.Session) {
		require.ErrorIs(t, s.Trust(report), host.ErrNotChecked, "its kernel is another by now")
	})
}
