package explore

import (
	"os"
	"path"
	"path/filepath"

	"amkc/runtime/host"
)

// layOut makes a directory that package host opens as a build: the manifest and the weights of a build, and its
// kernels compiled for the CPU instead of those for a GPU. Below it is a second one, of the kernel whose waits
// look at once for an abort. All are links.
func layOut(dir, build string, o *Objects) error {
	root, err := filepath.Abs(build)
	if err != nil {
		return err
	}
	links := map[string]string{}
	for _, name := range []string{host.ManifestFile, host.WeightsFile} {
		links[name] = filepath.Join(root, name)
		links[path.Join(eagerDir, name)] = links[name]
	}
	for name, object := range o.Kernels {
		if eager := path.Join(eagerDir, name); o.Kernels[eager] == "" && path.Dir(name) != eagerDir {
			links[eager] = object
		}
		links[name] = object
	}
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
