package hostile

import (
	"fmt"
	"strings"

	"amkc/ir"
)

// proofFamilies are attacks on unrolling and on the proof, a few lines each.
var proofFamilies = []family{
	{"loop", func(size int) []byte {
		return looping(132, 1000000000, "spread extent=132 grain=1 sms=132 rot=0 step=0", "  %t=COPY(in[0:4])")
	}},
	{"loop of tasks within the budget", func(size int) []byte {
		return looping(132, ir.MaxTasks/132, "spread extent=132 grain=1 sms=132 rot=0 step=0", "")
	}},
	{"loop of ops within the budget", func(size int) []byte {
		var ops []string
		for i := range 7 {
			ops = append(ops, fmt.Sprintf("  %%t%d=COPY(in[0:4])", i))
		}
		return looping(132, ir.MaxTasks/132, "spread extent=132 grain=1 sms=132 rot=0 step=0", strings.Join(ops, "\n"))
	}},
	{"loop of large tasks within the budget", func(size int) []byte {
		var ops []string
		for i := range 250 {
			ops = append(ops, fmt.Sprintf("  %%t%d=COPY(in[0:4])", i))
		}
		return looping(132, 60, "spread extent=132 grain=1 sms=132 rot=0 step=0", strings.Join(ops, "\n"))
	}},
	{"bound expressions", func(size int) []byte {
		return stageOf(0, "tiled extent=30000 grain=1", "  %t=COPY(in[a%4:b%4"+strings.Repeat("+a%2", 15)+"])")
	}},
	{"positions of rows", func(size int) []byte {
		return several(4, 256, "tiled extent=20000 grain=1",
			"  %t=ROPE(w[0:2,0:2], w[0,0:1]) head_dim=2 order=1 pos=pos[t%4]+t/4+a")
	}},
	{"caches of sequences", func(size int) []byte {
		return several(64, 1, "tiled extent=20000 grain=1", "  kv[a%64,pos[a%64],0,0]=KV_APPEND(w[0,0])\n"+
			"  %t=ATTENTION_TILE(w[0,0:1], kv[a%64,0:pos[a%64],0,0:1], kv[a%64,0:pos[a%64],0,0:1]) head_dim=1 "+
			"n_heads=1 n_kv_heads=1 scale=1.0 row=pos[a%64]")
	}},
	{"memory by the positions of sequences", func(size int) []byte {
		return several(64, 1, "tiled extent=20000 grain=1", "  m[pos[a%64]]=COPY(w[0,0])")
	}},
	{"long names", func(size int) []byte {
		text := string(looping(132, ir.MaxTasks/132, "spread extent=132 grain=1 sms=132 rot=0 step=0", ""))
		return []byte(strings.Replace(text, "stage s{i}", "stage "+strings.Repeat("s", 250)+"{i}", 1))
	}},
	{"loop of empty stages", func(size int) []byte {
		return looping(0, 1000000000, "explicit", "")
	}},
	{"tiles", func(size int) []byte {
		return stageOf(0, "tiled extent=262000 grain=1", " %t=COPY(in[0:4])")
	}},
	{"tiles with ops", func(size int) []byte {
		return stageOf(0, "tiled extent=180000 grain=1", " %t=COPY(in[a%4])\n %u=COPY(in[a%3])")
	}},
	{"tiles that read and write one buffer", func(size int) []byte {
		return stageOf(0, "tiled extent=180000 grain=1", " out[a%4]=COPY(in[a%4])")
	}},
	{"extent", func(size int) []byte {
		return stageOf(0, "tiled extent=9000000000000000 grain=1", " %t=COPY(in[0:4])")
	}},
	{"SMs", func(size int) []byte {
		return stageOf(0, "spread extent=65536 grain=1 sms=65536 rot=0 step=0", " %t=COPY(in[0:4])")
	}},
	{"SMs in a loop", func(size int) []byte {
		return looping(0, 3, "spread extent=65536 grain=1 sms=65536 rot=0 step=0", " %t=COPY(in[0:4])")
	}},
	{"clocks of many SMs", func(size int) []byte { // each task joins all SMs
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("counter c{i} for 0..60 counter gpu")
		f.line("stage p spread extent=4096 grain=1 sms=4096 rot=0 step=0\n signal c00")
		f.line("loop l for 0..50\nstage s{i} spread extent=4096 grain=1 sms=4096 rot=0 step=0\n wait c{i} >= 4096\n " +
			"signal c{i+1}\nend")
		return f.finish()
	}},
	{"clocks of chains", func(size int) []byte { // tasks without an SM, all chains of their own, then joined one by one
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("counter c counter gpu\ncounter e counter gpu")
		f.line("stage p tiled extent=30000 grain=1\n signal c")
		f.line("stage s tiled extent=30000 grain=1\n wait c >= 30000\n signal e")
		f.line("stage q tiled extent=30000 grain=1\n wait e >= 30000\n signal done")
		return f.finish()
	}},
	{"chain without SMs", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("counter c{i} for 0..110000 counter gpu")
		f.line("stage p whole extent=1\n signal c00")
		f.line("loop l for 0..109999\nstage s{i} whole extent=1\n wait c{i} >= 1\n signal c{i+1}\nend")
		return f.finish()
	}},
	{"many waits of many tasks", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("counter c{i} for 0..255 counter gpu")
		f.line("loop l for 0..255\nstage p{i} tiled extent=100 grain=1\n signal c{i}\nend")
		f.line("stage w tiled extent=7000 grain=1")
		for i := range 256 {
			f.line(" wait c%02d >= 100", i)
		}
		f.line("  signal done")
		return f.finish()
	}},
	{"wrong thresholds", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("counter c counter gpu")
		f.line("stage p tiled extent=130000 grain=1\n signal c")
		f.line("stage w tiled extent=130000 grain=1\n wait c >= 7\n signal done")
		return f.finish()
	}},
	{"cycle", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("counter c{i} for 0..110000 counter gpu")
		f.line("stage p whole extent=1\n wait c110000 >= 1\n signal c00")
		f.line("loop l for 0..109999\nstage s{i} whole extent=1\n wait c{i} >= 1\n signal c{i+1}\nend")
		return f.finish()
	}},
	{"flagged joins", func(size int) []byte { return flagged(300, 300) }},
	{"runs", func(size int) []byte {
		f := program(1, 0)
		f.line("buffer in IO_INPUT F32 [390000,4] HBM rowmajor\nbuffer out IO_OUTPUT F32 [4] HBM rowmajor\nbuffer m " +
			"ACTIVATION F32 [390000,4] HBM rowmajor")
		f.variant(1)
		f.line("stage s whole extent=1")
		for i := range 4 {
			f.line(" m[0:390000,%d]=COPY(in[0:390000,%d])", i, i)
		}
		f.line(" signal done")
		return []byte(f.String())
	}},
	{"runs past the budget", func(size int) []byte {
		f := program(1, 0)
		f.line("buffer m ACTIVATION F32 [1000000,1000000,4] HBM rowmajor\nbuffer n ACTIVATION F32 " +
			"[1000000,1000000,4] HBM rowmajor")
		f.variant(1)
		f.line("stage s whole extent=1\n m[0:1000000,0:1000000,0:1]=COPY(n[0:1000000,0:1000000,0:1])\n signal done")
		return []byte(f.String())
	}},
	{"shares", func(size int) []byte { // blocks of one element
		f := program(1, 0)
		f.line("buffer m ACTIVATION F32 [900000] HBM rowmajor\nbuffer n IO_INPUT F32 [900000] HBM rowmajor")
		f.variant(1)
		f.line("stage s tiled extent=100 grain=1\n m[0:900000 block 1 part a of 100]=COPY(n[0:900000 block 1 part a " +
			"of 100])\n signal done")
		return []byte(f.String())
	}},
	{"segments", func(size int) []byte { // many tasks cut memory finely, one op reads it often
		f := program(1, 1)
		f.line("buffer m ACTIVATION F32 [200000] HBM rowmajor\nbuffer n IO_INPUT F32 [200000] HBM rowmajor")
		f.variant(1)
		f.line("counter c counter gpu")
		f.line("stage s units extent=100000 sms=1\n m[a]=COPY(n[a])\n signal c")
		f.line("stage t units extent=10000 sms=1\n wait c >= 100000\n %%x=COPY(m[0:100000])\n signal done")
		return []byte(f.String())
	}},
	{"buffers on one page", func(size int) []byte {
		f := program(1, 1)
		f.line(sink)
		f.line("page p GLOBAL_SCRATCH rowmajor bytes=16\nbuffer b{i} for 0..64999 ACTIVATION F32 [4] GLOBAL_SCRATCH " +
			"rowmajor page p\n" + source)
		f.variant(1)
		f.line("counter c{i} for 0..64999 counter gpu")
		f.line("loop l for 0..64999\nstage s{i} spread extent=1 grain=1 sms=1 rot=0 step=0\n " +
			"b{i}[0:4]=COPY(in[0:4])\n signal done\nend")
		return f.finish()
	}},
	{"readers of one word", func(size int) []byte {
		f := program(1, 0)
		f.line(sink)
		f.line("buffer m ACTIVATION F32 [4] HBM rowmajor\n" + source)
		f.variant(1)
		f.line("counter c counter gpu\ncounter e counter gpu")
		f.line("stage s whole extent=1\n m[0:4]=COPY(in[0:4])\n signal c")
		f.line("stage r tiled extent=8000 grain=1\n wait c >= 1\n %%x=COPY(m[0:4])\n signal e")
		f.line("stage w whole extent=1\n wait e >= 8000\n m[0:4]=COPY(in[0:4])\n signal done")
		return f.finish()
	}},
	{"races", func(size int) []byte {
		return stageOf(0, "tiled extent=260000 grain=1", " out[0:4]=COPY(in[0:4])")
	}},
	{"views that depend on pos", func(size int) []byte {
		f := program(1024, 0)
		f.line(source)
		f.line(sink)
		f.line("buffer c KV_CACHE F32 [1024,1,4] HBM rowmajor")
		f.variant(1024)
		f.line("stage r tiled extent=50000 grain=1\n %%x=COPY(c[0:pos,0,0:4])\n signal done")
		return f.finish()
	}},
	{"aliases in one op", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.line("buffer m ACTIVATION F32 [20000] HBM rowmajor")
		f.variant(1)
		f.WriteString("stage s whole extent=1\n m[0]=ATTENTION_COMBINE(m[1]")
		for i := range 10000 {
			fmt.Fprintf(f, ",m[%d]", i+2)
		}
		f.line(")\n signal done")
		return f.finish()
	}},
	{"pairs", func(size int) []byte { // views that depend on pos, and expressions that are slow to compare
		return pairs(2000, "")
	}},
	{"pairs of large expressions", func(size int) []byte { return pairs(2000, strings.Repeat("+pos*0", 15)) }},
	{"idle flagged waits", func(size int) []byte { // every producer is ordered before every waiter, who reads no word
		f := program(1, 1)
		f.line(source)
		f.line(sink)
		n := size / 100
		f.line("buffer x ACTIVATION F32 [%d] GLOBAL_SCRATCH word64", n)
		f.variant(1)
		f.line("counter c flagged gpu")
		f.line("stage p units extent=%d sms=1\n x[a]=COPY(in[0])\n signal c", n)
		f.line("stage w units extent=%d sms=1\n wait c >= %d\n signal done", n, n)
		return f.finish()
	}},
	{"polls of many counters", func(size int) []byte {
		f := program(1, 2)
		f.line(source)
		f.line(sink)
		f.line("buffer x{i} for 0..255 ACTIVATION F32 [8] GLOBAL_SCRATCH word64")
		f.variant(1)
		f.line("counter c{i} for 0..255 flagged gpu")
		f.line("loop l for 0..255\nstage p{i} units extent=8 sms=1\n x{i}[a]=COPY(in[0])\n signal c{i}\nend")
		f.line("stage w units extent=7000 sms=2 rot=1")
		for i := range 250 {
			f.line(" wait c%02d >= 8", i)
		}
		for i := range 40 {
			f.line(" %%t%d=COPY(x%02d[0:8])", i, i)
		}
		f.line(" signal done")
		return f.finish()
	}},
	{"variants within the budget", func(size int) []byte {
		f := &file{}
		f.line("amk 2.0\nmodel m max_seq=64\ntarget t sms=132 smem_optin=0\n%s\n%s\nbuffer b{i} for 0..1900 CONST "+
			"F32 [1] HBM rowmajor\nbuffer m ACTIVATION F32 [4] HBM rowmajor", source, sink)
		for i := range 64 {
			f.line("variant v%d pos %d..%d\ncounter d counter gpu\nstage s units extent=4000 sms=132\n "+
				"m[a%%4]=COPY(in[a%%4])\n signal d\nstage o whole extent=1\n out[0:4]=COPY(in[0:4])\n signal d", i, i,
				i)
		}
		return []byte(f.String())
	}},
	{"steps of many variants", func(size int) []byte {
		f := &file{}
		f.line("amk 2.0\nmodel m max_seq=64\ntarget t sms=132 smem_optin=0\n%s\n%s\nbuffer m{i} for 0..999 "+
			"ACTIVATION F32 [4] HBM rowmajor", source, sink)
		for i := range 64 {
			f.line("variant v%d pos %d..%d\ncounter d counter gpu\nloop l for 0..999\nstage s{i} explicit\n task "+
				"sm=%d a=0 b=1\n m{i}[0:4]=COPY(in[0:4])\n signal d\nend\nstage o explicit\n task sm=%d a=0 b=1\n "+
				"out[0:4]=COPY(in[0:4])\n signal d", i, i, i, i, i)
		}
		return []byte(f.String())
	}},
	{"step edges", func(size int) []byte { return flagged(200, 60) }},
}

// pairs is a program of n tasks that append to one cache, in no order; more is added to their rows.
func pairs(n int, more string) []byte {
	f := program(100, 0)
	f.line(source)
	f.line(sink)
	f.line("buffer c KV_CACHE F32 [%d,1,4] HBM rowmajor", 100*n)
	f.variant(100)
	f.line("stage s tiled extent=%d grain=1\n c[a*100+pos%s,0,0:4]=KV_APPEND(in[0:4])\n signal done", n, more)
	return f.finish()
}

// stageOf is a program of one large stage.
func stageOf(sms int, dist, ops string) []byte {
	f := program(1, sms)
	f.line(source)
	f.line(sink)
	f.variant(1)
	f.line("stage s %s\n%s\n  signal done", dist, ops)
	return f.finish()
}

// several is a program of one stage for passes of several tokens.
func several(sequences, rows int, dist, ops string) []byte {
	f, tokens := program(1000, 0), sequences*rows
	f.line("pass sequences=%d rows=%d", sequences, rows)
	f.line("buffer in IO_INPUT F32 [%d] HBM rowmajor\nbuffer out IO_OUTPUT F32 [%d] HBM rowmajor", tokens, tokens)
	f.line("buffer w WEIGHT F32 [2,2] HBM rowmajor\nbuffer kv KV_CACHE F32 [%d,1000,1,1] HBM rowmajor\n"+
		"buffer m ACTIVATION F32 [1000] HBM rowmajor", sequences)
	f.variant(1000 - rows + 1)
	f.line("stage s %s\n%s\n  signal done", dist, ops)
	return f.finish()
}

// looping is a program of one stage that repeats.
func looping(sms, count int, dist, ops string) []byte {
	f := program(1, sms)
	f.line(source)
	f.line(sink)
	f.variant(1)
	f.line("loop l for 0..%d\nstage s{i} %s", count-1, dist)
	if dist == "explicit" {
		f.line(" task sm=-1 a=0 b=1")
	}
	if ops != "" {
		f.line("%s", ops)
	}
	f.line("  signal done\nend")
	return f.finish()
}

// flagged is a program of stages whose every SM polls the words of every other: joins of sms times sms, in each of n
// stages.
func flagged(sms, n int) []byte {
	f := program(1, sms)
	f.line(source)
	f.line(sink)
	f.line("buffer x{i} for 0..%d ACTIVATION F32 [%d] GLOBAL_SCRATCH word64", n, sms)
	f.variant(1)
	f.line("counter c{i} for 0..%d flagged gpu", n)
	f.line("stage p spread extent=%d grain=1 sms=%d rot=0 step=0\n x00[a:b]=COPY(in[0:1])\n signal c00", sms, sms)
	f.line("loop l for 0..%d\nstage s{i} spread extent=%d grain=1 sms=%d rot=0 step=0", n-1, sms, sms)
	f.line(" wait c{i} >= %d\n %%m=SAMPLE_ARGMAX(x{i}[0:%d])\n x{i+1}[a:b]=COPY(in[0:1])\n signal c{i+1}\nend", sms,
		sms)
	return f.finish()
}
