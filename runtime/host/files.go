package host

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/runtime/infile"
)

// Files lists the files that a build is made of, by path from its directory, sorted: those that the manifest names,
// those that make makes of them, and the manifest. They need not be there. Of a manifest that cannot be read it lists
// the files that every build has.
func Files(dir string) []string {
	names := map[string]bool{ManifestFile: true, WeightsFile: true, ProgramFile: true, ConfigFile: true,
		GenConfigFile: true,
		TokenizerFile: true, LibraryFile: true, FatbinFile: true, MeasureFile: true, ReferenceFile: true}
	var m struct {
		Files, Built map[string]string
		Facts        struct{ Model struct{ Name string } }
	}
	text, err := infile.Read(filepath.Join(dir, ManifestFile), infile.Manifest)
	if err == nil && json.Unmarshal(text, &m) == nil {
		names[m.Facts.Model.Name] = true
		for name := range m.Files {
			names[name] = true
			if base, ok := strings.CutSuffix(name, ".cu"); ok {
				names[base+".fatbin"] = true
			}
		}
		for name := range m.Built {
			names[name] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		return !filepath.IsLocal(filepath.FromSlash(name))
	})
}

// FileAt returns which of the files of a build a path leads to, by a link too, or nothing.
func FileAt(dir, path string) string {
	at, err := os.Stat(path)
	if err != nil {
		return ""
	}
	for _, name := range Files(dir) {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && os.SameFile(at, info) {
			return name
		}
	}
	return ""
}
