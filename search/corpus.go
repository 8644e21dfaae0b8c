package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
	"amkc/search/prior"
)

var corpusFile = infile.Kind{Name: "a corpus", Max: 1 << 30}

// A Corpus is the verdicts of campaigns, failures included, by the digest of each: a set.
type Corpus map[string]*Verdict

// LoadCorpus reads a corpus, a verdict a line. Every verdict has to be signed with the private half of the key.
func LoadCorpus(path string, key PublicKey) (Corpus, error) {
	text, err := infile.Read(path, corpusFile)
	if err != nil {
		return nil, diag.Errorf(codeJournal, path, "cannot be read: %s", infile.Reason(err))
	}
	c := Corpus{}
	for n := 1; len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		v, err := ParseVerdict(line, path+":"+strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		if err := key.Check(v); err != nil {
			return nil, err
		}
		c.Add(v)
		text = rest
	}
	return c, nil
}

// Add adds a verdict, if it is not there.
func (c Corpus) Add(v *Verdict) { c[digestOf(v)] = v }

// AddTrials adds the verdicts of a campaign. Proposals that could not be tried have none, and teach nothing of
// schedules.
func (c Corpus) AddTrials(s *State, key PublicKey) error {
	for i := range s.trials {
		v := s.trials[i].Verdict
		if v == nil {
			continue
		}
		if err := key.Check(v); err != nil {
			return err
		}
		c.Add(v)
	}
	return nil
}

// Write writes the corpus, in the order of digests: the same set is the same file.
func (c Corpus) Write(path string) error {
	err := outfile.Write(path, func(w io.Writer) error {
		for _, id := range slices.Sorted(maps.Keys(c)) {
			line, err := json.Marshal(c[id])
			if err != nil {
				return err
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return diag.Errorf(codeJournal, path, "cannot be written: %s", infile.Reason(err))
	}
	return nil
}

// Gather adds the trials of campaigns, and other corpora, to a corpus in a file, which is made if it is not there.
func Gather(path string, from []string, key PublicKey) (Corpus, error) {
	c := Corpus{}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		from = append([]string{path}, from...)
	}
	for _, name := range from {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			other, err := LoadCorpus(name, key)
			if err != nil {
				return nil, err
			}
			maps.Copy(c, other)
			continue
		}
		s, _, _, err := Load(name)
		if err != nil {
			return nil, err
		}
		if err := c.AddTrials(s, key); err != nil {
			return nil, err
		}
	}
	return c, c.Write(path)
}

// Learn learns from the verdicts: of those that were measured how far the cost model is off, at each position; and from
// all which settings are refused.
func (c Corpus) Learn() *prior.Prior {
	var times, refusals []prior.Row
	for _, id := range slices.Sorted(maps.Keys(c)) {
		v := c[id]
		if v.Class.Holds() || v.Class == Rejected && v.refusesSettings() {
			row := prior.Row{Model: v.Model, X: differences(v.Settings, v.Baseline)}
			if v.Class == Rejected {
				row.Y = 1
			}
			refusals = append(refusals, row)
		}
		if v.Timing == nil || v.Device != DeviceCUDA {
			continue
		}
		for _, at := range v.At {
			if p := at.Predicted; p != nil && p.Candidate > 0 && p.Baseline > 0 && len(p.Traits) > 0 {
				times = append(times, prior.Row{Model: v.Model, X: p.Traits,
					Y: math.Log(at.Ratio.Mean) - math.Log(p.Candidate/p.Baseline)})
			}
		}
	}
	return &prior.Prior{Times: prior.FitTimes(times), Refusals: prior.FitRefusals(refusals)}
}

// Prior is what the corpus teaches, if that is better than nothing.
func (c Corpus) Prior(path string) (*prior.Prior, error) {
	p := c.Learn()
	if !p.Times.Used && !p.Refusals.Used {
		return nil, diag.Errorf(codeCorpus, path, "teaches nothing that helps on a model that was left out; want "+
			"other proposers, or more verdicts: amkc campaign learn says how far it is")
	}
	return p, nil
}

// Codes of refusals by compiler/evaluate.
const (
	CodeFloor  = "AMK6103" // a time that is impossible
	CodeIdle   = "AMK6109" // the same step as that of the baseline
	CodeOrder  = "AMK6110" // another order of additions than that of the baseline, where the same bits are asked for
	CodeMemory = "AMK6111" // more of the GPU's memory than a configuration may take
)

// saysNothing are codes of refusals that say nothing of settings by themselves: they are of what was measured, of
// machines, and of two settings together.
var saysNothing = []string{CodeFloor, codeSlowBuild.ID, CodeIdle, CodeOrder, CodeMemory}

// refusesSettings reports whether a refusal says something of settings that a proposer may draw: what somebody else has
// proposed may be no value of a knob at all.
func (v *Verdict) refusesSettings() bool {
	_, err := v.Settings.Config()
	return err == nil && !slices.Contains(saysNothing, v.Reason.Code)
}

// differences are what settings have and their baseline has not, and the other way round, by name.
func differences(s, baseline knobs.Settings) map[string]float64 {
	x := map[string]float64{}
	for path, value := range s {
		if baseline[path] != value {
			x[path+"="+string(value)]++
		}
	}
	for path, value := range baseline {
		if s[path] != value {
			x[path+"="+string(value)]--
		}
	}
	return x
}
