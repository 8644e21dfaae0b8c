package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/runtime/progress"
)

func TestProgressLines(t *testing.T) {
	var b strings.Builder
	now := time.Unix(1000, 0)
	p := &progressLines{w: &b, now: func() time.Time { return now }}
	p.Report("packing", 0, 3)
	p.Report("packing", 1, 3) // at once: left out
	now = now.Add(rarely)
	p.Report("packing", 2, 3)
	p.Report("packing", 3, 3) // the end is always told
	p.Report("packing", 3, 3)
	p.ReportBytes("reading \x1b[2J", 5, 0)
	p.Show(progress.Step{Activity: "trial", Done: 1, Total: 9, Unit: "trials"})
	p.Clear()
	require.Equal(t, `{"progress":{"activity":"packing","done":0,"total":3,"unit":""}}
{"progress":{"activity":"packing","done":2,"total":3,"unit":""}}
{"progress":{"activity":"packing","done":3,"total":3,"unit":""}}
{"progress":{"activity":"reading \u001b[2J","done":5,"total":0,"unit":"bytes"}}
{"progress":{"activity":"trial","done":1,"total":9,"unit":"trials"}}
`, b.String())
}
