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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/explore"
	"amkc/explore/mutant"
	"amkc/runtime"
	"amkc/templates"
)

// killedFile says where each mutant was killed, which is where it is run first: its id, the build, the job, and the
// number of the schedule. `make mutants` writes it.
const killedFile = "testdata/killed.tsv"

func readKilled(t *testing.T) map[string]*explore.MutantResult {
	t.Helper()
	text, err := os.ReadFile(killedFile)
	require.NoError(t, err)
	killed := map[string]*explore.MutantResult{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 4, "%s: %s", killedFile, line)
		m := &explore.MutantResult{ID: f[0], Build: f[1], Job: f[2], Fate: explore.Killed}
		m.Number, err = strconv.Atoi(f[3])
		require.NoError(t, err, "%s: %s", killedFile, line)
		killed[m.ID] = m
	}
	return killed
}

func writeKilled(t *testing.T, r *explore.MutantReport) {
	t.Helper()
	var b strings.Builder
	for _, m := range r.Results {
		if m.Fate == explore.Killed {
			fmt.Fprintf(&b, "%s\t%s\t%s\t%d\n", m.ID, m.Build, m.Job, m.Number)
		}
	}
	require.NoError(t, os.WriteFile(killedFile, []byte(b.String()), 0o666))
}

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
}

func openLog(t *testing.T, name string) *mutantLog {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o666)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	l := &mutantLog{t: t, file: f, sources: digestOfSources(t), killed: map[string]*explore.MutantResult{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var line logged
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), "%s: %s", name, lines.Text())
		if line.Fate == explore.Killed && line.Sources == l.sources {
			l.killed[line.ID] = line.MutantResult
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

// mostUnjudged is how many mutants unjudged.txt has. It only goes down: who adds code runs its mutants.
const mostUnjudged = 275

// TestTablesAreComplete wants each mutant of the builds in one of the three tables, and nothing else in them.
func TestTablesAreComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles all of the builds")
	}
	killed, known := readKilled(t), map[string]bool{}
	for i := range builds {
		b := builds[i].compile(t)
		for _, m := range mutantsOf(t, b.Dir) {
			id := m.ID()
			if known[id] {
				continue
			}
			known[id] = true
			in := 0
			for _, has := range []bool{killed[id] != nil, mutant.Reason(id) != "", mutant.Unjudged[id] != ""} {
				if has {
					in++
				}
			}
			if in != 1 {
				t.Errorf("%s, of build %s: it is in %d of %s, equivalent.txt and unjudged.txt; want it in one", id,
					b.Name, in, killedFile)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(killed)) {
		if !known[id] {
			t.Errorf("%s: %s has it, and no build", id, killedFile)
		}
	}
	for name, table := range map[string]map[string]string{
		"equivalent.txt": mutant.Equivalent, "unjudged.txt": mutant.Unjudged} {
		for _, id := range slices.Sorted(maps.Keys(table)) {
			if !known[id] {
				t.Errorf("%s: %s has it, and no build", id, name)
			}
		}
	}
	if n := len(mutant.Unjudged); n != mostUnjudged {
		t.Errorf("unjudged.txt has %d mutants; want %d, and a smaller number here once more of them are run", n,
			mostUnjudged)
	}
	t.Logf("%d mutants: %d killed, %d unjudged, the rest equivalent", len(known), len(killed), len(mutant.Unjudged))
}

// mutantsOf are the mutants of the sources of a build.
func mutantsOf(t *testing.T, dir string) []*mutant.Mutant {
	t.Helper()
	sources := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || ext != ".cu" && ext != ".cuh" && ext != ".h" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		sources[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	}))
	set, err := mutant.Generate(sources)
	require.NoError(t, err)
	return set.Mutants
}
