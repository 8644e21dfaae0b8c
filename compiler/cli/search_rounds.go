package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"amkc/ir/diag"
	"amkc/search"
)

// planned is the result of search plan in JSON.
type planned struct {
	*searched
	Planned []plannedTrial `json:"planned"` // by index; none: the campaign is at its end, and stop says why
}

type plannedTrial struct {
	ID   string      `json:"id"`
	Role search.Role `json:"role"`
	Rung search.Rung `json:"rung"`
}

// plan writes a round of trials.
func (f *searchFlags) plan(c *call) error {
	if err := f.check(c); err != nil {
		return err
	}
	if f.trials == 0 {
		return c.usage("a search needs an end; want --trials N")
	}
	key, err := f.judge.signingKey(search.LoadKey)
	if err != nil {
		return err
	}
	ctx, cancel := interruptible()
	defer cancel()
	line := c.progress()
	defer line.Clear()
	j, err := f.open(ctx, c, key, line)
	if err != nil {
		return err
	}
	defer j.Close()
	p, stop, err := j.Plan(ctx, f.asker, search.Budget{Trials: f.trials, Forever: f.overnight})
	if err != nil {
		return err
	}
	if err := writeReport(f.out, j.State); err != nil {
		return err
	}
	result := planned{searched: resultOf(f.out, stop, j.State), Planned: []plannedTrial{}}
	for i := range p.Trials {
		t := &p.Trials[i]
		result.Planned = append(result.Planned, plannedTrial{t.ID, t.Role, t.Rung})
	}
	c.payload = result
	text := fmt.Sprintf("planned: %d\n", len(p.Trials))
	if len(p.Trials) == 0 {
		text += searchedText(result.searched, j.Campaign)
	}
	return c.printf("%s", text)
}

// worked is the result of search work in JSON.
type worked struct {
	Dir   string       `json:"dir"`
	Index int          `json:"index"`
	State string       `json:"state"` // made, built, or nothing, where the round has no such trial to make
	Trial *search.Made `json:"trial,omitempty"`
}

// work makes a trial of the round, or a stage of it.
func (f *searchFlags) work(c *call) error {
	if !c.flags.Changed("index") {
		return c.usage("--index says which trial of the round; want --index N")
	}
	campaign, digest, err := search.LoadCampaign(f.out)
	if err != nil {
		return err
	}
	f.judge.device, f.judge.positions = campaign.Device, campaign.Positions
	if err := f.judge.check(c); err != nil {
		return err
	}
	if f.stage == string(search.StageBuild) && campaign.Device != search.DeviceCUDA {
		return c.usage("--stage build is for measuring on a GPU, and %s has predictions; want --stage judge", f.out)
	}
	key, err := f.judge.signingKey(search.ReadKey)
	if err != nil {
		return err
	}
	p, err := search.LoadPlan(f.out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && p.Campaign != digest {
		err = diag.Errorf(codeInput, f.out, "has no plan of this campaign; want amkc search plan before work")
	}
	if err != nil {
		return err
	}
	result := worked{Dir: f.out, Index: f.index, State: "nothing"}
	if f.index >= len(p.Trials) || p.Trials[f.index].Refused != nil {
		c.payload = &result
		return c.printf("trial %d: nothing to make in a round of %d\n", f.index, len(p.Trials))
	}
	ctx, cancel := interruptible()
	defer cancel()
	w, done, err := f.judge.worker(campaign, key, f.judge.timeout)
	if err != nil {
		return err
	}
	defer done()
	made, err := w.Work(ctx, f.out, p, f.index, search.Stage(f.stage))
	if err != nil {
		return err
	}
	c.payload = &result // not before: a trial that could not be made is not one that there is not
	id := p.Trials[f.index].ID
	if made == nil {
		result.State = "built"
		return c.printf("trial %d, %s: built\n", f.index, id)
	}
	result.State, result.Trial = "made", made
	return c.printf("trial %d, %s: %s: %s\n", f.index, id, made.Verdict.Class, made.Verdict.Why)
}

// merged is the result of search merge in JSON.
type merged struct {
	*searched
	*search.Merged
}

// merge brings together what was made, and enters a round that is complete.
func (f *searchFlags) merge(c *call) error {
	key, err := f.judge.publicKey()
	if err != nil {
		return err
	}
	j, err := search.OpenJournal(f.out)
	if err != nil {
		return err
	}
	defer j.Close()
	m, err := j.Merge(c.args, key)
	if err != nil {
		return err
	}
	if m.Entered > 0 {
		if err := writeReport(f.out, j.State); err != nil {
			return err
		}
	}
	result := resultOf(f.out, "", j.State)
	c.payload = merged{result, m}
	missing := ""
	if len(m.Missing) > 0 {
		missing = "; not made yet: --index " + strings.ReplaceAll(joined(m.Missing), ",", ", ")
	}
	if err := c.printf("%d trials made, %d of them from elsewhere; of a round of %d, %d entered%s\n%s", m.Made, m.Added,
		m.Planned, m.Entered, missing, searchedText(result, j.Campaign)); err != nil {
		return err
	}
	if len(m.Missing) > 0 {
		return errDifferent
	}
	return nil
}
