package population

import "amkc/ir"

var waitOperators = []Operator{
	operator("drop-wait", ruleRace, func(d *draft) bool {
		u, k, ok := d.findWait()
		if ok {
			d.dropWait(u, k)
		}
		return ok
	}),
	operator("threshold-minus-one", ruleRace, func(d *draft) bool { return d.moveThreshold(-1) }),
	operator("threshold-plus-one", ruleDeadlock, func(d *draft) bool { return d.moveThreshold(1) }),
	operator("wait-on-another-counter", ruleRace, func(d *draft) bool {
		u, k, ok := d.findWait()
		if !ok {
			return false
		}
		c := d.find(len(d.counters), func(c int) bool {
			return !d.waiting(u, c) && c != d.signal(u) &&
				d.producers(c) > 0
		})
		if c < 0 {
			return false
		}
		d.dropWait(u, k)
		d.addWait(u, c)
		return true
	}),
	operator("wait-on-own-counter", ruleDeadlock, func(d *draft) bool {
		u := d.find(d.units(), func(u int) bool { return d.signal(u) >= 0 && !d.waiting(u, d.signal(u)) })
		if u < 0 {
			return false
		}
		d.addWait(u, d.signal(u))
		if d.flat == nil { // of a family, the very member
			s := d.stages[u]
			s.Waits[len(s.Waits)-1].Counter = s.Signal
		}
		return true
	}),
	operator("wait-on-later-task", ruleDeadlock, func(d *draft) bool {
		u := d.r.IntN(d.units())
		later := d.find(d.units(), func(v int) bool {
			c := d.signal(v)
			return v > u && c >= 0 && c != d.signal(u) && !d.waiting(u, c)
		})
		if later < 0 {
			return false
		}
		d.addWait(u, d.signal(later))
		return true
	}),
	operator("signal-another-counter", ruleDeadlock, func(d *draft) bool {
		u := d.r.IntN(d.units())
		c := d.find(len(d.counters), func(c int) bool { return c != d.signal(u) })
		if c < 0 {
			return false
		}
		d.setSignal(u, c)
		return true
	}),
	operator("one-counter-for-two", ruleRace, oneCounterForTwo),
	operator("step-without-signal", ruleStep, func(d *draft) bool {
		u := d.find(d.units(), d.counterIs("step"))
		other := d.find(len(d.counters), func(c int) bool { return d.counters[c].Name != "step" })
		switch {
		case u < 0:
			return false
		case d.flat != nil:
			d.setSignal(u, -1)
		case other < 0:
			return false
		default:
			d.setSignal(u, other)
		}
		return true
	}),
}

func (d *draft) moveThreshold(by int) bool {
	u, k, ok := d.findWait()
	if ok {
		*d.threshold(u, k) += by
	}
	return ok
}

// oneCounterForTwo lets the producers of two counters signal one. Who waits on either waits for all of them, or,
// since a count is no name, for as many as before and not for whom.
func oneCounterForTwo(d *draft) bool {
	if d.flat == nil {
		return false // families: which members would share is not one change
	}
	from := d.findCounter()
	to := d.find(len(d.counters), func(c int) bool { return c != from && d.producers(c) > 0 })
	if from < 0 || to < 0 {
		return false
	}
	total := d.producers(from) + d.producers(to)
	partial := d.r.IntN(2) == 0
	for u := range d.units() {
		if d.signal(u) == from {
			d.setSignal(u, to)
		}
		for k := d.waits(u) - 1; k >= 0; k-- {
			c := d.waitsOn(u, k)
			if c != from && c != to {
				continue
			}
			n := *d.threshold(u, k)
			d.dropWait(u, k)
			if !d.waiting(u, to) {
				d.addWait(u, to)
				if last := d.waits(u) - 1; partial {
					*d.threshold(u, last) = n
				} else {
					*d.threshold(u, last) = total
				}
			}
		}
	}
	return true
}

var counterOperators = []Operator{
	operator("initial-value", ruleRace, func(d *draft) bool {
		c := d.findCounter()
		if c >= 0 {
			d.counters[c].Init++
		}
		return c >= 0
	}),
	operator("flag-a-counter", ruleEdges, func(d *draft) bool { return d.realiseAny(ir.ByCounter, ir.Flagged) }),
	operator("count-a-flag", ruleEdges, func(d *draft) bool { return d.realiseAny(ir.Flagged, ir.ByCounter) }),
	// and breaks nothing
	operator("undecided", ruleStructure, func(d *draft) bool {
		return d.realise(d.r.IntN(len(d.counters)), ir.Undecided)
	}),
	operator("scope-sm", ruleEdges, func(d *draft) bool {
		c := d.find(len(d.counters), func(c int) bool { return d.counters[c].Scope != ir.ScopeSM })
		if c >= 0 {
			d.counters[c].Scope = ir.ScopeSM
		}
		return c >= 0
	}),
	operator("step-flagged", ruleStep, func(d *draft) bool {
		c := d.counterNamed("step")
		return c >= 0 && d.realise(c, ir.Flagged)
	}),
}

func (d *draft) realise(counter int, how ir.Realisation) bool {
	c := &d.counters[counter]
	changed := c.How != how
	if changed {
		c.How = how
	}
	return changed
}

// realiseAny changes a counter of one realisation, which some unit waits on, to another.
func (d *draft) realiseAny(from, to ir.Realisation) bool {
	u := d.find(d.units(), func(u int) bool { return d.waitOf(u, from) >= 0 })
	return u >= 0 && d.realise(d.waitsOn(u, d.waitOf(u, from)), to)
}

// waitOf returns the first wait of a unit on a counter of a realisation, or -1.
func (d *draft) waitOf(unit int, how ir.Realisation) int {
	for k := range d.waits(unit) {
		if c := d.waitsOn(unit, k); c >= 0 && d.counters[c].How == how {
			return k
		}
	}
	return -1
}
