package refvm

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// Ops on rows, with ROWS for how many there are. They read x, y and others, and leave rows in out.
var rowOps = map[string]string{
	"copy":       "out[0:ROWS,0:8] = COPY(x[0:ROWS,0:8])",
	"norm":       "%n = RMSNORM(x[0:ROWS,0:8], g[0:8]) eps=1e-05\nout[0:ROWS,0:3] = GEMM_TILE(%n, w[0:3,0:8])",
	"norm alone": "out[0:ROWS,0:8] = RMSNORM(x[0:ROWS,0:8], g[0:8]) eps=1e-05",
	"norm of heads and rotation": "%n = RMSNORM(x[0:ROWS,0:8], g[0:4]) eps=1e-05 head_dim=4\n" +
		"out[0:ROWS,0:8] = ROPE(%n, angles[0:2]) head_dim=4 order=1 pos=pos+t",
	"rotation of a part": "out[0:ROWS,2:6] = ROPE(x[0:ROWS,2:6], angles[0:2]) head_dim=4 order=1 first=2 limit=4 " +
		"pos=pos+t",
	"bias":        "%y = GEMM_TILE(x[0:ROWS,0:8], w[0:3,0:8])\nout[0:ROWS,0:3] = ADD(%y, g[0:3])",
	"sum":         "out[0:ROWS,0:8] = ADD(x[0:ROWS,0:8], y[0:ROWS,0:8])",
	"gate":        "out[0:ROWS,0:4] = SILU_MUL(x[0:ROWS,0:8])",
	"gate and up": "out[0:ROWS,0:8] = SILU_MUL(x[0:ROWS,0:8], y[0:ROWS,0:8])",
	"cap":         "out[0:ROWS,0:8] = SOFTCAP(x[0:ROWS,0:8]) cap=0.5",
	"xielu":       "out[0:ROWS,0:8] = XIELU(x[0:ROWS,0:8], g[0:4])",
	"clip":        "out[0:ROWS,0:8] = CLIP(x[0:ROWS,0:8]) cap=0.5",
	"layer norm":  "out[0:ROWS,0:8] = LAYERNORM(x[0:ROWS,0:8], g[0:8]) eps=1e-05",
	"softmax":     "out[0:ROWS,0:8] = SOFTMAX(x[0:ROWS,0:8])",
	"largest":     "chosen[0:ROWS,0] = SAMPLE_ARGMAX(x[0:ROWS,0:8])",
	"largest of parts": "out[0:ROWS,0], chosen[0:ROWS,0] = SAMPLE_ARGMAX(x[0:ROWS,0:3]) partial=1 first=0\n" +
		"out[0:ROWS,1], chosen[0:ROWS,1] = SAMPLE_ARGMAX(x[0:ROWS,3:8]) partial=1 first=3\n" +
		"chosen[0:ROWS,2] = SAMPLE_ARGMAX(out[0:ROWS,0:2], chosen[0:ROWS,0:2])",
	"drawn": "chosen[0:ROWS,0] = SAMPLE(x[0:ROWS,0:8], settings[0:4]) pos=pos+t",
	"attention": "out[0:ROWS,0:8] = ATTENTION_TILE(x[0:ROWS,0:8], kv[0,0:pos,0,0:4], kv[0,0:pos,1,0:4], " +
		"y[0:ROWS,0:4], y[0:ROWS,4:8]) head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 row=pos+t",
	"attention in a window": "out[0:ROWS,0:8] = ATTENTION_TILE(x[0:ROWS,0:8], kv[0,max(0,pos-2):pos,0,0:4], " +
		"kv[0,max(0,pos-2):pos,1,0:4], y[0:ROWS,0:4], y[0:ROWS,4:8]) head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 " +
		"row=pos+t window=3",
	"attention in parts": part("part0", 0) + "\n" + part("part1", 1) + "\n" + part("part2", 2),
}

// part is attention over one of three parts of the rows, in blocks of two.
func part(out string, n int) string {
	return strings.NewReplacer("OUT", out, "PART", string(rune('0'+n))).Replace(
		"OUT[0:ROWS,0:2,0:6] = ATTENTION_TILE(x[0:ROWS,0:8], kv[0,0:pos block 2 part PART of 3,0,0:4], " +
			"kv[0,0:pos block 2 part PART of 3,1,0:4], y[0:ROWS,0:4], y[0:ROWS,4:8]) head_dim=4 n_heads=2 " +
			"n_kv_heads=1 scale=0.7 flags=2 row=pos+t block=2 part=PART parts=3")
}

const appends = "\nkv[0,pos:pos+ROWS,0,0:4] = KV_APPEND(y[0:ROWS,0:4])\n" +
	"kv[0,pos:pos+ROWS,1,0:4] = KV_APPEND(y[0:ROWS,4:8])"

const rowBuffers = `buffer x IO_INPUT F32 [ROWS,8] HBM rowmajor
buffer y IO_INPUT F32 [ROWS,8] HBM rowmajor
buffer g WEIGHT BF16 [8] HBM rowmajor
buffer w WEIGHT BF16 [3,8] HBM rowmajor
buffer settings IO_INPUT I32 [4] HBM rowmajor
buffer angles CONST F32 [2] HBM rowmajor
buffer kv KV_CACHE BF16 [1,40,2,4] HBM rowmajor
buffer out IO_OUTPUT F32 [ROWS,8] HBM rowmajor
buffer chosen IO_OUTPUT I32 [ROWS,8] HBM rowmajor
buffer part0 IO_OUTPUT F32 [ROWS,2,6] HBM rowmajor
buffer part1 IO_OUTPUT F32 [ROWS,2,6] HBM rowmajor
buffer part2 IO_OUTPUT F32 [ROWS,2,6] HBM rowmajor
`

// Every op computes a row as it does alone, to the bit: at its own position, with the rows before it in the cache.
func TestRowsAreComputedAsAlone(t *testing.T) {
	const rows = 5
	for name, op := range rowOps {
		t.Run(name, func(t *testing.T) {
			vm := func(n string, pass string) *VM {
				text := strings.ReplaceAll(pass+oneTask(rowBuffers, op+appends), "ROWS", n)
				p := parse(t, strings.ReplaceAll(text, "pos 0..99", "pos 0..35"))
				require.NoError(t, ir.Check(p).Err())
				vm, err := New(unroll(t, p), noise(3), Options{Round: Device, Workers: 1})
				require.NoError(t, err)
				return vm
			}
			together, alone := vm("5", "pass rows=5\n"), vm("1", "")
			require.NoError(t, together.Write("settings", halved(3)))
			require.NoError(t, alone.Write("settings", halved(3)))
			r := rand.New(rand.NewPCG(4, 4))
			for pos := 0; pos+rows <= 30; pos += 1 + r.IntN(rows) {
				x, y := make([]float32, rows*8), make([]float32, rows*8)
				for i := range x {
					x[i], y[i] = r.Float32()*2-1, r.Float32()*2-1
				}
				require.NoError(t, together.Write("x", x))
				require.NoError(t, together.Write("y", y))
				require.NoError(t, together.Pass([]int{pos}, make([]int, rows), Order{}))
				for row := range rows {
					require.NoError(t, alone.Write("x", x[row*8:][:8]))
					require.NoError(t, alone.Write("y", y[row*8:][:8]))
					require.NoError(t, alone.Step(pos+row, 0, Order{}))
					for _, buffer := range []string{"out", "chosen", "part0", "part1", "part2"} {
						want, err := alone.Read(buffer)
						require.NoError(t, err)
						got, err := together.Read(buffer)
						require.NoError(t, err)
						require.Equal(t, bitsOf(want), bitsOf(got[row*len(want):][:len(want)]), "row %d at %d of %s",
							row, pos, buffer)
					}
				}
			}
		})
	}
}

// A pass is refused with other tokens or positions than it takes.
func TestPassRefusals(t *testing.T) {
	p := parse(t, "pass sequences=2 rows=3\n"+oneTask("buffer token IO_INPUT I32 [6] HBM rowmajor\n"+
		"buffer next IO_OUTPUT I32 [6] HBM rowmajor", "next[0:6] = COPY(token[0:6])"))
	s, err := NewSession(p, noise(1), Options{})
	require.NoError(t, err)
	_, next, err := s.Pass([]int{0, 7}, []int{1, 2, 3, 4, 5, 6})
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, next)
	for want, pass := range map[string][2][]int{
		"takes 3 rows of 2 sequences, not 6 tokens at 1 positions":       {{0}, {1, 2, 3, 4, 5, 6}},
		"takes 3 rows of 2 sequences, not 5 tokens at 2 positions":       {{0, 0}, {1, 2, 3, 4, 5}},
		"100 is outside the program, which ends at 99":                   {{0, 100}, {1, 2, 3, 4, 5, 6}},
		"is for positions 0 to 99, not for -1":                           {{0, -1}, {1, 2, 3, 4, 5, 6}},
		"token 2 of the pass is -4, want an id from 0 on":                {{0, 0}, {1, 2, -4, 4, 5, 6}},
		"position: error: 8 has token 4294967296, want an id of 32 bits": {{0, 8}, {1, 2, 3, 4, 1 << 32, 6}},
	} {
		_, _, err := s.Pass(pass[0], pass[1])
		require.ErrorContains(t, err, want)
	}
	_, _, err = s.Step(3)
	require.ErrorContains(t, err, "takes 3 rows of 2 sequences, not 1 tokens at 1 positions")
}

// No pass has rows of two variants, and no sequences in two.
func TestPassIsOfOneVariant(t *testing.T) {
	text := "pass sequences=2 rows=3\n" + oneTask("buffer token IO_INPUT I32 [6] HBM rowmajor\n"+
		"buffer next IO_OUTPUT I32 [6] HBM rowmajor", "next[0:6] = COPY(token[0:6])")
	from := strings.Index(text, "variant ")
	second := strings.ReplaceAll(strings.ReplaceAll(text[from:], "variant v", "variant w"), "0..99", "12..99")
	p := parse(t, strings.ReplaceAll(text, "0..99", "0..9")+"\n"+second)
	s, err := NewSession(p, noise(1), Options{})
	require.NoError(t, err)
	tokens := []int{1, 2, 3, 4, 5, 6}
	for _, at := range [][]int{{0, 9}, {12, 99}} {
		_, _, err = s.Pass(at, tokens)
		require.NoError(t, err)
	}
	_, _, err = s.Pass([]int{9, 10}, tokens)
	require.ErrorContains(t, err, "10 begins a pass of 3 rows, and there is a variant for passes from 12 on; want a "+
		"pass that ends there")
	_, _, err = s.Pass([]int{9, 12}, tokens)
	require.ErrorContains(t, err, "variant w: error: is for positions 12 to 99, not for 9")
	_, _, err = s.Pass(nil, nil)
	require.ErrorContains(t, err, "none is given")
}
