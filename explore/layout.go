package explore

import (
	"os"
	"path/filepath"

	"amkc/runtime/host"
)

// layOut makes a directory that package host opens as a build: the manifest and the weights of a build, and its
// kernels compiled for the CPU in the place of those for a GPU. All are links.
func layOut(dir, build string, o *Objects) error {
	root, err := filepath.Abs(build)
	if err != nil {
		return err
	}
	links := map[string]string{}
	for _, name := range []string{host.ManifestFile, host.WeightsFile} {
		links[name] = filepath.Join(root, name)
	}
	for name, object := range o.Kernels {
		links[filepath.FromSlash(name)] = object
	}
	for _, name := range sorted(links) {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.Symlink(links[name], at); err != nil {
			return err
		}
	}
	return nil
}
