package compiler

import (
	"archive/zip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/codegen/modules"
	"amkc/runtime/infile"
)

// Of the module of the launcher's packages, verify names the files that are not what they should be.
func TestVerifyLooksInsideTheLauncher(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	_, err := Compile(t.Context(), emitted("../testdata/models/zoo/llama-gqa", dir))
	require.NoError(t, err)
	const module, version = "amkc.local/runtime", "v0.0.0"
	files := map[string][]byte{}
	r, err := zip.OpenReader(filepath.Join(dir, runtimeZip))
	require.NoError(t, err)
	defer r.Close()
	for _, f := range r.File {
		from, err := f.Open()
		require.NoError(t, err)
		name := strings.TrimPrefix(f.Name, module+"@"+version+"/")
		files[name], err = infile.ReadStream(from, name, infile.Source)
		require.NoError(t, err)
	}
	_, same, err := modules.Pack(module, version, files)
	require.NoError(t, err)
	require.Equal(t, text(t, dir, runtimeZip), string(same[module+"/@v/"+version+".zip"]))

	files["host/session.go"] = append(files["host/session.go"], "// mine\n"...)
	files["host/evil\x1b[2J.go"] = nil
	delete(files, "host/info.go")
	_, other, err := modules.Pack(module, version, files)
	require.NoError(t, err)
	rewrite(t, dir, runtimeZip, string(other[module+"/@v/"+version+".zip"]))
	want := []string{module + "@" + version + `/host/evil\u001b[2J.go is in it and should not be`,
		module + "@" + version + "/host/info.go is not in it", module + "@" + version + "/host/session.go differs"}
	for _, code := range []string{"AMK4902", "AMK4903"} {
		v, err := Verify(dir, nil)
		require.NoError(t, err)
		require.Len(t, v.Findings, 1)
		require.Equal(t, code, v.Findings[0].Code)
		require.Equal(t, want, v.Findings[0].Related)
		changeManifest(t, dir, func(m *codegen.Manifest) {
			m.Files[runtimeZip] = codegen.Digest([]byte(text(t, dir, runtimeZip)))
		})
	}
}
