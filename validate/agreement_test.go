package validate_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// TestAgreesWithReference compares the verdict of the proof with that of the reference walk: for exchanges on shared
// pages, for broken lowerings of toys, and for broken programs of the shape that amkc makes, at one position. AMKC_LONG
// compares more of them.
func TestAgreesWithReference(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	memory := []string{validate.CodeReadRace.ID, validate.CodeOverwriteRace.ID, validate.CodeWriteRace.ID,
		validate.CodeFlaggedPlain.ID,
		validate.CodeUnread.ID, validate.CodePollOrder.ID, validate.CodeStale.ID, validate.CodeUndefined.ID,
		validate.CodeClobbered.ID, validate.CodeOwner.ID}
	var compiled []*ir.Flat
	for _, how := range []string{"flagged", "counter"} {
		for v := range 2 {
			f := flat(t, program(t, toy.with(how)), v)
			f.Lo += 5
			f.Hi = f.Lo
			compiled = append(compiled, f)
		}
	}
	toys := toyLowerings(t)
	seen, seeds := map[string]int{}, 4000
	if os.Getenv("AMKC_LONG") != "" {
		seeds = 24_000
	}
	for seed := range uint64(seeds) {
		next := source(rand.New(rand.NewPCG(seed, 3)).IntN)
		var f *ir.Flat
		switch seed % 12 {
		case 0:
			f = mutate(toys[next(len(toys))], next)
		case 1, 2:
			f = mutate(compiled[next(len(compiled))], next)
		default:
			f = randomExchange(next)
		}
		code := ""
		if errors := validate.Flat(f).Diags.Errors(); len(errors) > 0 {
			code = errors[0].Code
		}
		switch {
		case code == validate.CodeOutputGap.ID:
			code = "" // memory is in order
		case code != "" && !slices.Contains(memory, code):
			continue // an earlier rule ended the proof
		}
		require.Equal(t, firstCode(f), code, "seed %d", seed)
		seen[code]++
	}
	for _, code := range append(memory, "") {
		require.Greater(t, seen[code], seeds/1200, code)
	}
	t.Log(seen)
}
