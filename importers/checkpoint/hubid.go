package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"amkc/ir/diag"
)

// hubID matches ORG/NAME as hubs spell it, NAME alone for models of the first days, and @REVISION after it: a branch,
// a tag, refs/pr/N or a commit. No part begins with a dot, so none leaves the directory that it names an entry of.
var hubID = regexp.MustCompile(`^(?:(\w[\w.-]*)/)?(\w[\w.-]*)(?:@(\w[\w.-]*(?:/\w[\w.-]*)*))?$`)

// mainRevision is what a model is taken at where no revision is named.
const mainRevision = "main"

// A modelID is what an id says.
type modelID struct{ org, name, revision string }

// parseHubID reads an id. Two dashes in a row would be read as the slash of another one in the cache, and no hub has
// such names, nor those with two dots in a row.
func parseHubID(id string) (m modelID, ok bool) {
	parts := hubID.FindStringSubmatch(id)
	if parts == nil {
		return m, false
	}
	m = modelID{parts[1], parts[2], parts[3]}
	for _, bad := range []string{"--", ".."} {
		if strings.Contains(m.org+"/"+m.name, bad) {
			return m, false
		}
	}
	return m, len(id) < 300
}

// directory is what a hub's cache calls the model.
func (m modelID) directory() string {
	if m.org == "" {
		return hubPrefix + m.name
	}
	return hubPrefix + m.org + "--" + m.name
}

// String is the id without its revision.
func (m modelID) String() string {
	if m.org == "" {
		return m.name
	}
	return m.org + "/" + m.name
}

// locateID finds the model of an id in the hub's cache; found is false of a path that names none. A model that the
// cache does not have is AMK1002, unless the path may well be a directory's with a typo: one without a slash, or below
// a directory that exists.
func locateID(path string) (dir, name string, found bool, err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return "", "", false, nil
	}
	m, ok := parseHubID(path)
	if !ok {
		return "", "", false, nil
	}
	at := filepath.Join(hubCache(), m.directory())
	if isHubModel(at) {
		dir, err = hubSnapshot(path, at, m.revision)
		return dir, m.name, true, err
	}
	_, noParent := os.Stat(filepath.Dir(path))
	if m.org == "" && m.revision == "" || m.org != "" && noParent == nil {
		return "", "", false, nil
	}
	return "", "", false, diag.Errorf(codeHubID, path, "there is no such directory, and the hub's cache has no model "+
		"of this id (looked for %s); nothing is downloaded: run hf download %s, which fills the cache, or give a "+
		"directory with config.json and safetensors weights", at, m.download())
}

// download is what hf download takes to fetch it.
func (m modelID) download() string {
	if m.revision == "" {
		return m.String()
	}
	return m.String() + " --revision " + m.revision
}

// hubCache is the directory that models of a hub are in, by the variables that huggingface_hub goes by, in its order.
// Relative ones are taken from the working directory, as there.
func hubCache() string {
	for _, v := range []struct{ name, below string }{{"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""},
		{"HF_HOME", "hub"}, {"XDG_CACHE_HOME", "huggingface/hub"}} {
		if dir := os.Getenv(v.name); dir != "" {
			return filepath.Join(expandHome(dir), filepath.FromSlash(v.below))
		}
	}
	return expandHome("~/.cache/huggingface/hub")
}

// expandHome is a path with its leading ~ read as a shell would: variables that a Dockerfile sets are not.
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	home, err := os.UserHomeDir()
	if !ok && path != "~" || err != nil {
		return path
	}
	return filepath.Join(home, strings.TrimPrefix(rest, "~"))
}
