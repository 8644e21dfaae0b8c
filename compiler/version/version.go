// Package version has the version of amkc.
//
// It imports the standard library only, and must not import any other package of amkc, because every package may import
// it.
package version

import (
	"runtime/debug"
)

// Release is the version of amkc and of the Python package. It moves with each release, and CHANGELOG.md says what that
// changed.
const Release = "0.3.0"

// Info identifies this executable.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // of its sources; empty where go build recorded none
	Modified bool   `json:"modified,omitempty"` // the sources are not those of the commit
	Go       string `json:"go"`                 // the Go release it was built with
}

// Get returns what the executable records.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return from(build)
}

func from(build *debug.BuildInfo) Info {
	info := Info{Version: Release, Go: build.GoVersion}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
}

// Source is the commit, with "+" after it where the sources are not those of the commit; empty where none is known.
func (i Info) Source() string {
	if i.Commit != "" && i.Modified {
		return i.Commit + "+"
	}
	return i.Commit
}
