package explore

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/ir/diag"
)

// Any bytes are a script or an error with a code; a script is written as it was read, and says nothing to a terminal.
func FuzzReadScript(f *testing.F) {
	good := Script{Format: 1, Build: "b", Machine: "m", Job: "steps", Schedule: Schedule{Strategy: Replay,
		Deviations: [][2]uint64{{3, 1}}, HostStores: []HostStore{{Step: 5, PointerAt: abortPointer, Value: 1}}},
		Finding: Finding{Kind: "race", Message: "\x1b[31m", Sites: []Site{{File: "amk/x.cuh", Line: 3}}}}
	text, err := json.Marshal(good)
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"format":1,"schedule":{"strategy":"random","deviations":[[1]]}}`))
	f.Add([]byte(`{"format":1,"schedule":{"strategy":"pct","deviations":[]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer watch.Execution()()
		s, err := parseScript("script.json", text)
		if err != nil {
			var d *diag.Diagnostic
			require.ErrorAs(t, err, &d)
			require.Equal(t, codeScript.ID, d.Code)
			return
		}
		found := Found{Finding: s.Finding, Job: s.Job, Schedule: s.Schedule.String(), Script: s}
		for _, c := range diag.List([]*diag.Diagnostic{found.Diagnostic()}).Error() {
			require.True(t, c >= ' ' || c == '\n', "%q", c)
		}
		text, err = json.Marshal(s)
		require.NoError(t, err)
		again, err := parseScript("script.json", text)
		require.NoError(t, err)
		require.Equal(t, s.Schedule.text(), again.Schedule.text())
		require.Equal(t, s.Finding.key(), again.Finding.key())
	})
}
