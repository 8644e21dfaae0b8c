package hostile

import (
	"fmt"
	"strings"
)

// carryFamilies are attacks with what loops take from iteration to iteration: steps, groups, and alternating pages.
var carryFamilies = []family{
	{"too many members", func(size int) []byte {
		f := program(1, 0)
		f.line("buffer b CONST F32 [1] HBM rowmajor")
		f.line("group g{i} for 0..%d of%s", size/2-1, strings.Repeat(" b", size/2))
		return finishEmpty(f)
	}},
	{"groups of one loop", func(size int) []byte {
		f := program(1, 1)
		f.line(source)
		f.line(sink)
		f.line("buffer a ACTIVATION F32 [4] SMEM rowmajor\nbuffer c ACTIVATION F32 [4] SMEM rowmajor")
		n := min(size/25, 40000)
		f.line("group x{i} for 0..%d of%s", n-1, strings.Repeat(" a", n))
		f.line("group y{i} for 0..%d of%s", n-1, strings.Repeat(" c", n))
		f.variant(1)
		f.line("stage first units extent=1 sms=1\n a[0:4]=COPY(in[0:4])\n signal done")
		f.line("loop l for 0..%d\nstage s{i} units extent=1 sms=1\n y{i}[0:4]=COPY(x{i}[0:4])\n "+
			"x{i}[0:4]=COPY(y{i}[0:4])\n signal done\nend", n-1)
		return f.finish()
	}},
	{"loops by far steps", func(size int) []byte {
		f := program(1, 0)
		f.line(source)
		f.line(sink)
		f.variant(1)
		f.fill(size, func(i int) {
			f.line("loop l%d for 0..%d by %d\nstage s%d.{i} whole extent=1\n signal done\nend", i, 3*131072, 131072, i)
		})
		return f.finish()
	}},
	{"families by far steps", func(size int) []byte {
		f := program(1, 0)
		f.fill(size, func(i int) {
			f.line("buffer b%d.{i} for 0..%d by %d CONST F32 [1] HBM rowmajor", i, 3<<50, 1<<50)
		})
		return finishEmpty(f)
	}},
	// Every member of a family is on a page that all others of its turn are on.
	{"alternating pages", func(size int) []byte {
		f := program(1, 1)
		f.line(source)
		f.line(sink)
		for p := range 256 {
			f.line("page p%d GLOBAL_SCRATCH rowmajor bytes=16", p)
		}
		f.WriteString("buffer x{i} for 0..30000 ACTIVATION F32 [4] GLOBAL_SCRATCH rowmajor page")
		for p := range 256 {
			fmt.Fprintf(f, " p%d", p)
		}
		f.line("")
		f.variant(1)
		f.line("stage first units extent=1 sms=1\n x00[0:4]=COPY(in[0:4])\n signal done")
		f.line("loop l for 0..29999\nstage s{i} units extent=1 sms=1\n x{i+1}[0:4]=COPY(x{i}[0:4])\n signal done\nend")
		return f.finish()
	}},
}
