package validate

// Clocks of the tasks of a stage are nearly equal: all of them have waited for the same producers, and differ in what
// they did since. So the clock of a task that is done is kept as its difference from the join of a counter, if it has
// few: fb is that join, and then the stamps. Where a vector already contains the join, joining such a clock is
// setting its stamps. A clock without a difference (base is noBase) is kept as a vector, and joined component by
// component. The join of a counter that somebody has waited for is complete and does not change any more.
type delta struct {
	base     int32 // counter, noBase for none
	from, to int32 // stamps
}

const noBase int32 = -1

// maxStamps bounds a difference; a longer one is no shorter way.
const maxStamps = 96

// deltas are those of the tasks that are done, and of the current one.
type deltas struct {
	of     []delta
	stamps []stamp
	base   int32 // of the current task
	extra  []stamp
	within []int32 // for each counter: one whose join its own join contains so far, noBase for none
}

func (d *deltas) reset(tasks, counters int) {
	d.of, d.stamps = sized(d.of, tasks), d.stamps[:0]
	d.within = sized(d.within, counters)
	for c := range d.within {
		d.within[c] = noBase
	}
	d.restart(noBase)
}

// restart begins a difference without stamps.
func (d *deltas) restart(base int32) { d.base, d.extra = base, d.extra[:0] }

// follow begins with the difference of an earlier task.
func (d *deltas) follow(t int32) {
	e := &d.of[t]
	d.base, d.extra = e.base, append(d.extra[:0], d.stamps[e.from:e.to]...)
}

// stamp sets a component of the current clock, if that is news to it.
func (d *deltas) stamp(clock []int32, s stamp) {
	if clock[s.chain] >= s.index {
		return
	}
	clock[s.chain] = s.index
	if d.base == noBase {
		return
	}
	if d.extra = append(d.extra, s); len(d.extra) > maxStamps {
		d.base = noBase
	}
}

// keep stores the difference of the current task, which is done.
func (d *deltas) keep(t int32) {
	from := int32(len(d.stamps))
	if d.base != noBase {
		d.stamps = append(d.stamps, d.extra...)
	}
	d.of[t] = delta{d.base, from, int32(len(d.stamps))}
}

// joinCounter joins the complete join of a counter into the current clock. If that exceeds the clock everywhere, but
// for the chain that the task is on, the clock is the join and its own place from then on.
func (c *clocks) joinCounter(clock []int32, counter int, own int32) []int32 {
	src, q := c.joinFB[counter], &c.deltas
	if q.base != noBase && q.within[counter] == q.base && len(src) == len(clock) {
		copy(clock, src) // which has all that the clock has but for its stamps
		stamps := q.extra
		q.restart(int32(counter))
		for _, s := range stamps {
			q.stamp(clock, s)
		}
		return clock
	}
	mine := int32(0)
	if own >= 0 {
		mine, clock[own] = clock[own], 0
	}
	clock = grow(clock, len(src))
	d, over := clock[:len(src)], int32(0)
	for i, v := range src {
		m := max(d[i], v)
		over |= m - v
		d[i] = m
	}
	for _, v := range clock[len(src):] {
		over |= v
	}
	if c.deltas.restart(noBase); over == 0 {
		c.deltas.restart(int32(counter))
	}
	if own >= 0 {
		c.deltas.stamp(clock, stamp{own, mine})
	}
	return clock
}

// joinTask joins the clock of a task that is done into the current one.
func (c *clocks) joinTask(clock []int32, t int32) []int32 {
	if e := &c.deltas.of[t]; e.base != noBase && e.base == c.deltas.base {
		for _, s := range c.deltas.stamps[e.from:e.to] {
			c.deltas.stamp(clock, s)
		}
		return clock
	}
	c.deltas.base = noBase
	return c.joinDone(clock, t)
}

// joinDone joins the clock of a task that is done into a vector.
func (c *clocks) joinDone(dst []int32, t int32) []int32 {
	e := &c.deltas.of[t]
	if e.base == noBase {
		return join(dst, c.fb[t])
	}
	dst = join(dst, c.joinFB[e.base])
	for _, s := range c.deltas.stamps[e.from:e.to] {
		dst = grow(dst, int(s.chain)+1)
		dst[s.chain] = max(dst[s.chain], s.index)
	}
	return dst
}

// produce joins the clock of the current task, which is done, into that of the counter it signals.
func (c *clocks) produce(counter int, fb []int32) {
	d, to := &c.deltas, c.joinFB[counter]
	if d.base != noBase && d.within[counter] == d.base && len(to) >= len(fb) {
		for _, s := range d.extra {
			to[s.chain] = max(to[s.chain], s.index)
			if c.ofAll[counter] {
				k := c.mirrored(s.chain)
				to[k] = max(to[k], s.index)
			}
		}
		return
	}
	if c.joinFB[counter] = join(to, fb); c.ofAll[counter] {
		c.both(c.joinFB[counter])
	}
	if d.base != noBase {
		d.within[counter] = d.base
	}
}
