package readback_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/readback"
	"amkc/validate"
)

const golden = "../testdata/golden"

// headers are those of a golden build, or of its passes, in the order of readback.Files. The model is the build's.
func headers(t testing.TB, dir string) [5][]byte {
	t.Helper()
	var out [5][]byte
	for i, name := range readback.Files {
		text, err := os.ReadFile(filepath.Join(golden, dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			text, err = os.ReadFile(filepath.Join(golden, filepath.Dir(dir), name))
		}
		require.NoError(t, err)
		out[i] = text
	}
	return out
}

// texts are headers by their names.
func texts(h [5][]byte) map[string][]byte {
	out := map[string][]byte{}
	for i, name := range readback.Files {
		out[name] = h[i]
	}
	return out
}

// builds are the golden builds, and the directories of their passes.
func builds(t testing.TB) []string {
	t.Helper()
	schedules, err := filepath.Glob(filepath.Join(golden, "*", "schedule.h"))
	require.NoError(t, err)
	require.NotEmpty(t, schedules)
	passes, err := filepath.Glob(filepath.Join(golden, "*", "*", "schedule.h"))
	require.NoError(t, err)
	require.NotEmpty(t, passes)
	var names []string
	for _, path := range append(schedules, passes...) {
		name, err := filepath.Rel(golden, filepath.Dir(path))
		require.NoError(t, err)
		names = append(names, name)
	}
	return names
}

func programOf(t testing.TB, dir string) *ir.Program {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(golden, dir, "program.json"))
	require.NoError(t, err)
	p, diags := ir.ParseJSON(text, "program.json")
	require.NoError(t, diags.Err())
	return p
}

func TestGoldenBuildsReadBack(t *testing.T) {
	for _, dir := range builds(t) {
		t.Run(dir, func(t *testing.T) {
			h := headers(t, dir)
			p, diags := readback.Program(texts(h))
			require.Empty(t, diags)
			require.Empty(t, readback.Compare(p, programOf(t, dir)))
			proof := validate.Program(p)
			require.True(t, proof.OK, "%v", proof.Diags)
			require.Equal(t, validate.Program(programOf(t, dir)).Stats.Tasks, proof.Stats.Tasks)
		})
	}
}

// Headers hold neither steps nor groups: a program.json that has some says something else, and is found out.
func TestCompareStepsAndGroups(t *testing.T) {
	program := func() *ir.Program {
		return &ir.Program{Buffers: []ir.Buffer{{Name: "w{i}", Count: 2}},
			Variants: []ir.Variant{{Name: "v", Counters: []ir.Counter{{Name: "c{i}", Count: 2}},
				Body: []ir.Node{&ir.Loop{Name: "layers", Count: 2}}}}}
	}
	require.Empty(t, readback.Compare(program(), program()))
	for want, change := range map[string]func(p *ir.Program){
		"buffer w{i}: error: members: the headers say 0..1, and program.json says 0..2 by 2": func(p *ir.Program) {
			p.Buffers[0].Step = 2
		},
		"counter c{i}: the headers say 0..1 undecided gpu init=0, and program.json says " +
			"0..4 by 4": func(p *ir.Program) {
			p.Variants[0].Counters[0].Step = 4
		},
		"stages: the headers say layers 0..1 (), and program.json says layers 0..2 by 2 ()": func(p *ir.Program) {
			p.Variants[0].Body[0].(*ir.Loop).Step = 2
		},
		"group g{i}: error: indices: the headers say nothing, and program.json says 1..3 by 2": func(p *ir.Program) {
			p.Groups = []ir.Group{{Name: "g{i}", First: 1, Step: 2, Members: []string{"w01", "w00"}}}
		},
		"group g{i}: error: members: the headers say nothing, and program.json says [w01 w00]": func(p *ir.Program) {
			p.Groups = []ir.Group{{Name: "g{i}", First: 1, Step: 2, Members: []string{"w01", "w00"}}}
		},
	} {
		p := program()
		change(p)
		require.ErrorContains(t, readback.Compare(program(), p), want)
	}
}
