package checkpoint

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// A hub's cache holds a model in models--ORG--NAME: the files of each revision below snapshots/COMMIT, and the
// commit that a branch stands at in refs/BRANCH.
const (
	hubPrefix    = "models--"
	hubSnapshots = "snapshots"
	hubRefs      = "refs"
)

// Locate returns the directory of the model that a path or a hub's id names, and the name of the model: that of the
// directory, or in a hub's cache its name in the hub. An id, ORG/NAME or ORG/NAME@REVISION, is looked up in the hub's
// cache, unless there is a directory of that name. For a model in the cache, Locate returns the snapshot of the
// revision, or without a revision that of main, or the only one. Errors: AMK1036 if there is no such snapshot, AMK1002
// if the cache has no model with the id. Open checks whether dir is a model.
//
// A model may be one GGUF file: its path, or a directory or a snapshot with one and without other weights. dir is then
// the path of the file, below which package infile finds the files that it stands for. Errors: those of Open for such a
// file, AMK1003 if there are several, AMK1035.
func Locate(path string) (dir, name string, err error) {
	dir, name = path, ""
	if !IsGGUF(path) {
		if dir, name, err = locateDirectory(path); err != nil {
			return dir, name, err
		}
		file, bad := onlyGGUF(dir)
		if bad != nil {
			return dir, name, bad
		}
		if file == "" {
			return dir, name, nil
		}
		if bad := refuseAdapterOfGGUF(dir, file); bad != nil {
			return dir, name, bad
		}
		dir = file
	}
	g, bad := openGGUF(dir)
	if bad != nil {
		return dir, name, bad
	}
	g.close()
	return dir, nameOfGGUF(dir), nil
}

// LocateAdapter returns the directory of the adapter that a path or a hub's id names, as Locate does of a model.
func LocateAdapter(path string) (dir string, err error) {
	dir, _, err = locateDirectory(path)
	return dir, err
}

// locateDirectory is Locate without a look for a GGUF file.
func locateDirectory(path string) (dir, name string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil || path == "" {
		return path, path, nil
	}
	if dir, name, found, err := locateID(path); found || err != nil {
		return dir, name, err
	}
	parent := filepath.Dir(abs)
	switch {
	case filepath.Base(parent) == hubSnapshots && isHubModel(filepath.Dir(parent)):
		return path, hubName(filepath.Dir(parent)), nil
	case filepath.Base(abs) == hubSnapshots && isHubModel(parent):
		dir, err = hubSnapshot(path, filepath.Join(path, ".."), "")
		return dir, hubName(parent), err
	case isHubModel(abs):
		dir, err = hubSnapshot(path, path, "")
		return dir, hubName(abs), err
	}
	return path, filepath.Base(abs), nil
}

// Origin says which model the files of a directory that Locate returned are: ORG/NAME and the commit as its hub knows
// them, or else the name of the directory and no commit.
func Origin(dir string) (id, revision string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return filepath.Base(dir), ""
	}
	if IsGGUF(dir) && filepath.Base(filepath.Dir(filepath.Dir(abs))) != hubSnapshots {
		return filepath.Base(abs), ""
	} else if IsGGUF(dir) {
		abs = filepath.Dir(abs)
	}
	snapshots := filepath.Dir(abs)
	model := filepath.Dir(snapshots)
	if filepath.Base(snapshots) != hubSnapshots || !isHubModel(model) {
		return filepath.Base(abs), ""
	}
	name := strings.TrimPrefix(filepath.Base(model), hubPrefix)
	return strings.Replace(name, "--", "/", 1), filepath.Base(abs)
}

// isHubModel reports whether dir looks like a model of a hub's cache. Without snapshots it is a directory like any
// other.
func isHubModel(dir string) bool {
	if !strings.HasPrefix(filepath.Base(dir), hubPrefix) {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, hubSnapshots))
	return err == nil && info.IsDir()
}

// hubName is NAME of models--ORG--NAME.
func hubName(dir string) string {
	name := filepath.Base(dir)
	return name[strings.LastIndex(name, "--")+len("--"):]
}

// hubSnapshot chooses the snapshot of the model in dir: that of a revision, or without one main's or the only one. path
// is what errors are reported against.
func hubSnapshot(path, dir, revision string) (string, error) {
	snapshots := filepath.Join(dir, hubSnapshots)
	names, bad := fileNames(snapshots)
	if bad != nil {
		return "", bad
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Stat(filepath.Join(snapshots, name))
		return err != nil || !info.IsDir()
	})
	if slices.Contains(names, revision) {
		return filepath.Join(snapshots, revision), nil
	}
	ref := hubRefs + "/" + cmp.Or(revision, mainRevision)
	why := "there is no " + ref + " that chooses one"
	if text, err := infile.Read(filepath.Join(dir, filepath.FromSlash(ref)), infile.HubRef); err == nil {
		commit := strings.TrimSpace(string(text))
		if slices.Contains(names, commit) {
			return filepath.Join(snapshots, commit), nil
		}
		why = ref + " names one that is not there"
	} else if len(names) == 1 && revision == "" {
		return filepath.Join(snapshots, names[0]), nil
	}
	if len(names) == 0 {
		return "", diag.Errorf(codeHubCache, path, "this model of a hub's cache, %s, has no snapshot; download it "+
			"again", dir)
	}
	return "", diag.Errorf(codeHubCache, path, "this model of a hub's cache has %s, and %s; give the directory of one",
		plural(len(names), "snapshot"), why).With(firstFew("snapshot", under(snapshots, names))...)
}

func under(dir string, names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(dir, name)
	}
	return paths
}
