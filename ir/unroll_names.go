package ir

// This file resolves what a program declares: families into their members, and the names that groups give to buffers.

// members calls f for every member of a family with its index and its number, or once for a plain name.
func (u *unroller) members(what, name string, first, count, step int, f func(name string, k int)) {
	if !IsFamily(name) {
		switch {
		case count != 0:
			u.fail(CodeName, what+" "+name, "has a count but no {i} in its name")
		case step != 0:
			u.fail(CodeName, what+" "+name, "has a step but no {i} in its name")
		default:
			f(name, 0)
		}
		return
	}
	if count < 1 {
		u.fail(CodeSize, what+" "+name, "family of %d members, want 1 or more", count)
		return
	}
	u.indices(what, name, first, count, step, f)
}

// indices calls f for each of count indices with the name resolved and the index's number.
func (u *unroller) indices(what, name string, first, count, step int, f func(name string, k int)) {
	if step < 0 {
		u.fail(CodeShape, what+" "+name, "has the step %d, want 1 or more", step)
		return
	}
	if last := indexOf(first, step, count-1); last > maxInt {
		u.fail(CodeSize, what+" "+name, "runs to index %d, want at most 2^53", last)
		return
	}
	for k := 0; k < count && !u.stop(); k++ {
		full, err := Resolve(name, indexOf(first, step, k))
		if err != nil {
			u.fail(CodeName, what+" "+name, "%v", err)
			return
		}
		f(full, k)
	}
}

func (u *unroller) expandBuffers(bufs []Buffer) {
	for n := range bufs {
		b := &bufs[n]
		u.members("buffer", b.Name, b.First, b.Count, b.Step, func(name string, k int) {
			if _, taken := u.buffers[name]; taken {
				u.fail(CodeName, "buffer "+name, "is defined twice")
				return
			}
			m := *b
			m.Name, m.First, m.Count, m.Step = name, 0, 0, 0
			if len(b.Pages) > 1 {
				turn := b.Turn(k) % len(b.Pages)
				m.Pages = b.Pages[turn : turn+1]
			}
			u.buffers[name] = len(u.flat.Buffers)
			u.flat.Buffers = append(u.flat.Buffers, m)
		})
	}
}

func (u *unroller) expandCounters(counters []Counter) {
	for n := range counters {
		c := &counters[n]
		u.members("counter", c.Name, c.First, c.Count, c.Step, func(name string, _ int) {
			if _, taken := u.counters[name]; taken {
				u.fail(CodeName, "counter "+name, "is defined twice")
				return
			}
			m := *c
			m.Name, m.First, m.Count, m.Step = name, 0, 0, 0
			u.counters[name] = len(u.flat.Counters)
			u.flat.Counters = append(u.flat.Counters, m)
		})
	}
}

// expandGroups gives every member of a group its name of the group. A member is a buffer, never a name of another
// group: what a name stands for is then found in one place.
func (u *unroller) expandGroups(groups []Group) {
	for n := range groups {
		g := &groups[n]
		if !IsFamily(g.Name) {
			u.fail(CodeName, "group "+g.Name, "has no {i} in its name")
			continue
		}
		if len(g.Members) == 0 {
			u.fail(CodeSize, "group "+g.Name, "has no members, want 1 or more")
			continue
		}
		first := -1
		u.indices("group", g.Name, g.First, len(g.Members), g.Step, func(name string, k int) {
			b, ok := u.buffers[g.Members[k]]
			if !ok || u.flat.Buffers[b].Name != g.Members[k] {
				u.fail(CodeName, "group "+g.Name, "buffer %s is not defined", g.Members[k])
				return
			}
			if _, taken := u.buffers[name]; taken {
				u.fail(CodeName, "group "+g.Name, "%s is defined twice", name)
				return
			}
			u.buffers[name] = b
			if first < 0 {
				first = b
			}
			x, y := &u.flat.Buffers[first], &u.flat.Buffers[b]
			if len(x.Shape) != len(y.Shape) || x.DType != y.DType {
				u.fail(CodeShape, "group "+g.Name, "member %s is %v with %d dimensions, member %s %v with %d: want "+
					"the same of all",
					x.Name, x.DType, len(x.Shape), y.Name, y.DType, len(y.Shape))
			}
		})
	}
}
