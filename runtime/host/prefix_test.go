package host_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// oneLayer makes the cache of the fake build one of one layer and head, whose rows are side by side.
func oneLayer(f *host.Facts) { f.Model.Layers, f.Model.KVHeads, f.Model.CacheBlock = 1, 1, 16*64 }

// openDir opens a build; it stays open until the test ends.
func openDir(t *testing.T, dir string) *host.Session {
	t.Helper()
	s, err := host.Open(t.Context(), dir, host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// A text goes on from a loaded prefix as it would from its first token, whatever the cache held before.
func TestPrefix(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "layers=1", oneLayer)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 15, 16, 17, 100, 128} {
		ids := make([]int, n)
		for i := range ids {
			ids[i] = rng.IntN(4096)
		}
		from := openDir(t, dir)
		_, err := from.Feed(t.Context(), ids, nil)
		require.NoError(t, err)
		var saved bytes.Buffer
		require.NoError(t, from.SavePrefix(&saved, ids))
		path := filepath.Join(t.TempDir(), "prefix")
		require.NoError(t, os.WriteFile(path, saved.Bytes(), 0o600))
		require.NoError(t, from.Close())

		to := openDir(t, dir)
		_, err = to.Feed(t.Context(), make([]int, 90), nil)
		require.NoError(t, err)
		got, err := to.LoadPrefix(t.Context(), path)
		require.NoError(t, err)
		require.Equal(t, ids, got)
		require.Equal(t, n, to.Position())
		if n < 128 {
			next, err := to.Feed(t.Context(), []int{5}, nil)
			require.NoError(t, err)
			_, want := hosttest.Mirror(append(ids, 5))
			require.Equal(t, want, next)
		}
		require.NoError(t, to.Rewind(n-1))
		next, err := to.Feed(t.Context(), ids[n-1:], nil)
		require.NoError(t, err)
		_, want := hosttest.Mirror(ids)
		require.Equal(t, want, next)
		require.NoError(t, to.Close())
	}
}

// A file that is not a prefix of this very build is refused, and so is one with a bit that is another.
func TestPrefixesThatAreRefused(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "layers=1", oneLayer)
	s := openDir(t, dir)
	ids := []int{7, 8, 9}
	_, err := s.Feed(t.Context(), ids, nil)
	require.NoError(t, err)
	var saved bytes.Buffer
	require.ErrorContains(t, s.SavePrefix(&saved, make([]int, 4)), "4 ids were to be saved, and 3 positions")
	require.ErrorContains(t, s.SavePrefix(&saved, nil), "0 ids")
	require.NoError(t, s.SavePrefix(&saved, ids))
	good := saved.Bytes()
	other := openDir(t, hosttest.Build(t, "layers=1", func(f *host.Facts) {
		oneLayer(f)
		f.Model.Name = "other"
	}))
	path := filepath.Join(t.TempDir(), "prefix")
	load := func(s *host.Session, file []byte) error {
		require.NoError(t, os.WriteFile(path, file, 0o600))
		_, err := s.LoadPrefix(t.Context(), path)
		return err
	}
	require.NoError(t, load(s, good))
	require.ErrorContains(t, load(other, good), "saved by another build")
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		bad := bytes.Clone(good)
		switch at := rng.IntN(len(bad)); rng.IntN(3) {
		case 0:
			bad = bad[:at]
		case 1:
			bad = append(bad[:at:at], bad[min(len(bad), at+1+rng.IntN(9)):]...)
		default:
			bad[at] ^= 1 << rng.IntN(8)
		}
		var refused *host.PrefixError
		err := load(s, bad)
		if err == nil { // white space of the header, or a name in it that nothing depends on
			require.Equal(t, 3, s.Position())
			continue
		}
		require.ErrorAs(t, err, &refused)
		require.Zero(t, s.Position())
	}
	require.ErrorContains(t, func() error { _, err := s.LoadPrefix(t.Context(), dir); return err }(), "cannot be read")
	broken := openDir(t, hosttest.Build(t, "layers=1", func(f *host.Facts) {
		oneLayer(f)
		f.Model.CacheBlock = 64
	}))
	_, err = broken.Feed(t.Context(), ids, nil)
	require.NoError(t, err)
	require.ErrorContains(t, broken.SavePrefix(&saved, ids), "facts.model.cache_block is 64")
}
