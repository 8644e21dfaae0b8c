package ir

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lines repeats a line n times, with its number.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Each limit of one entity: as many as allowed are read, and one more is an error that says how many may be.
func TestTextLimits(t *testing.T) {
	const head = "amk 2.0\nmodel m max_seq=1\n"
	const stage = head + "variant v pos 0..0\nstage s whole extent=1\n"
	for name, c := range map[string]struct {
		limit int
		text  func(n int) string
		want  string
	}{
		"variants": {MaxVariants, func(n int) string { return head + lines(n, "variant v%[1]d pos %[1]d..%[1]d\n") },
			"variants"},
		"pages": {maxPages, func(n int) string {
			return head + "buffer b CONST F32 [1] HBM rowmajor page" +
				lines(n, " p%d")
		}, "pages of a buffer"},
		"pieces": {maxPieces, func(n int) string {
			return head + "buffer b CONST F32 [1] HBM rowmajor from" +
				lines(n, " rows(p%d)")
		}, "pieces of a buffer"},
		"waits": {maxWaits, func(n int) string { return stage + lines(n, "wait c%d >= 1\n") }, "waits in a stage"},
		"ops": {maxOps, func(n int) string { return stage + lines(n, "%%t%d = COPY(b[0])\n") },
			"ops in a stage"},
		"operands": {maxOperands, func(n int) string { return stage + "%y = COPY(%x" + lines(n-1, ",%%x%d") + ")" },
			"operands"},
		"parameters": {maxParams, func(n int) string { return stage + "%y = COPY(%x)" + lines(n, " k%d=1") },
			"parameters"},
		"tasks": {MaxTasks, func(n int) string {
			return head + "variant v pos 0..0\nstage s explicit\n" + strings.Repeat("task a=0\n", n)
		}, "tasks in a stage"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := ParseText([]byte(c.text(c.limit)), "f")
			require.NoError(t, diags.Err())
			_, diags = ParseText([]byte(c.text(c.limit+1)), "f")
			require.ErrorContains(t, diags, fmt.Sprintf("more than %d %s [AMK3001]", c.limit, c.want))
		})
	}
}

// The JSON form has the same limits.
func TestJSONLimits(t *testing.T) {
	inVariant := func(variant string) string {
		return `{"ir_version":"2.0","model":{},"buffers":[],"variants":[` + variant + `]}`
	}
	inStage := func(stage string) string {
		return inVariant(`{"name":"v","lo":0,"hi":0,"counters":[],"body":[{"stage":"s","dist":{"kind":"whole"},` +
			stage + `}]}`)
	}
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	for name, c := range map[string]struct {
		limit int
		text  func(n int) string
		want  string
	}{
		"variants": {MaxVariants, func(n int) string {
			return inVariant(strings.Trim(list(n, `{"name":"v","lo":0,"hi":0,"counters":[],"body":[]}`), "[]"))
		}, "variants: more than %d elements"},
		"waits": {maxWaits, func(n int) string {
			return inStage(`"ops":[],"waits":` +
				list(n, `{"counter":"c","threshold":1}`))
		}, "waits: more than %d elements"},
		"ops": {maxOps, func(n int) string { return inStage(`"ops":` + list(n, `{"op":"NOP","out":[],"in":[]}`)) },
			"ops: more than %d elements"},
		"operands": {maxOperands, func(n int) string {
			return inStage(`"ops":[{"op":"COPY","out":[],"in":` +
				list(n, `"%x"`) + `}]`)
		}, "in: more than %d elements"},
		"fields": {maxFields, func(n int) string {
			return `{"ir_version":"2.0","model":{},"buffers":[],"variants":[],"config":{"sm_assignment":{` +
				strings.TrimSuffix(lines(n+16, `"t%d":0,`), ",") + "}}}"
		}, "sm_assignment: more than %d fields"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := ParseJSON([]byte(c.text(c.limit)), "f")
			require.NoError(t, diags.Err())
			_, diags = ParseJSON([]byte(c.text(c.limit+1)), "f")
			require.ErrorContains(t, diags, fmt.Sprintf(c.want, c.limit))
		})
	}
}

// What is counted before unrolling is what unrolling makes.
func TestSizeIsThatOfTheUnrolledProgram(t *testing.T) {
	p := llama8B(t)
	v := &p.Variants[0]
	var z size
	z.entities(p, v)
	for _, n := range v.Body {
		switch n := n.(type) {
		case *Stage:
			z.stage(n, 1, 1)
		case *Loop:
			for _, s := range n.Body {
				z.stage(s, n.Count, n.NumIterations(s))
			}
		}
	}
	flat, diags := Unroll(p, v)
	require.NoError(t, diags.Err())
	require.Equal(t, len(flat.Tasks), z.tasks)
	require.Equal(t, len(flat.Buffers)+len(flat.Counters)+len(flat.Pages), z.members)
	ops := 0
	for i := range flat.Tasks {
		ops += len(flat.Tasks[i].Ops) + len(flat.Tasks[i].Waits)
	}
	require.Greater(t, z.views, ops)
}
