package refvm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Attention over a sliding window, in one piece and in splits that are combined, is that of one head over the last rows
// and the step's own, computed here in float64: for random windows, splits, blocks and positions. What is in rows
// that are not seen does not matter, be it no number.
func TestWindowedAttention(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 34))
	for n := range 400 {
		hd, heads, splits, block := 1+r.IntN(6), 1+r.IntN(3), 1+r.IntN(4), 1+r.IntN(9)
		window, rows := 1+r.IntN(50), 1+r.IntN(70)
		pos := r.IntN(rows)
		name := fmt.Sprintf("case %d: window %d, position %d, %d splits in blocks of %d", n, window, pos, splits, block)
		vm, err := New(unroll(t, parse(t, windowed(hd, heads, splits, block, window, rows))), noise(1),
			Options{Record: true})
		require.NoError(t, err, name)
		random := func(n int) []float32 {
			out := make([]float32, n)
			for i := range out {
				out[i] = r.Float32()*2 - 1
			}
			return out
		}
		q, k, v, cache := random(heads*hd), random(hd), random(hd), random(rows*2*hd)
		first := max(0, pos-window+1)
		for i := range cache {
			if row := i / (2 * hd); row < first || row >= pos {
				cache[i] = float32(math.NaN())
			}
		}
		for buffer, values := range map[string][]float32{"q": q, "k": k, "v": v, "kv": cache} {
			require.NoError(t, vm.Write(buffer, values))
		}
		require.NoError(t, vm.Step(pos, -1, Order{}), name)
		for _, out := range []string{"whole", "out"} {
			got, err := vm.Read(out)
			require.NoError(t, err)
			for h := range heads {
				want := seen(q[h*hd:][:hd], append(cacheRows(cache, first, pos, hd), [2][]float32{k, v}))
				for i := range hd {
					require.InDelta(t, want[i], float64(got[h*hd+i]), 1e-5, "%s: element %d of head %d of %s", name, i,
						h, out)
				}
			}
		}
	}
}

// windowed is a program in which one task attends as a whole, and others in splits.
func windowed(hd, heads, splits, block, window, rows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "buffer q IO_INPUT F32 [%d] HBM rowmajor\nbuffer k IO_INPUT F32 [%d] HBM rowmajor\n"+
		"buffer v IO_INPUT F32 [%d] HBM rowmajor\nbuffer kv KV_CACHE F32 [1,%d,2,%d] HBM rowmajor\n"+
		"buffer whole IO_OUTPUT F32 [%d] HBM rowmajor\nbuffer out IO_OUTPUT F32 [%d] HBM rowmajor\n"+
		"buffer part ACTIVATION F32 [%d,%d,%d] HBM rowmajor\nvariant v pos 0..%d\ncounter part counter gpu\n"+
		"counter done counter gpu\n", heads*hd, hd, hd, rows, hd, heads*hd, heads*hd, splits, heads, hd+2, rows-1)
	op := func(out, share, params string) string {
		seen := fmt.Sprintf("max(0,pos-%d):pos%s", window-1, share)
		return fmt.Sprintf("%s = ATTENTION_TILE(q[0:%d], kv[0,%s,0,0:%d], kv[0,%s,1,0:%d], k[0:%d], v[0:%d]) "+
			"head_dim=%d n_heads=%d n_kv_heads=1 scale=1.0 row=pos%s\n", out, heads*hd, seen, hd, seen, hd, hd, hd, hd,
			heads, params)
	}
	b.WriteString("stage whole whole extent=1\n" + op(fmt.Sprintf("whole[0:%d]", heads*hd), "", "") + "signal done\n")
	share, params := "", " flags=2"
	if splits > 1 {
		share = fmt.Sprintf(" block %d part a of %d", block, splits)
		params += fmt.Sprintf(" block=%d part=a parts=%d", block, splits)
	}
	fmt.Fprintf(&b, "stage part tiled extent=%d grain=1\n%ssignal part\n", splits,
		op(fmt.Sprintf("part[a,0:%d,0:%d]", heads, hd+2), share, params))
	fmt.Fprintf(&b, "stage out tiled extent=%d grain=1\nwait part >= %d\nout[a*%d:(a+1)*%d] = ATTENTION_COMBINE("+
		"part[0:%d,a,0:%d], part[0:%d,a,%d:%d]) splits=%d\nsignal done\n", heads, splits, hd, hd, splits, hd, splits,
		hd, hd+2, splits)
	return b.String()
}

// cacheRows are the keys and values of some rows.
func cacheRows(cache []float32, first, end, hd int) [][2][]float32 {
	var out [][2][]float32
	for row := first; row < end; row++ {
		at := row * 2 * hd
		out = append(out, [2][]float32{cache[at:][:hd], cache[at+hd:][:hd]})
	}
	return out
}

// seen is attention of one query over keys and values.
func seen(q []float32, rows [][2][]float32) []float64 {
	out, sum := make([]float64, len(q)), 0.0
	for _, row := range rows {
		score := 0.0
		for i := range q {
			score += float64(q[i]) * float64(row[0][i])
		}
		p := math.Exp(score)
		sum += p
		for i := range out {
			out[i] += p * float64(row[1][i])
		}
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
