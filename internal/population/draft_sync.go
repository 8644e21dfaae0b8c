package population

import (
	"slices"

	"amkc/ir"
)

// Waits and signals of units, whether they name counters or number them.

// signal returns the index of the counter that a unit signals, of the family in a native program; -1 for none.
func (d *draft) signal(unit int) int {
	if d.flat != nil {
		return d.flat.Tasks[unit].Signal
	}
	return d.counterNamed(d.stages[unit].Signal)
}

func (d *draft) setSignal(unit, counter int) {
	if d.flat != nil {
		d.flat.Tasks[unit].Signal = counter
		return
	}
	d.stages[unit].Signal = d.nameIn(unit, d.counters[counter].Name, d.counters[counter].First)
}

func (d *draft) counterNamed(name string) int {
	return slices.IndexFunc(d.counters, func(c ir.Counter) bool { return sameFamily(c.Name, name) })
}

func (d *draft) waits(unit int) int {
	if d.flat != nil {
		return len(d.flat.Tasks[unit].Waits)
	}
	return len(d.stages[unit].Waits)
}

// waitsOn returns the counter of a wait.
func (d *draft) waitsOn(unit, k int) int {
	if d.flat != nil {
		return d.flat.Tasks[unit].Waits[k].Counter
	}
	return d.counterNamed(d.stages[unit].Waits[k].Counter)
}

func (d *draft) waiting(unit, counter int) bool {
	for k := range d.waits(unit) {
		if d.waitsOn(unit, k) == counter {
			return true
		}
	}
	return false
}

// threshold returns a wait's threshold for changing.
func (d *draft) threshold(unit, k int) *int {
	if d.flat != nil {
		t := &d.flat.Tasks[unit]
		t.Waits = slices.Clone(t.Waits)
		return &t.Waits[k].Threshold
	}
	s := d.stages[unit]
	s.Waits = slices.Clone(s.Waits)
	return &s.Waits[k].Threshold
}

func (d *draft) dropWait(unit, k int) {
	if d.flat != nil {
		t := &d.flat.Tasks[unit]
		t.Waits = slices.Delete(slices.Clone(t.Waits), k, k+1)
		return
	}
	s := d.stages[unit]
	s.Waits = slices.Delete(slices.Clone(s.Waits), k, k+1)
}

// addWait makes a unit wait until all producers of a counter are done.
func (d *draft) addWait(unit, counter int) {
	n := max(1, d.producers(counter))
	if d.flat != nil {
		t := &d.flat.Tasks[unit]
		t.Waits = append(slices.Clone(t.Waits), ir.FlatWait{Counter: counter, Threshold: n})
		return
	}
	s, c := d.stages[unit], &d.counters[counter]
	s.Waits = append(slices.Clone(s.Waits), ir.Wait{Counter: d.nameIn(unit, c.Name, c.First), Threshold: n})
}

// producers counts the tasks that signal a counter. Of a family it is those of the first stage that signals it: embed
// and the loop have as many.
func (d *draft) producers(counter int) int {
	n := 0
	for u := range d.units() {
		if d.signal(u) != counter {
			continue
		}
		if d.flat == nil {
			n += len(d.stages[u].Dist.Tasks(0))
			if ir.IsFamily(d.counters[counter].Name) {
				return n
			}
			continue
		}
		n++
	}
	return n
}

// findWait returns a random wait.
func (d *draft) findWait() (unit, k int, ok bool) {
	unit = d.find(d.units(), func(u int) bool { return d.waits(u) > 0 })
	if unit < 0 {
		return 0, 0, false
	}
	return unit, d.r.IntN(d.waits(unit)), true
}

// findCounter returns a random counter that some unit waits on.
func (d *draft) findCounter() int {
	unit, k, ok := d.findWait()
	if !ok {
		return -1
	}
	return d.waitsOn(unit, k)
}

func (d *draft) counterIs(name string) func(int) bool {
	return func(u int) bool { c := d.signal(u); return c >= 0 && d.counters[c].Name == name }
}
