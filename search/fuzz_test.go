package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/knobs"
)

// Verdicts and trials come from other machines: any bytes are read or refused.
func FuzzFiles(f *testing.F) {
	c := toyCampaign(knobs.Settings{})
	start := &Job{Role: RoleStart, Rung: Final, Settings: c.Start, Against: c.Start}
	text, err := json.MarshalIndent(c, "", "  ")
	require.NoError(f, err)
	campaign := append(text, '\n')
	for _, seed := range []any{toyVerdict(c, start), &Trial{Job: *start, Verdict: toyVerdict(c, start),
		Previous: hexDigest(campaign)}} {
		text, err := json.Marshal(seed)
		require.NoError(f, err)
		f.Add(append(text, '\n'))
	}
	f.Add([]byte("{}\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer watch.Execution()()
		if v, err := ParseVerdict(text, "v"); err == nil {
			require.NoError(t, v.check("v"))
			_ = toyPublic.Check(v)
		}
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, campaignName), campaign, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, trialsName), text, 0o644))
		if s, _, _, err := Load(dir); err == nil {
			_, err = s.Report()
			require.NoError(t, err)
			s.Results()
		}
	})
}
