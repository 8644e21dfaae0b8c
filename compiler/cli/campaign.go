package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
	"amkc/search"
)

// campaignActions are what campaign does.
var campaignActions = []string{"status", "next", "record", "report", "verify"}

func campaignVerb() verb {
	f := &judgeFlags{}
	return verb{
		name: "search campaign", synopsis: "ACTION DIR [VERDICT]", min: 2, max: 3,
		summary: "report a campaign, record a verdict, or verify it",
		details: `
status DIR shows the progress. next DIR prints the configuration that a candidate must beat, and the command that
judges a candidate. record DIR VERDICT adds the --json output of that command, if amkc search eval signed it. report
DIR writes results.tsv and report.html. verify DIR checks every line against the one before, every verdict against its
signature, and every decision against the rules.`,
		flags: func(set *pflag.FlagSet) {
			set.Var(front.NewWord(&f.key, ""), "key",
				"verify verdicts with the key in `FILE`, of which the public half is "+
					"enough; default: verdict.key of the user's configuration of amkc")
		},
		run: func(c *call) error { return runCampaign(c, f) },
	}
}

// campaignReport is the result of campaign in JSON.
type campaignReport struct {
	*searched
	Campaign *search.Campaign `json:"campaign,omitempty"`
	Against  knobs.Settings   `json:"against,omitzero"` // of next: what a candidate has to beat
	Command  []string         `json:"command,omitempty"`
	Baseline json.RawMessage  `json:"baseline,omitempty"` // Against as a file of --baseline
	Trial    *search.Trial    `json:"trial,omitempty"`    // of record
}

func runCampaign(c *call, f *judgeFlags) error {
	action, dir := c.args[0], c.args[1]
	if !slices.Contains(campaignActions, action) {
		return c.usage("%s is not an action; %s", typedWord(action), diag.Guess(action, campaignActions,
			"want "+listOr(campaignActions)))
	}
	if (action == "record") != (len(c.args) == 3) {
		return c.usage("record takes a directory and a verdict, and the others a directory; usage: %s",
			c.verb.synopsisLine())
	}
	switch action {
	case "record":
		return recordVerdict(c, f, dir, c.args[2])
	case "verify":
		return verifyCampaign(c, f, dir)
	}
	s, _, _, err := search.Load(dir)
	if err != nil {
		return err
	}
	switch action {
	case "next":
		return nextJob(c, s)
	case "report":
		if err := writeReport(dir, s); err != nil {
			return err
		}
		c.payload = campaignReport{searched: resultOf(dir, "", s)}
		return c.printf("%s\n%s\n", filepath.Join(dir, search.ReportName), filepath.Join(dir, search.ResultsName))
	}
	result := resultOf(dir, "", s)
	c.payload = campaignReport{searched: result, Campaign: s.Campaign()}
	return c.printf("%s", searchedText(result, s))
}

// verifyCampaign checks everything that can be checked.
func verifyCampaign(c *call, f *judgeFlags, dir string) error {
	key, err := f.publicKey()
	if err != nil {
		return err
	}
	sound, err := search.Verify(dir, key)
	if err != nil {
		return err
	}
	c.payload = struct {
		Soundness *search.Soundness `json:"soundness"`
	}{sound}
	return c.printf("%s: lines, signatures and decisions hold; %s\n", dir, soundnessText(sound))
}

// recordVerdict adds what amkc search eval --json has printed.
func recordVerdict(c *call, f *judgeFlags, dir, file string) error {
	key, err := f.publicKey()
	if err != nil {
		return err
	}
	text, err := readFile(file, infile.Manifest)
	if err != nil {
		return err
	}
	var printed struct {
		Verdict json.RawMessage `json:"verdict"`
	}
	if err := json.Unmarshal(text, &printed); err != nil || printed.Verdict == nil {
		return diag.Errorf(codeInput, file, "has no verdict; want what amkc search eval --json prints, unchanged")
	}
	v, err := search.ParseVerdict(printed.Verdict, file)
	if err != nil {
		return err
	}
	j, err := search.OpenJournal(dir)
	if err != nil {
		return err
	}
	defer j.Close()
	trial, err := j.Record(v, key, time.Now())
	if err != nil {
		return err
	}
	if err := writeReport(dir, j.State); err != nil {
		return err
	}
	c.payload = campaignReport{searched: resultOf(dir, "", j.State), Trial: trial}
	what := "recorded"
	if trial.Accepted {
		what = "recorded, and the best now"
	}
	return c.printf("trial %d: %s: %s\n", trial.N, what, v.Why)
}

// nextJob says what a verdict has to be that the campaign records: of any candidate, in full, against the best. The
// first one is of the start against itself.
func nextJob(c *call, s *search.State) error {
	against, _ := s.Best()
	baseline, err := configText(against)
	if err != nil {
		return err
	}
	campaign := s.Campaign()
	command := slices.Concat([]string{"amkc", "search", "eval"}, campaign.Command, []string{"--config=candidate.json",
		"--baseline=baseline.json", "--device=" + campaign.Device, "--position=" + joined(campaign.Positions)})
	if campaign.SameBits {
		command = append(command, "--same-bits")
	}
	command = append(command, "--json")
	c.payload = campaignReport{Against: against, Command: command, Baseline: baseline}
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = shellWord(word)
	}
	candidate := "of your own"
	if len(s.Trials()) == 0 {
		candidate = "that of baseline.json, first: the start against itself"
	}
	return c.printf("candidate.json: %s\nbaseline.json: %s\n%s > verdict.json\n", candidate, baseline,
		strings.Join(words, " "))
}

// configText is the configuration of settings as a file of it has it.
func configText(s knobs.Settings) (json.RawMessage, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	return config.MarshalJSON()
}

// writeReport writes the page and the table of a campaign.
func writeReport(dir string, s *search.State) error {
	page, err := s.Report()
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{search.ReportName: page, search.ResultsName: []byte(s.Results())} {
		path := filepath.Join(dir, name)
		err := outfile.Write(path, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
		if err != nil {
			return notWritten(path, err)
		}
	}
	return nil
}

func resultOf(dir, stop string, s *search.State) *searched {
	r := &searched{Dir: dir, Stop: stop, Soundness: s.Soundness()}
	r.Best, r.Estimate = s.Best()
	if t := s.Confirmed(); t != nil && t.Verdict.Timing != nil {
		r.HeldOut = &t.Verdict.Ratio
		if t.Verdict.Confirms() {
			r.Confirmed = r.HeldOut
		}
	}
	return r
}

func searchedText(r *searched, s *search.State) string {
	var b strings.Builder
	c, kind := s.Campaign(), "measured"
	if r.Stop != "" {
		fmt.Fprintf(&b, "ended: %s\n", r.Stop)
	}
	if c.Device == search.DeviceCost {
		kind = "predicted"
	}
	if t := s.Refuted(); t != nil {
		fmt.Fprintf(&b, "not confirmed: %s seemed to be faster, and takes %s of the time of the start at positions "+
			"%s, %s\n", t.Verdict.ID, intervalText(t.Verdict.Ratio), joined(c.HeldOut), kind)
	}
	switch {
	case search.IDOf(r.Best) == search.IDOf(c.Start):
		b.WriteString("nothing better than the start was found\n")
	case r.Confirmed != nil:
		fmt.Fprintf(&b, "best, confirmed at positions %s: %s of the time of the start, %s\n", joined(c.HeldOut),
			intervalText(*r.Confirmed), kind)
	case r.HeldOut != nil:
		fmt.Fprintf(&b, "best, not confirmed: at positions %s it takes %s of the time of the start, an interval that "+
			"is not below 1, %s\n", joined(c.HeldOut), intervalText(*r.HeldOut), kind)
	default:
		fmt.Fprintf(&b, "best, not confirmed: about %.4f of the time of the start, %s\n", r.Estimate, kind)
	}
	b.WriteString(settingsText(r.Best))
	fmt.Fprintf(&b, "%s\n", soundnessText(&r.Soundness))
	return b.String()
}

func settingsText(s knobs.Settings) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "    %s = %s\n", path, s[path])
	}
	return b.String()
}

func soundnessText(s *search.Soundness) string {
	return fmt.Sprintf("%d trials: %d rejected by a rule, %d failed, %d late, %d crashed; %d became the best, %d of "+
		"them unproved, %d unchecked", s.Trials, s.Rejected, s.Classes[search.Fail], s.Classes[search.Timeout],
		s.Classes[search.Crash], s.Accepted, s.AcceptedUnproved, s.AcceptedUnchecked)
}
