package validate

import "amkc/ir"

// AllRanks proves a program in the form with the tasks of all ranks, each with its own memory: the oracle for what one
// rank is proved for.
func AllRanks(prog *ir.Program) Report {
	rep := Report{OK: true}
	for i := range prog.Variants {
		flat, diags := ir.Unroll(prog, &prog.Variants[i])
		if rep.Diags.Add(diags...); flat == nil {
			rep.OK = false
			continue
		}
		p := prove(flat, Reference, nil)
		if p.sound() {
			p.checkStep()
		}
		rep.OK = rep.OK && p.sound()
		rep.Diags.Add(p.diags...)
		rep.Stats.add(p.stats)
		p.release()
	}
	return rep
}
