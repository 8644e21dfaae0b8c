package builddir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/infile"
)

var errKilled = errors.New("killed")

// mortal is a tree of a process that is killed after some number of steps: all later ones do nothing.
type mortal struct {
	*os.Root
	left int
}

func (m *mortal) step() error {
	if m.left == 0 {
		return errKilled
	}
	m.left--
	return nil
}

func (m *mortal) Mkdir(name string, mode fs.FileMode) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.Root.Mkdir(name, mode)
}

func (m *mortal) OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := m.step(); err != nil {
			return nil, err
		}
	}
	return m.Root.OpenFile(name, flag, mode)
}

func (m *mortal) Rename(from, to string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.Root.Rename(from, to)
}

func (m *mortal) Remove(name string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.Root.Remove(name)
}

// die ends a process that was killed: its lock goes, its files stay.
func (d *Dir) die() {
	if d.lock != nil {
		d.lock.File.Close()
	}
	d.tree.Close()
}

// killed writes a build with a process that is killed after n steps. It reports whether the process came to its
// end, and adds what it has found to said.
func (b build) killed(t *testing.T, dir string, steps int, said map[string]bool) (done bool) {
	t.Helper()
	root := &mortal{left: steps}
	var begun *Dir
	d, err := begin(t.Context(), dir, nil, func(r *os.Root) tree { root.Root = r; return root })
	if err == nil {
		begun = d
		for _, w := range d.Found {
			said[w.Msg] = true
		}
		_, err = b.fill(d)
	}
	if err == nil && root.left > 0 {
		if err = d.Close(); err == nil && root.left > 0 {
			return true
		}
	}
	// A process that is killed does not close anything. Where begin has failed it has called Close, whose steps were
	// in vain.
	if begun != nil && begun.tree != nil {
		begun.die()
	}
	return false
}

// alive demands that a directory never has a manifest without every file that it lists.
func alive(t *testing.T, dir string) {
	t.Helper()
	m, err := readManifest(filepath.Join(dir, host.ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	require.NoError(t, err)
	for name, digest := range with(m.Files, m.Built) {
		_, got, err := infile.Digest(filepath.Join(dir, filepath.FromSlash(name)), nil)
		if name == "edited.h" && got != digest {
			continue // by the user
		}
		require.NoError(t, err)
		require.Equal(t, digest, got, name)
	}
	require.FileExists(t, filepath.Join(dir, host.WeightsFile))
}

// theirs demands that every file of the user's is there, under its name or as NAME.edited.
func theirs(t *testing.T, dir string) {
	t.Helper()
	have := contents(t, dir)
	for name, text := range mine {
		if name == "edited.h" && have[name] != text {
			name += ".edited"
		}
		require.Equal(t, text, have[name], name)
	}
	require.Contains(t, have, "empty/empty/")
}

// The process is killed after every step there is, of a first build and of a second one. The files of the user's are
// all there, and the directory is not a build of which half is missing. The next run, which is killed at some step too,
// says what it has found; it leaves one build or the other, and after that what an undisturbed one leaves.
func TestKilledAtEveryStep(t *testing.T) {
	said := map[string]bool{}
	for name, earlier := range map[string]bool{"new directory": false, "earlier build": true} {
		t.Run(name, func(t *testing.T) {
			steps := 0
			for done := false; !done; steps++ {
				dir := filepath.Join(inMemory(t), "out")
				var rest map[string]string // of the user's
				if earlier {
					_, err := first.write(dir, same)
					require.NoError(t, err)
					put(t, dir, mine)
					require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty", "empty"), 0o755))
					rest = with(mine, map[string]string{"empty/empty/": "", "edited.h.edited": "mine"})
				}
				done = second.killed(t, dir, steps, said)
				intact(t, dir, earlier)
				require.True(t, !done || !exists(filepath.Join(dir, Work)), "after %d steps", steps)
				for _, again := range next(steps) {
					second.killed(t, dir, again, said) // on what the one before has left
					intact(t, dir, earlier)
				}
				d, err := Begin(t.Context(), dir, nil)
				require.NoError(t, err)
				for _, w := range d.Found {
					said[w.Msg] = true
				}
				require.NoError(t, d.Close())
				want := map[string]string{} // of one build or the other
				if exists(filepath.Join(dir, "other")) {
					want = with(rest, second.contents(t))
				} else if earlier {
					want = with(first.contents(t), mine, map[string]string{"empty/empty/": ""})
				}
				if exists(dir) {
					require.Equal(t, want, contents(t, dir), "after %d steps", steps)
				}
				_, err = second.write(dir, same)
				require.NoError(t, err, "after %d steps", steps)
				require.Equal(t, with(rest, second.contents(t)), contents(t, dir), "after %d steps", steps)
			}
			require.Greater(t, steps, 20)
		})
	}
	require.True(t, said["an earlier run was interrupted; what it had not finished is removed"])
	require.True(t, said["an earlier run was interrupted while it put a build in place; that is done now"])
}

// inMemory is a temporary directory, in memory where the system has such: the test makes tens of thousands of files.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "builddir")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func intact(t *testing.T, dir string, earlier bool) {
	t.Helper()
	alive(t, dir)
	if earlier {
		theirs(t, dir)
	}
}

// next returns after how many steps the runs after one that was killed are killed. With AMKC_LONG that is after each
// number of them in turn.
func next(steps int) []int {
	if os.Getenv("AMKC_LONG") == "" {
		return []int{steps * 7 % 50}[:(steps+1)%2]
	}
	all := make([]int, 60)
	for i := range all {
		all[i] = i
	}
	return all
}
