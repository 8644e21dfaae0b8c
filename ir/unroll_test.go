package ir

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/ir/diag"
)

// parse reads a program whose text is the body of one variant v.
func parse(t testing.TB, maxSeq int, entities, body string) *Program {
	t.Helper()
	text := fmt.Sprintf("amk 2.0\nmodel m max_seq=%d\n%s\nvariant v pos 0..%d\n%s", maxSeq, entities, maxSeq-1, body)
	p, diags := ParseText([]byte(text), "test")
	require.NoError(t, diags.Err())
	return p
}

const looped = `buffer L{i}.x for 0..2 ACTIVATION BF16 [16] GLOBAL_SCRATCH word32 page p{i} q
buffer in IO_INPUT I32 [1] HBM rowmajor`

const loopedBody = `counter L{i}.x for 0..2 flagged gpu
counter end counter gpu
stage first explicit
  task sm=2 a=0 b=8
  task sm=2 a=8 b=12
  task sm=0 a=12 b=16
  L00.x[a:b] = COPY(L01.x[a:b])
  signal L00.x
loop layers for 0..1
stage L{i}.s spread extent=16 grain=8 sms=3 rot=0 step=1
  wait L{i}.x >= 3
  L{i+1}.x[a:b] = COPY(L{i}.x[min(a,pos):b])
  signal L{i+1}.x
stage L{i}.u units extent=2 sms=3 rot=0 step=1
  %t = COPY(L{i}.x[sm])
  signal end
end
stage last whole extent=16
  signal end
stage tiles tiled extent=10 grain=8
  signal end
`

func TestUnroll(t *testing.T) {
	p := parse(t, 4, looped, loopedBody)
	p.Buffers[0].Pages = []string{"p0", "p1"}
	flat, diags := Unroll(p, &p.Variants[0])
	require.NoError(t, diags.Err())
	var buffers, counters, tasks []string
	for _, b := range flat.Buffers {
		require.Zero(t, b.Count)
		buffers = append(buffers, fmt.Sprint(b.Name, b.Pages))
	}
	for _, c := range flat.Counters {
		counters = append(counters, c.Name)
	}
	for i := range flat.Tasks {
		task := &flat.Tasks[i]
		line := fmt.Sprintf("%s@%d", task.Name, task.SM)
		for _, w := range task.Waits {
			line += fmt.Sprintf(" wait %s>=%d", flat.Counters[w.Counter].Name, w.Threshold)
		}
		for _, a := range task.Footprint(nil) {
			line += fmt.Sprintf(" %s%v", flat.Buffers[a.Buf].Name, a.Dims)
			if a.Write {
				line += "!"
			}
		}
		tasks = append(tasks, line+" -> "+flat.Counters[task.Signal].Name)
	}
	require.Equal(t, []string{"L00.x[p0]", "L01.x[p1]", "L02.x[p0]", "in[]"}, buffers)
	require.Equal(t, []string{"L00.x", "L01.x", "L02.x", "end"}, counters)
	require.Equal(t, []string{
		"first.s002@2 L01.x[0:8] L00.x[0:8]! -> L00.x",
		"first.s002.2@2 L01.x[8:12] L00.x[8:12]! -> L00.x",
		"first.s000@0 L01.x[12:16] L00.x[12:16]! -> L00.x",
		"L00.s.s001@1 wait L00.x>=3 L00.x[min(0,pos):8] L01.x[0:8]! -> L01.x",
		"L00.s.s002@2 wait L00.x>=3 L00.x[min(8,pos):16] L01.x[8:16]! -> L01.x",
		"L00.u.u000@0 L00.x[0] -> end",
		"L00.u.u001@1 L00.x[1] -> end",
		"L01.s.s000@0 wait L01.x>=3 L01.x[min(0,pos):8] L02.x[0:8]! -> L02.x",
		"L01.s.s001@1 wait L01.x>=3 L01.x[min(8,pos):16] L02.x[8:16]! -> L02.x",
		"L01.u.u000@2 L01.x[2] -> end",
		"L01.u.u001@0 L01.x[0] -> end",
		"last@-1 -> end",
		"tiles.t0@-1 -> end",
		"tiles.t8@-1 -> end",
	}, tasks)
	require.Equal(t, 3, flat.SMs)
}

// TestUnrollBindsEachTask holds the ops that tasks share over iterations against those bound one by one.
func TestUnrollBindsEachTask(t *testing.T) {
	p, _ := tiny(t)
	for v := range p.Variants {
		flat, diags := Unroll(p, &p.Variants[v])
		require.NoError(t, diags.Err())
		n := 0
		each := func(s *Stage, i int) {
			for _, sp := range s.Dist.Tasks(i) {
				for k := range s.Ops {
					require.Equal(t, s.Ops[k].Bind(sp), flat.Tasks[n].Ops[k].Op, flat.Tasks[n].Name)
				}
				n++
			}
		}
		for _, node := range p.Variants[v].Body {
			switch node := node.(type) {
			case *Stage:
				each(node, 0)
			case *Loop:
				for i := range node.Count {
					for _, s := range node.Body {
						each(s, node.First+i)
					}
				}
			}
		}
		require.Len(t, flat.Tasks, n)
	}
}

func TestUnrollErrors(t *testing.T) {
	for name, c := range map[string]struct{ entities, body, want string }{
		"buffer": {"", "counter c counter gpu\nstage s whole extent=1\n  x[0] = COPY(x[0])\n  signal c",
			"stage s: error: buffer x is not defined [AMK3010]"},
		"past the loop": {looped, strings.Replace(loopedBody, "L{i+1}.x[", "L{i+2}.x[", 1),
			"stage L01.s: error: buffer L03.x is not defined"},
		"counter": {"", "stage s whole extent=1\n  wait c >= 1\n  signal d",
			"stage s: error: counter c is not defined"},
		"twice": {"buffer L01 CONST F32 [1] HBM rowmajor\nbuffer L{i} for 0..1 CONST F32 [1] HBM rowmajor", "",
			"buffer L01: error: is defined twice"},
		"no count":  {"buffer L{i} CONST F32 [1] HBM rowmajor", "", "family of 0 members"},
		"no braces": {"buffer L for 0..1 CONST F32 [1] HBM rowmajor", "", "has a count but no {i}"},
		"rank": {"buffer x CONST F32 [1] HBM rowmajor", "stage s whole extent=1\n  %x = COPY(x[0,0])",
			"view of x has 2 ranges, the buffer has 1 dimensions [AMK3012]"},
		"members": {"buffer L{i} for 0..9007199254740990 CONST F32 [1] HBM rowmajor", "",
			"variant v: error: with it the program has more than 131072 buffers, pages and counters [AMK3013]"},
		"tasks": {"", "stage s tiled extent=393217 grain=1",
			"stage s: error: with it the program has more than 393216 tasks [AMK3013]"},
		"tiles":  {"", "stage s tiled extent=9007199254740991 grain=1", "extent of at most 268435456"},
		"sm":     {"", "stage s explicit\n  task sm=9007199254740991 a=0 b=1", "task on SM 9007199254740991"},
		"target": {"target t sms=9007199254740991", "", "has 9007199254740991 SMs, want 1 to 1024"},
		"iterations": {"", "loop l for 0..9007199254740990\nstage s{i} explicit\nend",
			"more than 1572864 ops and views"},
		"ops": {"", "stage s tiled extent=200000 grain=1\n" + strings.Repeat("  NOP()\n", 10),
			"more than 1572864 ops and views"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, 4, c.entities, c.body)
			var flat *Flat
			var diags diag.List
			took := watch.Thread(func() { flat, diags = Unroll(p, &p.Variants[0]) })
			require.Nil(t, flat)
			require.Contains(t, diags.Error(), c.want)
			require.LessOrEqual(t, len(diags), maxUnrollErrors)
			require.Less(t, took, 10*time.Second)
		})
	}
	p := parse(t, 4, "", "loop l for 0..9007199254740990\nend")
	_, diags := Unroll(p, &p.Variants[0])
	require.NoError(t, diags.Err())
}

// llama8B has the shape of Llama-3.1-8B on 132 SMs: 32 layers of six stages, and the two ends.
func llama8B(t testing.TB) *Program {
	stage := func(name string, extent int, wait, ops, signal string) string {
		return fmt.Sprintf("stage %s spread extent=%d grain=8 sms=132 rot=0 step=7\n  wait %s >= 132\n%s  signal %s\n",
			name, extent, wait, ops, signal)
	}
	gemv := func(in, w string, rows, k int, then string) string {
		return fmt.Sprintf("  %%y = GEMV_TILE(%s[0:%d], %s[a:b,0:%d])\n%s", in, k, w, k, then)
	}
	entities := "target h200 sms=132\nbuffer residual ACTIVATION F32 [4096] SMEM rowmajor\nbuffer logits IO_OUTPUT " +
		"F32 [128256] HBM rowmajor\n"
	for _, w := range []string{"qkv.w WEIGHT BF16 [6144,4096]", "o.w WEIGHT BF16 [4096,4096]",
		"gu.w WEIGHT BF16 [28672,4096]", "down.w WEIGHT BF16 [4096,14336]"} {
		entities += "buffer L{i}." + strings.Replace(w, " ", " for 0..32 ", 1) + " HBM tile8x32\n"
	}
	for _, x := range []string{"x ACTIVATION BF16 [4096]", "qkv ACTIVATION BF16 [6144]", "attn ACTIVATION BF16 [4096]",
		"h ACTIVATION BF16 [4096]", "act ACTIVATION BF16 [14336]"} {
		entities += "buffer L{i}." + strings.Replace(x, " ", " for 0..32 ", 1) + " GLOBAL_SCRATCH word32x2\n"
	}
	entities += "buffer L{i}.kv for 0..31 KV_CACHE BF16 [8,8192,2,128] HBM kvfrag16\nbuffer L{i}.part for 0..31 " +
		"ACTIVATION F32 [128,4,130] GLOBAL_SCRATCH word64x2"
	body := ""
	for _, c := range []string{"x", "qkv", "part", "attn", "h", "act"} {
		body += "counter L{i}." + c + " for 0..32 flagged gpu\n"
	}
	body += "loop layers for 0..31\n" +
		stage("L{i}.qkv", 6144, "L{i}.x", "  %n = COPY(L{i}.x[0:4096])\n"+
			gemv("L{i}.x", "L{i}.qkv.w", 6144, 4096, "  L{i}.qkv[a:b] = COPY(%y)\n"), "L{i}.qkv") +
		"stage L{i}.part units extent=128 sms=132 rot=0 step=5\n  wait L{i}.qkv >= 132\n" +
		"  L{i}.part[a,0:4,0:130] = ATTENTION_TILE(L{i}.qkv[a/16*512:a/16*512+512], L{i}.kv[a/16,0:pos block 64 " +
		"part a%16 of 16,0,0:128], L{i}.kv[a/16,0:pos block 64 part a%16 of 16,1,0:128]) head_dim=128 n_heads=4 " +
		"n_kv_heads=1 scale=0.088388346 flags=2\n  signal L{i}.part\n" +
		"stage L{i}.attn units extent=128 sms=132 rot=0 step=5\n  wait L{i}.part >= 128\n  L{i}.attn[a*32:a*32+32] " +
		"= ATTENTION_COMBINE(L{i}.part[a/16*16:a/16*16+16,a/4%4,0:32], L{i}.part[a/16*16:a/16*16+16,a/4%4,128:130]) " +
		"splits=16\n  signal L{i}.attn\n" +
		stage("L{i}.o", 4096, "L{i}.attn", gemv("L{i}.attn", "L{i}.o.w", 4096, 4096,
			"  residual[a:b], L{i}.h[a:b] = ADD(residual[a:b], %y)\n"), "L{i}.h") +
		stage("L{i}.gate_up", 28672, "L{i}.h",
			gemv("L{i}.h", "L{i}.gu.w", 28672, 4096, "  L{i}.act[a/2:b/2] = SILU_MUL(%y)\n"), "L{i}.act") +
		stage("L{i}.down", 4096, "L{i}.act",
			gemv("L{i}.act", "L{i}.down.w", 4096, 14336, "  residual[a:b], L{i+1}.x[a:b] = ADD(residual[a:b], %y)\n"),
			"L{i+1}.x") +
		"end\n" + stage("lm_head", 128256, "L32.x", "  logits[a:b] = GEMV_TILE(L32.x[0:4096], L32.qkv.w[sm,0:4096])\n",
		"L32.x")
	return parse(t, 8192, entities, body)
}

func BenchmarkUnroll(b *testing.B) {
	p := llama8B(b)
	b.ReportAllocs()
	for b.Loop() {
		flat, diags := Unroll(p, &p.Variants[0])
		if diags.Err() != nil {
			b.Fatal(diags)
		}
		b.ReportMetric(float64(len(flat.Tasks)), "tasks")
	}
}

func BenchmarkCheck(b *testing.B) {
	p := llama8B(b)
	for b.Loop() {
		if diags := Check(p); diags.Err() != nil {
			b.Fatal(diags)
		}
	}
}

func BenchmarkForms(b *testing.B) {
	p, text := tiny(b)
	data, _ := p.MarshalJSON()
	b.Run("print", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			Print(p)
		}
	})
	b.Run("text", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			_, _ = ParseText(text, "")
		}
	})
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			_, _ = ParseJSON(data, "")
		}
	})
}
