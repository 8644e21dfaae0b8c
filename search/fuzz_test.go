package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/knobs"
)

// Files of rounds and of corpora come from other machines: any bytes are read or refused.
func FuzzFiles(f *testing.F) {
	c := toyCampaign(knobs.Settings{})
	p := &Plan{Schema: PlanSchema, Trials: []Planned{{Job: *finalJob()}}}
	p.seal(&p.Trials[0])
	v := toyVerdict(c, finalJob())
	made := &Made{Schema: MadeSchema, ID: p.Trials[0].ID, Job: p.Trials[0].Job, Verdict: v, Started: time.Unix(1, 0)}
	for _, seed := range []any{p, made, v} {
		text, err := json.Marshal(seed)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte("{}\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer watch.Execution()()
		dir := t.TempDir()
		path := madePath(dir, p.Trials[0].ID)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		for _, name := range []string{path, filepath.Join(dir, planName), filepath.Join(dir, "corpus")} {
			require.NoError(t, os.WriteFile(name, text, 0o644))
		}
		if m, err := loadMade(path, toyPublic); err == nil {
			require.Equal(t, p.Trials[0].ID, m.ID)
		}
		if plan, err := LoadPlan(dir); err == nil {
			require.NotEmpty(t, plan.Trials)
		}
		if corpus, err := LoadCorpus(filepath.Join(dir, "corpus"), toyPublic); err == nil {
			corpus.Learn()
		}
	})
}
