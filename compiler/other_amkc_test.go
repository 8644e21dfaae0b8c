package compiler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler/version"
	"amkc/runtime/host"
)

// Of a build that another amkc wrote, verify says so first; then it says what it can: nothing is wrong with a build
// whose files are the same, and of others it names the amkc that can tell.
func TestBuildOfAnotherAmkc(t *testing.T) {
	dir := goodBuild(t)
	m, err := readManifest(dir)
	require.NoError(t, err)
	require.Equal(t, version.Release, m.Compiler.Version)
	readme := text(t, dir, readmeFile)
	require.Contains(t, readme, "\n    amkc        "+m.Compiler.Text()+"\n")
	require.Contains(t, readme, "\n    model       "+m.Source.Model+"\n")
	require.Contains(t, readme, "\n    checkpoint  "+m.Source.Checkpoint+"\n")
	require.Len(t, m.Source.Checkpoint, 64)

	older := linked(t, dir)
	edit(t, older, readmeFile, `amkc        [^\n]*`, "amkc        0.0.1, IR "+m.Compiler.IR+", device runtime ABI 9")
	makeFit(t, older)
	changeManifest(t, older, func(m *codegen.Manifest) { m.Compiler.Version, m.Compiler.RuntimeABI = "0.0.1", 9 })
	v, err := Verify(older, nil)
	require.NoError(t, err)
	require.NoError(t, v.Findings.Err())
	require.Len(t, v.Findings, 1)
	require.Contains(t, v.Findings[0].Error(), "was written by amkc 0.0.1, IR ")

	edit(t, older, "megakernel.cu", `\n`, " \n")
	edit(t, older, "measure.cu", `\n`, " \n")
	makeFit(t, older)
	v, err = Verify(older, nil)
	require.NoError(t, err)
	require.Equal(t, "AMK4908", v.Findings[0].Code)
	all := v.Findings.Errors().Error()
	require.Contains(t, all, "2 files are not what this amkc emits for program.json; verify the build with amkc 0.0.1")
	require.Equal(t, 1, strings.Count(all, "[AMK4903]"), all)
	require.Contains(t, all, "measure.cu")

	// A program of another IR is one error, which says what to do, and digests are compared all the same.
	edit(t, older, ProgramFile, `"pipelining_depth"`, `"depth_of_another_ir"`)
	makeFit(t, older)
	v, err = Verify(older, nil)
	require.NoError(t, err)
	require.Len(t, v.Findings, 2)
	require.Contains(t, v.Findings[1].Msg, "cannot read the program of amkc 0.0.1")
	require.Contains(t, v.Findings[1].Msg, "or compile the model again")
	require.Contains(t, v.Findings[1].Related[0], "files of the manifest have their digests")
	require.Contains(t, v.Findings[1].Related[1], "depth_of_another_ir")
	_, err = OpenBuild(older)
	require.ErrorContains(t, err, "depth_of_another_ir")
	require.ErrorContains(t, err, "the build was written by amkc 0.0.1")
	edit(t, older, "measure.cu", `\n`, "  \n")
	v, err = Verify(older, nil)
	require.NoError(t, err)
	require.Equal(t, codeFileChanged.ID, v.Findings[1].Code)
	require.NotContains(t, v.Findings.Error(), "of the manifest have")
}

// A build of a model in a hub's cache says which one it is, and at which commit.
func TestBuildSaysWhichModelItIs(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	hub := filepath.Join(t.TempDir(), "models--org--name", "snapshots", "0123abc")
	require.NoError(t, os.CopyFS(hub, os.DirFS("../testdata/models/zoo/llama-gqa")))
	o := emitted(hub, filepath.Join(t.TempDir(), "out"))
	o.Stated = []string{"--rows=2"}
	b, err := Compile(t.Context(), o)
	require.NoError(t, err)
	from, err := host.ReadProvenance(b.Dir)
	require.NoError(t, err)
	require.Equal(t, []any{"org/name", "0123abc", []string{"--rows=2"}, version.Release, codegen.RuntimeABI},
		[]any{from.Model, from.Revision, from.Options, from.AMKC, from.ABI})
	require.Contains(t, text(t, b.Dir, readmeFile), "\n    revision    0123abc\n")
}
