package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// shape is a model small or large enough for a test, with what the schedule adds.
type shape struct {
	layers, hidden, inter, heads, kvHeads, headDim, vocab, maxSeq int
	sms, splits, splitFrom                                        int
	how                                                           string // realisation of the counters with waiters
	step                                                          string // realisation of counter step
}

var (
	toy = shape{layers: 2, hidden: 32, inter: 40, heads: 4, kvHeads: 2, headDim: 8, vocab: 60, maxSeq: 64, sms: 4,
		splits: 2, splitFrom: 32, how: "flagged", step: "counter"}
	llama8 = shape{layers: 32, hidden: 4096, inter: 14336, heads: 32, kvHeads: 8, headDim: 128, vocab: 128256,
		maxSeq: 131072, sms: 132, splits: 16, splitFrom: 1024, how: "flagged", step: "counter"}
)

func (s shape) with(how string) shape { s.how = how; return s }

func tasks(extent, grain, sms int) int { return min((extent+grain-1)/grain, sms) }

// text prints the program in the shape that amkc gives to Llama models: five stages per layer, one more in the variant
// that splits attention, exchanges on shared pages.
func (s shape) text() string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	qd, kd, group := s.heads*s.headDim, s.kvHeads*s.headDim, s.heads/s.kvHeads
	wide := max(qd+2*kd, s.inter)
	w("amk 2.0")
	w("model toy arch=LlamaForCausalLM dtype=BF16 layers=%d hidden=%d intermediate=%d heads=%d kv_heads=%d "+
		"head_dim=%d vocab=%d max_seq=%d tied=true eps=1e-05",
		s.layers, s.hidden, s.inter, s.heads, s.kvHeads, s.headDim, s.vocab, s.maxSeq)
	w("target toy arch=sm_90a sms=%d smem_optin=232448 l2_bytes=1048576 hbm_bytes=1073741824 hbm_gbs=100 "+
		"bulk_copy=true async_copy=true mma16816=true", s.sms)
	w(`config {"tiling":{},"sm_assignment":"contiguous","pipelining_depth":2,` +
		`"page_allocation":"graph_color","smem_bytes_per_block":0}`)
	w("page narrow GLOBAL_SCRATCH word32x2 bytes=%d", 4*s.hidden)
	w("page wide GLOBAL_SCRATCH word32x2 bytes=%d", 4*wide)
	w("page qkv GLOBAL_SCRATCH word32 bytes=%d", 4*(qd+2*kd))
	w("page heads GLOBAL_SCRATCH word32x2 bytes=%d", 4*qd)
	w("buffer token IO_INPUT I32 [1] HBM rowmajor")
	w("buffer sampling IO_INPUT I32 [4] HBM rowmajor")
	w("buffer logits IO_OUTPUT F32 [%d] HBM rowmajor", s.vocab)
	w("buffer next IO_OUTPUT I32 [1] HBM rowmajor")
	w("buffer next.sm ACTIVATION I32 [%d] SMEM rowmajor", s.sms)
	w("buffer rope.inv_freq CONST F32 [%d] HBM rowmajor from rows(@inv_freq)", s.headDim/2)
	w("buffer lm_head.weight WEIGHT BF16 [%d,%d] HBM tile8x32 from rows(e)", s.vocab, s.hidden)
	for _, m := range []struct {
		name       string
		rows, cols int
	}{{"qkv", qd + 2*kd, s.hidden}, {"o", s.hidden, qd}, {"gate_up", 2 * s.inter, s.hidden},
		{"down", s.hidden, s.inter}} {
		w("buffer L{i}.%s.weight for 0..%d WEIGHT BF16 [%d,%d] HBM tile8x32 from rows(%s{i})", m.name, s.layers-1,
			m.rows, m.cols, m.name)
	}
	w("buffer L{i}.norm1.weight for 0..%d WEIGHT BF16 [%d] HBM rowmajor from rows(n1{i})", s.layers-1, s.hidden)
	w("buffer L{i}.norm2.weight for 0..%d WEIGHT BF16 [%d] HBM rowmajor from rows(n2{i})", s.layers-1, s.hidden)
	w("buffer norm.weight WEIGHT BF16 [%d] HBM rowmajor from rows(n)", s.hidden)
	w("buffer L{i}.kv for 0..%d KV_CACHE BF16 [%d,%d,2,%d] HBM kvfrag16", s.layers-1, s.kvHeads, s.maxSeq, s.headDim)
	w("buffer residual ACTIVATION F32 [%d] SMEM rowmajor", s.hidden)
	w("buffer L{i}.x for 0..%d ACTIVATION BF16 [%d] GLOBAL_SCRATCH word32x2 page narrow", s.layers, s.hidden)
	w("buffer L{i}.h for 0..%d ACTIVATION BF16 [%d] GLOBAL_SCRATCH word32x2 page narrow", s.layers-1, s.hidden)
	w("buffer L{i}.qkv for 0..%d ACTIVATION BF16 [%d] GLOBAL_SCRATCH word32 page qkv", s.layers-1, qd+2*kd)
	w("buffer L{i}.act for 0..%d ACTIVATION BF16 [%d] GLOBAL_SCRATCH word32x2 page wide", s.layers-1, s.inter)
	w("buffer L{i}.attn for 0..%d ACTIVATION BF16 [%d] GLOBAL_SCRATCH word32x2 page heads", s.layers-1, qd)
	w("buffer L{i}.part for 0..%d ACTIVATION F32 [%d,%d,%d] GLOBAL_SCRATCH word64", s.layers-1, s.kvHeads*s.splits,
		group, s.headDim+2)
	w("buffer best.value ACTIVATION F32 [%d] GLOBAL_SCRATCH word64", s.sms)
	w("buffer best.index ACTIVATION I32 [%d] GLOBAL_SCRATCH word64", s.sms)
	s.variant(w, "short", 0, s.splitFrom-1, 1)
	s.variant(w, "long", s.splitFrom, s.maxSeq-1, s.splits)
	return b.String()
}

func (s shape) variant(w func(string, ...any), name string, lo, hi, splits int) {
	qd, kd, hd, group := s.heads*s.headDim, s.kvHeads*s.headDim, s.headDim, s.heads/s.kvHeads
	hGrains := tasks(s.hidden, 8, s.sms)
	combine := max(8, hd/4)
	attn := s.kvHeads
	w("variant %s pos %d..%d", name, lo, hi)
	w("counter L{i}.x for 0..%d %s gpu", s.layers, s.how)
	for _, c := range []string{"qkv", "attn", "h", "act"} {
		w("counter L{i}.%s for 0..%d %s gpu", c, s.layers-1, s.how)
	}
	if splits > 1 {
		w("counter L{i}.part for 0..%d %s gpu", s.layers-1, s.how)
		attn = qd / combine
	}
	w("counter best flagged gpu") // whatever the others are
	w("counter step %s gpu", s.step)
	w("stage embed spread extent=%d grain=8 sms=%d rot=0 step=0", s.hidden, s.sms)
	w("  residual[a:b], L00.x[a:b] = EMBED(token[0], lm_head.weight[0:%d,a:b])", s.vocab)
	w("  signal L00.x")
	w("loop layers for 0..%d", s.layers-1)
	w("stage L{i}.qkv spread extent=%d grain=8 sms=%d rot=0 step=3", qd+2*kd, s.sms)
	w("  wait L{i}.x >= %d", hGrains)
	w("  %%n = RMSNORM(L{i}.x[0:%d], L{i}.norm1.weight[0:%d]) eps=1e-05", s.hidden, s.hidden)
	w("  %%y = GEMV_TILE(%%n, L{i}.qkv.weight[a:b,0:%d])", s.hidden)
	w("  L{i}.qkv[a:b] = ROPE(%%y, rope.inv_freq[0:%d]) head_dim=%d order=1 first=a limit=%d pos=pos", hd/2, hd, qd+kd)
	w("  signal L{i}.qkv")
	qkvTasks := tasks(qd+2*kd, 8, s.sms)
	row := func(base int, head string) string {
		return fmt.Sprintf("L{i}.qkv[%d+%s*%d:%d+(%s+1)*%d]", base, head, hd, base, head, hd)
	}
	if splits == 1 {
		w("stage L{i}.attn units extent=%d sms=%d rot=0 step=1", s.kvHeads, s.sms)
		w("  wait L{i}.qkv >= %d", qkvTasks)
		w("  L{i}.attn[a*%d:(a+1)*%d] = ATTENTION_TILE(L{i}.qkv[a*%d:(a+1)*%d], L{i}.kv[a,0:pos,0,0:%d], "+
			"L{i}.kv[a,0:pos,1,0:%d], %s, %s) head_dim=%d n_heads=%d n_kv_heads=1 scale=0.5 row=pos",
			group*hd, group*hd, group*hd, group*hd, hd, hd, row(qd, "a"), row(qd+kd, "a"), hd, group)
		w("  L{i}.kv[a,pos,0,0:%d] = KV_APPEND(%s)", hd, row(qd, "a"))
		w("  L{i}.kv[a,pos,1,0:%d] = KV_APPEND(%s)", hd, row(qd+kd, "a"))
		w("  signal L{i}.attn")
	} else {
		head := fmt.Sprintf("a/%d", splits)
		share := fmt.Sprintf("block 16 part a%%%d of %d", splits, splits)
		w("stage L{i}.part units extent=%d sms=%d rot=0 step=1", s.kvHeads*splits, s.sms)
		w("  wait L{i}.qkv >= %d", qkvTasks)
		w("  L{i}.part[a,0:%d,0:%d] = ATTENTION_TILE(L{i}.qkv[%s*%d:(%s+1)*%d], L{i}.kv[%s,0:pos %s,0,0:%d], "+
			"L{i}.kv[%s,0:pos %s,1,0:%d], %s, %s) head_dim=%d n_heads=%d n_kv_heads=1 scale=0.5 flags=2 row=pos "+
			"block=16 part=a%%%d parts=%d",
			group, hd+2, head, group*hd, head, group*hd, head, share, hd, head, share, hd, row(qd, head),
			row(qd+kd, head), hd, group, splits, splits)
		w("  L{i}.kv[%s,pos:pos+1 %s,0,0:%d] = KV_APPEND(%s)", head, share, hd, row(qd, head))
		w("  L{i}.kv[%s,pos:pos+1 %s,1,0:%d] = KV_APPEND(%s)", head, share, hd, row(qd+kd, head))
		w("  signal L{i}.part")
		per := hd / combine // pieces per head
		units := fmt.Sprintf("a/%d*%d:(a/%d+1)*%d,a/%d%%%d", per*group, splits, per*group, splits, per, group)
		w("stage L{i}.attn units extent=%d sms=%d rot=0 step=2", attn, s.sms)
		w("  wait L{i}.part >= %d", s.kvHeads*splits)
		w("  L{i}.attn[a*%d:(a+1)*%d] = ATTENTION_COMBINE(L{i}.part[%s,a%%%d*%d:(a%%%d+1)*%d], "+
			"L{i}.part[%s,%d:%d]) splits=%d",
			combine, combine, units, per, combine, per, combine, units, hd, hd+2, splits)
		w("  signal L{i}.attn")
	}
	w("stage L{i}.o spread extent=%d grain=8 sms=%d rot=0 step=0", s.hidden, s.sms)
	w("  wait L{i}.attn >= %d", attn)
	w("  %%y = GEMV_TILE(L{i}.attn[0:%d], L{i}.o.weight[a:b,0:%d])", qd, qd)
	w("  residual[a:b], L{i}.h[a:b] = ADD(residual[a:b], %%y)")
	w("  signal L{i}.h")
	w("stage L{i}.gate_up spread extent=%d grain=8 sms=%d rot=1 step=1", 2*s.inter, s.sms)
	w("  wait L{i}.h >= %d", hGrains)
	w("  %%n = RMSNORM(L{i}.h[0:%d], L{i}.norm2.weight[0:%d]) eps=1e-05", s.hidden, s.hidden)
	w("  %%y = GEMV_TILE(%%n, L{i}.gate_up.weight[a:b,0:%d])", s.hidden)
	w("  L{i}.act[a/2:b/2] = SILU_MUL(%%y)")
	w("  signal L{i}.act")
	w("stage L{i}.down spread extent=%d grain=8 sms=%d rot=0 step=0", s.hidden, s.sms)
	w("  wait L{i}.act >= %d", tasks(2*s.inter, 8, s.sms))
	w("  %%y = GEMV_TILE(L{i}.act[0:%d], L{i}.down.weight[a:b,0:%d])", s.inter, s.inter)
	w("  residual[a:b], L{i+1}.x[a:b] = ADD(residual[a:b], %%y)")
	w("  signal L{i+1}.x")
	w("end")
	w("stage lm_head spread extent=%d grain=8 sms=%d rot=2 step=0 empty", s.vocab, s.sms)
	w("  wait L%02d.x >= %d", s.layers, hGrains)
	w("  %%n = RMSNORM(L%02d.x[0:%d], norm.weight[0:%d]) eps=1e-05", s.layers, s.hidden, s.hidden)
	w("  logits[a:b] = GEMV_TILE(%%n, lm_head.weight[a:b,0:%d])", s.hidden)
	w("  best.value[sm], best.index[sm] = SAMPLE(logits[a:b], sampling[0:4]) partial=1 first=a pos=pos")
	w("  signal best")
	w("stage sample spread extent=%d grain=1 sms=%d rot=0 step=0", s.sms, s.sms)
	w("  wait best >= %d", s.sms)
	w("  next.sm[a:b] = SAMPLE(best.value[0:%d], best.index[0:%d], sampling[0:4]) pos=pos", s.sms, s.sms)
	w("  signal step")
	w("stage emit explicit")
	w("  task sm=0 a=0 b=1")
	w("  next[0] = COPY(next.sm[0])")
	w("  signal step")
}

func parse(t testing.TB, text string) *ir.Program {
	p, err := ir.Parse([]byte(text), "test.amk")
	require.NoError(t, err)
	return p
}

// program builds the shape, with replacements in its text that must each be found.
func program(t testing.TB, s shape, edits ...string) *ir.Program {
	text := s.text()
	for i := 0; i+1 < len(edits); i += 2 {
		require.Contains(t, text, edits[i])
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	return parse(t, text)
}

// flat unrolls variant v of a program into memory of its own, so that a test can change it.
func flat(t testing.TB, p *ir.Program, v int) *ir.Flat {
	f, diags := ir.Unroll(p, &p.Variants[v])
	require.NoError(t, diags.Err())
	return unshared(f)
}

// unshared returns a copy of which no two tasks share anything.
func unshared(f *ir.Flat) *ir.Flat {
	g := *f
	f = &g
	f.Tasks = append([]ir.Task(nil), f.Tasks...)
	for i := range f.Tasks {
		task := &f.Tasks[i]
		task.Waits = append([]ir.FlatWait(nil), task.Waits...)
		task.Ops = append([]ir.FlatOp(nil), task.Ops...)
		for k := range task.Ops {
			op := &task.Ops[k]
			op.In, op.Out = cloneViews(op.In), cloneViews(op.Out)
			op.InBuf, op.OutBuf = append([]int(nil), op.InBuf...), append([]int(nil), op.OutBuf...)
		}
	}
	f.Buffers = append([]ir.Buffer(nil), f.Buffers...)
	f.Counters = append([]ir.Counter(nil), f.Counters...)
	return f
}

func cloneViews(views []ir.Operand) []ir.Operand {
	out := append([]ir.Operand(nil), views...)
	for i := range out {
		out[i].Dims = append([]ir.Range(nil), out[i].Dims...)
	}
	return out
}
