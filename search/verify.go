package search

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// Soundness has counts about the safety of a campaign.
type Soundness struct {
	Trials   int           `json:"trials"`
	Classes  map[Class]int `json:"classes"`
	Rejected int           `json:"rejected"` // by a rule: refused, or not proved
	// Accepted counts the candidates that became the incumbent, and those of them without a proof, and without a check
	// of their results.
	Accepted          int `json:"accepted"`
	AcceptedUnproved  int `json:"accepted_unproved"`
	AcceptedUnchecked int `json:"accepted_unchecked"`
}

// Soundness counts the trials.
func (s *State) Soundness() Soundness {
	out := Soundness{Trials: len(s.trials), Classes: maps.Clone(s.found), Rejected: s.found[Rejected]}
	for i := range s.trials {
		if v := s.trials[i].Verdict; s.trials[i].Accepted {
			out.Accepted++
			if !v.Class.Holds() || v.Proof == nil || !v.Proof.OK {
				out.AcceptedUnproved++
			}
			if v.Class != Pass {
				out.AcceptedUnchecked++
			}
		}
	}
	return out
}

// Verify checks a campaign: every line has the digest of the one before, every verdict is signed with the key and is
// for its trial, every decision follows from the verdict by the rules, and the accepted candidates follow from the
// decisions. The error is a diagnostic.
func Verify(dir string, key PublicKey) (*Soundness, error) {
	s, _, _, err := Load(dir)
	if err != nil {
		return nil, err
	}
	if err := s.campaign.Signs(key); err != nil {
		return nil, err
	}
	again, path := NewState(s.campaign), filepath.Join(dir, trialsName)
	for i := range s.trials {
		t := s.trials[i]
		if err := again.verify(&t, key); errors.Is(err, errRules) {
			return nil, s.otherRules(path, i, err)
		} else if err != nil {
			return nil, diag.Errorf(codeTrials, path, "line %d: %s", i+1, infile.Reason(err))
		}
		again.Apply(&t)
	}
	sound := again.Soundness()
	return &sound, nil
}

func (s *State) verify(t *Trial, key PublicKey) error {
	if err := key.Check(t.Verdict); err != nil {
		return err
	}
	if err := s.campaign.verdictFor(&t.Job, t.Verdict); err != nil {
		return err
	}
	if err := s.campaign.Rules.made(t.Verdict); err != nil {
		return err
	}
	if accepted := s.Accepts(t); accepted != t.Accepted {
		return fmt.Errorf("accepted is %v, and from the trials before it follows %v", t.Accepted, accepted)
	}
	return nil
}

// errRules says that a decision is not what the rules make of a verdict. Decisions are signed, so that the rules were
// others, or the key is somebody else's too.
var errRules = errors.New("the decision is of other rules")

// made holds the decision of a verdict to the rules.
func (r *Rules) made(v *Verdict) error {
	judged := *v
	if judged.Timing != nil {
		timing := *judged.Timing
		judged.Timing = &timing
	}
	if r.Decide(&judged); judged.Decision != v.Decision {
		return fmt.Errorf("%w: the decision is %s, and the rules say %s", errRules, v.Decision, judged.Decision)
	}
	return nil
}

// otherRules is what there is to say of a campaign that was decided by other rules, as its trial i shows.
func (s *State) otherRules(path string, i int, err error) error {
	return diag.Errorf(codeRules, path, "line %d: %s here; want the amkc that wrote it, which was %s", i+1,
		strings.TrimPrefix(err.Error(), errRules.Error()+": "), cmp.Or(s.campaign.Amkc, "not named"))
}

// sameRules refuses a campaign whose verdicts were decided by other rules than those here.
func (s *State) sameRules(dir string) error {
	for i := range s.trials {
		if err := s.campaign.Rules.made(s.trials[i].Verdict); err != nil {
			return s.otherRules(filepath.Join(dir, trialsName), i, err)
		}
	}
	return nil
}

// Record adds a verdict that amkc search eval made outside the campaign: against the incumbent, at the last rung.
func (j *Journal) Record(v *Verdict, key PublicKey, now time.Time) (*Trial, error) {
	s := j.State
	if err := s.campaign.Signs(key); err != nil {
		return nil, err
	}
	if err := key.Check(v); err != nil {
		return nil, err
	}
	t := &Trial{Job: Job{N: len(s.trials), Role: RoleRecorded, Rung: Final, Round: s.round(),
		Settings: v.Settings, Against: s.incumbent()}, Verdict: v}
	if len(s.trials) == 0 {
		t.Role, t.Against = RoleStart, s.campaign.Start
	}
	if err := s.campaign.verdictFor(&t.Job, v); err != nil {
		return nil, err
	}
	if err := s.campaign.Rules.made(v); err != nil { // it would lock the campaign
		return nil, diag.Errorf(codeRules, "verdict "+v.ID, "%s here; want a verdict by the rules of the campaign",
			strings.TrimPrefix(err.Error(), errRules.Error()+": "))
	}
	for i := range s.trials {
		if s.trials[i].Verdict.Signature == v.Signature {
			return nil, diag.Errorf(codeOther, "verdict "+v.ID, "is that of trial %d already", i)
		}
	}
	t.Started, t.Seconds = now.UTC().Truncate(time.Millisecond), v.Seconds
	return t, j.Append(t)
}
