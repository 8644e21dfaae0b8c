package ir

// indexOf returns the k-th of the indices first, first+step, ...; a step of 0 means 1. It saturates: an index that no
// program can have is refused, never another one.
func indexOf(first, step, k int) int { return satAdd(first, satMul(max(1, step), k)) }

// oneAsZero is a step in the form in which programs hold it.
func oneAsZero(step int) int {
	if step == 1 {
		return 0
	}
	return step
}

// Index returns the index of the family's k-th member, counted from 0.
func (b *Buffer) Index(k int) int { return indexOf(b.First, b.Step, k) }

// Last returns the index of the family's last member, and 0 for a plain buffer.
func (b *Buffer) Last() int { return b.Index(max(1, b.Count) - 1) }

// Turn returns the turn of the family's k-th member on its pages: of n pages, it is on the one numbered Turn(k) % n.
func (b *Buffer) Turn(k int) int { return b.Index(k) / max(1, b.Step) }

// Index returns the index of the family's k-th member, counted from 0.
func (c *Counter) Index(k int) int { return indexOf(c.First, c.Step, k) }

// Last returns the index of the family's last member, and 0 for a plain counter.
func (c *Counter) Last() int { return c.Index(max(1, c.Count) - 1) }

// Index returns the index of the loop's k-th iteration, counted from 0.
func (l *Loop) Index(k int) int { return indexOf(l.First, l.Step, k) }

// Last returns the index of the loop's last iteration, which is less than First if there are no iterations.
func (l *Loop) Last() int { return l.Index(l.Count - 1) }

// Index returns the index of the group's k-th member, counted from 0.
func (g *Group) Index(k int) int { return indexOf(g.First, g.Step, k) }

// Last returns the index of the group's last member, which is less than First if there are no members.
func (g *Group) Last() int { return g.Index(len(g.Members) - 1) }
