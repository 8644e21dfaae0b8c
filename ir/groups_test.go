package ir

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// paired is a loop over pairs of layers: families one by one and by two, a group of buffers that no index names, and a
// carried family on two alternating pages.
const paired = `amk 2.0
model m max_seq=4
page p0 GLOBAL_SCRATCH word64 bytes=128
page p1 GLOBAL_SCRATCH word64 bytes=128
buffer in IO_INPUT F32 [16] HBM rowmajor
buffer L{i}.w for 0..5 WEIGHT F32 [16] HBM rowmajor
buffer L{i}.wide for 1..5 by 2 WEIGHT F32 [32] HBM rowmajor
buffer L{i}.x for 0..6 by 2 ACTIVATION F32 [16] GLOBAL_SCRATCH word64 page p0 p1
buffer deep CONST F32 [16] HBM rowmajor
group g{i} for 0..4 by 2 of deep L03.w deep
group "other {i}" for 3..4 of L05.wide L01.wide
variant v pos 0..3
counter L{i}.x for 0..6 by 2 counter gpu
counter step counter gpu
stage first spread extent=16 grain=8 sms=2 rot=0 step=0
  L00.x[a:b] = ADD(in[a:b], g02[a:b])
  signal L00.x
loop layers for 0..4 by 2
stage L{i}.s spread extent=16 grain=8 sms=2 rot=0 step=1
  wait L{i}.x >= 2
  %y = ADD(L{i}.x[a:b], g{i}[a:b])
  %z = ADD(%y, L{i}.w[a:b])
  L{i+2}.x[a:b] = ADD(%z, L{i+1}.w[a:b])
  signal L{i+2}.x
stage L{i+1}.t explicit
  task sm=0 a=0 b=1
  %x = COPY(L{i+1}.wide[a:b])
  signal step
end
`

func readPaired(t testing.TB) *Program {
	t.Helper()
	p, diags := ParseText([]byte(paired), "paired.amk")
	require.NoError(t, diags.Err())
	return p
}

func TestStepsAndGroupsRoundTrip(t *testing.T) {
	p := readPaired(t)
	require.Empty(t, Check(p))
	require.Equal(t, Buffer{Name: "L{i}.wide", First: 1, Count: 3, Step: 2, Kind: Weight, DType: F32, Shape: []int{32}},
		p.Buffers[2])
	require.Equal(t, []Group{{Name: "g{i}", Step: 2, Members: []string{"deep", "L03.w", "deep"}},
		{Name: "other {i}", First: 3, Members: []string{"L05.wide", "L01.wide"}}}, p.Groups)
	loop := p.Variants[0].Body[1].(*Loop)
	require.Equal(t, []int{0, 3, 2, 4}, []int{loop.First, loop.Count, loop.Step, loop.Last()})
	printed := Print(p)
	head, rest, _ := strings.Cut(paired, "page p0")
	require.Equal(t, "page p0"+rest, string(printed[strings.Index(string(printed), "page p0"):]), "after %s", head)
	data, err := p.MarshalJSON()
	require.NoError(t, err)
	for _, want := range []string{
		`{"name": "L{i}.wide", "first": 1, "count": 3, "step": 2, "kind"`,
		`{"name": "L{i}.w", "first": 0, "count": 6, "kind"`,
		`{"name": "L{i}.x", "first": 0, "count": 4, "step": 2, "realisation"`,
		`{"loop": "layers", "first": 0, "count": 3, "step": 2, "body"`,
		"\n \"groups\": [\n  {\"name\": \"g{i}\", \"first\": 0, \"step\": 2, \"members\": " +
			"[\"deep\",\"L03.w\",\"deep\"]},\n  {\"name\": \"other {i}\", \"first\": 3, \"members\"",
	} {
		require.Contains(t, string(data), want)
	}
	back, diags := ParseJSON(data, "paired.json")
	require.NoError(t, diags.Err())
	require.Equal(t, norm(t, p), back)
	require.Equal(t, string(printed), string(Print(back)))
}

// A step of 1 is the same as none, in both forms and in programs that Go code builds.
func TestStepOfOne(t *testing.T) {
	text := "amk 2.0\nbuffer b{i} for 0..3%s CONST F32 [1] HBM rowmajor\ngroup g{i} for 0..1%[1]s of b00 " +
		"b01\nvariant v pos 0..0\ncounter c{i} for 0..3%[1]s counter gpu\nloop l for 0..3%[1]s\nend\n"
	p, diags := ParseText(fmt.Appendf(nil, text, " by 1"), "f")
	require.NoError(t, diags.Err())
	want, diags := ParseText(fmt.Appendf(nil, text, ""), "f")
	require.NoError(t, diags.Err())
	require.Equal(t, want, p)
	data, err := want.MarshalJSON()
	require.NoError(t, err)
	json := strings.NewReplacer(`"count": 4`, `"count": 4, "step": 1`, `"first": 0, "members"`,
		`"first": 0, "step": 1, "members"`).Replace(string(data))
	require.Equal(t, 4, strings.Count(json, `"step": 1`))
	p, diags = ParseJSON([]byte(json), "f")
	require.NoError(t, diags.Err())
	require.Equal(t, norm(t, want), p)
	p.Buffers[0].Step, p.Groups[0].Step, p.Variants[0].Counters[0].Step, p.Variants[0].Body[0].(*Loop).Step = 1, 1, 1, 1
	require.Equal(t, string(Print(want)), string(Print(p)))
}

func TestUnrollStepsAndGroups(t *testing.T) {
	p := readPaired(t)
	flat, diags := Unroll(p, &p.Variants[0])
	require.NoError(t, diags.Err())
	var buffers, counters, tasks []string
	for _, b := range flat.Buffers {
		require.Equal(t, [3]int{}, [3]int{b.First, b.Count, b.Step})
		buffers = append(buffers, strings.TrimSuffix(fmt.Sprint(b.Name, b.Pages), "[]"))
	}
	for _, c := range flat.Counters {
		require.Equal(t, [3]int{}, [3]int{c.First, c.Count, c.Step})
		counters = append(counters, c.Name)
	}
	for i := range flat.Tasks {
		task := &flat.Tasks[i]
		line := task.Name
		for _, w := range task.Waits {
			line += " wait " + flat.Counters[w.Counter].Name
		}
		for _, a := range task.Footprint(nil) {
			line += " " + flat.Buffers[a.Buf].Name
		}
		tasks = append(tasks, line+" -> "+flat.Counters[task.Signal].Name)
	}
	require.Equal(t, []string{"in", "L00.w", "L01.w", "L02.w", "L03.w", "L04.w", "L05.w", "L01.wide", "L03.wide",
		"L05.wide",
		"L00.x[p0]", "L02.x[p1]", "L04.x[p0]", "L06.x[p1]", "deep"}, buffers)
	require.Equal(t, []string{"L00.x", "L02.x", "L04.x", "L06.x", "step"}, counters)
	require.Equal(t, []string{ // at rot 0 and step 1, an even index gives each SM the span that it has in iteration 0
		"first.s000 in L03.w L00.x -> L00.x",
		"first.s001 in L03.w L00.x -> L00.x",
		"L00.s.s000 wait L00.x L00.x deep L00.w L01.w L02.x -> L02.x",
		"L00.s.s001 wait L00.x L00.x deep L00.w L01.w L02.x -> L02.x",
		"L01.t.s000 L01.wide -> step",
		"L02.s.s000 wait L02.x L02.x L03.w L02.w L03.w L04.x -> L04.x",
		"L02.s.s001 wait L02.x L02.x L03.w L02.w L03.w L04.x -> L04.x",
		"L03.t.s000 L03.wide -> step",
		"L04.s.s000 wait L04.x L04.x deep L04.w L05.w L06.x -> L06.x",
		"L04.s.s001 wait L04.x L04.x deep L04.w L05.w L06.x -> L06.x",
		"L05.t.s000 L05.wide -> step",
	}, tasks)
}

// Rotation is by the index: a loop by two takes the distributions of every other iteration of one by one.
func TestRotationIsByIndex(t *testing.T) {
	const text = "amk 2.0\nvariant v pos 0..0\ncounter c counter gpu\nloop l for %s\nstage s{i} spread extent=40 " +
		"grain=8 sms=5 rot=1 step=2\n  signal c\nend\n"
	tasksOf := func(indices string) map[string]int {
		p, diags := ParseText(fmt.Appendf(nil, text, indices), "f")
		require.NoError(t, diags.Err())
		flat, diags := Unroll(p, &p.Variants[0])
		require.NoError(t, diags.Err())
		first := map[string]int{} // SM of the first span
		for i := range flat.Tasks {
			stage, _, _ := strings.Cut(flat.Tasks[i].Name, ".")
			if _, seen := first[stage]; !seen {
				first[stage] = flat.Tasks[i].SM
			}
		}
		return first
	}
	all, some := tasksOf("0..7"), tasksOf("1..7 by 3")
	require.Equal(t, map[string]int{"s01": all["s01"], "s04": all["s04"], "s07": all["s07"]}, some)
	require.NotEqual(t, all["s01"], all["s04"])
}

// TestPairedErrors breaks the program in one place at a time, for the reader or for the check.
func TestPairedErrors(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"last": {"layers for 0..4 by 2", "layers for 0..5 by 2",
			`f:18:17: error: indices run from 0 to 5 by 2, want the last one that occurs, which is 4 [AMK3001]`},
		"descending": {"for 1..5 by 2", "for 5..1 by 2",
			"f:7:22: error: indices run from 5 to 1, want ascending ones from 0 on [AMK3001]"},
		"negative": {"for 1..5 by 2", "for -1..5 by 2",
			"f:7:22: error: indices run from -1 to 5, want ascending"},
		"step zero": {"for 1..5 by 2", "for 1..5 by 0",
			"f:7:30: error: indices by 0, want a step of 1 or more [AMK3001]"},
		"step gone": {"for 1..5 by 2", "for 1..5 by",
			`f:7:30: error: want the step between indices, an integer of at most 2^53 in magnitude, found "WEIGHT"`},
		"plain group": {"group g{i} for 0..4 by 2 of", "group g{i} of",
			`f:10:12: error: want for FIRST..LAST, found "of" [AMK3001]`},
		"no of": {"by 2 of deep", "by 2 deep",
			`f:10:26: error: want of and the members, found "deep" [AMK3001]`},
		"too few": {"deep L03.w deep", "deep L03.w",
			"f:10:29: error: 2 members for 3 indices, want one for each [AMK3001]"},
		"none": {" deep L03.w deep", "",
			"f:10:28: error: want a buffer's name, found the end of the line [AMK3001]"},
		"empty": {"for 3..4 of L05.wide L01.wide", "for 3..2 of L05.wide",
			"f:11:23: error: indices run from 3 to 2, want ascending"},
		"member gone": {"of deep", "of shallow", "group g{i}: error: buffer shallow is not defined [AMK3010]"},
		"past the family": {"of deep L03.w", "of deep L06.w",
			"group g{i}: error: buffer L06.w is not defined [AMK3010]"},
		"whole family": {"of deep L03.w", "of deep L{i}.w",
			"group g{i}: error: buffer L{i}.w is not defined [AMK3010]"},
		"member of group": {"of L05.wide L01.wide", "of g00 g02",
			"group other {i}: error: buffer g00 is not defined [AMK3010]"},
		"no braces": {"group g{i}", "group g", "group g: error: has no {i} in its name [AMK3010]"},
		"buffer's name": {`group "other {i}"`, "group L{i}.w",
			"group L{i}.w: error: L03.w is defined twice [AMK3010]"},
		"group's name": {`group "other {i}" for 3..4`, "group g{i} for 4..5",
			"group g{i}: error: g04 is defined twice [AMK3010]"},
		"temporary": {`group "other {i}"`, "group %g{i}",
			"group %g{i}: error: names that start with % are those of temporaries [AMK3010]"},
		"dtype": {"buffer deep CONST F32", "buffer deep CONST I32",
			"group g{i}: error: member deep is I32 with 1 dimensions, member L03.w F32 with 1: want the same of " +
				"all [AMK3012]"},
		"rank": {"deep CONST F32 [16]", "deep CONST F32 [4,4]",
			"member deep is F32 with 2 dimensions, member L03.w F32 with 1"},
		"past the group": {"layers for 0..4 by 2", "layers for 0..6 by 2",
			"stage L06.s: error: buffer g06 is not defined [AMK3010]"},
		"between": {"%z = ADD(%y, L{i}.w", "%z = ADD(%y, L{i}.wide",
			"stage L00.s: error: buffer L00.wide is not defined [AMK3010]"},
		"far": {"layers for 0..4 by 2", "layers for 0..524290 by 2",
			"loop layers: error: runs to index 524290, want at most 524288 [AMK3013]"},
		"no name": {"group \"other {i}\"", "group", `f:11:11: error: want for FIRST..LAST, found "3..4" [AMK3001]`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, paired, c.from)
			p, diags := ParseText([]byte(strings.Replace(paired, c.from, c.to, 1)), "f")
			if p != nil {
				diags = Check(p)
			}
			require.ErrorContains(t, diags.Err(), c.want)
		})
	}
}

func TestPairedJSONErrors(t *testing.T) {
	good, err := readPaired(t).MarshalJSON()
	require.NoError(t, err)
	for name, c := range map[string]struct{ from, to, want string }{
		"step zero": {`"count": 3, "step": 2, "kind"`, `"count": 3, "step": 0, "kind"`,
			"f:12:3: error: indices by 0, want a step of 1 or more [AMK3002]"},
		"step negative": {`"step": 2, "body"`, `"step": -2, "body"`, "indices by -2, want a step of 1 or more"},
		"step of one": {`"name": "deep",`, `"name": "deep", "step": 2,`,
			"first 0 and count 0, want indices from 0 on"},
		"counter's step": {`"name": "step",`, `"name": "step", "step": 2,`,
			"first 0 and count 0, want indices from 0 on"},
		"far": {`"count": 3, "step": 2, "kind"`, `"count": 9007199254740992, "step": 9007199254740992, "kind"`,
			"want a last index of at most 2^53"},
		"far loop": {`"count": 3, "step": 2, "body"`, `"count": 4503599627370498, "step": 2, "body"`,
			"want a last index of at most 2^53"},
		"no members": {`"members": ["L05.wide","L01.wide"]`, `"members": []`,
			"f:18:3: error: first 3 and count 0, want indices from 0 on"},
		"members gone": {`, "members": ["L05.wide","L01.wide"]`, ``, `group: field "members" is missing`},
		"count":        {`"first": 3, "members"`, `"first": 3, "count": 2, "members"`, `group: unknown field "count"`},
		"first":        {`"first": 3, "members"`, `"first": -3, "members"`, "first -3 and count 2"},
		"member":       {`["L05.wide",`, `[5,`, "members: want a string"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(good), c.from)
			p, diags := ParseJSON([]byte(strings.Replace(string(good), c.from, c.to, 1)), "f")
			require.Nil(t, p)
			require.ErrorContains(t, diags.Err(), c.want)
		})
	}
}

// TestCheckSteps breaks what neither form can express.
func TestCheckSteps(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(p *Program)
		want  string
	}{
		"buffer": {func(p *Program) { p.Buffers[1].Step = -1 },
			"buffer L{i}.w: error: has the step -1, want 1 or more [AMK3012]"},
		"counter": {func(p *Program) { p.Variants[0].Counters[0].Step = -2 },
			"counter L{i}.x: error: has the step -2"},
		"loop": {func(p *Program) { p.Variants[0].Body[1].(*Loop).Step = -2 },
			"loop layers: error: has the step -2"},
		"group": {func(p *Program) { p.Groups[0].Step = -2 }, "group g{i}: error: has the step -2"},
		"plain buffer": {func(p *Program) { p.Buffers[0].Step = 2 },
			"buffer in: error: has a step but no {i} in its name [AMK3010]"},
		"plain counter": {func(p *Program) { p.Variants[0].Counters[1].Step = 2 },
			"counter step: error: has a step but no {i}"},
		"far buffer": {func(p *Program) { p.Buffers[2].Step = 1 << 62 },
			"buffer L{i}.wide: error: runs to index 1152921504606846976, want at most 2^53 [AMK3013]"},
		"far group": {func(p *Program) { p.Groups[0].Step = 1 << 60 },
			"group g{i}: error: runs to index 1152921504606846976, want at most 2^53"},
		"far loop": {func(p *Program) { p.Variants[0].Body[1].(*Loop).Step = 1 << 62 },
			"loop layers: error: runs to index 1152921504606846976, want at most 524288"},
		"no members": {func(p *Program) { p.Groups[1].Members = nil },
			"group other {i}: error: has no members, want 1 or more [AMK3013]"},
		"no name": {func(p *Program) { p.Groups[1].Name = "" }, "group: error: has no name [AMK3010]"},
		"member's name": {func(p *Program) { p.Groups[1].Members[0] = "\xff" },
			`the name "\xff" holds "\xff", want letters`},
	} {
		t.Run(name, func(t *testing.T) {
			p := readPaired(t)
			c.spoil(p)
			require.ErrorContains(t, Check(p).Err(), c.want)
			for i := range p.Variants { // also what Check has refused must not be unrolled into anything wrong
				_, _ = Unroll(p, &p.Variants[i])
			}
		})
	}
}
