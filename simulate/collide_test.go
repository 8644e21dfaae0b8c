package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// requireHazard requires what goes wrong in a program with these declarations and this body; "" is nothing.
func requireHazard(t *testing.T, wrong Kind, declared, body string) {
	t.Helper()
	p, err := ir.Parse([]byte("amk 2.0\nbuffer in IO_INPUT F16 [4] HBM rowmajor\nbuffer out IO_OUTPUT F32 [2] HBM "+
		"rowmajor\nbuffer a ACTIVATION F16 [4] HBM rowmajor\n"+declared+"variant only pos 0..3\n"+
		"counter c counter gpu\ncounter step counter gpu\n"+body), "test.amk")
	require.NoError(t, err)
	v := Program(p, NewFootprints(), Effort{States: 100000, Positions: 2})
	require.Equal(t, wrong == "", v.Hazard == nil, v.Hazard)
	if wrong == "" {
		require.True(t, v.Explored)
	} else {
		require.Equal(t, wrong, v.Hazard.Kind, v.Hazard)
	}
}

// Names may hold blanks, brackets and commas, and say nothing: not which buffer it is, nor what a task touches.
func TestNamesThatLookLikeOthers(t *testing.T) {
	// A buffer that is called what the place of another one was called.
	for _, space := range []string{"SMEM", "REGISTER"} {
		for _, name := range []string{`"s of step 0"`, `"page p"`} {
			declared := "page p HBM rowmajor bytes=8\nbuffer s ACTIVATION F16 [4] " + space + " rowmajor\n" +
				"buffer y ACTIVATION F16 [4] HBM rowmajor page p\n" +
				"buffer " + name + " ACTIVATION F16 [4] HBM rowmajor\n"
			requireHazard(t, "", declared, on("0", "t",
				" s[0:4] = COPY(in[0:4])\n "+name+"[0:4] = COPY(in[0:4])\n y[0:4] = COPY(in[0:4])\n"+
					" %s = COPY(s[0:4])\n %t = COPY("+name+"[0:4])\n"+whole))
		}
	}
	// A temporary that is called as two views look side by side: one task reads a, and the other one writes it as well.
	for _, name := range []string{"%v", `"%v 1[0:4,"`, `"%v 1[0:4]"`} {
		requireHazard(t, Race, "", on("0", "t", " a[0:4] = COPY(in[0:4])\n signal c")+on("0", "r",
			" "+name+" = COPY(in[0:4])\n %w = COPY(a[0:4])\n signal step")+on("1", "u",
			" wait c >= 1\n %v, a[0:4] = COPY(in[0:4])\n %w = COPY(a[0:4])\n signal step")+on("1", "o", whole))
	}
}

// A layout that gives the rows of a cache a scale tells it from another one that is like it but for its layout, and
// that no op can append to.
func TestScaledRowsAreNotPlainOnes(t *testing.T) {
	caches := "buffer s KV_CACHE I8 [1,4,2,4] HBM kvrows16\nbuffer p KV_CACHE I8 [1,4,2,4] HBM rowmajor\n"
	appends := func(name string) string {
		return on("0", name, " "+name+"[0,pos,0,0:4] = KV_APPEND(in[0:4])\n signal step")
	}
	requireHazard(t, "", caches, appends("s")+on("0", "o", whole))
	requireHazard(t, Refused, caches, appends("s")+appends("p")+on("0", "o", whole))
}

// Which row EMBED reads follows from values, so that it may be any one of a table that tasks write.
func TestEmbedMayReadAnyRow(t *testing.T) {
	declared := "buffer token IO_INPUT I32 [1] HBM rowmajor\nbuffer table ACTIVATION F16 [2,2] HBM rowmajor\n"
	for _, c := range []struct {
		wrong      Kind
		late, view string // the row that is written too late, and the rows of the table
	}{{Race, "0", "0:2"}, {Race, "1", "0:2"}, {"", "1", "0:1"}} {
		first := map[string]string{"0": "1", "1": "0"}[c.late]
		requireHazard(t, c.wrong, declared, on("0", "t", " table["+first+",0:2] = COPY(in[0:2])\n signal c")+
			on("1", "u", " table["+c.late+",0:2] = COPY(in[0:2])\n signal step")+on("2", "e",
			" wait c >= 1\n %r = EMBED(token[0], table["+c.view+",0:2])\n"+whole))
	}
}

// A counter of scope sm ends the step for its own SM alone.
func TestStepEndsWhereItIsSeen(t *testing.T) {
	for _, c := range []struct {
		wrong     Kind
		scope, on string
	}{{"", "gpu", "1"}, {Race, "sm", "1"}, {"", "sm", "0"}} {
		p := program(t, on(c.on, "t", " a[0:4] = COPY(in[0:4])\n signal c")+on("0", "r",
			" wait c >= 1\n %t = COPY(a[0:4])\n"+whole))
		for i := range p.Variants[0].Counters {
			if counter := &p.Variants[0].Counters[i]; counter.Name == "step" && c.scope == "sm" {
				counter.Scope = ir.ScopeSM
			}
		}
		v := Program(p, NewFootprints(), Effort{States: 100000, Positions: 4})
		require.Equal(t, c.wrong == "", v.Hazard == nil, v.Hazard)
		if c.wrong != "" {
			require.Equal(t, c.wrong, v.Hazard.Kind)
			require.Len(t, v.Hazard.Runs, 2)
		}
	}
}
