package search

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"amkc/ir/diag"
	"amkc/knobs"
)

// SpaceSchema is the version of Space in JSON.
const SpaceSchema = "amkc.space/1"

// A Space is the knobs of the schedule of a model for a target, and their values.
type Space struct {
	Model  string `json:"model"`
	Target string `json:"target"`
	Digest string `json:"digest"` // of the knobs; a campaign is of one space
	Knobs  []Knob `json:"knobs"`
	Left   int    `json:"left,omitempty"` // values that were not tried; a campaign has none
	// Idle are the knobs that are not varied. They are not part of the digest: a campaign does not depend on them.
	Idle []Idle `json:"idle,omitempty"`
}

// Idle is a knob that is not varied, and why.
type Idle struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// A Knob is a knob that a search varies.
type Knob struct {
	Path    string        `json:"path"`            // tiling.ring.pace
	Stage   string        `json:"stage,omitempty"` // of a knob per stage
	Region  string        `json:"region"`          // what it belongs to; a search moves from region to region
	Doc     string        `json:"doc"`
	Accepts string        `json:"accepts"` // what is legal, whatever the model and the target
	Order   bool          `json:"order"`   // it decides in which order sums are added up (docs/passes.md)
	Default knobs.Value   `json:"default"` // for this model and target
	Plain   knobs.Value   `json:"plain"`   // the unoptimised value that is accepted here
	Values  []knobs.Value `json:"values"`  // the default, and those that make another build
	Changes []string      `json:"changes"` // of a build: program, and generated files
	// Follows are knobs on whose values the default depends.
	Follows []string  `json:"follows,omitempty"`
	Refused []Refused `json:"refused"` // values that this model or target does not allow, on their own
	Same    []Same    `json:"same"`    // values that make the build of another one
	// Left are values that were not tried, if the space is incomplete.
	Left []knobs.Value `json:"left,omitempty"`
}

// Refused is a value that is not accepted, and why.
type Refused struct {
	Value  knobs.Value      `json:"value"`
	Reason *diag.Diagnostic `json:"reason"`
}

// Same is a value with the same build as another one.
type Same struct {
	Value knobs.Value `json:"value"`
	As    knobs.Value `json:"as"`
}

// Seal sets the digest.
func (s *Space) Seal() { s.Digest = s.digest() }

func (s *Space) digest() string { return digestOf(s.Knobs) }

// Only returns the part of the space with the given names, each of a region or a knob.
func (s *Space) Only(names []string) (*Space, error) {
	out := &Space{Model: s.Model, Target: s.Target}
	known := map[string]bool{}
	for i := range s.Knobs {
		k := &s.Knobs[i]
		known[k.Region], known[k.Path] = true, true
		if slices.Contains(names, k.Region) || slices.Contains(names, k.Path) {
			out.Knobs = append(out.Knobs, *k)
		}
	}
	for _, name := range names {
		if !known[name] {
			all := slices.Sorted(maps.Keys(known))
			return nil, diag.Errorf(codeOnly, "--only", "%q is neither a region nor a knob that is varied here; %s",
				name, diag.Guess(name, all, "want "+strings.Join(all, ", ")))
		}
	}
	out.Seal()
	return out, nil
}

// Knob returns the knob with a path, or nil.
func (s *Space) Knob(path string) *Knob {
	if i := slices.IndexFunc(s.Knobs, func(k Knob) bool { return k.Path == path }); i >= 0 {
		return &s.Knobs[i]
	}
	return nil
}

// Cold returns the settings of the unoptimised value of each knob.
func (s *Space) Cold() knobs.Settings {
	cold := knobs.Settings{}
	for i := range s.Knobs {
		if k := &s.Knobs[i]; k.Plain != k.Default {
			cold[k.Path] = k.Plain
		}
	}
	return cold
}

// value is what a configuration has for a knob: what it states, or else the default, though that may follow others.
func (k *Knob) value(s knobs.Settings) knobs.Value {
	if v, is := s[k.Path]; is {
		return v
	}
	return k.Default
}

// with returns settings with another value of a knob. A default is not stated, and so goes with knobs that it follows,
// unless one of these is stated: then it may be another one there.
func (k *Knob) with(s knobs.Settings, v knobs.Value) knobs.Settings {
	out := k.without(s)
	follows := slices.ContainsFunc(k.Follows, func(path string) bool { return out[path] != "" })
	if v != k.Default || follows {
		out[k.Path] = v
	}
	return out
}

// as returns settings with a knob as others have it: stated as there, or not stated.
func (k *Knob) as(s, others knobs.Settings) knobs.Settings {
	out := k.without(s)
	if v, stated := others[k.Path]; stated {
		out[k.Path] = v
	}
	return out
}

// without returns a copy of settings that does not state a knob.
func (k *Knob) without(s knobs.Settings) knobs.Settings {
	out := maps.Clone(s)
	if out == nil {
		return knobs.Settings{}
	}
	delete(out, k.Path)
	return out
}

// IDOf returns the ID of settings: the same settings have the same ID.
func IDOf(s knobs.Settings) string {
	if s == nil {
		s = knobs.Settings{}
	}
	return digestOf(s)[:12]
}

// digestOf is the SHA-256 of a value's JSON.
func digestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of types that have no JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
