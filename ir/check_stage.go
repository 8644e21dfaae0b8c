package ir

import (
	"slices"

	"amkc/ir/op"
)

// variant checks counters, stages and, on the unrolled form, every name.
func (c *checker) variant(v *Variant) {
	before := len(c.diags)
	ends := ""
	for i := range v.Counters {
		n := &v.Counters[i]
		switch {
		case n.Role == "":
		case n.Role != RoleStep || n.Count != 0:
			c.fail(CodeRole, "counter "+n.Name, "has the role %s, want %s for a counter that is not a family, or none",
				clip(n.Role), RoleStep)
		case ends != "":
			c.fail(CodeRole, "counter "+n.Name, "has the role %s in variant %s, and so has %s; want one", n.Role,
				v.Name, ends)
		default:
			ends = n.Name
		}
		if !known(realisationNames[:], n.How) || !known(scopeNames[:], n.Scope) || n.Init < 0 {
			c.fail(CodeSync, "counter "+n.Name, "realisation %v, scope %v, initial count %d", n.How, n.Scope, n.Init)
		}
	}
	loops, stages := map[string]bool{}, map[string]bool{}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *Stage:
			if IsFamily(n.Name) {
				c.fail(CodeName, "stage "+n.Name, "has an index in its name but stands in no loop")
			}
			if n.Kind != 0 {
				c.fail(CodeShape, "stage "+n.Name, "is of kind %d but stands in no loop, want 0", n.Kind)
			}
			c.layer(n, 0, 0)
			if n.Layer.Index {
				c.fail(CodeRole, "stage "+n.Name, "is of layer %s but stands in no loop, want a number", n.Layer)
			}
			c.stage(n, stages)
		case *Loop:
			if loops[n.Name] {
				c.fail(CodeName, "loop "+n.Name, "is defined twice in variant %s", v.Name)
			}
			loops[n.Name] = true
			if n.Count < 1 || n.First < 0 || n.First > MaxTasks || len(n.Body) == 0 {
				c.fail(CodeShape, "loop "+n.Name, "runs %d stages %d times from %d, want both positive, from 0 on",
					len(n.Body), n.Count, n.First)
			}
			if n.Step < 0 {
				c.fail(CodeShape, "loop "+n.Name, "has the step %d, want 1 or more", n.Step)
			}
			if n.Last() > maxIndex {
				c.fail(CodeSize, "loop "+n.Name, "runs to index %d, want at most %d", n.Last(), maxIndex)
			}
			c.kinds(n)
			body := map[string]bool{} // two loops may name stages alike: tasks have the names that their indices give
			for _, s := range n.Body {
				c.layer(s, n.First, n.Last())
				c.stage(s, body)
			}
		default:
			c.fail(CodeShape, "variant "+v.Name, "body with %T, want stages and loops", n)
		}
	}
	if len(c.diags) == before {
		c.unrolled(v)
	}
}

// layer checks the layer of a stage that runs with indices from first to last.
func (c *checker) layer(s *Stage, first, last int) {
	layers := c.p.Model.Layers
	for _, i := range []int{first, last} {
		if n, known := s.Layer.At(i); known && (n < 0 || layers > 0 && n >= layers) {
			c.fail(CodeRole, "stage "+s.Name, "is of layer %d, and the model has %d; want one of those, from 0 on", n,
				layers)
			return
		}
	}
}

// kinds checks the kinds of a loop's iterations, and that there are some of each stage's.
func (c *checker) kinds(l *Loop) {
	pos := "loop " + l.Name
	if len(l.Kinds) > max(0, l.Count) || len(l.Kinds) > maxKinds {
		c.fail(CodeShape, pos, "lists kinds of %d iterations, and runs %d; want at most as many, and %d", len(l.Kinds),
			l.Count, maxKinds)
		return
	}
	for _, kind := range l.Kinds {
		if kind < 1 || kind > maxKinds {
			c.fail(CodeShape, pos, "has iterations of kind %d, want 1 to %d", kind, maxKinds)
			return
		}
	}
	for _, s := range l.Body {
		if s.Kind != 0 && !slices.Contains(l.Kinds, s.Kind) {
			c.fail(CodeShape, "stage "+s.Name, "is of kind %d, and loop %s has no iteration of it", s.Kind, l.Name)
		}
	}
}

// unrolled checks that all names resolve and that tasks have one name each.
func (c *checker) unrolled(v *Variant) {
	u := newUnroller(c.p, v, c.p.NumRanks())
	u.namesOnly = true
	flat, diags := u.run()
	for _, d := range diags {
		c.add(d)
	}
	if flat == nil {
		return
	}
	names := make(map[string]struct{}, len(flat.Tasks))
	for i := range flat.Tasks {
		if names[flat.Tasks[i].Name] = struct{}{}; len(names) <= i {
			c.fail(CodeName, "task "+flat.Tasks[i].Name, "is defined twice in variant %s", v.Name)
			return
		}
	}
}

// stage checks one stage; taken holds the names of those before it that stand where it does, in its loop or in none.
func (c *checker) stage(s *Stage, taken map[string]bool) {
	pos := "stage " + s.Name
	name := s.Name
	if s.Kind != 0 { // those of other kinds may be called the same
		name += " of kind " + itoa(s.Kind)
	}
	if taken[name] {
		c.fail(CodeName, pos, "is defined twice")
	}
	taken[name] = true
	c.dist(pos, &s.Dist)
	waited := map[string]bool{}
	for _, w := range s.Waits {
		if w.Threshold < 1 {
			c.fail(CodeSync, pos, "waits for %s >= %d, want 1 or more", w.Counter, w.Threshold)
		}
		if waited[w.Counter] {
			c.fail(CodeSync, pos, "waits for counter %s twice", w.Counter)
		}
		waited[w.Counter] = true
	}
	temps := map[string]bool{}
	for i := range s.Ops {
		c.op(pos, &s.Ops[i], temps)
	}
}

func (c *checker) dist(pos string, d *Dist) {
	switch {
	case !known(distNames[:], d.Kind):
		c.fail(CodeShape, pos, "unknown distribution %v", d.Kind)
		return
	case d.insane() != "":
		c.fail(CodeShape, pos, "%s", d.insane())
		return
	case d.Kind != Explicit && d.Extent < 1:
		c.fail(CodeShape, pos, "distribution with extent %d, want at least 1", d.Extent)
	case (d.Kind == Spread || d.Kind == Tiled) && d.Grain < 1, d.Kind == ByUnit && d.Grain != 1:
		c.fail(CodeShape, pos, "distribution %v with grain %d, want at least 1, and exactly 1 for units", d.Kind,
			d.Grain)
	case d.onSMs() && (d.SMs < 1 || d.Rot < 0 || d.Rot >= d.SMs || d.Step < 0 || d.Step >= d.SMs):
		c.fail(CodeShape, pos, "distribution over %d SMs with rot %d and step %d, want these from 0 to the "+
			"number of SMs", d.SMs, d.Rot, d.Step)
	case d.Empty && d.Kind != Spread:
		c.fail(CodeShape, pos, "empty with distribution %v, want spread", d.Kind)
	case len(d.Spans) > 0 && d.Kind != Explicit, len(d.Spans) == 0 && d.Kind == Explicit:
		c.fail(CodeShape, pos, "distribution %v with %d listed tasks, want explicit and at least one", d.Kind,
			len(d.Spans))
	}
	if c.p.Target == nil {
		return
	}
	most := d.SMs
	for _, t := range d.Spans {
		most = max(most, t.SM+1)
	}
	if most > c.p.Target.SMs {
		c.fail(CodeShape, pos, "uses %d SMs, the target has %d", most, c.p.Target.SMs)
	}
}

// op checks one op; temps holds the temporaries written so far.
func (c *checker) op(pos string, o *Op, temps map[string]bool) {
	if !known(opcodeNames, o.Code) {
		c.fail(CodeOperands, pos, "unknown opcode %v", o.Code)
		return
	}
	spec := Ops[o.Code]
	if n := len(o.In); !spec.In.Has(n) {
		c.fail(CodeOperands, pos, "%v of %d operands, want %v", o.Code, n, spec.In)
	}
	if n := len(o.Out); !spec.Out.Has(n) {
		c.fail(CodeOperands, pos, "%v with %d outputs, want %v", o.Code, n, spec.Out)
	}
	c.params(pos, o, spec)
	for _, v := range o.In {
		c.view(pos, o, v)
		if v.IsTemp() && !temps[v.Buf] {
			c.fail(CodeTemp, pos, "%v reads %s, which no op before it writes", o.Code, v.Buf)
		}
	}
	for _, v := range o.Out {
		c.view(pos, o, v)
		if v.IsTemp() && temps[v.Buf] {
			c.fail(CodeTemp, pos, "%v writes %s, which has a value already", o.Code, v.Buf)
		}
		temps[v.Buf] = true
	}
}

func (c *checker) params(pos string, o *Op, spec *op.Spec) {
	for i := range spec.Params {
		if p := &spec.Params[i]; p.Needed && !o.Has(p.Key) {
			c.fail(CodeOperands, pos, "%v without %s", o.Code, p.Key)
		}
	}
	for i, p := range o.Params {
		switch {
		case spec.Param(p.Key) == nil:
			c.fail(CodeOperands, pos, "%v has no parameter %s, want one of %v", o.Code, clip(p.Key),
				slices.Concat(spec.Keys(true), spec.Keys(false)))
		case o.param(p.Key) != &o.Params[i]:
			c.fail(CodeOperands, pos, "%v has parameter %s twice", o.Code, p.Key)
		case p.Int.Uses(Row) && !spec.Param(p.Key).Moves:
			c.fail(CodeOperands, pos, "%v has %s=%v, which depends on the row; want the same value for all", o.Code,
				p.Key, p.Int)
		case !p.Int.within(c.p.Pass.NumSequences()):
			c.fail(CodeOperands, pos, "%v has %s=%v, and a pass has %d sequences", o.Code, p.Key, p.Int,
				c.p.Pass.NumSequences())
		case p.IsFloat && !IsSingle(p.Float):
			c.fail(CodeRange, pos, "%v has %s=%v, want %s", o.Code, p.Key, p.Float, SingleWant)
		}
	}
}

// view checks the form of an operand; that its buffer exists and has as many dimensions is seen when it is unrolled.
func (c *checker) view(pos string, o *Op, v Operand) {
	if v.IsTemp() && len(v.Dims) > 0 {
		c.fail(CodeTemp, pos, "%v on %s with ranges, want the temporary as a whole", o.Code, v.Buf)
	}
	for _, r := range v.Dims {
		for _, e := range []*Expr{&r.Lo, &r.Hi, &r.Part} {
			if e.Uses(Row) || !e.within(c.p.Pass.NumSequences()) {
				c.fail(CodeShape, pos, "%v on %s from or to %v, want no row, and no other sequence than the %d of "+
					"a pass", o.Code, clip(v.Buf), e, c.p.Pass.NumSequences())
			}
		}
		if r.dealt() && (r.Parts < 1 || r.Block < 1) {
			c.fail(CodeShape, pos, "%v on %s with blocks of %d in %d parts, want both positive", o.Code, clip(v.Buf),
				r.Block, r.Parts)
		}
	}
}
