package hostile

import (
	"fmt"
	"strings"
)

// simulateFamilies are attacks on running a program: on what one task computes, and on what is done for all tasks or
// buffers before the first order. Most are a few lines, of which validate makes short work.
var simulateFamilies = []family{
	{"products of one task", func(int) []byte { // 2^44 of them
		return oneTask("buffer in IO_INPUT F32 [4096,4096] HBM rowmajor\nbuffer w WEIGHT F32 [4096,4096] HBM rowmajor "+
			"from rows(k)\nbuffer out IO_OUTPUT F32 [4096,4096] HBM rowmajor",
			strings.Repeat(" out[0:4096,0:4096]=GEMM_TILE(in[0:4096,0:4096],w[0:4096,0:4096])\n", 256))
	}},
	{"product of columns", func(int) []byte { // 2^48 elements, which a temporary is to hold
		return oneTask("buffer in IO_INPUT F32 [16777216,1] HBM rowmajor\nbuffer w WEIGHT F32 [16777216,1] HBM "+
			"rowmajor from rows(k)", " %t=GEMM_TILE(in[0:16777216,0:1],w[0:16777216,0:1])\n")
	}},
	{"elements besides the buffers", func(int) []byte { // each op makes 2^24
		return oneTask("buffer in IO_INPUT F32 [16777216] HBM rowmajor\n"+
			"buffer m ACTIVATION F32 [16777216] HBM rowmajor",
			strings.Repeat(" m[0:16777216]=COPY(in[0:16777216])\n", 256))
	}},
	{"temporaries", func(int) []byte {
		return oneTask("buffer in IO_INPUT F32 [16777216] HBM rowmajor",
			repeated(256, func(i int) string { return fmt.Sprintf(" %%t%d=COPY(in[0:16777216])\n", i) }))
	}},
	{"buffers of one task", func(int) []byte { // of 2^24 elements each
		return oneTask("buffer in IO_INPUT F32 [16777216] HBM rowmajor\n"+
			"buffer m{i} for 0..63 ACTIVATION F32 [16777216] HBM rowmajor",
			repeated(64, func(i int) string { return fmt.Sprintf(" m%02d[0:2]=COPY(in[0:2])\n", i) })+
				repeated(64, func(i int) string {
					return fmt.Sprintf(" m%02d[16777214:16777216]=COPY(in[0:2])\n", i)
				}))
	}},
	{"heads that look at many rows", func(int) []byte { // each row is looked at by each
		return oneTask("buffer in IO_INPUT F32 [4096] HBM rowmajor\n"+
			"buffer c KV_CACHE F32 [8000000,1,1] HBM rowmajor",
			" %t=ATTENTION_TILE(in[0:4096],c[0:8000000,0,0:1],c[0:8000000,0,0:1]) head_dim=1 n_heads=4096 "+
				"n_kv_heads=1 scale=1.0\n")
	}},
	{"waits for all of a stage", func(int) []byte { // 50,000 tasks wait for as many, and two others race
		f := program(1, 0)
		f.line("buffer in IO_INPUT F32 [8] HBM rowmajor\nbuffer x ACTIVATION F32 [8] HBM rowmajor\n" +
			"buffer out IO_OUTPUT F32 [8] HBM rowmajor")
		f.line("variant all pos 0..0\ncounter c counter gpu\ncounter step counter gpu")
		f.line("stage w explicit\n  task sm=2 a=0 b=8\n  x[0:8] = COPY(in[0:8])\n  signal step")
		f.line("stage p units extent=50000 sms=1\n  NOP()\n  signal c")
		f.line("stage q units extent=50000 sms=1\n  wait c >= 50000\n  NOP()")
		f.line("stage r explicit\n  task sm=0 a=0 b=8\n  out[0:8] = COPY(x[0:8])\n  signal step")
		return []byte(f.String())
	}},
	{"ids that end a run", func(int) []byte { // each of many tokens is compared with each of them
		return oneTask("buffer in IO_INPUT I32 [1000000] HBM rowmajor\nbuffer last IO_INPUT I32 [1] HBM rowmajor",
			" %t=STOP(in[0:1000000],in[0:1000000],last[0:1])\n")
	}},
	{"buffers that overlap", func(int) []byte { // of one op, on one page
		return oneTask("page p HBM rowmajor bytes=67108864\nbuffer in IO_INPUT F32 [16777216] HBM rowmajor\n"+
			"buffer x ACTIVATION F32 [16777216] HBM rowmajor page p\nbuffer y ACTIVATION F32 [16777216] HBM rowmajor "+
			"page p", " x[0:16777216]=COPY(in[0:16777216])\n y[0:16777216]=COPY(x[0:16777216])\n")
	}},
	{"rows of tables in a large buffer", func(int) []byte { // of 2^30 elements, of which 4 are written
		return oneTask("buffer in IO_INPUT I32 [4] HBM rowmajor\nbuffer x ACTIVATION I32 [1073741824] HBM rowmajor\n"+
			"buffer e WEIGHT F32 [8,4] HBM rowmajor from rows(k)\nbuffer out IO_OUTPUT F32 [4,4] HBM rowmajor",
			" x[0:4]=COPY(in[0:4])\n out[0:4,0:4]=EMBED(x[0:4],e[0:8,0:4])\n")
	}},
	{"many rows of tables", func(int) []byte { // each of 2^24 elements, which many tasks read
		f := program(1, 0)
		f.line("buffer in IO_INPUT I32 [16777216] HBM rowmajor\nbuffer x ACTIVATION I32 [16777216] HBM rowmajor\n" +
			"buffer e WEIGHT F32 [8,4] HBM rowmajor from rows(k)\nbuffer out IO_OUTPUT F32 [4,4] HBM rowmajor")
		f.variant(1)
		f.line("stage w whole extent=1\n  x[0:16777216]=COPY(in[0:16777216])\n" +
			"  out[0:4,0:4]=EMBED(x[0:4],e[0:8,0:4])\n  signal done")
		f.WriteString(repeated(64, func(i int) string {
			return fmt.Sprintf("stage r%d whole extent=1\n  %%a=COPY(x[0:16777216])\n  %%b=COPY(x[0:16777216])\n"+
				"  signal done\n", i)
		}))
		return []byte(f.String())
	}},
	{"heads of a cache", func(int) []byte { // of one row each, which many tasks read
		f := program(1, 0)
		f.line("buffer c KV_CACHE F32 [16777216,1,1,1] HBM rowmajor")
		f.variant(1)
		f.WriteString(repeated(64, func(i int) string {
			return fmt.Sprintf("stage r%d whole extent=1\n  %%a=COPY(c[0:16777216,0,0,0])\n  signal done\n", i)
		}))
		return []byte(f.String())
	}},
	{"heads of a cache that many tasks read", func(int) []byte { // each of which cuts it at a million rows
		f := program(1, 0)
		f.line("buffer c KV_CACHE F32 [1000000,1,1,1] HBM rowmajor")
		f.variant(1)
		f.line("stage r units extent=20000 sms=1\n  %%a=COPY(c[0:1000000,0,0,0])\n  signal done")
		return []byte(f.String())
	}},
	{"long names of temporaries", func(int) []byte { // which tell tasks apart that are remembered
		long := func(i int) string { return fmt.Sprintf("%%%06d%s", i, strings.Repeat("t", 248)) }
		f := program(1, 0)
		f.line("buffer in IO_INPUT F32 [30000] HBM rowmajor")
		f.variant(1)
		f.line("stage r units extent=30000 sms=1\n  %s=COPY(in[a:a+1])", long(0))
		f.WriteString(repeated(30, func(i int) string {
			return fmt.Sprintf("  %s=ALLREDUCE_SHARD(%s%s)\n", long(i+1), strings.Repeat(long(0)+",", 7), long(0))
		}))
		return []byte(f.String())
	}},
	{"words of one op", func(int) []byte { // all on their way when an order is told task by task
		f := program(1, 0)
		f.line("page p GLOBAL_SCRATCH word64 bytes=2000000\nbuffer in IO_INPUT F32 [250000] HBM rowmajor\n" +
			"buffer x ACTIVATION F32 [250000] GLOBAL_SCRATCH word64 page p\nbuffer v ACTIVATION F32 [8] HBM rowmajor")
		f.line("variant all pos 0..0\ncounter f flagged gpu")
		f.line("stage n whole extent=1\n  NOP()\n  signal f") // or the first order lets v wait
		f.line("stage v whole extent=1\n  v[0:8]=COPY(in[0:8])\n  signal f")
		f.line("stage w whole extent=1\n  v[0:8]=COPY(in[0:8])\n  x[0:250000]=COPY(in[0:250000])\n  signal f")
		f.line("stage r whole extent=1\n  wait f >= 1\n  %%a=COPY(x[0:250000 block 1 part 0 of 2])")
		return []byte(f.String())
	}},
	{"buffers of the same words", func(int) []byte { // one task polls each word through each of them
		f := program(1, 0)
		f.line("page p GLOBAL_SCRATCH word64 bytes=16384\nbuffer in IO_INPUT F32 [2048] HBM rowmajor\n" +
			"buffer x ACTIVATION F32 [2048] GLOBAL_SCRATCH word64 page p\n" +
			"buffer b{i} for 0..2047 ACTIVATION F32 [2048] GLOBAL_SCRATCH word64 page p")
		f.line("variant all pos 0..0\ncounter f flagged gpu")
		f.line("stage w units extent=1000 sms=1\n  x[0:2048]=COPY(in[0:2048])\n  signal f")
		f.line("stage c units extent=2048 sms=1\n  x[a]=COPY(in[a])\n  signal f")
		f.line("stage r whole extent=1\n  wait f >= 1")
		f.WriteString(repeated(256, func(i int) string {
			views := make([]string, 8)
			for k := range views {
				views[k] = fmt.Sprintf("b%02d[0:2048]", 8*i+k)
			}
			return fmt.Sprintf("  %%a%d=ALLREDUCE_SHARD(%s)\n", i, strings.Join(views, ","))
		}))
		return []byte(f.String())
	}},
	{"views without elements", func(int) []byte { // of which the first dimension has 2^24
		return oneTask("buffer in IO_INPUT I32 [4] HBM rowmajor\nbuffer x ACTIVATION I32 [16777217,2,2] HBM rowmajor\n"+
			"buffer e WEIGHT F32 [8,4] HBM rowmajor from rows(k)\nbuffer out IO_OUTPUT F32 [4,4] HBM rowmajor",
			" x[0:4,0,0]=COPY(in[0:4])\n out[0:4,0:4]=EMBED(x[0:4,0,0],e[0:8,0:4])\n"+strings.Repeat(
				strings.Repeat(" x[0:16777216,0:0,0:1],", 3)+"x[0:16777216,0:0,0:1]=COPY(in[0:0])\n", 8))
	}},
	{"a page for each buffer", func(int) []byte {
		f := program(1, 0)
		f.WriteString(repeated(60000, func(i int) string { return fmt.Sprintf("page p%d HBM rowmajor bytes=8\n", i) }))
		f.WriteString(repeated(60000, func(i int) string {
			return fmt.Sprintf("buffer m%d ACTIVATION F32 [2] HBM rowmajor page p%d\n", i, i)
		}))
		return finishEmpty(f)
	}},
}

// oneTask is a program of one task.
func oneTask(buffers, ops string) []byte {
	f := program(1, 0)
	f.line("%s", buffers)
	f.variant(1)
	f.line("stage s whole extent=1\n%s signal done", ops)
	return []byte(f.String())
}

// repeated joins n texts.
func repeated(n int, text func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(text(i))
	}
	return b.String()
}
