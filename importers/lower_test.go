package importers_test

import (
	"amkc/ir"
	"amkc/passes"

	"amkc/importers"
)

func init() {
	importers.LowerGraph = func(g *ir.Graph) (*ir.Program, error) {
		s := &passes.State{Graph: g}
		err := passes.Lower.Run(s)
		return s.Program, err
	}
}
