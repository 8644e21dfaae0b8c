package cli

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/search"
)

// What held-out positions show no gain of is not called confirmed.
func TestSearchedText(t *testing.T) {
	c := &search.Campaign{Device: search.DeviceCUDA, HeldOut: []int{50, 60}, Start: knobs.Settings{},
		Space: &search.Space{}}
	s := search.NewState(c)
	r := &searched{Best: knobs.Settings{"tiling.ring.pace": "500"}, Estimate: 0.9}
	require.Contains(t, searchedText(r, s), "best, not confirmed: about 0.9000 of the time of the start, measured\n")
	r.HeldOut = &search.Interval{Mean: 0.95, Low: 0.87, High: 1.04}
	require.Contains(t, searchedText(r, s), "best, not confirmed: at positions 50,60 it takes 0.9500 (0.8700 to "+
		"1.0400) of the time of the start, an interval that is not below 1, measured\n")
	r.HeldOut = &search.Interval{Mean: 0.9, Low: 0.89, High: 0.91}
	r.Confirmed = r.HeldOut
	require.Contains(t, searchedText(r, s), "best, confirmed at positions 50,60: 0.9000 (0.8900 to 0.9100) of the time")

	// What is taken back is said.
	v := &search.Verdict{Subject: search.Subject{ID: "0123456789ab", Device: search.DeviceCUDA}, Class: search.Pass,
		Rung: search.Final, Timing: &search.Timing{Ratio: search.Interval{Mean: 1.01, Low: 1, High: 1.02}},
		Proof: &search.Proof{OK: true, Findings: diag.List{}}}
	search.Key(ed25519.NewKeyFromSeed(bytes.Repeat([]byte("k"), 32))).Sign(v)
	s.Apply(&search.Trial{Job: search.Job{Role: search.RoleConfirm, Rung: search.Final}, Verdict: v})
	r = &searched{Best: c.Start}
	text := searchedText(r, s)
	require.Contains(t, text, "not confirmed: 0123456789ab seemed to be faster, and takes 1.0100 (1.0000 to 1.0200) "+
		"of the time of the start at positions 50,60, measured\n")
	require.Contains(t, text, "nothing better than the start was found\n")
}

// Evaluations run by a command, several at a time, come to the trials of a search that runs them itself. One whose
// machine is taken away is begun again; nothing but the campaign is left.
func TestSearchElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	bin, key := t.TempDir(), filepath.Join(t.TempDir(), "key")
	log, via := filepath.Join(bin, "calls"), filepath.Join(bin, "via")
	require.NoError(t, os.WriteFile(via, []byte("#!/bin/sh\necho \"$1 $3 $4\" >> "+log+
		"\nmkdir "+log+".taken 2>&- && exit 1\nshift\nexec \"$@\"\n"), 0o755))
	ids := func(dir string, flags ...string) (ids []string) {
		code, stdout, stderr := amkc(append([]string{"search", "../../testdata/models/zoo/llama-gqa", "-o", dir,
			"--cold", "--only", "ring", "--trials", "5", "--round", "3", "--registers=false", "--key", key},
			flags...)...)
		require.Zero(t, code, stdout+stderr)
		s, _, _, err := search.Load(dir)
		require.NoError(t, err)
		for _, trial := range s.Trials() {
			ids = append(ids, string(trial.Role)+" "+trial.Verdict.ID+" "+string(trial.Verdict.Class))
		}
		left, err := filepath.Glob(filepath.Join(dir, ".eval*"))
		require.NoError(t, err)
		require.Empty(t, left)
		return ids
	}
	here := ids(filepath.Join(t.TempDir(), "here"))
	require.Equal(t, here, ids(filepath.Join(t.TempDir(), "there"), "--jobs", "3", "--via", via+" gpu"))
	calls, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("gpu search eval\n", len(here)+1), string(calls))

	for _, flags := range [][]string{{"--via", via, "--gpu", "1", "--device", "cuda"}, {"--build-via", via}} {
		code, _, _ := amkc(append([]string{"search", "m", "-o", "d", "--trials", "1"}, flags...)...)
		require.Equal(t, 2, code)
	}
}
