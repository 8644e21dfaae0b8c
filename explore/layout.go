package explore

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"amkc/runtime/host"
)

// layOut makes a directory that package host opens as a build: the manifest and the weights of a build, and its
// kernels compiled for the CPU instead of those for a GPU. Below it is one for each other form of kernels, with the
// plain ones where a form has none. All are links.
func layOut(dir, build string, o *Objects) error {
	root, err := filepath.Abs(build)
	if err != nil {
		return err
	}
	links := map[string]string{}
	for _, form := range append([]string{""}, forms...) {
		for _, name := range []string{host.ManifestFile, host.WeightsFile} {
			links[path.Join(form, name)] = filepath.Join(root, name)
		}
		for name, object := range o.Kernels {
			if top, _, _ := strings.Cut(name, "/"); !slices.Contains(forms, top) {
				links[path.Join(form, name)] = object
			}
		}
	}
	maps.Copy(links, o.Kernels) // what a form has of its own
	for _, name := range sorted(links) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.Symlink(links[name], at); err != nil {
			return err
		}
	}
	return nil
}
