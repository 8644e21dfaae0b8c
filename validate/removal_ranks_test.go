package validate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/simulate"
	"amkc/validate"
)

// Rules by which one rank speaks for all. The oracle runs the tasks of all ranks.

var ofRanks = []elsewhere{
	{validate.CodeStructure, "has 0 tasks of other ranks in its place, want one of each of 1",
		"all ranks signal, and what counts as one of them is a task of the rank that is proved",
		func(t *testing.T) subject {
			p := parse(t, pushedTwice)
			f, diags := ir.UnrollWithPeers(p, &p.Variants[0])
			require.NoError(t, diags.Err())
			i := slices.IndexFunc(f.Tasks, func(task ir.Task) bool { return task.Name == "read.s000@1" })
			f.Tasks = slices.Delete(f.Tasks, i, i+1)
			for k := range f.Tasks {
				if f.Tasks[k].Twin > i {
					f.Tasks[k].Twin--
				}
			}
			waitForLess(t, f)
			return subject{flat: f, backend: validate.Reference}
		}, func(t *testing.T, _ subject) {
			f := flat(t, parse(t, pushedTwice), 0)
			waitForLess(t, f)
			v := simulate.Flat(f, f.Target, simulate.NewFootprints(), effortOfRanks)
			require.True(t, v.Unsafe(), "a rank may overwrite what the other has not read")
			require.Equal(t, simulate.Stuck, v.Hazard.Kind, v.Hazard)
		}},
	{validate.CodePeers, "writes odd[1], and on rank 0 odd[0]", "what a rank writes is not what another one has",
		func(t *testing.T) subject {
			return subject{backend: validate.Reference, prog: parse(t, strings.NewReplacer(
				"buffer next.sm", "buffer odd ACTIVATION I32 [2] HBM rowmajor\nbuffer next.sm",
				"stage emit explicit", stage("odd", 0, "odd[rank] = COPY(token[0])", "%x = COPY(odd[0])")+
					"stage emit explicit").Replace(ranksProgram(t)))}
		}, func(t *testing.T, s subject) {
			v := simulate.Program(s.prog, simulate.NewFootprints(), effortOfRanks)
			require.True(t, v.Unsafe(), "rank 1 reads what rank 0 alone has")
			require.Equal(t, simulate.Undefined, v.Hazard.Kind, v.Hazard)
		}},
}

// pushedTwice is a program of two ranks that push words to one page twice, the second time when both have read them.
const pushedTwice = `amk 2.0
target one arch=sm_90a sms=1 smem_optin=64 l2_bytes=1 hbm_bytes=1 hbm_gbs=1 bulk_copy=true async_copy=true mma16816=true
ranks 2
page p PEER_SCRATCH word64 bytes=16
buffer token IO_INPUT I32 [1] HBM rowmajor
buffer in IO_INPUT F32 [1] HBM rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
buffer first ACTIVATION F32 [2] PEER_SCRATCH word64 page p
buffer second ACTIVATION F32 [2] PEER_SCRATCH word64 page p
variant only pos 0..0
counter first flagged system
counter read counter system
counter second flagged system
counter step counter system
stage first explicit
 task sm=0 a=0 b=1
 first[rank] = COPY(in[0])
 signal first
stage read explicit
 task sm=0 a=0 b=1
 wait first >= 2
 %x = ALLREDUCE_SHARD(first[0], first[1])
 signal read
stage second explicit
 task sm=0 a=0 b=1
 wait read >= 2
 second[rank] = COPY(in[0])
 signal second
stage emit explicit
 task sm=0 a=0 b=1
 next[0] = COPY(token[0])
 signal step
`

// waitForLess lets the second push wait for one rank that has read.
func waitForLess(t *testing.T, f *ir.Flat) {
	found := false
	for i := range f.Tasks {
		if strings.HasPrefix(f.Tasks[i].Name, "second") && len(f.Tasks[i].Waits) > 0 {
			f.Tasks[i].Waits = []ir.FlatWait{{Counter: f.Tasks[i].Waits[0].Counter, Threshold: 1}}
			found = true
		}
	}
	require.True(t, found)
}
