package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrecedence(t *testing.T) {
	released := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v0.3.0"}}
	local := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}}
	require.Equal(t, Info{Version: "v9", Go: "go1.26"}, from("v9", released))
	require.Equal(t, Info{Version: "v0.3.0", Go: "go1.26"}, from("", released))
	require.Equal(t, Info{Version: "dev", Commit: "abc"}, from("", local))
	require.Equal(t, "dev", from("", &debug.BuildInfo{}).Version)
}
