package search

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// MadeSchema is the version of Made in JSON.
const MadeSchema = "amkc.made/1"

// madeDir is where the trials of plans are that were made, a file each, called by their ids.
const madeDir = "made"

var madeFile = infile.Kind{Name: "a trial that was made", Max: 16 << 20}

// A Made is a planned trial with its verdict. It says itself of what campaign and round it is, so that it can be
// carried from machine to machine and lose nothing.
type Made struct {
	Schema   string    `json:"schema"`
	ID       string    `json:"id"`
	Campaign string    `json:"campaign"`
	Previous string    `json:"previous"`
	Job      Job       `json:"job"`
	Verdict  *Verdict  `json:"verdict"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
}

// A Stage is a part of making a trial that can have a machine of its own.
type Stage string

// The stages.
const (
	StageBuild Stage = "build" // proof, emission and nvcc; needs no GPU
	StageJudge Stage = "judge" // everything; what was built before is found in the cache of builds
)

// Stages lists them in their order.
var Stages = []Stage{StageBuild, StageJudge}

// Work makes a stage of a planned trial, unless the trial is made already. It may be killed at any time, and run any
// number of times, at once or one after another: a trial is there as a whole or not at all, and the first to be there
// stays. made is nil where the stage has come to no verdict: the builds are made, and there is more to do.
func (w *Worker) Work(ctx context.Context, dir string, p *Plan, index int, stage Stage) (made *Made, err error) {
	if err := w.Campaign.Signs(w.Key.Public()); err != nil {
		return nil, err
	}
	t := &p.Trials[index]
	path := madePath(dir, t.ID)
	if made, err := loadMade(path, w.Key.Public()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return made, err
	}
	began := time.Now()
	judge := w.Evaluate
	if stage == StageBuild {
		judge = w.Build
	}
	v, err := judge(ctx, &t.Job)
	if v == nil || err != nil {
		return nil, err
	}
	if err := w.Campaign.verdictFor(&t.Job, v); err != nil {
		return nil, err
	}
	made = &Made{Schema: MadeSchema, ID: t.ID, Campaign: p.Campaign, Previous: p.Previous, Job: t.Job, Verdict: v,
		Started: began.UTC().Truncate(time.Millisecond), Seconds: time.Since(began).Seconds()}
	if err := made.write(dir, false); err != nil {
		return nil, err
	}
	return loadMade(path, w.Key.Public())
}

func madePath(dir, id string) string { return filepath.Join(dir, madeDir, id+".json") }

// write puts a trial into its place under its name. One that is there is left, or replaced.
func (m *Made) write(dir string, replace bool) error {
	path := madePath(dir, m.ID)
	failed := func(err error) error {
		return diag.Errorf(codeJournal, path, "cannot be written: %s", infile.Reason(err))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return failed(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+m.ID+"-*")
	if err != nil {
		return failed(err)
	}
	defer os.Remove(file.Name()) // it is gone, if it was renamed
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Sync(), file.Close(), os.Chmod(file.Name(), 0o644)); err != nil {
		return failed(err)
	}
	if _, err := os.Lstat(path); err == nil && !replace {
		return nil
	}
	// Two processes may come here at once. Each renames a whole trial, and either will do.
	if err := os.Rename(file.Name(), path); err != nil {
		return failed(err)
	}
	return nil
}

// loadMade reads a trial that was made, and holds it to its name and its verdict to the key.
func loadMade(path string, key PublicKey) (*Made, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	text, err := infile.Read(path, madeFile)
	if err != nil {
		return nil, diag.Errorf(codeJournal, path, "cannot be read: %s", infile.Reason(err))
	}
	var m Made
	if err := strictJSON(text, &m); err != nil {
		return nil, diag.Errorf(codeMade, path, "is no trial: %s", infile.InJSON(text, err))
	}
	if m.Schema != MadeSchema || m.Verdict == nil {
		return nil, diag.Errorf(codeMade, path, "has the schema %q; want %s, with a verdict", m.Schema, MadeSchema)
	}
	p := Plan{Campaign: m.Campaign, Previous: m.Previous}
	t := Planned{Job: m.Job}
	if p.seal(&t); t.ID != m.ID || filepath.Base(path) != m.ID+".json" {
		return nil, diag.Errorf(codeMade, path, "is not the trial that its name says; want the file as amkc search "+
			"work wrote it")
	}
	if err := m.Verdict.check(path); err != nil {
		return nil, err
	}
	return &m, key.Check(m.Verdict)
}

// madeIn lists the trials of a directory that were made; none where there is no such directory.
func madeIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, madeDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, diag.Errorf(codeJournal, filepath.Join(dir, madeDir), "cannot be read: %s", infile.Reason(err))
	}
	var paths []string
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".json") {
			paths = append(paths, filepath.Join(dir, madeDir, name))
		}
	}
	return paths, nil
}
