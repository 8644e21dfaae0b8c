package builddir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// put writes files below dir.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// contents returns all files and links below dir, and its empty directories as NAME/.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			if inside, err := os.ReadDir(path); err != nil || len(inside) > 0 || path == dir {
				return err
			}
			all[name+"/"] = ""
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			all[name] = "-> " + target
			return err
		default:
			text, err := os.ReadFile(path)
			all[name] = string(text)
			return err
		}
		return nil
	}))
	return all
}

// A build is what write writes.
type build struct {
	name  string
	files map[string]string
	built map[string]string // by nvcc and go, into the stage
	weigh string            // weights; "": those of the earlier build stay
}

func (b build) manifest() *codegen.Manifest {
	m := &codegen.Manifest{Format: host.ManifestFormat, Files: map[string]string{}, Built: map[string]string{}}
	m.Facts.Model.Name = b.name
	for name, text := range b.files {
		m.Files[name] = codegen.Digest([]byte(text))
	}
	for name, text := range b.built {
		m.Built[name] = codegen.Digest([]byte(text))
	}
	return m
}

// contents is what a directory with the build and nothing else holds.
func (b build) contents(t *testing.T) map[string]string {
	text, err := b.manifest().Marshal()
	require.NoError(t, err)
	all := map[string]string{host.ManifestFile: string(text), host.WeightsFile: b.weigh}
	for name, text := range b.files {
		all[name] = text
	}
	for name, text := range b.built {
		all[name] = text
	}
	return all
}

func same(root *os.Root) tree { return root }

// write writes a build into a directory, as package compiler does.
func (b build) write(dir string, wrap func(*os.Root) tree) (warnings diag.List, err error) {
	d, err := begin(context.Background(), dir, nil, wrap)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return b.fill(d)
}

func (b build) fill(d *Dir) (diag.List, error) {
	m := b.manifest()
	if err := d.Reserve(append(append(files(m), products(m)...), host.ManifestFile)); err != nil {
		return d.Found, err
	}
	all := map[string]string{}
	for name, text := range b.files {
		all[name] = text
	}
	for name, text := range b.built {
		all[name] = text
	}
	if b.weigh != "" {
		all[host.WeightsFile] = b.weigh
	}
	for name, text := range all {
		if err := d.Write(name, []byte(text)); err != nil {
			return d.Found, err
		}
	}
	text, err := m.Marshal()
	if err != nil {
		return d.Found, err
	}
	if err := d.Write(host.ManifestFile, text); err != nil {
		return d.Found, err
	}
	kept, err := d.Commit()
	return append(d.Found, kept...), err
}

var (
	first = build{name: "demo", weigh: "weights 1",
		files: map[string]string{"a.h": "1", "gone.h": "1", "megakernel.cu": "1", "sub/b.h": "1",
			"old/deep/c.h": "1", "edited.h": "1"},
		built: map[string]string{"demo": "launcher 1", "megakernel.fatbin": "fatbin 1"}}
	second = build{name: "other", weigh: "weights 2",
		files: map[string]string{"a.h": "2", "megakernel.cu": "2", "sub/b.h": "2", "edited.h": "2",
			"new/deep/d.h": "2"}, built: map[string]string{"other": "launcher 2"}}
	mine = map[string]string{"notes/today.md": "mine", "sub/mine": "mine", "old/deep/mine": "mine",
		"mine.fatbin": "mine", "edited.h": "mine",
		".hidden": "mine", "launcher": "mine"}
)

func requireCode(t *testing.T, err error, code *diag.Code) {
	t.Helper()
	require.Error(t, err)
	var list diag.List
	var one *diag.Diagnostic
	if errors.As(err, &list) {
		one = list[0]
	} else {
		require.ErrorAs(t, err, &one)
	}
	require.Equal(t, code.ID, one.Code, "%v", err)
}

// with returns what is in all of the maps; later ones win.
func with(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for name, text := range m {
			all[name] = text
		}
	}
	return all
}
