package population

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// What is wrong with exchanges is order and words, nothing that earlier rules see, and enough of them are accepted.
func TestExchange(t *testing.T) {
	seeds := draws(3000)
	accepted, own, codes := 0, 0, map[string]int{}
	for seed := range uint64(seeds) {
		c := Exchange(seed)
		require.Equal(t, c, Exchange(seed))
		rep := validate.Flat(c.Flat)
		for _, d := range rep.Diags.Errors() {
			codes[d.Code]++
		}
		if rep.OK {
			accepted++
		}
		if readsOwnWords(c.Flat) {
			own++
		}
	}
	require.Greater(t, 20*accepted, seeds)
	require.Greater(t, 4*own, seeds)
	for _, code := range []*diag.Code{validate.CodeReadRace, validate.CodeOverwriteRace, validate.CodeWriteRace,
		validate.CodeTwice, validate.CodeUnread,
		validate.CodePollOrder, validate.CodeStale, validate.CodeClobbered, validate.CodeAlias} {
		require.Positive(t, codes[code.ID], code.ID)
		delete(codes, code.ID)
	}
	require.Empty(t, codes)
}

// readsOwnWords reports whether a task reads a buffer that an earlier op of its own has written.
func readsOwnWords(f *ir.Flat) bool {
	for i := range f.Tasks {
		wrote := map[int]bool{}
		for _, op := range f.Tasks[i].Ops {
			if wrote[op.InBuf[0]] {
				return true
			}
			wrote[op.OutBuf[0]] = op.OutBuf[0] >= 0
		}
	}
	return false
}
