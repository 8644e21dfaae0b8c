package validate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/simulate"
	"amkc/validate"
)

// ranksText makes a small program of several ranks: stages that push, that add up what ranks push, and that exchange
// words or plain memory within a rank. Most of them wait for what they read; pages are few, so that order decides.
func ranksText(next source) string {
	ranks, sms := 2+next(3), 1+next(3)
	var buffers, counters, stages strings.Builder
	type made struct {
		name    string
		pushed  bool
		counter string
	}
	var all []made
	likely := func(percent int) bool { return next(100) < percent }
	pick := func(pushed bool) (made, bool) {
		for range 4 {
			if k := len(all) - 1 - next(3); k >= 0 && all[k].pushed == pushed {
				return all[k], true
			}
		}
		return made{}, false
	}
	for i := range 3 + next(6) {
		m := made{name: fmt.Sprintf("b%d", i), pushed: i%2 == 0}
		if likely(25) {
			m.pushed = !m.pushed
		}
		how, scope, words := "flagged", "gpu", likely(85)
		if m.pushed {
			scope, words = "system", true
		}
		if likely(20) || !words {
			how = "counter"
		}
		if likely(4) {
			scope = []string{"gpu", "system"}[next(2)]
		}
		space, layout := "GLOBAL_SCRATCH", fmt.Sprintf("word64 page l%d", next(2))
		shape := "[6]"
		switch {
		case m.pushed:
			space, layout, shape = "PEER_SCRATCH", fmt.Sprintf("word64 page p%d", next(2)), fmt.Sprintf("[%d,6]", ranks)
		case !words:
			layout = "rowmajor"
		}
		fmt.Fprintf(&buffers, "buffer %s ACTIVATION F32 %s %s %s\n", m.name, shape, space, layout)
		tasks := sms
		dist := fmt.Sprintf("spread extent=6 grain=%d sms=%d rot=%d step=0", 6/sms, sms, next(sms))
		fmt.Fprintf(&stages, "stage s%d %s\n", i, dist)
		source, known := pick(likely(30))
		if likely(60) && len(all) > 0 {
			source, known = all[len(all)-1], true
		}
		if known && likely(94) {
			fmt.Fprintf(&stages, " wait %s\n", source.counter)
		}
		if other, ok := pick(true); ok && other != source && likely(12) {
			fmt.Fprintf(&stages, " wait %s\n", other.counter)
		}
		value, span := "in[a:b]", "a:b"
		if likely(35) {
			span = "0:6"
		}
		if known && source.pushed {
			var rows []string
			for r := range ranks {
				row := fmt.Sprint(r)
				if likely(3) {
					row = []string{"0", "rank"}[next(2)]
				}
				rows = append(rows, fmt.Sprintf("%s[%s,%s]", source.name, row, span))
			}
			if likely(4) {
				rows = rows[:1+next(ranks)]
			}
			fmt.Fprintf(&stages, " %%sum = ALLREDUCE_SHARD(%s)\n", strings.Join(rows, ", "))
			if value = "%sum"; span != "a:b" {
				value = "in[a:b]"
			}
		} else if known {
			value = source.name + "[a:b]"
			if span != "a:b" {
				fmt.Fprintf(&stages, " %%all = COPY(%s[0:6])\n", source.name)
			}
		}
		row := ""
		if m.pushed {
			if row = "rank,"; likely(2) {
				row = "0,"
			}
		}
		fmt.Fprintf(&stages, " %s[%sa:b] = COPY(%s)\n signal %s\n", m.name, row, value, m.name)
		fmt.Fprintf(&counters, "counter %s %s %s\n", m.name, how, scope)
		if scope == "system" {
			tasks *= ranks
		}
		if likely(1) {
			tasks--
		}
		m.counter = fmt.Sprintf("%s >= %d", m.name, tasks)
		all = append(all, m)
	}
	join := "system"
	if likely(4) {
		join = "gpu"
	}
	return fmt.Sprintf(`amk 2.0
target t arch=sm_90 sms=%d smem_optin=1024 l2_bytes=1 hbm_bytes=1 hbm_gbs=1 bulk_copy=true async_copy=true mma16816=true
ranks %d
page l0 GLOBAL_SCRATCH word64 bytes=48
page l1 GLOBAL_SCRATCH word64 bytes=48
page p0 PEER_SCRATCH word64 bytes=192
page p1 PEER_SCRATCH word64 bytes=192
buffer token IO_INPUT I32 [1] HBM rowmajor
buffer in IO_INPUT F32 [6] HBM rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
%svariant v pos 0..0
%scounter step counter %s
%sstage emit explicit
 task sm=0 a=0 b=1
 next[0] = COPY(token[0])
stage join spread extent=%d grain=1 sms=%d rot=0 step=0
 NOP()
 signal step
`, sms, ranks, buffers.String(), counters.String(), join, stages.String(), sms, sms)
}

// What is proved of one rank holds of all: whatever the program, it is not accepted where the proof with the tasks of
// all ranks refuses it. That one may accept more, and the test says how often. AMKC_LONG looks at more programs.
func TestOneRankSpeaksForAll(t *testing.T) {
	programs := 4000
	if testing.Short() {
		programs = 400
	}
	if os.Getenv("AMKC_LONG") != "" {
		programs = 100_000
	}
	accepted, refused, walked := 0, 0, 0
	more := map[string]int{}
	for seed := range uint64(programs) {
		text := ranksText(rand.New(rand.NewPCG(seed, 11)).IntN)
		p, diags := ir.ParseText([]byte(text), "f")
		require.NoError(t, diags.Err(), text)
		one, all := validate.Program(p), validate.AllRanks(p)
		switch {
		case one.OK && !all.OK:
			require.Fail(t, "accepted, and refused for all ranks", "seed %d: %v\n%s", seed, all.Diags, text)
		case one.OK:
			if accepted++; accepted%100 == 0 {
				walked++
				v := simulate.Program(p, simulate.NewFootprints(), simulate.Effort{Orders: 5, SampleWork: 1 << 15})
				require.Nil(t, v.Hazard, "seed %d: %v\n%s", seed, v.Hazard, text)
			}
		case all.OK:
			more[one.Diags.Errors()[0].Code]++
		default:
			refused++
		}
	}
	t.Logf("%d accepted, %d of them simulated, %d refused by both; refused of one rank alone: %v", accepted, walked,
		refused, more)
	require.Greater(t, accepted, programs/10)
	require.Greater(t, refused, programs/10)
}
