package hostile

import (
	"fmt"
	"strings"
)

// textFamilies are attacks in the text form on its reader, on the check, and on single positions.
var textFamilies = []family{
	{"blanks", func(size int) []byte { return []byte("amk 2.0\n" + strings.Repeat(" ", size)) }},
	{"empty lines", func(size int) []byte { return []byte("amk 2.0\n" + strings.Repeat("\n", size)) }},
	{"errors", func(size int) []byte { return []byte("amk 2.0\n" + strings.Repeat("?\n", size/2)) }},
	{"ops outside a stage", func(size int) []byte {
		return []byte("amk 2.0\n" +
			strings.Repeat("stage\nx\n", size/8))
	}},
	{"name", func(size int) []byte { return []byte("amk 2.0\nmodel " + strings.Repeat("m", size)) }},
	{"quoted name", func(size int) []byte { return []byte("amk 2.0\nmodel \"" + strings.Repeat(`\n`, size/2) + `"`) }},
	{"number", func(size int) []byte { return []byte("amk 2.0\nmodel m layers=" + strings.Repeat("7", size)) }},
	{"float", func(size int) []byte { return []byte("amk 2.0\nmodel m eps=0." + strings.Repeat("7", size)) }},
	{"brackets", func(size int) []byte {
		return []byte("amk 2.0\nvariant v pos 0..0\nstage s whole extent=1\n  x[" + strings.Repeat("(", size))
	}},
	{"comments with quotes", func(size int) []byte { return []byte("amk 2.0\n" + strings.Repeat(`"#`, size/2)) }},
	{"pages", func(size int) []byte {
		f := program(1, 0)
		f.fill(size, func(i int) { f.line("page p%d GLOBAL_SCRATCH word32 bytes=8", i) })
		return finishEmpty(f)
	}},
	{"buffers", func(size int) []byte {
		f := program(1, 0)
		f.fill(size, func(i int) { f.line("buffer b%d CONST F32 [1] HBM rowmajor", i) })
		return finishEmpty(f)
	}},
	{"malformed buffers", func(size int) []byte {
		f := program(1, 0)
		f.fill(size, func(i int) { f.line("buffer b%d CONST F32 [0] HBM rowmajor", i) })
		return finishEmpty(f)
	}},
	{"one buffer name", func(size int) []byte {
		f := program(1, 0)
		f.fill(size, func(int) { f.line("buffer b CONST F32 [1] HBM rowmajor") })
		return finishEmpty(f)
	}},
	{"pages of one buffer", func(size int) []byte {
		f := program(1, 0)
		f.line("page p GLOBAL_SCRATCH rowmajor bytes=4")
		f.WriteString("buffer b ACTIVATION F32 [1] GLOBAL_SCRATCH rowmajor page")
		f.fill(size, func(int) { f.WriteString(" p") })
		f.line("")
		return finishEmpty(f)
	}},
	{"families of buffers", func(size int) []byte { // as large as it gets from a few bytes
		f := program(1, 0)
		f.line("buffer %s{i} for 0..999999 CONST F32 [1] HBM rowmajor", strings.Repeat("n", 250))
		return finishEmpty(f)
	}},
	{"endless families", func(size int) []byte {
		f := program(1, 0)
		f.fill(size, func(i int) { f.line("buffer b%d.{i} for 0..1000000000 CONST F32 [1] HBM rowmajor", i) })
		return finishEmpty(f)
	}},
	{"members of one group", func(size int) []byte { // as many names as there may be, as long as they may be
		f := program(1, 0)
		f.line("buffer b CONST F32 [1] HBM rowmajor")
		n := min(size/2, 131000)
		f.line("group %s{i} for 0..%d of%s", strings.Repeat("n", 245), n-1, strings.Repeat(" b", n))
		return finishEmpty(f)
	}},
	{"groups", func(size int) []byte {
		f := program(1, 0)
		f.line("buffer b CONST F32 [1] HBM rowmajor")
		f.fill(size, func(i int) { f.line("group g%d.{i} for 0..2 by 2 of b b", i) })
		return finishEmpty(f)
	}},
	{"groups of nothing", func(size int) []byte {
		f := program(1, 0)
		f.line("buffer b{i} for 0..9 CONST F32 [1] HBM rowmajor")
		f.fill(size, func(i int) {
			f.line("group g%d{i} for 0..9000000000000000 by 9000000000000000 of b0%d c", i,
				i%10)
		})
		return finishEmpty(f)
	}},
	{"counters", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.fill(size, func(i int) { f.line("counter c%d counter gpu", i) })
		return f.finish()
	}},
	{"families of counters", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("counter %s{i} for 0..999999 counter gpu", strings.Repeat("n", 250))
		return f.finish()
	}},
	{"explicit tasks", func(size int) []byte {
		f := program(1, 132)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("stage s explicit")
		f.fill(size, func(i int) { f.line(" task sm=%d a=0 b=1", i%132) })
		f.line("  %%x = COPY(in[0:4])")
		f.line("  signal done")
		return f.finish()
	}},
	{"stages", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.fill(size, func(i int) { f.line("stage s%d whole extent=1\n  signal done", i) })
		return f.finish()
	}},
	{"waits of one stage", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("counter c{i} for 0..199999 counter gpu")
		f.line("loop l for 0..199999\nstage p{i} whole extent=1\n  signal c{i}\nend")
		f.line("stage w whole extent=1")
		i := 0
		f.fill(size, func(k int) { f.line("  wait c%02d >= 1", min(k, 199999)); i++ })
		f.line("  signal done")
		return f.finish()
	}},
	{"operands of one op", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.WriteString("stage s whole extent=1\n  %%y = ATTENTION_COMBINE(in[0:4]")
		f.fill(size, func(int) { f.WriteString(",in[0:4]") })
		f.line(")\n  signal done")
		return f.finish()
	}},
	{"ops of one stage", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.line("stage s whole extent=1")
		f.fill(size, func(i int) { f.line(" %%t%d=COPY(in[0:4])", i) })
		f.line("  signal done")
		return f.finish()
	}},
	{"parameters of one op", func(size int) []byte {
		f := program(1, 0)
		f.variant(1)
		f.WriteString("stage s whole extent=1\n  %y = COPY(%x)")
		f.fill(size, func(i int) { fmt.Fprintf(f, " k%d=1", i) })
		f.line("")
		return []byte(f.String())
	}},
	{"expressions", func(size int) []byte {
		f := program(1<<31-1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1<<31 - 1)
		f.fill(size, func(i int) {
			if i%200 == 0 {
				f.line("stage s%d whole extent=1\n signal done", i)
			}
			f.line(" %%t%d=COPY(in[min(pos%%3%s,2):4])", i, strings.Repeat("+pos%3", 14))
		})
		return f.finish()
	}},
	{"expression", func(size int) []byte {
		f := program(1<<31-1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1<<31 - 1)
		f.line("stage s whole extent=1")
		f.line(" %%t=COPY(in[min(pos%%3%s,2):4])", strings.Repeat("+pos%3", 14))
		f.line("  signal done")
		return f.finish()
	}},
	{"alias at every position", func(size int) []byte {
		f := program(1<<31-1, 0)
		f.line("buffer out IO_OUTPUT F32 [1000] HBM rowmajor")
		f.variant(1<<31 - 1)
		f.line("stage s whole extent=1")
		f.line(" out[pos%%7*2]=COPY(out[pos%%5*2+1])")
		f.line("  signal done")
		return []byte(f.String())
	}},
	// Two views of one op that are apart at every position, and change sides.
	{"aliases that cross", func(size int) []byte {
		f := program(1<<31-1, 0)
		f.line("buffer out ACTIVATION F32 [30000000000] HBM rowmajor")
		f.variant(1<<31 - 1)
		f.line("stage s whole extent=1\n out[pos*5]=COPY(out[pos*2+3000000001])\n signal done")
		return []byte(f.String())
	}},
	// Many views cut memory that many others cover, at every position.
	{"positions of wide views", func(size int) []byte {
		f := program(1000, 1)
		f.line(source)
		f.line(sink)
		f.line("buffer rows IO_INPUT F32 [4000] HBM rowmajor")
		f.line("buffer c KV_CACHE F32 [4000,1,4] HBM rowmajor")
		f.variant(1000)
		f.line("stage t units extent=900 sms=1\n c[pos+a,0,0:4]=KV_APPEND(in[0:4])\n signal done")
		f.line("stage r units extent=1 sms=1\n %%x=COPY(c[pos:pos+900,0,0:4])\n signal done")
		f.line("stage w units extent=900 sms=1\n c[pos:pos+900,0,0:4]=KV_APPEND(rows[0:3600])\n signal done")
		return f.finish()
	}},
	{"positions one by one", func(size int) []byte {
		f := program(1<<31-1, 0)
		f.line(source)
		f.line(sink)
		f.line("buffer c KV_CACHE F32 [2147483647,1,4] HBM rowmajor")
		f.variant(1<<31 - 1)
		f.line("stage s whole extent=1\n c[pos%%2147483647,0,0:4]=KV_APPEND(in[0:4])\n signal done")
		return f.finish()
	}},
	{"variants", func(size int) []byte {
		f := &file{}
		f.line("amk 2.0\nmodel m max_seq=200000\n%s\n%s", source, sink)
		f.fill(size, func(i int) {
			f.line("variant v%d pos %d..%d\ncounter d counter gpu\nstage s whole extent=1\n "+
				"out[0:4]=COPY(in[0:4])\n signal d", i, i, i)
		})
		return []byte(strings.Replace(f.String(), "max_seq=200000",
			fmt.Sprintf("max_seq=%d", strings.Count(f.String(), "variant")), 1))
	}},
	{"variants of many buffers", func(size int) []byte {
		f := &file{}
		f.line("amk 2.0\nmodel m max_seq=%d\n%s\n%s\nbuffer b{i} for 0..999000 CONST F32 [1] HBM rowmajor", size/300,
			source, sink)
		for i := range size / 300 {
			f.line("variant v%d pos %d..%d\ncounter d counter gpu\nstage s whole extent=1\n "+
				"out[0:4]=COPY(in[0:4])\n signal d", i, i, i)
		}
		return []byte(f.String())
	}},
}

// finishEmpty ends a program without tasks that matter.
func finishEmpty(f *file) []byte {
	f.line(source)
	f.line(sink)
	f.variant(1)
	return f.finish()
}
