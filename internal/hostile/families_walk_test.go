package hostile

import (
	"fmt"
	"strings"
)

// walkFamilies are attacks on what the proof does for each pair of views, each segment of memory and each message.
var walkFamilies = []family{
	{"pairs of expressions that are not affine",
		func(size int) []byte { return pairs(1800, "+pos%100-pos"+strings.Repeat("+pos%1", 12)) }},
	{"ops of many operands in a loop", func(size int) []byte {
		return looping(132, 1900, "spread extent=132 grain=1 sms=132 rot=0 step=0",
			"  out[0:2]=ATTENTION_COMBINE(out[0:4]"+strings.Repeat(",out[0:4]", 63)+") head_dim=2 n_heads=1")
	}},
	{"ops of many operands that are apart", func(size int) []byte {
		f := program(1, 0)
		f.line(sink)
		f.line("buffer m ACTIVATION F32 [65,4] HBM rowmajor")
		f.variant(1)
		f.line("loop l for 0..9999\nstage s{i} whole extent=1\n m[64,0:2]=ATTENTION_COMBINE(m[0,0:4]%s) head_dim=2 "+
			"n_heads=1\n signal done\nend",
			items(63, func(i int) string { return fmt.Sprintf(",m[%d,0:4]", i+1) }))
		return []byte(strings.ReplaceAll(f.String(), ",,", ","))
	}},
	{"operands of one op that depend on pos", func(size int) []byte {
		f := program(100, 0)
		f.line(sink)
		f.line("buffer m KV_CACHE F32 [9000,1,4] HBM rowmajor")
		f.variant(100)
		more := strings.Repeat("+pos*0", 15)
		f.line("stage s tiled extent=40 grain=1\n m[pos%s,0,0:2]=ATTENTION_COMBINE(%s) head_dim=2 "+
			"n_heads=1\n signal done", more,
			items(64, func(i int) string { return fmt.Sprintf("m[pos+%d%s,0,0:4]", 100+i, more) }))
		return []byte(f.String())
	}},
	{"ops of one task on one cache", func(size int) []byte { // many views of one task
		f := program(1000, 0)
		f.line(source)
		f.line(sink)
		f.line("buffer c KV_CACHE F32 [4000,300,4] HBM rowmajor")
		f.variant(1000)
		f.line("stage s tiled extent=100 grain=1")
		for i := range 256 {
			f.line(" c[pos,%d,0:4]=KV_APPEND(in[0:4])", i)
		}
		f.line(" signal done")
		return f.finish()
	}},
	{"exchanges of one buffer", func(size int) []byte { return exchanges(90, 4, 40) }},
	{"exchanges of one buffer, one after another", func(size int) []byte { return exchanges(100, 40, 1) }},
	{"exchange words of many", func(size int) []byte { // many waits for an exchange whose words are gone
		f := program(1, 1)
		f.line(source)
		f.line(sink)
		f.line("buffer x ACTIVATION F32 [2000] GLOBAL_SCRATCH word64")
		f.variant(1)
		f.line("counter c flagged gpu\ncounter d flagged gpu")
		f.line("stage p units extent=2000 sms=1\n x[a]=COPY(in[0])\n signal c")
		f.line("stage q units extent=1 sms=1\n wait c >= 2000\n %%m=SAMPLE_ARGMAX(x[0:2000])\n signal done")
		f.line("stage r units extent=1999 sms=1\n x[a]=COPY(in[1])\n signal d")
		f.line("stage w units extent=2000 sms=1\n wait c >= 2000\n wait d >= 1999\n " +
			"%%m=SAMPLE_ARGMAX(x[0:2000])\n signal done")
		return f.finish()
	}},
	{"readers of many words", func(size int) []byte { return readers(2000, 5000, 5) }},
	{"readers of words on many SMs", func(size int) []byte { return readers(5000, 6, 40) }},
	{"runs that many read", func(size int) []byte { // audiences of pairs of words
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.line("buffer m ACTIVATION F32 [8000,4] HBM rowmajor\nbuffer n IO_INPUT F32 [8000,2] HBM rowmajor")
		f.variant(1)
		f.line("counter c{i} for 0..200 counter gpu")
		f.line("stage z spread extent=2000 grain=1 sms=2000 rot=0 step=0\n signal done")
		f.line("loop l for 0..19\nstage w{i} explicit\n task sm=0 a=0 b=1\n m[0:8000,0]=COPY(n[0:8000,0])\n " +
			"m[0:8000,1]=COPY(n[0:8000,1])\n signal c{i}")
		f.line("stage r{i} spread extent=6 grain=1 sms=6 rot=0 step=0\n wait c{i} >= 1\n %%x=COPY(m[0:8000,0:2])\n " +
			"signal c{i+101}\nend")
		return f.finish()
	}},
	{"variants of runs", func(size int) []byte { // each near a budget that one may spend
		f := &file{}
		f.line("amk 2.0\nmodel m max_seq=64\nbuffer in IO_INPUT F32 [360000,4] HBM rowmajor\nbuffer m ACTIVATION " +
			"F32 [360000,4] HBM rowmajor")
		for i := range 64 {
			f.line("variant v%d pos %d..%d\ncounter d counter gpu\nstage s whole extent=1", i, i, i)
			for k := range 4 {
				f.line(" m[0:360000,%d]=COPY(in[0:360000,%d])", k, k)
			}
			f.line(" signal d")
		}
		return []byte(f.String())
	}},
	{"variants of clocks", func(size int) []byte {
		f := &file{}
		f.line("amk 2.0\nmodel m max_seq=32\n%s\n%s", source, sink)
		for i := range 32 {
			f.line("variant v%d pos %d..%d\ncounter d counter gpu\ncounter e counter gpu", i, i, i)
			f.line("stage p tiled extent=4000 grain=1\n signal d\nstage s tiled extent=4000 grain=1\n wait d >= " +
				"4000\n signal e")
		}
		return []byte(f.String())
	}},
	{"cache of many heads", func(size int) []byte { // more of them than pieces are counted
		f := program(16, 0)
		f.line(source)
		f.line(sink)
		f.line("buffer c KV_CACHE F32 [33554432,1,1,1] HBM rowmajor")
		f.variant(16)
		f.line("stage s whole extent=1\n %%x=COPY(c[0,0,0,0])\n signal done")
		return f.finish()
	}},
	{"rows in pieces", func(size int) []byte { // of which each is looked for in each row
		f := program(100000, 1)
		f.line(sink)
		f.line("buffer k KV_CACHE F32 [100000,400,4] HBM rowmajor\nbuffer next IO_OUTPUT I32 [1] HBM " +
			"rowmajor\nbuffer in IO_INPUT F32 [400] HBM rowmajor\nbuffer t IO_INPUT I32 [1] HBM rowmajor")
		f.line("variant v pos 0..99999\ncounter step counter gpu")
		f.line("stage s units extent=1 sms=1\n k[pos%%100000,0:400,0]=KV_APPEND(in[0:400])\n signal step")
		f.line("stage r units extent=1 sms=1\n %%x=COPY(k[0,0:400,0])\n out[0:4]=COPY(in[0:4])\n " +
			"next[0]=COPY(t[0])\n signal step")
		return []byte(f.String())
	}},
	{"rows that variants read", func(size int) []byte { // each adds pieces to what all need
		f := &file{}
		f.line("amk 2.0\nmodel m max_seq=64\ntarget t sms=1 smem_optin=0\n%s\nbuffer next IO_OUTPUT I32 [1] HBM "+
			"rowmajor\nbuffer in IO_INPUT F32 [20000] HBM rowmajor\nbuffer t IO_INPUT I32 [1] HBM rowmajor", sink)
		f.line("buffer k KV_CACHE F32 [64,20000,4] HBM rowmajor")
		for i := range 64 {
			f.line("variant v%d pos %d..%d\ncounter step counter gpu\nstage s units extent=1 sms=1\n "+
				"k[%d,0:20000,0]=KV_APPEND(in[0:20000])\n %%x=COPY(k[0,0:20000,0])\n out[0:4]=COPY(in[0:4])\n "+
				"next[0]=COPY(t[0])\n signal step", i, i, i, i)
		}
		return []byte(f.String())
	}},
	{"on-chip views that depend on pos", func(size int) []byte {
		f := program(2, 1)
		f.line(source)
		f.line(sink)
		f.line("buffer s{i} for 0..49999 ACTIVATION F32 [2] SMEM rowmajor")
		f.variant(2)
		f.line("loop l for 0..49999\nstage t{i} units extent=1 sms=1\n s{i}[pos]=COPY(in[0])\n signal done\nend")
		return f.finish()
	}},
	{"segments at single positions", func(size int) []byte { // one view cuts memory that many others cover
		f := program(2, 1)
		f.line(source)
		f.line(sink)
		f.line("buffer rows IO_INPUT F32 [50000] HBM rowmajor\nbuffer c KV_CACHE F32 [2,50000,4] HBM rowmajor")
		f.variant(2)
		f.line("stage t units extent=1 sms=1\n c[pos%%2,0:50000,0]=KV_APPEND(rows[0:50000])\n " +
			"c[pos%%2,0:50000,1]=KV_APPEND(rows[0:50000])\n signal done")
		f.line("stage w units extent=1000 sms=1\n %%x=COPY(c[0:2,0:50000,0:4])\n signal done")
		return f.finish()
	}},
	{"messages about many tasks", func(size int) []byte { // each asks who is before and after whom
		f := program(1, 0)
		f.line(sink)
		f.line("buffer m ACTIVATION F32 [300000] HBM rowmajor\n" + source)
		f.variant(1)
		f.line("counter c{i} for 0..60 counter gpu")
		f.line("stage r tiled extent=60 grain=1\n %%x=COPY(m[a])\n signal c00")
		f.line("loop l for 0..59\nstage w{i} tiled extent=4000 grain=1\n m[a]=COPY(in[0])\n signal c{i+1}\nend")
		return f.finish()
	}},
	{"messages about one page", func(size int) []byte {
		f := program(1, 0)
		f.line(sink)
		f.line("page p GLOBAL_SCRATCH rowmajor bytes=400000\nbuffer m ACTIVATION F32 [100000] GLOBAL_SCRATCH " +
			"rowmajor page p\nbuffer n ACTIVATION F32 [100000] GLOBAL_SCRATCH rowmajor page p\n" + source)
		f.variant(1)
		f.line("counter c counter gpu\ncounter d counter gpu")
		f.line("stage w tiled extent=100000 grain=1\n m[a]=COPY(in[0])\n signal c")
		f.line("stage q whole extent=1\n wait c >= 100000\n n[0:4]=COPY(in[0:4])\n signal d")
		f.line("stage r tiled extent=50 grain=1\n wait d >= 1\n %%x=COPY(m[a%%4])\n signal done")
		return f.finish()
	}},
}

// kernelFamilies are attacks on what is proved for the kernel alone.
var kernelFamilies = []family{
	{"streamed rows", func(size int) []byte { return streamed(200, "") }},
	{"streamed rows of large expressions",
		func(size int) []byte { return streamed(700, strings.Repeat("+pos*0", 13)) }},
	{"streamed rows of many readers", func(size int) []byte {
		f := program(100, 132)
		f.line(sink)
		f.line(source)
		f.line("buffer q IO_INPUT F32 [16] HBM rowmajor\nbuffer c KV_CACHE F32 [1,4096,2,16] HBM kvrows16\nbuffer o " +
			"ACTIVATION F32 [40000,16] HBM rowmajor")
		f.variant(100)
		f.line("stage r units extent=40000 sms=132\n " +
			"o[a,0:16]=ATTENTION_TILE(q[0:16],c[0,0:pos,0,0:16],c[0,0:pos,1,0:16]) head_dim=16 n_heads=1 " +
			"n_kv_heads=1 scale=0.25 row=pos\n signal done")
		f.line("stage w units extent=12 sms=132\n c[0,a*100+1000+pos,0,0:16]=KV_APPEND(q[0:16])\n signal done")
		return f.finish()
	}},
}

// streamed is a program of n tasks that stream rows of one cache, and of n that append to it elsewhere; more is added
// to the rows.
func streamed(n int, more string) []byte {
	f := program(100, 132)
	f.line(sink)
	f.line("buffer in IO_INPUT F32 [16] HBM rowmajor\nbuffer c KV_CACHE F32 [1,%d,2,16] HBM kvrows16\nbuffer o "+
		"ACTIVATION F32 [%d,16] HBM rowmajor", 100*n+2000, n)
	f.variant(100)
	f.line("stage r units extent=%d sms=132\n "+
		"o[a,0:16]=ATTENTION_TILE(in[0:16],c[0,0:pos%s,0,0:16],c[0,0:pos%s,1,0:16]) head_dim=16 n_heads=1 "+
		"n_kv_heads=1 scale=0.25 row=pos\n signal done", n, more, more)
	f.line("stage w units extent=%d sms=132\n c[0,a*100+1000+pos%s,0,0:16]=KV_APPEND(in[0:16])\n signal done", n, more)
	return f.finish()
}

// exchanges is a program whose n exchanges use one buffer of n words, and whose readers wait for that many of
// them.
func exchanges(words, n, waits int) []byte {
	f := program(1, 1)
	f.line(source)
	f.line(sink)
	f.line("buffer x ACTIVATION F32 [%d] GLOBAL_SCRATCH word64", words)
	f.variant(1)
	f.line("counter c{i} for 0..%d flagged gpu", n*waits)
	for k := range n {
		f.line("stage p%d units extent=%d sms=1\n x[a]=COPY(in[0])\n signal c%02d", k, words, k)
		f.line("stage w%d units extent=%d sms=1", k, words)
		for w := range min(waits, k+1) {
			f.line(" wait c%02d >= %d", k-w, words)
		}
		f.line(" %%m=SAMPLE_ARGMAX(x[0:%d])\n signal done", words)
	}
	return f.finish()
}

// readers is a program that writes words one by one on the first of some SMs, and reads each on six of them, in rounds.
func readers(sms, words, rounds int) []byte {
	f := program(1, sms)
	f.line(source)
	f.line(sink)
	f.line("buffer m ACTIVATION F32 [%d,2] HBM rowmajor\nbuffer n IO_INPUT F32 [%d,2] HBM rowmajor", words, words)
	f.variant(1)
	f.line("counter c{i} for 0..%d counter gpu\ncounter d{i} for 0..%d counter gpu", rounds, rounds)
	f.line("stage z spread extent=%d grain=1 sms=%d rot=0 step=0\n signal done\nstage y spread extent=6 grain=1 "+
		"sms=6 rot=0 step=0\n signal d00", sms, sms)
	f.line("loop l for 0..%d\nstage w{i} explicit\n task sm=0 a=0 b=1\n wait d{i} >= 6\n "+
		"m[0:%d,0]=COPY(n[0:%d,0])\n signal c{i}", rounds-1, words, words)
	f.line("stage r{i} spread extent=6 grain=1 sms=6 rot=0 step=0\n wait c{i} >= 1\n %%x=COPY(m[0:%d,0])\n "+
		"signal d{i+1}\nend", words)
	return f.finish()
}
