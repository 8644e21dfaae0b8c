package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/cli"
	"amkc/internal/watch"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// leaves lists every number of a JSON value with a function that changes it.
func leaves(path string, v any, set func(any), visit func(path string, set func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			leaves(path+"."+k, v[k], func(x any) { v[k] = x }, visit)
		}
	case []any:
		for i := range v {
			leaves(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x }, visit)
		}
	case float64:
		visit(path, set)
	}
}

// The manifest is data of somebody else: whatever number is in a fact, the launcher works or refuses, at once.
func TestFactsOutOfRange(t *testing.T) {
	hosttest.NeedDriver(t)
	text, err := json.Marshal(map[string]any{"format": host.ManifestFormat, "facts": hosttest.Facts()})
	require.NoError(t, err)
	parse := func() (m map[string]any) {
		require.NoError(t, json.Unmarshal(text, &m))
		return m
	}
	var paths []string
	leaves("", parse(), nil, func(path string, _ func(any)) { paths = append(paths, path) })
	require.Greater(t, len(paths), 20)
	dir := hosttest.Build(t, "", nil)
	commands := [][]string{{"info"}, {"info", "--json"}}
	if os.Getenv("AMKC_LONG") != "" { // 40 s: each command starts the kernels
		commands = damaged[0].commands
	}
	for _, path := range paths {
		for _, n := range []int64{-1, 0, 1 << 31, 1 << 62} {
			m := parse()
			leaves("", m, nil, func(p string, set func(any)) {
				if p == path {
					set(n)
				}
			})
			manifest, err := json.Marshal(m)
			require.NoError(t, err)
			hosttest.Write(t, dir, host.ManifestFile, manifest)
			for _, args := range commands {
				end := watch.Execution()
				var out, errs bytes.Buffer
				l := cli.Launcher{Model: modelIn(dir), Dir: dir,
					Check: func(r host.Resident) (host.Reference, error) { return &hosttest.Twin{Resident: r}, nil }}
				code := l.Main(args, strings.NewReader(""), &out, &errs)
				end()
				require.Contains(t, []int{0, 1, 2}, code)
				require.Equal(t, code == 0, errs.Len() == 0, "%s=%d %v: %d %s", path, n, args, code, errs.String())
			}
		}
	}
}
