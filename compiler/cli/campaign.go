package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
	"amkc/search"
)

// campaignActions are what campaign does.
var campaignActions = []string{"status", "next", "record", "report", "verify", "learn"}

func campaignVerb() verb {
	f := &judgeFlags{}
	return verb{
		name: "campaign", synopsis: "ACTION DIR|FILE [...]", min: 2, max: -1,
		summary: "say how a campaign stands and what is next, record a verdict, or verify it",
		details: "status DIR says how far the campaign is, and why each region is open or left. next DIR says which " +
			"evaluation is\nwanted, with the command for it. record DIR VERDICT adds what that printed with --json: " +
			"a verdict that amkc eval has\nsigned, and no number that somebody states. report DIR writes results.tsv " +
			"and report.html anew. verify DIR holds every\nline to the one before, every verdict to its signature, " +
			"and every decision to the rules. learn CORPUS DIR... adds the\nverdicts of campaigns to a file, and " +
			"says what they teach: what --corpus of amkc search takes.",
		flags: func(set *pflag.FlagSet) {
			set.Var(newWord(&f.key, ""), "key", "verify verdicts with the key in `FILE`, of which the public half is "+
				"enough; default: verdict.key\nof the user's configuration of amkc")
		},
		run: func(c *call) error { return runCampaign(c, f) },
	}
}

// campaignReport is the result of campaign in JSON.
type campaignReport struct {
	*searched
	Campaign *search.Campaign    `json:"campaign,omitempty"`
	Regions  []search.RegionInfo `json:"regions,omitempty"`
	Job      *search.Job         `json:"job,omitempty"` // of next
	Command  []string            `json:"command,omitempty"`
	// of next: the two configurations
	Candidate json.RawMessage `json:"candidate,omitempty"`
	Baseline  json.RawMessage `json:"baseline,omitempty"`
	Trial     *search.Trial   `json:"trial,omitempty"` // of record
}

func runCampaign(c *call, f *judgeFlags) error {
	action, dir := c.args[0], c.args[1]
	if !slices.Contains(campaignActions, action) {
		return c.usage("%s is no action; %s", typedWord(action), diag.Guess(action, campaignActions,
			"want "+listOr(campaignActions)))
	}
	if want := map[string]int{"record": 3, "learn": len(c.args)}[action]; len(c.args) != max(want, 2) {
		return c.usage("record takes a directory and a verdict, learn a corpus and any directories, and the others a "+
			"directory; usage: %s", c.verb.synopsisLine())
	}
	switch action {
	case "record":
		return recordVerdict(c, f, dir, c.args[2])
	case "learn":
		return learnFrom(c, f, dir, c.args[2:])
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
	c.payload = campaignReport{searched: result, Campaign: s.Campaign(), Regions: s.Regions()}
	return c.printf("%s%s", searchedText(result, s.Campaign()), regionsText(s.Regions()))
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

// recordVerdict adds what amkc eval --json has printed.
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
		return diag.Errorf(codeInput, file, "has no verdict; want what amkc eval --json prints, unchanged")
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
	if trial.Best {
		what = "recorded, and the best now"
	}
	return c.printf("trial %d: %s: %s\n", trial.N, what, v.Why)
}

// nextJob says what the campaign wants to know next. Whatever a machine would ask first at a lower rung, what is
// recorded is a final verdict against the best.
func nextJob(c *call, s *search.State) error {
	job, stop, err := s.Next()
	if err != nil {
		return err
	}
	if job == nil {
		if job = s.Confirm(); job == nil {
			c.payload = campaignReport{searched: &searched{Stop: stop}}
			return c.printf("stop: %s\n", stop)
		}
	}
	if job.Role != search.RoleConfirm && job.Role != search.RoleStart {
		job.Against, _ = s.Best()
	}
	job.Rung = search.Final
	var candidate json.RawMessage
	if job.Settings != nil {
		if candidate, err = configText(job.Settings); err != nil {
			return err
		}
	}
	baseline, err := configText(job.Against)
	if err != nil {
		return err
	}
	command := slices.Concat([]string{"amkc", "eval"}, s.Campaign().Command, []string{"--config=candidate.json",
		"--baseline=baseline.json", "--device=" + s.Campaign().Device,
		"--position=" + joined(s.Campaign().PositionsOf(job))})
	if stage := s.Campaign().StageOf(job); stage != "" {
		command = append(command, "--stage="+stage)
	}
	if s.Campaign().SameBits {
		command = append(command, "--same-bits")
	}
	command = append(command, "--json")
	c.payload = campaignReport{Job: job, Command: command, Candidate: candidate, Baseline: baseline}
	proposed := string(candidate)
	if candidate == nil {
		proposed = "of your own: amkc search would ask the proposer " + typedWord(job.Proposer)
	}
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = shellWord(word)
	}
	return c.printf("trial %d: %s, region %s\ncandidate.json: %s\nbaseline.json: %s\n%s > verdict.json\n", job.N,
		job.Role, cmp.Or(job.Region, "all"), proposed, baseline, strings.Join(words, " "))
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
	r.Stage = tunedIn(s)
	if t := s.Confirmed(); t != nil && t.Verdict.Timing != nil {
		r.HeldOut = &t.Verdict.Ratio
		if t.Verdict.Confirms() {
			r.Confirmed = r.HeldOut
		}
	}
	return r
}

func searchedText(r *searched, c *search.Campaign) string {
	var b strings.Builder
	if r.Stop != "" {
		fmt.Fprintf(&b, "ended: %s\n", r.Stop)
	}
	kind := "measured"
	if c.Device == search.DeviceCost {
		kind = "predicted"
	}
	switch {
	case r.Stage != nil:
		b.WriteString(tunedText(r, c, kind))
		fmt.Fprintf(&b, "%s\n", soundnessText(&r.Soundness))
		return b.String()
	case search.IDOf(r.Best) == search.IDOf(c.Start):
		b.WriteString("nothing better than the start was found\n")
	case r.Confirmed != nil:
		fmt.Fprintf(&b, "best, confirmed at positions %s: %s of the time of the start, %s\n", joined(c.HeldOut),
			intervalText(*r.Confirmed), kind)
	case r.HeldOut != nil:
		fmt.Fprintf(&b, "best, not confirmed: at positions %s it takes %s of the time of the start, which shows no "+
			"gain, %s\n", joined(c.HeldOut), intervalText(*r.HeldOut), kind)
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
	nothing := ""
	if s.NotProposed > 0 {
		nothing = fmt.Sprintf(", %d without a proposal", s.NotProposed)
	}
	return fmt.Sprintf("%d trials: %d rejected by a rule, %d failed, %d late, %d crashed%s; %d became the best, %d of "+
		"them unproved, %d unchecked", s.Trials, s.Rejected, s.Classes[search.Fail], s.Classes[search.Timeout],
		s.Classes[search.Crash], nothing, s.Best, s.BestUnproved, s.BestUnchecked)
}

func regionsText(regions []search.RegionInfo) string {
	var b strings.Builder
	for _, r := range regions {
		fmt.Fprintf(&b, "%s: %s, %d trials, %d accepted, %s\n", r.Name, r.Part(), r.Trials, r.Accepted, r.State)
	}
	return b.String()
}
