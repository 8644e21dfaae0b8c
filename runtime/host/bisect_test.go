package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// openVariants opens a fake build of three variants that all publish the same.
func openVariants(t *testing.T, settings string, o host.Options) *host.Session {
	t.Helper()
	hosttest.NeedDriver(t)
	s, err := host.Open(t.Context(), hosttest.Build(t, variants+" "+settings, func(f *host.Facts) {
		f.Variants = append(f.Variants, f.Variants[0], f.Variants[0])
	}), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// The reference kernels of the build, rather than a stand-in for them.
func TestCheckWithTheKernelsOfTheBuild(t *testing.T) {
	s := open(t, variants)
	r, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, r.Failures)
	require.True(t, r.Passed)

	s = open(t, "off=300")
	r, err = s.Check(t.Context(), nil)
	require.NoError(t, err)
	require.False(t, r.Passed)
}

func TestTraceNamesEveryVector(t *testing.T) {
	s := openVariants(t, "", host.Options{})
	ids := make([]int, 20) // into the second variant
	for i := range ids {
		ids[i] = 3 * i
	}
	trace, err := s.Trace(t.Context(), ids)
	require.NoError(t, err)
	require.Equal(t, 19, trace.Position)
	require.Equal(t, 20, s.Position())
	var names []string
	for _, v := range trace.Vectors {
		names = append(names, v.Stage)
	}
	require.Equal(t, []string{"embed", "L00.qkv", "L00.attn", "L01.qkv", "L01.attn", "lm_head"}, names)
	require.Len(t, trace.Vector("L01.qkv"), 128)
	require.Len(t, trace.Vector("lm_head"), 4096)
	require.Nil(t, trace.Vector("L02.qkv"))
	require.NotEqual(t, trace.Vector("L00.qkv"), trace.Vector("L01.qkv"))

	// What was traced counts: the session goes on as after any other step.
	_, chosen := hosttest.Mirror(append(ids, 5))
	next, err := s.Feed(t.Context(), []int{5}, nil)
	require.NoError(t, err)
	require.Equal(t, chosen, next)

	var p *host.PositionError
	_, err = s.Trace(t.Context(), make([]int, 200))
	require.ErrorAs(t, err, &p)
	_, err = s.Trace(t.Context(), nil)
	require.Error(t, err)
}

// A step is traced at any position, and one that no kernel decodes is refused. The fakes have no traced passes: those
// of a build are traced on the machine, by the tests of package explore.
func TestTraceStep(t *testing.T) {
	s := openPasses(t, "", 2)
	ids := []int{3, 5, 7}
	whole, err := s.Trace(t.Context(), ids)
	require.NoError(t, err)
	for i := range ids {
		step, err := s.TraceStep(t.Context(), i, ids[i:i+1], nil)
		require.NoError(t, err)
		require.Len(t, step.Chosen, 1)
		require.Len(t, step.Logits, s.Info().Vocab)
		require.Equal(t, s.Info().TraceStride, step.Stride)
		require.Len(t, step.Values, s.Info().ExchangesPerStep*step.Stride)
		if i == 2 {
			require.Equal(t, whole.Vector("L00.qkv"), step.Values[step.Stride:][:len(whole.Vector("L00.qkv"))])
			require.Equal(t, whole.Vector("lm_head"), step.Logits)
		}
	}
	cache, err := s.ReadCache()
	require.NoError(t, err)
	require.NoError(t, s.WriteCache(cache))
	again, err := s.ReadCache()
	require.NoError(t, err)
	require.Equal(t, cache, again)

	_, err = s.TraceStep(t.Context(), 0, ids, nil)
	require.ErrorContains(t, err, "no kernel of the build decodes 3 tokens at position 0 in one step")
	_, err = s.TraceStep(t.Context(), 0, ids[:1], make([]float32, 3))
	require.ErrorContains(t, err, "and 3 are given")
	var p *host.PositionError
	_, err = s.TraceStep(t.Context(), s.Info().MaxSeq, ids[:1], nil)
	require.ErrorAs(t, err, &p)
	require.ErrorContains(t, s.WriteCache(cache[1:]), "are not a cache of the build")
}

func TestBisect(t *testing.T) {
	twin := func(r host.Resident) (host.Reference, error) { return &hosttest.Twin{Resident: r}, nil }
	for name, c := range map[string]struct {
		settings  string
		reference host.ReferenceOpener
		want      string // of the first difference, empty: none
	}{
		"right":              {"", nil, ""},
		"right, by the twin": {"", twin, ""},
		"a row of q": {"bad_at=3 bad_ordinal=3 bad_element=17", nil,
			"position 3: stage L01.qkv is the first that is wrong: element 17, row 17 (q of head 1, dim 8)"},
		"a row of k": {"bad_at=3 bad_ordinal=1 bad_element=70", nil,
			"position 3: stage L00.qkv is the first that is wrong: element 70, row 70 (k of head 0, dim 3)"},
		"attention": {"bad_at=48 bad_ordinal=2 bad_element=33", nil,
			"position 48: stage L00.attn is the first that is wrong: element 33, head 2, dim 1"},
		"by the twin": {"bad_at=48 bad_ordinal=2 bad_element=33", twin,
			"position 48: stage L00.attn is the first that is wrong: element 33, head 2, dim 1"},
		"the row that stays": {"lost_row=7", nil, "position 7: stage L00.kv is the first that is wrong: element"},
		"nothing but logits": {"off=300", nil, "position 0: stage lm_head is the first that is wrong: element"},
		"not the last vector": {"bad_at=127 bad_ordinal=0", nil,
			"position 127: stage embed is the first that is wrong: element 0, row 0, is"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openVariants(t, c.settings, host.Options{Reference: c.reference})
			r, err := s.Bisect(t.Context(), nil)
			require.NoError(t, err)
			require.Zero(t, s.Position())
			if c.want == "" {
				require.Nil(t, r.First)
				require.True(t, r.Passed)
				require.Equal(t, 32+8+8+8, r.Positions)
				return
			}
			require.False(t, r.Passed)
			require.Contains(t, r.First.String(), c.want)
			raw, err := json.Marshal(r)
			require.NoError(t, err)
			require.Contains(t, string(raw), `"stage":"`+r.First.Stage+`"`)
		})
	}
}

func TestBisectNeedsFactsOfTheKernel(t *testing.T) {
	s := open(t, variants) // whose manifest describes one variant
	_, err := s.Bisect(t.Context(), nil)
	var b *host.BuildError
	require.ErrorAs(t, err, &b)
	require.ErrorContains(t, err, "it describes 1 variants, and the kernel has 3")
	hosttest.NeedDriver(t)
	s, err = host.Open(t.Context(), hosttest.Build(t, "trace=100", nil), host.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.Bisect(t.Context(), nil)
	require.ErrorContains(t, err, "stage L00.qkv publishes 128 elements, and the longest vector of the kernel has 100")
}

func TestReferenceOfAnotherBuild(t *testing.T) {
	hosttest.NeedDriver(t)
	for _, c := range []struct {
		damage func(t *testing.T, dir string)
		text   string
	}{
		{remove(host.ReferenceFile), "run make"},
		{func(t *testing.T, dir string) {
			hosttest.Write(t, dir, host.ReferenceFile, []byte("FAKE REFERENCE layers=3 \x00"))
		}, "compiled for 3 layers and vocab 4096, and the megakernel for 2 and 4096"},
		{func(t *testing.T, dir string) { hosttest.Write(t, dir, host.ReferenceFile, []byte("209\x00")) },
			"build again for target sm_90"},
	} {
		dir := hosttest.Build(t, "", nil)
		c.damage(t, dir)
		s, err := host.Open(t.Context(), dir, host.Options{})
		require.NoError(t, err, "decoding needs no reference")
		_, err = s.Check(t.Context(), nil)
		require.ErrorContains(t, err, c.text)
		_, err = s.Bisect(t.Context(), nil)
		require.ErrorContains(t, err, c.text)
		require.NoError(t, s.Close())
		_, err = os.Stat(filepath.Join(dir, host.ManifestFile))
		require.NoError(t, err)
	}
}
