package hostile

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"amkc/ir"
	"amkc/passes/loops"
)

// loopFamilies are attacks on finding out how a loop uses what it names.
var loopFamilies = []family{
	{"loop of many parameters", func(size int) []byte { // each chained to each, as far as the second call knows
		var b strings.Builder
		b.WriteString("amk 2.0\nmodel m max_seq=4\nbuffer x{i} for 0..3000 ACTIVATION F32 [8] GLOBAL_SCRATCH " +
			"rowmajor\nvariant v pos 0..3\ncounter c counter gpu\nloop l for 0..1\n")
		for s := range 14 {
			fmt.Fprintf(&b, "stage s%d{i} whole extent=8\n", s)
			for k := range 200 {
				fmt.Fprintf(&b, "x{i+%d}[a:b]=COPY(x{i+%d}[a:b])\n", s*200+k+1, s*200+k)
			}
			b.WriteString("signal c\n")
		}
		return []byte(b.String() + "end\n")
	}},
	{"loop of many boxes", func(size int) []byte {
		return []byte("amk 2.0\nmodel m max_seq=4\nbuffer x{i} for 0..3 ACTIVATION F32 [400000] GLOBAL_SCRATCH " +
			"rowmajor\nvariant v pos 0..3\ncounter c counter gpu\nloop l for 0..2\n" +
			"stage s{i} tiled extent=60000 grain=1\nx{i+1}[a*3:a*3+2]=COPY(x{i}[a*5:a*5+2])\nsignal c\nend\n")
	}},
}

// Describing the loops of any program that can be loaded is linear too. AMKC_LONG asks for those that have none.
func TestHostileLoops(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	families := slices.Clone(loopFamilies)
	for _, a := range attacks() {
		families = append(families, a.family)
	}
	for _, a := range families {
		t.Run(a.name, func(t *testing.T) {
			data := a.make(min(attackSize(), hostileSize/10))
			if !bytes.Contains(data, []byte("loop")) && os.Getenv("AMKC_LONG") == "" {
				return
			}
			requireLinear(t, len(data), func() {
				if p, err := ir.Load(data, "f"); err == nil {
					_, _ = loops.Describe(p)
				}
			})
		})
	}
}
