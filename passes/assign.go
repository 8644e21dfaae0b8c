package passes

import (
	"maps"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// Assign is the pass that gives tasks to SMs: a stage of rows becomes one contiguous span per SM, and attention one
// task per unit. This determines which values are exchanged between SMs and which stay on one: the residual goes into
// shared memory, and the vectors that stages publish become words that carry their epoch.
var Assign = Pass{
	Name:  "assign",
	Doc:   "give spans and units to SMs, rotated from stage to stage; place residual and exchanged vectors",
	After: []string{"tile"},
	Run:   runAssign,
}

// Policies of sm_assignment. The second is the default.
const (
	policyContiguous = knobs.Contiguous
	policyBalance    = knobs.LoadBalance
	policyRoundRobin = knobs.RoundRobin
)

// assignmentOf checks an assignment and states its default.
func assignmentOf(a ir.Assignment, target *ir.Target) (ir.Assignment, *diag.Diagnostic) {
	const where = "config: sm_assignment"
	policies := []string{policyContiguous, policyBalance, policyRoundRobin}
	if a.Rotations == nil {
		if a.Policy == "" {
			a.Policy = policyBalance
		}
		if !slices.Contains(policies, a.Policy) {
			return a, diag.Errorf(codePolicy, where, "%q is not a policy; %s", a.Policy,
				diag.Guess(a.Policy, policies, "want "+strings.Join(policies, ", ")+
					", or a map from stage to rotation"))
		}
		return a, nil
	}
	if a.Policy != "" {
		return a, diag.Errorf(codePolicy, where, "both the policy %q and a map; want one of them", a.Policy)
	}
	sms := ir.MaxTargetSMs
	if target != nil {
		sms = target.SMs
	}
	for _, role := range slices.Sorted(maps.Keys(a.Rotations)) {
		if rot := a.Rotations[role]; rot < 0 || rot >= sms {
			return a, diag.Errorf(codePolicy, where+"."+role, "rotation %d; want 0 to %d", rot, sms-1)
		}
	}
	return ir.Assignment{Rotations: maps.Clone(a.Rotations)}, nil
}

// checkRotations holds the rotations of a configuration to stages that there are, by role, and those of stages that
// keep the residual to one.
func checkRotations(p *ir.Program, rotations map[string]int) error {
	const where = "config: sm_assignment"
	keepers := keepersOf(rewrite.NewBuffers(p))
	var kept, moved []string
	add := func(to *[]string, role string) {
		if role != "" && !slices.Contains(*to, role) {
			*to = append(*to, role)
		}
	}
	for i := range p.Variants {
		rewrite.EachStage(&p.Variants[i], func(st *ir.Stage, loop *ir.Loop) {
			switch {
			case keepers.keeps(st, loop):
				add(&kept, st.Role)
			case movable(st):
				add(&moved, st.Role)
			}
		})
	}
	roles := slices.Concat(kept, moved)
	for _, role := range slices.Sorted(maps.Keys(rotations)) {
		if !slices.Contains(roles, role) {
			return diag.Errorf(codePolicy, where+"."+role,
				"no stage has this role, and single tasks cannot be moved; %s",
				diag.Guess(role, roles, "want a rotation for one of "+strings.Join(roles, ", ")))
		}
	}
	for _, role := range kept {
		if rotations[role] != rotations[kept[0]] {
			return diag.Errorf(codeSplitResidual, where+"."+role,
				"rotation %d, but that of %s is %d; want one for all of %s, because the SM that owns rows of one "+
					"keeps their residual for the next",
				rotations[role], kept[0], rotations[kept[0]], strings.Join(kept, ", "))
		}
	}
	return nil
}

func runAssign(s *State) error {
	p := s.Program
	if p.Target == nil {
		return diag.Errorf(codeTarget, "pass assign", "want a target")
	}
	if err := checkRotations(p, p.Config.SMAssignment.Rotations); err != nil {
		return err
	}
	routeOnEverySM(p)
	tasks := 0
	for i := range p.Variants {
		v := &p.Variants[i]
		err := eachBody(v, func(stages []*ir.Stage, loop *ir.Loop) ([]*ir.Stage, error) {
			for _, st := range stages {
				switch {
				case st.Dist.Kind == ir.Tiled:
					spread(&st.Dist, p.Target.SMs)
				case has(st, ir.TOPK): // on every SM
				case !isWhole(st):
					return nil, diag.Errorf(codeOrder, "pass assign", "stage %s is %s; want tiled stages, and those "+
						"that end the step whole", st.Name, st.Dist.Kind)
				}
				tasks += st.Dist.NumTasks() * len(rewrite.Indices(st, loop))
			}
			return endOnEverySM(p, stages), nil
		})
		if err != nil {
			return err
		}
		if tasks > ir.MaxTasks { // said before work is spent on them
			return diag.Errorf(ir.CodeSize, "variant "+v.Name,
				"with it the program has more than %d tasks, at most %d for each stage of %d layers; want a "+
					"target of fewer SMs",
				ir.MaxTasks, p.Target.SMs, p.Model.Layers)
		}
		rotate(p, v)
		if err := setThresholds(p, v); err != nil {
			return err
		}
	}
	place(p)
	for i := range p.Variants {
		dropKept(p, &p.Variants[i])
	}
	rewrite.Prune(p)
	return nil
}

// dropKept drops signals of stages that leave their results on the SMs that go on with them, and the waits for these:
// the queue of an SM orders them.
func dropKept(p *ir.Program, v *ir.Variant) {
	buffers, counters := rewrite.NewBuffers(p), ir.CounterDirectory(v)
	declared := func(counter string, st *ir.Stage, loop *ir.Loop) int {
		if m, ok := counters.Find(counter, ir.FirstIndex(st, loop)); ok {
			return m.Declared
		}
		return -1
	}
	kept := map[int]bool{}
	rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		out := lastOp(st).Out
		stays := len(out) > 0 && !slices.ContainsFunc(out, func(o ir.Operand) bool {
			b := buffers.Find(o.Buf, ir.FirstIndex(st, loop))
			return b == nil || b.Space != ir.SMEM
		})
		if c := declared(st.Signal, st, loop); stays && c >= 0 {
			kept[c], st.Signal = true, ""
		}
	})
	rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		st.Waits = slices.DeleteFunc(st.Waits, func(w ir.Wait) bool { return kept[declared(w.Counter, st, loop)] })
	})
}

// spread lays a tiled axis over the SMs: grains of one element are units.
func spread(d *ir.Dist, sms int) {
	kind := ir.Spread
	if d.Grain == 1 {
		kind = ir.ByUnit
	}
	*d = ir.Dist{Kind: kind, Extent: d.Extent, Grain: d.Grain, SMs: sms}
}

// rotate chooses the rotation of every stage by the policy of the program. Layers follow one another with a constant
// step.
func rotate(p *ir.Program, v *ir.Variant) {
	a := &p.Config.SMAssignment
	turns := map[*ir.Stage]turn{}
	switch {
	case a.Rotations != nil:
		rewrite.EachStage(v, func(st *ir.Stage, _ *ir.Loop) { turns[st] = turn{rot: a.Rotations[st.Role]} })
	case a.Policy == policyRoundRobin:
		turns = roundRobin(p, v)
	case a.Policy == policyBalance:
		turns = balance(p, v)
	}
	for st, t := range turns {
		st.Dist.Rot, st.Dist.Step = t.rot%p.Target.SMs, t.step%p.Target.SMs
	}
	rewrite.EachStage(v, func(st *ir.Stage, _ *ir.Loop) {
		more := knobs.StageRotation.Of(&p.Config, st.Role)
		if attention(st) != nil {
			more += knobs.RotationOf(&p.Config, v.Lo)
		}
		st.Dist.Rot = (st.Dist.Rot + more) % p.Target.SMs
	})
}

// A turn is how far a stage is rotated in layer 0, and how much further in each layer after it.
type turn struct{ rot, step int }

// roundRobin starts every stage one SM after the stage before it, as cards are dealt.
func roundRobin(p *ir.Program, v *ir.Variant) map[*ir.Stage]turn {
	keepers := keepersOf(rewrite.NewBuffers(p))
	free := func(st *ir.Stage, loop *ir.Loop) bool { return movable(st) && !keepers.keeps(st, loop) }
	turns := map[*ir.Stage]turn{}
	perLayer, layers := 0, 0
	rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		if loop != nil && free(st, loop) {
			turns[st] = turn{rot: perLayer}
			perLayer, layers = perLayer+1, loop.Count
		}
	})
	for st, t := range turns {
		turns[st] = turn{t.rot, perLayer}
	}
	rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		if loop == nil && free(st, loop) {
			turns[st] = turn{rot: perLayer * layers}
		}
	})
	return turns
}

// place decides where activations live and how they travel, now that it is known which SM touches what: what is
// updated in place stays on its SM, and words carry their epoch. Values of 32 bits, such as partial results of
// attention, best values and what a router computes, have words of 64.
func place(p *ir.Program) {
	copies := knobs.Copies.Of(&p.Config)
	buffers := rewrite.NewBuffers(p)
	kept := keepersOf(buffers).inPlace
	best, partial := map[string]bool{}, map[string]bool{}
	note := func(to map[string]bool, out []ir.Operand, st *ir.Stage, loop *ir.Loop) {
		for _, o := range out {
			if b := buffers.Find(o.Buf, ir.FirstIndex(st, loop)); b != nil {
				to[b.Name] = true
			}
		}
	}
	for i := range p.Variants {
		rewrite.EachStage(&p.Variants[i], func(st *ir.Stage, loop *ir.Loop) {
			if o := attention(st); o != nil && o.IntAt("flags", 0, 0)&2 != 0 {
				note(partial, o.Out, st, loop)
			}
			if findsBest(st) {
				note(best, lastOp(st).Out, st, loop)
			}
		})
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		switch {
		case b.Kind != ir.Activation, b.Space == ir.SMEM:
		case kept[b.Name]:
			b.Space = ir.SMEM
		case best[b.Name]:
			b.Shape, b.Layout = tokensOf(p.Pass).shape(p.NumRanks()*p.Target.SMs), ir.Layout{Kind: ir.Word64}
		case partial[b.Name], b.Space == ir.PeerScratch: // who owns a row reads what ranks push
			b.Layout = ir.Layout{Kind: ir.Word64}
		case b.DType.Bits() == 32:
			b.Layout = ir.Layout{Kind: ir.Word64, Copies: copies}
		default:
			b.Layout = ir.Layout{Kind: ir.Word32, Copies: copies}
		}
	}
	placeEnding(p)
}
