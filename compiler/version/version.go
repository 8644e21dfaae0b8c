// Package version says which amkc this is.
//
// It imports the standard library only, and must not import any other package of amkc: everything may ask it.
package version

import (
	"runtime/debug"
)

// linked is set by release builds: go build -ldflags "-X amkc/compiler/version.linked=v1.2.3".
var linked string

// Info is what is known of this executable.
type Info struct {
	Version string `json:"version"` // a release, the version of the module, or "dev"
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"` // the Go release it was built with
}

// Get returns the linked version if there is one, else the module's, else "dev".
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return from(linked, build)
}

func from(linked string, build *debug.BuildInfo) Info {
	info := Info{Version: linked, Go: build.GoVersion}
	if info.Version == "" {
		info.Version = build.Main.Version
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = "dev"
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			info.Commit = s.Value
		}
	}
	return info
}
