package agent

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"amkc/ir/diag"
	"amkc/search"
)

func (s *Server) addCampaignTools() {
	add[searchInput](s, "search", "Look for a faster schedule, trial by trial, in a campaign directory. Called "+
		"again with "+
		"the same arguments, it goes on with the campaign.", writes)
	add[tuneInput](s, "tune", "Look for a faster form of one stage by itself, trial by trial, in a campaign "+
		"directory; adopt what the whole step then shows. Called again with the same arguments, it goes on.", writes)
	add[planInput](s, "search_plan", "Plan a round of trials of a campaign that can be made at once.", writes)
	add[workInput](s, "search_work", "Make one trial of the planned round.", writes)
	add[mergeInput](s, "search_merge", "Bring together the trials that were made, and enter a round that is complete.",
		writes)
	add[statusInput](s, "campaign_status", "Say how far a campaign is, what is best, and why regions are open or left.",
		reads)
	add[nextInput](s, "campaign_next", "Say which evaluation a campaign wants next: job.settings against "+
		"job.against, at "+
		"the campaign's positions.", reads)
	add[recordInput](s, "campaign_record", "Add a verdict that eval has saved to a campaign. A number that "+
		"somebody states "+
		"is refused.", writes)
	add[reportInput](s, "campaign_report", "Write report.html and results.tsv of a campaign.", writes)
	add[campaignVerifyInput](s, "campaign_verify", "Hold a campaign to its signatures, its order and its rules.", reads)
	add[learnInput](s, "campaign_learn", "Add the verdicts of campaigns, and of other corpora, to a corpus, and say "+
		"what it teaches: search and search_plan propose by it.", writes)
}

// campaignInput is a campaign with what it was asked to do.
type campaignInput struct {
	modelInput
	Campaign  string         `json:"campaign" jsonschema:"directory of the campaign"`
	Trials    int            `json:"trials,omitempty" jsonschema:"end when the campaign has so many trials"`
	Device    string         `json:"device,omitempty" jsonschema:"cost predicts (default), cuda measures on the GPU"`
	Positions []int          `json:"positions,omitempty" jsonschema:"default: 0"`
	HeldOut   []int          `json:"held_out,omitempty" jsonschema:"positions to confirm the best at"`
	Start     map[string]any `json:"start,omitempty" jsonschema:"knobs to begin at; default: all defaults"`
	Cold      bool           `json:"cold,omitempty" jsonschema:"begin at the least clever values"`
	SameBits  bool           `json:"same_bits,omitempty" jsonschema:"leave knobs alone that change bits of logits"`
	Seed      string         `json:"seed,omitempty" jsonschema:"what proposals are drawn from"`
	Proposers []string       `json:"proposers,omitempty" jsonschema:"random, local, evolve, cost; with a corpus prior"`
	Bracket   int            `json:"bracket,omitempty" jsonschema:"configurations screened together; default 9"`
	Timeout   int            `json:"timeout_s,omitempty" jsonschema:"seconds for one evaluation; default 600"`
}

// add adds what every search takes. Proposers may be those that need nothing, and others that are named.
func (in *campaignInput) add(a *arguments, others ...string) {
	in.modelInput.add(a)
	a.written("--out", in.Campaign)
	a.number("--trials", in.Trials)
	a.text("--device", in.Device)
	a.numbers("--position", in.Positions)
	a.numbers("--held-out", in.HeldOut)
	a.settings("--config", in.Start)
	a.flag("--cold", in.Cold)
	a.flag("--same-bits", in.SameBits)
	a.text("--seed", in.Seed)
	known := slices.Concat(search.OwnProposers(), others)
	for _, name := range in.Proposers {
		// A command would run with the rights of the server, outside of the root.
		if !slices.Contains(known, name) {
			last := len(known) - 1
			a.fail(diag.Errorf(codeArgument, "proposers", "%q; want %s or %s", name,
				strings.Join(known[:last], ", "), known[last]))
		}
		a.text("--proposer", name)
	}
	a.number("--bracket", in.Bracket)
	a.number("--timeout", in.Timeout)
	a.text("--key", a.s.options.Key)
	a.alone = in.Device == search.DeviceCUDA
}

// guidedInput is a search of a step, which a corpus may guide. That of a stage on its own takes none: what was learnt
// is of steps.
type guidedInput struct {
	campaignInput
	Corpus string `json:"corpus,omitempty" jsonschema:"file that campaign_learn has made, for the proposer prior"`
}

func (in *guidedInput) add(a *arguments) {
	in.campaignInput.add(a, "prior")
	a.given("--corpus", in.Corpus)
}

type searchInput struct {
	guidedInput
	Minutes int `json:"minutes,omitempty" jsonschema:"end this call after so many minutes"`
}

func (in searchInput) command(a *arguments) {
	a.add("search")
	in.add(a)
	a.number("--minutes", in.Minutes)
}

type tuneInput struct {
	campaignInput
	Stage   string `json:"stage" jsonschema:"qkv, attention, o, gate_up, down or lm_head"`
	Minutes int    `json:"minutes,omitempty" jsonschema:"end this call after so many minutes"`
}

func (in tuneInput) command(a *arguments) {
	if strings.HasPrefix(in.Stage, "-") {
		a.fail(diag.Errorf(codeArgument, "stage", "%q is a flag; want the name of a stage", in.Stage))
	}
	a.add("tune", in.Stage)
	in.add(a)
	a.number("--minutes", in.Minutes)
}

type planInput struct{ guidedInput }

func (in planInput) command(a *arguments) {
	a.add("search", "plan")
	in.add(a)
	a.alone = false
}

type workInput struct {
	Campaign string `json:"campaign" jsonschema:"directory of the campaign"`
	Index    int    `json:"index" jsonschema:"of the trial in the round, from 0"`
	Stage    string `json:"stage,omitempty" jsonschema:"build compiles; judge (default) does what is left"`
}

func (in workInput) command(a *arguments) {
	a.add("search", "work")
	a.written("--out", in.Campaign)
	a.add("--index=" + strconv.Itoa(in.Index))
	a.text("--stage", in.Stage)
	a.text("--key", a.s.options.Key)
	if a.err == nil {
		a.fail(a.s.commandOf(in.Campaign, a))
	}
}

// commandOf holds the command that a campaign has eval called with to the root: campaign.json is a file that an agent
// can write.
func (s *Server) commandOf(dir string, a *arguments) error {
	path, err := s.existing(dir)
	if err != nil {
		return err
	}
	c, _, err := search.LoadCampaign(filepath.Join(s.dir, path))
	if err != nil {
		return err
	}
	a.alone = c.Device == search.DeviceCUDA
	if len(c.Command) == 0 {
		return diag.Errorf(codeArgument, dir, "has a campaign without a model")
	}
	if _, err := s.existing(c.Command[0]); err != nil {
		return err
	}
	for _, word := range c.Command[1:] {
		flag, _, _ := strings.Cut(word, "=")
		if !slices.Contains(harmless, flag) {
			return diag.Errorf(codeArgument, dir, "has a campaign that compiles with %q; want one that the tools "+
				"search "+
				"or search_plan began", word)
		}
	}
	return nil
}

// harmless are the flags of compiling that tools give campaigns. None names a file.
var harmless = []string{"--target", "--dtype", "--weights", "--cache", "--max-seq", "--random-weights"}

type mergeInput struct {
	Campaign string   `json:"campaign" jsonschema:"directory of the campaign"`
	From     []string `json:"from,omitempty" jsonschema:"copies of it that trials were made in"`
}

func (in mergeInput) command(a *arguments) {
	a.add("search", "merge")
	a.written("--out", in.Campaign)
	for _, dir := range in.From {
		a.existing(dir)
	}
	a.text("--key", a.s.options.Key)
}

// dirInput is a campaign that is there.
type dirInput struct {
	Campaign string `json:"campaign" jsonschema:"directory of the campaign"`
}

func (in *dirInput) add(a *arguments, action string) {
	a.add("campaign", action)
	a.existing(in.Campaign)
}

type statusInput struct{ dirInput }

func (in statusInput) command(a *arguments) { in.add(a, "status") }

type nextInput struct{ dirInput }

func (in nextInput) command(a *arguments) { in.add(a, "next") }

type reportInput struct{ dirInput }

func (in reportInput) command(a *arguments) { in.add(a, "report") }

type campaignVerifyInput struct{ dirInput }

func (in campaignVerifyInput) command(a *arguments) {
	in.add(a, "verify")
	a.text("--key", a.s.options.Key)
}

type learnInput struct {
	Corpus string   `json:"corpus" jsonschema:"file of the corpus, which is made if it is not there"`
	From   []string `json:"from,omitempty" jsonschema:"directories of campaigns, and files of other corpora"`
}

func (in learnInput) command(a *arguments) {
	a.add("campaign", "learn")
	a.target(in.Corpus)
	for _, name := range in.From {
		a.existing(name)
	}
	a.text("--key", a.s.options.Key)
}

type recordInput struct {
	dirInput
	Verdict string `json:"verdict" jsonschema:"file that eval has saved its result to"`
}

func (in recordInput) command(a *arguments) {
	in.add(a, "record")
	a.existing(in.Verdict)
	a.text("--key", a.s.options.Key)
}
