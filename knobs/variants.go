package knobs

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// A variant holds for an interval of positions: from position 0 on, and from attention.split_from on. The second may
// be two, which differ in how many splits they have (attention.middle_splits). What these have of their own is in the
// group long, and is that of the ring where nothing else is said. Other knobs of the order of additions have one value
// for all.

// A Stream is what a variant may have of its own of how weights are streamed.
type Stream struct{ RunAhead, Pace, Stock int }

// StreamOf is that of a variant of a program, by its first position.
func StreamOf(c *ir.ScheduleConfig, first int) Stream {
	if first > 0 {
		return Stream{LongRunAhead.Of(c), LongPace.Of(c), LongStock.Of(c)}
	}
	return Stream{RunAhead.Of(c), Pace.Of(c), Stock.Of(c)}
}

// StreamsApart reports whether the first variant of a program streams in another way than the others, if there are any.
func StreamsApart(p *ir.Program) bool {
	return len(p.Variants) > 1 && StreamOf(&p.Config, 0) != StreamOf(&p.Config, p.Variants[1].Lo)
}

// VariantConstants lists the knobs that are constants of kernels whose variants stream in different ways.
func VariantConstants() []Int { return []Int{LongRunAhead, LongPace, LongStock} }

// RotationOf is by how many SMs the attention of a variant is rotated further, by its first position.
func RotationOf(c *ir.ScheduleConfig, first int) int {
	if first > 0 {
		return LongRotation.Of(c)
	}
	return ShortRotation.Of(c)
}

// CheckVariants refuses what a configuration says of a variant that there is not.
func CheckVariants(c *ir.ScheduleConfig, variants []ir.Variant) *diag.Diagnostic {
	if n, is := table[MiddleSplits].Stated(c, ""); is && n > 0 && !slices.ContainsFunc(variants, isMiddle) {
		return diag.Errorf(codeKnob, where(table[MiddleSplits].Path("")), "%d would have no effect: there are no "+
			"positions from attention.split_from (%d) up to attention.middle_until (%d) that have more splits beyond "+
			"them; want these, and fewer splits than there are then, or 0", n, SplitFrom.Of(c), MiddleUntil.Of(c))
	}
	if slices.ContainsFunc(variants, func(v ir.Variant) bool { return v.Lo > 0 }) {
		return nil
	}
	for i := range table {
		if r := &table[i]; r.Group == table[LongRotation].Group {
			if n, is := r.Stated(c, ""); is {
				return diag.Errorf(codeKnob, where(r.Path("")), "%d would have no effect: there is no variant from "+
					"attention.split_from on alongside one before it; want one, or no %s", n, r.Path(""))
			}
		}
	}
	return nil
}

// Middle is the name of the variant that attention.middle_splits makes.
const Middle = "middle"

func isMiddle(v ir.Variant) bool { return v.Name == Middle }

// checkMiddle refuses one split, which is not a variant of its own, a variant from position 0 on, since the group
// long is of those after the first, and the end of a variant that does not exist.
func checkMiddle(c *Case) *diag.Diagnostic {
	switch n := c.Of(MiddleSplits); {
	case n == 1:
		return c.idle(MiddleSplits, "one split is what there is below attention.split_from; want that larger, or 2 "+
			"and more")
	case n > 0 && c.Of(SplitFrom) == 0:
		return diag.Errorf(codeKnob, where(c.rows[MiddleSplits].Path("")), "%d: attention.split_from is 0, and the "+
			"positions with fewer splits come after others; want attention.split_from above 0, or 0 here", n)
	case n == 0 && c.Given(MiddleUntil) && c.Of(MiddleUntil) > 0:
		return c.idle(MiddleUntil, "attention.middle_splits is 0, by default where there are no 256 positions on "+
			"either side; want 2 and more, or no attention.middle_until")
	}
	return nil
}

// checkParts refuses parts that are not equal.
func checkParts(c *Case) *diag.Diagnostic {
	n, ranks := c.Of(Parts), max(1, c.Ranks)
	if n < ranks {
		return diag.Errorf(codeRange, where(c.rows[Parts].Path("")), "%d; each of %d GPUs has an equal share of the "+
			"columns: want %[2]d parts or more", n, ranks)
	}
	n /= ranks
	for _, f := range c.Model.Facts() {
		if f.QueryRows()%n != 0 || f.Intermediate%n != 0 {
			return diag.Errorf(codeRange, where(c.rows[Parts].Path("")), "%d; o has %d columns and down %d, which are "+
				"not as many equal parts: want fewer parts, or 1", n, f.QueryRows(), f.Intermediate)
		}
	}
	return nil
}

// checkRotation holds a rotation, or those of stages, to the SMs that there are.
func checkRotation(c *Case, k int) *diag.Diagnostic {
	r := &c.rows[k]
	for _, stage := range r.Each() {
		if n := c.value(setting{k, stage}); c.Target != nil && n >= c.Target.SMs {
			return diag.Errorf(codeRange, where(r.Path(stage)), "%d; want 0 to %d, since %s has %d SMs", n,
				c.Target.SMs-1, c.Target.Name, c.Target.SMs)
		}
	}
	return nil
}

// checkLong refuses what the group long says of a stream where something else switches it off.
func checkLong(c *Case) *diag.Diagnostic {
	stock, depth := c.Of(LongStock), c.Of(InFlight)
	for _, k := range VariantConstants() {
		if c.Given(k) && c.Target != nil && !c.Target.BulkCopy && c.Of(k) != c.Of(*c.rows[k].Like) {
			return c.idle(k, "%s has no bulk copies, without which nothing runs ahead and nothing is counted; want %d",
				c.Target.Name, c.Of(*c.rows[k].Like))
		}
	}
	switch {
	case c.Given(LongPace) && c.Of(LongRunAhead) == 0 && c.Of(LongPace) != c.Of(Pace):
		return c.idle(LongPace, "long.run_ahead is 0; want long.run_ahead above 0, or no long.pace")
	case c.Given(LongStock) && stock > 0 && depth == 1:
		return c.idle(LongStock, "one chunk is in flight anyway; want more by ring.in_flight, or 0")
	case c.Given(LongStock) && stock > 0 && c.Of(InFlightStocked) >= depth:
		return c.idle(LongStock, "%d chunks are in flight anyway; want ring.in_flight_stocked less, or 0", depth)
	}
	return nil
}
