package builddir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsTheUsersStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "above", "out")
	_, err := first.write(dir, same)
	require.NoError(t, err)
	require.Equal(t, first.contents(t), contents(t, dir))

	put(t, dir, mine)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty", "empty"), 0o755))
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(dir, "link")))
	kept, err := second.write(dir, same)
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Contains(t, kept.Error(), "edited.h: warning: was edited by hand after amkc wrote it; your version is "+
		"kept as edited.h.edited")
	others := map[string]string{"empty/empty/": "", "link": "-> /nowhere", "edited.h.edited": "mine"}
	require.Equal(t, with(mine, second.contents(t), others), contents(t, dir))

	// A second edit does not take the place of the first one.
	put(t, dir, map[string]string{"edited.h": "mine again"})
	_, err = second.write(dir, same)
	require.NoError(t, err)
	require.Equal(t, with(mine, second.contents(t), others, map[string]string{"edited.h.edited.2": "mine again"}),
		contents(t, dir))
}

// Weights that are not in the stage are those of the earlier build.
func TestWeightsStay(t *testing.T) {
	dir := t.TempDir()
	_, err := first.write(dir, same)
	require.NoError(t, err)
	again := second
	again.weigh = ""
	_, err = again.write(dir, same)
	require.NoError(t, err)
	again.weigh = first.weigh
	require.Equal(t, again.contents(t), contents(t, dir))
}

// What make has made is replaced although no manifest lists it, and a file of the user's of the same name is not.
func TestProductsOfMake(t *testing.T) {
	dir := t.TempDir()
	sources := first
	sources.built = nil
	_, err := sources.write(dir, same)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	other, err := os.ReadFile(self)
	require.NoError(t, err)
	put(t, dir, map[string]string{"megakernel.fatbin": string(fatbinMagic) + "more"})
	_, err = sources.write(dir, same)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, "megakernel.fatbin"), "it is of the earlier sources")
	for name, text := range map[string]string{"demo": string(other), "megakernel.fatbin": "notes on fatbins"} {
		put(t, dir, map[string]string{name: text})
		_, err = sources.write(dir, same)
		requireCode(t, err, CodeInTheWay)
		require.FileExists(t, filepath.Join(dir, name))
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
}

// A name that a file of the user's has is refused before anything is written.
func TestNamesOfTheUsersAreRefused(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"other":        func(path string) error { return os.WriteFile(path, []byte("mine"), 0o644) },
		"new/deep/d.h": func(path string) error { return os.WriteFile(path, []byte("mine"), 0o644) },
		"new":          func(path string) error { return os.WriteFile(path, []byte("mine"), 0o644) },
		"new/deep":     func(path string) error { return os.Symlink("/", path) },
		"sub": func(path string) error {
			return errors.Join(os.Rename(path, path+".mine"), os.Symlink("sub.mine", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := first.write(dir, same)
			require.NoError(t, err)
			path := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, make(path))
			before := contents(t, dir)
			_, err = second.write(dir, same)
			requireCode(t, err, CodeInTheWay)
			require.Contains(t, err.Error(), path+": error: is yours")
			require.Equal(t, before, contents(t, dir))
		})
	}
}

// A file of the user's that appears while a build is being made is kept too.
func TestFilesThatAppearMeanwhile(t *testing.T) {
	dir := t.TempDir()
	_, err := first.write(dir, same)
	require.NoError(t, err)
	kept, err := second.write(dir, func(root *os.Root) tree {
		return &hooked{tree: root, onRename: func(from string) {
			if from == newDir {
				put(t, dir, map[string]string{"other": "mine", "new": "mine"})
			}
		}}
	})
	require.NoError(t, err)
	require.Len(t, kept, 2)
	require.Equal(t, with(second.contents(t), map[string]string{"other.edited": "mine", "new.edited": "mine"}),
		contents(t, dir))
}

type hooked struct {
	tree
	onRename func(from string)
}

func (h *hooked) Rename(from, to string) error {
	h.onRename(from)
	return h.tree.Rename(from, to)
}

// Links instead of what the protocol has of its own, as in a build from somebody else, lead it nowhere.
func TestLinksAreNotFollowed(t *testing.T) {
	for name, link := range map[string]string{"": "../notes", "new": "../notes", "ready": "../notes",
		"earlier.json": "../notes/mine", "lock": "../notes/mine",
		"other": "../notes"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := first.write(dir, same)
			require.NoError(t, err)
			notes := second.contents(t) // a directory that looks like a complete build, of the user's all the same
			notes["mine"] = "mine"
			put(t, filepath.Join(dir, "notes"), notes)
			if name == "" {
				link = "notes"
			} else {
				require.NoError(t, os.Mkdir(filepath.Join(dir, Work), 0o755))
			}
			require.NoError(t, os.Symlink(link, filepath.Join(dir, Work, name)))
			_, err = first.write(dir, same)
			if name == "" || name == "lock" {
				require.ErrorContains(t, err, "move it away")
			} else {
				require.NoError(t, err)
				require.NoDirExists(t, filepath.Join(dir, Work))
			}
			require.Equal(t, notes, contents(t, filepath.Join(dir, "notes")))
		})
	}
}
