package soundness

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/internal/population"
	"amkc/ir"
	"amkc/simulate"
	"amkc/validate"
)

// published draws the published population.
func published() []population.Case {
	var out []population.Case
	for _, s := range sources(Whole) {
		if s.group == "published" {
			for n := range s.of {
				out = append(out, s.draw(uint64(n)))
			}
		}
	}
	return out
}

// perSecond tries the programs of a list in turn, one after the other. It counts the processor time of the whole
// process, garbage collection included, which is the same on a busy machine.
func perSecond[T any](b *testing.B, list []T, try func(T)) {
	runtime.GC()
	i, start := 0, processorTime(b)
	for b.Loop() {
		try(list[i*1009%len(list)])
		i++
	}
	b.ReportMetric(float64(i)/(processorTime(b)-start).Seconds(), "schedules/cpu-s")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPublished judges the published population: validate on programs in the form that it judges, of those that
// have one; on all programs in memory, brought into that form first; from the bytes of a file to the verdict, of those
// programs that have a file form, which the random graphs have not; and the oracles.
func BenchmarkPublished(b *testing.B) {
	cases := published()
	require.Len(b, cases, Published)
	var flats []*ir.Flat
	var files [][]byte
	for _, c := range cases {
		if c.Profile == nil {
			flats = append(flats, c.Flat)
			continue
		}
		files = append(files, c.Profile.Marshal())
		if f, _ := c.Profile.Flatten(); f != nil {
			flats = append(flats, f)
		}
	}
	b.Run("flat", func(b *testing.B) {
		perSecond(b, flats, func(f *ir.Flat) { validate.Flat(f) })
		b.ReportMetric(float64(len(flats)), "programs")
	})
	b.Run("memory", func(b *testing.B) {
		perSecond(b, cases, func(c population.Case) { Validate(c) })
	})
	b.Run("file", func(b *testing.B) {
		perSecond(b, files, func(data []byte) {
			p, _ := interchange.Parse(data, "program.json")
			if p == nil {
				return
			}
			if f, _ := p.Flatten(); f != nil {
				validate.Flat(f)
			}
		})
	})
	b.Run("simulate", func(b *testing.B) {
		fp := simulate.NewFootprints()
		perSecond(b, cases, func(c population.Case) { Simulate(c, fp, spent(Whole)) })
	})
}
