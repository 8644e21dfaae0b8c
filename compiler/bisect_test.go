package compiler

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/refvm"
	"amkc/runtime/host"
)

// vmTracer is a kernel made of the reference VM. It names the buffer of every stage itself, and one element may be off.
type vmTracer struct {
	t       *testing.T
	session *refvm.Session
	layers  int

	stage       string
	at, element int
}

func newTracer(t *testing.T, b *PackedBuild, round refvm.Rounding) *vmTracer {
	apart := *b.Program
	apart.Buffers = append([]ir.Buffer{}, apart.Buffers...)
	for i := range apart.Buffers {
		apart.Buffers[i].Pages = nil
	}
	s, err := refvm.NewSession(&apart, b, refvm.Options{Round: round})
	require.NoError(t, err)
	return &vmTracer{t: t, session: s, layers: b.Program.Model.Layers}
}

func (v *vmTracer) Trace(_ context.Context, ids []int) (*host.Trace, error) {
	for _, id := range ids {
		_, _, err := v.session.Step(id)
		require.NoError(v.t, err)
	}
	trace := &host.Trace{Position: v.session.Pos() - 1}
	vm, err := v.session.At(trace.Position)
	require.NoError(v.t, err)
	add := func(stage, buffer string) {
		values, err := vm.Read(buffer)
		require.NoError(v.t, err)
		if stage == v.stage && trace.Position >= v.at {
			values[v.element] += 100
		}
		trace.Vectors = append(trace.Vectors, host.StageVector{Stage: stage, Values: values})
	}
	add("embed", "L00.x")
	for i := range v.layers {
		add(fmt.Sprintf("L%02d.qkv", i), fmt.Sprintf("L%02d.qkv", i))
		if trace.Position >= splitFrom {
			add(fmt.Sprintf("L%02d.part", i), fmt.Sprintf("L%02d.part", i))
		}
		add(fmt.Sprintf("L%02d.attn", i), fmt.Sprintf("L%02d.attn", i))
		add(fmt.Sprintf("L%02d.o", i), fmt.Sprintf("L%02d.h", i))
		add(fmt.Sprintf("L%02d.gate_up", i), fmt.Sprintf("L%02d.act", i))
		add(fmt.Sprintf("L%02d.down", i), fmt.Sprintf("L%02d.x", i+1))
	}
	add("lm_head", "logits")
	if v.stage == "unknown" {
		trace.Vectors[0].Stage = v.stage
	}
	return trace, nil
}

// splitFrom is where the long variant of the builds here begins, past the first positions.
const splitFrom = 40

func bisectBuild(t *testing.T, dtype ir.DType) *PackedBuild {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "build")
	o := zooOptions("llama-gqa")
	o.DType, o.MaxSeq = &dtype, 64
	o.Config.Tiling = map[string]map[string]int{"attention": {"split_from": splitFrom, "max_splits": 4}}
	_, err := Compile(t.Context(), BuildOptions{Options: o, OutDir: dir, NoBuild: true})
	require.NoError(t, err)
	b, err := OpenBuild(dir)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	require.Len(t, b.Program.Variants, 2)
	return b
}

// A kernel that computes the same is right, also one that rounds nowhere: that is no further off than sums in another
// order.
func TestBisect(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, dtype := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		b := bisectBuild(t, dtype)
		for _, round := range []refvm.Rounding{refvm.Device, refvm.None} {
			r, err := Bisect(t.Context(), b, newTracer(t, b, round), nil)
			require.NoError(t, err)
			require.Nil(t, r.First, "%v", r.First)
			require.True(t, r.Passed)
			require.Equal(t, 33, r.Positions)
			layers := b.Program.Model.Layers
			require.Equal(t, 33*(5*layers+2)+layers, r.Stages)
			require.Equal(t, round == refvm.None && dtype != ir.F32, r.Seen.Max > 0)
		}
	}
}

func TestBisectNamesTheStage(t *testing.T) {
	b := bisectBuild(t, ir.BF16)
	for _, c := range []struct {
		stage       string
		at, element int
		want        string
	}{
		{"embed", 0, 5, "position 0: stage embed is the first that is wrong: element 5, row 5, is"},
		{"L01.qkv", 3, 17, "position 3: stage L01.qkv is the first that is wrong: element 17, row 17 (q of head " +
			"1, dim 8), is"},
		{"L02.gate_up", 31, 4, "position 31: stage L02.gate_up is the first that is wrong: element 4, rows 8 " +
			"and 9, is"},
		{"L00.down", 30, 9, "position 30: stage L00.down is"},
		{"L01.part", splitFrom, 20, "position 40: stage L01.part is the first that is wrong: element 20, unit 0, " +
			"head 1 of its group, dim 2, is"},
		{"lm_head", 2, 511, "position 2: stage lm_head is the first that is wrong: element 511, row 511, is"},
	} {
		kernel := newTracer(t, b, refvm.Device)
		kernel.stage, kernel.at, kernel.element = c.stage, c.at, c.element
		r, err := Bisect(t.Context(), b, kernel, nil)
		require.NoError(t, err)
		require.False(t, r.Passed, c.stage)
		require.Contains(t, r.First.String(), c.want)
	}
	kernel := newTracer(t, b, refvm.Device)
	kernel.stage = "unknown"
	_, err := Bisect(t.Context(), b, kernel, nil)
	require.ErrorContains(t, err, "AMK4904")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Bisect(ctx, b, newTracer(t, b, refvm.Device), nil)
	require.ErrorIs(t, err, context.Canceled)
}

// The oracle finds what a stage publishes under the name that a group gives it.
func TestOracleLooksThroughGroups(t *testing.T) {
	b := bisectBuild(t, ir.F32)
	layers := b.Program.Model.Layers
	want, err := newOracle(b, b.Program, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	_, _, err = want.session.Step(5)
	require.NoError(t, err)
	vectors, err := want.vectors(0)
	require.NoError(t, err)

	g := ir.Group{Name: "g{i}"}
	for i := range layers {
		g.Members = append(g.Members, fmt.Sprintf("L%02d.attn", i))
	}
	b.Program.Groups = []ir.Group{g}
	for v := range b.Program.Variants {
		for _, node := range b.Program.Variants[v].Body {
			if loop, ok := node.(*ir.Loop); ok {
				for _, s := range loop.Body {
					for o := range s.Ops {
						for _, views := range [][]ir.Operand{s.Ops[o].In, s.Ops[o].Out} {
							for i := range views {
								if views[i].Buf == "L{i}.attn" {
									views[i].Buf = "g{i}"
								}
							}
						}
					}
				}
			}
		}
	}
	got, err := newOracle(b, b.Program, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	_, _, err = got.session.Step(5)
	require.NoError(t, err)
	again, err := got.vectors(0)
	require.NoError(t, err)
	require.Equal(t, vectors, again)
}

// A stage of a loop is at the index of each iteration, which a step takes further than to the next.
func TestStagesOfALoopByTwo(t *testing.T) {
	v := &ir.Variant{Body: []ir.Node{&ir.Stage{Name: "first"},
		&ir.Loop{First: 1, Count: 3, Step: 2, Body: []*ir.Stage{{Name: "a"}, {Name: "b"}}}}}
	var order []string
	require.NoError(t, eachStage(v, func(s *ir.Stage, layer int) error {
		order = append(order, fmt.Sprint(s.Name, layer))
		return nil
	}))
	require.Equal(t, []string{"first0", "a1", "b1", "a3", "b3", "a5", "b5"}, order)
}
