package version

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFrom(t *testing.T) {
	built := &debug.BuildInfo{GoVersion: "go1.26", Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"},
		{Key: "vcs.modified", Value: "true"}}}
	require.Equal(t, Info{Version: Release, Commit: "abc", Modified: true, Go: "go1.26"}, from(built))
	require.Equal(t, "abc+", from(built).Source())
	built.Settings[1].Value = "false"
	require.Equal(t, "abc", from(built).Source())
	require.Empty(t, from(&debug.BuildInfo{}).Source())
}

// The changelog begins with the release that the sources are, and the Python package has its number.
func TestChangelogHasTheRelease(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	first := regexp.MustCompile(`(?m)^## (\S+)`).FindSubmatch(text)
	require.NotNil(t, first)
	require.Equal(t, Release, string(first[1]))
	text, err = os.ReadFile("../../app/python/amk/__init__.py")
	require.NoError(t, err)
	require.Contains(t, string(text), "__version__ = \""+Release+"\"\n")
}
