package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/validate"
	"amkc/validate/kernel"
)

// What attention streams may lie anywhere and have any rank: it is refused exactly if the step writes it, no matter
// which task does and what orders the two. Rotary frequencies, norms, tables and matrices are fixed, whatever their
// rank.
func TestRunAheadOfAnyMemory(t *testing.T) {
	shapes := []struct{ shape, all string }{{"64", "0:64"}, {"4,16", "0:4,0:16"}, {"4,1,16", "0:4,0,0:16"},
		{"1,4,1,16", "0,0:4,0,0:16"}}
	places := []struct{ kind, place, page string }{
		{"ACTIVATION F32", "HBM rowmajor", ""}, {"ACTIVATION F32", "GLOBAL_SCRATCH rowmajor", ""},
		{"ACTIVATION F16", "GLOBAL_SCRATCH word32", ""},
		{"ACTIVATION F32", "GLOBAL_SCRATCH word64x2", ""}, {"ACTIVATION F32", "SMEM rowmajor", ""},
		{"IO_OUTPUT F32", "HBM rowmajor", ""},
		{"ACTIVATION F32", "GLOBAL_SCRATCH rowmajor page p", "page p GLOBAL_SCRATCH rowmajor bytes=256\n"},
		{"ACTIVATION F32", "GLOBAL_SCRATCH word64 page p", "page p GLOBAL_SCRATCH word64 bytes=512\n"},
		{"KV_CACHE F32", "HBM rowmajor", ""}, {"WEIGHT F32", "HBM rowmajor", ""}, {"CONST F32", "HBM rowmajor", ""},
		{"IO_INPUT F32", "HBM rowmajor", ""},
	}
	const make, attend = "k[%[1]s] = COPY(w[0:64])",
		"o[0:16] = ATTENTION_TILE(w[0:16], %[2]s, %[3]s) head_dim=16 n_heads=1 n_kv_heads=1 scale=0.25"
	programs := map[string]string{ // by who writes
		"nobody":   stage("use", 0, attend, "signal c"),
		"the task": stage("use", 0, make, attend, "signal c"),
		"the SM":   stage("make", 0, make, "signal c") + stage("use", 0, attend, "signal d"),
		"another SM": stage("make", 1, make, "signal c") + stage("use", 0, "wait c >= 1", attend,
			"signal d"),
		"the task, afterwards": stage("use", 0, attend, make, "signal c"),
		"another SM, afterwards": stage("use", 1, attend, "signal c") + stage("make", 0, "wait c >= 1", make,
			"signal d"),
	}
	safe, refused, writable := 0, 0, map[string]int{}
	for _, s := range shapes {
		for _, at := range places {
			for who, body := range programs {
				for _, kv := range [][2]string{{"k", "k"}, {"k", "fix"}, {"fix", "k"}} {
					view := func(name string) string { return name + "[" + s.all + "]" }
					text := fmt.Sprintf(`amk 2.0
%sbuffer w WEIGHT F32 [64] HBM rowmajor
buffer fix WEIGHT F32 [%s] HBM rowmajor
buffer k %s [%s] %s
buffer o ACTIVATION F32 [16] GLOBAL_SCRATCH rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
buffer sampling IO_INPUT I32 [4] HBM rowmajor
variant all pos 8..9
counter c counter gpu
counter d counter gpu
counter step counter gpu
`, at.page, s.shape, at.kind, s.shape, at.place) +
						fmt.Sprintf(strings.ReplaceAll(body, "[%[1]s]", "["+s.all+"]"), s.all, view(kv[0]),
							view(kv[1])) +
						stage("end", 0, "next[0] = SAMPLE(w[0:64], sampling[0:4]) pos=pos", "signal step")
					f := flat(t, parse(t, text), 0)
					if !validate.Flat(f).OK {
						continue // for other reasons
					}
					rep := validate.FlatFor(kernel.Backend, f)
					if who == "nobody" {
						require.NoError(t, rep.Diags.Err(), "%s\n%s", who, text)
						safe++
						continue
					}
					require.False(t, rep.OK, "%s\n%s", who, text)
					requireCode(t, rep, kernel.CodeRunAhead, "ahead of every wait of the step, and")
					refused++
					writable[at.kind+at.place]++
				}
			}
		}
	}
	require.Greater(t, safe, 30)
	require.Greater(t, refused, 200)
	require.Len(t, writable, 9, "everything that a step may write")
}
