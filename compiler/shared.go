package compiler

import (
	"os"
	"path/filepath"
	"strings"

	"amkc/runtime/host"
	"amkc/runtime/progress"
)

// sharedWeights is a directory of packed weights that builds have in common: configurations of one model differ in
// their kernels, and weights are most of a build. A file is called by the key of what was packed and by its own digest,
// and a build has a link to it.
type sharedWeights string

const sharedSuffix = ".safetensors"

// link puts the weights of a key into the stage of a build. ok is false where they are not here, or are damaged.
func (s sharedWeights) link(key, stage string, report progress.Func) (bytes int64, digest string, ok bool) {
	if s == "" {
		return 0, "", false
	}
	found, err := filepath.Glob(filepath.Join(string(s), key+".*"+sharedSuffix))
	if err != nil || len(found) == 0 {
		return 0, "", false
	}
	path := found[0]
	want := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), key+"."), sharedSuffix)
	bytes, digest, err = fileDigest(path, report)
	if err != nil || digest != want {
		os.Remove(path) // damaged weights are packed again
		return 0, "", false
	}
	return bytes, digest, os.Link(path, filepath.Join(stage, host.WeightsFile)) == nil
}

// add shares the weights that were packed into the stage of a build. Where that cannot be done it has them alone.
func (s sharedWeights) add(key, stage, digest string) {
	if s == "" || os.MkdirAll(string(s), 0o777) != nil {
		return
	}
	// Another process may have added the same.
	_ = os.Link(filepath.Join(stage, host.WeightsFile), filepath.Join(string(s), key+"."+digest+sharedSuffix))
}
