package search

import (
	"crypto/ed25519"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"amkc/ir/diag"
	"amkc/knobs"
)

// CampaignSchema is the version of Campaign in JSON.
const CampaignSchema = "amkc.campaign/3"

var earlierCampaigns = []string{"amkc.campaign/1", "amkc.campaign/2"}

// A Campaign has the parameters of a search. It is written once and never changed: every trial of the campaign is
// judged by it.
type Campaign struct {
	Schema    string         `json:"schema"`
	Tag       string         `json:"tag"`
	Model     string         `json:"model"`
	Source    string         `json:"source"` // as in verdicts: what is compiled, and by which passes
	Target    string         `json:"target"`
	Device    string         `json:"device"`
	Positions []int          `json:"positions"`
	HeldOut   []int          `json:"held_out"` // where the best is confirmed at the end
	Start     knobs.Settings `json:"start"`
	Cold      bool           `json:"cold"`           // Start is the unoptimised value of each knob
	Only      []string       `json:"only,omitempty"` // regions and knobs that are varied; empty: all
	SameBits  bool           `json:"same_bits"`      // knobs of the order of additions keep their values
	Seed      uint64         `json:"seed"`
	Rules     Rules          `json:"rules"`
	Key       string         `json:"key"`     // public half of what signs its verdicts
	Amkc      string         `json:"amkc"`    // version
	Command   []string       `json:"command"` // model and flags of compiling, for eval
	Space     *Space         `json:"space"`
}

// A Role is the purpose of a trial.
type Role string

// The roles.
const (
	RoleStart     Role = "start"     // the start against itself, before anything else: it shows the noise
	RoleCandidate Role = "candidate" // proposed, against the incumbent
	RoleConfirm   Role = "confirm"   // the incumbent against the start, at held-out positions
	RoleRecorded  Role = "recorded"  // a verdict that was brought from outside, against the incumbent
)

// A Job is a planned trial.
type Job struct {
	N        int            `json:"n"` // from 0
	Role     Role           `json:"role"`
	Rung     Rung           `json:"rung"`
	Round    int            `json:"round"`        // whose proposals it is of; 0: of none yet
	Of       int            `json:"of,omitempty"` // proposals of the round, of a screening
	Why      string         `json:"why,omitempty"`
	Settings knobs.Settings `json:"settings"`
	Against  knobs.Settings `json:"against"`
}

// A Trial is a finished job: a line of trials.jsonl.
type Trial struct {
	Job
	Verdict  *Verdict  `json:"verdict"`
	Accepted bool      `json:"accepted"` // it became the incumbent
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Previous string    `json:"previous"` // SHA-256 of the line before, or of campaign.json
}

// PositionsOf returns the positions at which a job is judged.
func (c *Campaign) PositionsOf(j *Job) []int {
	if j.Role == RoleConfirm {
		return c.HeldOut
	}
	return c.Positions
}

var publicKey = regexp.MustCompile("^[0-9a-f]{64}$")

// check refuses a campaign that cannot be one.
func (c *Campaign) check(file string) error {
	switch {
	case c.Schema != CampaignSchema:
		return diag.Errorf(codeCampaign, file, "has the schema %q; want %s", c.Schema, CampaignSchema)
	case c.Space == nil || len(c.Space.Knobs) == 0 || c.Space.Digest != c.Space.digest():
		return diag.Errorf(codeCampaign, file, "has no space, or one that was changed; want the file as it was written")
	case !publicKey.MatchString(c.Key):
		return diag.Errorf(codeCampaign, file, "has the key %.20q; want a public key, %d hexadecimal digits", c.Key,
			2*ed25519.PublicKeySize)
	case len(c.Positions) == 0 || len(c.HeldOut) == 0:
		return diag.Errorf(codeCampaign, file, "names no positions; want the file as it was written")
	case c.Rules.Width < 1 || c.Rules.Finals < 1 || c.Rules.Crashes < 1:
		return diag.Errorf(codeCampaign, file, "has rules that no search can go by; want the file as it was written")
	}
	return nil
}

// Signs returns an error unless the verdicts of the campaign are signed with the key. Without this check, anyone could
// record verdicts signed with another key.
func (c *Campaign) Signs(key PublicKey) error {
	if key.String() != c.Key {
		return diag.Errorf(codeForged, "campaign "+c.Tag, "takes verdicts signed with the key %.8s, and the key here "+
			"is %.8s; want --key with the file that it was begun with or, to verify it, with the public key that "+
			"its author has published", c.Key, key)
	}
	return nil
}

// verdictFor holds a verdict to the campaign and the job that it is for.
func (c *Campaign) verdictFor(j *Job, v *Verdict) error {
	var wrong string
	switch {
	case v.Model != c.Model || v.Source != c.Source:
		wrong = "is of another model, or of another amkc"
	case v.Target != c.Target || v.Device != c.Device:
		wrong = "is for another target or device"
	case v.ID != IDOf(j.Settings):
		wrong = "is of other settings"
	case v.BaselineID != IDOf(j.Against):
		wrong = "is against another baseline than " + IDOf(j.Against)
	case c.SameBits && !v.SameBits:
		wrong = "may be of another order of additions: it was made without --same-bits"
	case v.Rung != j.Rung:
		wrong = "is of another rung"
	case !slices.Equal(v.Positions, c.PositionsOf(j)):
		wrong = "is of other positions"
	default:
		return nil
	}
	return diag.Errorf(codeOther, "verdict "+v.ID, "%s; want one of this campaign: amkc search campaign next says "+
		"which", wrong)
}

// Same compares another campaign with this one, which is in a directory. The error names the first field that differs.
func (c *Campaign) Same(as *Campaign, dir string) error {
	var a, b map[string]any
	for _, one := range []struct {
		of   *Campaign
		into *map[string]any
	}{{c, &a}, {as, &b}} {
		text, err := json.Marshal(one.of)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, one.into); err != nil {
			return err
		}
	}
	for _, m := range []map[string]any{a, b} { // a field that is empty may be missing in either
		for _, field := range slices.Sorted(maps.Keys(m)) {
			if !reflect.DeepEqual(a[field], b[field]) {
				return diag.Errorf(codeOther, dir, "holds a campaign with another %s; want the flags that it was "+
					"begun with, or another directory", strings.ReplaceAll(field, "_", " "))
			}
		}
	}
	return nil
}
