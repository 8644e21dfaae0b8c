package mutant_test

// The log of a run: what became of each mutant, so that runs can be continued, elsewhere too.

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/explore"
	"amkc/runtime"
	"amkc/templates"
)

// A logged is a line of a log.
type logged struct {
	Sources string `json:"sources"` // digest of the device runtime and templates
	*explore.MutantResult
}

// A mutantLog is a file to which lines are added.
type mutantLog struct {
	t       *testing.T
	file    *os.File
	sources string
	killed  map[string]*explore.MutantResult // of those sources, so far
	earlier map[string]*explore.MutantResult // of other sources
}

func openLog(t *testing.T, name string) *mutantLog {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o666)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	l := &mutantLog{t: t, file: f, sources: digestOfSources(t), killed: map[string]*explore.MutantResult{},
		earlier: map[string]*explore.MutantResult{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var line logged
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), "%s: %s", name, lines.Text())
		switch {
		case line.Fate != explore.Killed:
		case line.Sources == l.sources:
			l.killed[line.ID] = line.MutantResult
		default:
			l.earlier[line.ID] = line.MutantResult
		}
	}
	require.NoError(t, lines.Err())
	return l
}

func (l *mutantLog) add(m *explore.MutantResult) {
	text, err := json.Marshal(logged{l.sources, m})
	require.NoError(l.t, err)
	_, err = l.file.Write(append(text, '\n'))
	require.NoError(l.t, err)
}

// digestOfSources is that of what kernels are rendered from.
func digestOfSources(t *testing.T) string {
	t.Helper()
	of := runtime.DeviceSources()
	names, err := fs.Glob(templates.FS, "*")
	require.NoError(t, err)
	for _, name := range names {
		of[name], err = fs.ReadFile(templates.FS, name)
		require.NoError(t, err)
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(of[name]), of[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
