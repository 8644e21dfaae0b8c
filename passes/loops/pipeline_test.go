package loops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/passes"
	"amkc/passes/loops"
)

func init() {
	all := []passes.Pass{passes.Import, passes.Quantise, passes.Lower, passes.Fuse, passes.Tile, passes.Assign}
	loops.Assigned = func(t testing.TB, config string, target *ir.Target, c ir.ScheduleConfig) *ir.Program {
		s := &passes.State{Source: importers.Source{Name: "model", Config: modeltest.OpenConfig(t, config)},
			Target: target, Config: c}
		for _, p := range all {
			require.NoError(t, p.Run(s), p.Name)
		}
		return s.Program
	}
	loops.Finish = func(t testing.TB, p *ir.Program) {
		for _, pass := range []passes.Pass{passes.PageColor, passes.Exchange} {
			require.NoError(t, pass.Run(&passes.State{Program: p}), pass.Name)
		}
	}
}
