package validate

// segment is what the sweep in execution order knows about a piece of a location.
type segment struct {
	writer  int32   // last writer, -1 for none
	buf     int32   // through which buffer it wrote
	owner   int32   // on-chip: the only SM (task, for registers) that touched it, plus 1; 0 for none
	shared  int32   // tasks that read it as part of a run, since it was written; -1 for none
	seen    copySet // the copies of words that its own readers have polled since it was written
	readers readers
}

// readers is a set of tasks, compressed to the last one of every chain: earlier ones of a chain are before it. A few
// are kept in place; more of them as a vector.
type readers struct {
	n    int32
	many int32 // number of the vector, plus 1; 0 for none
	few  [4]stamp
}

type stamp struct{ chain, index int32 }

// vectors are the dense form of sets of readers: for each chain the last task, 0 for none. They are used again.
type vectors struct {
	all  [][]int32
	n    int     // of all, in use by this proof or given back
	made int     // components since this was last looked at
	seen int     // components cleared or compared since this was last looked at
	free []int32 // numbers of those given back
}

func (v *vectors) reset() { v.n, v.made, v.seen, v.free = 0, 0, 0, v.free[:0] }

// get returns the number of an empty vector of at least n components.
func (v *vectors) get(chains int) int32 {
	var k int
	if n := len(v.free); n > 0 {
		k, v.free = int(v.free[n-1]), v.free[:n-1]
	} else {
		if k = v.n; k == len(v.all) {
			v.all = append(v.all, nil)
		}
		v.n++
		v.made += chains
	}
	v.all[k] = sized(v.all[k], chains)
	v.seen += chains
	return int32(k)
}

func (r *readers) add(chain, index int32, c *clocks) {
	if r.many == 0 {
		for i := range r.few[:r.n] {
			if r.few[i].chain == chain {
				r.few[i].index = max(r.few[i].index, index)
				return
			}
		}
		if int(r.n) < len(r.few) {
			r.few[r.n] = stamp{chain, index}
			r.n++
			return
		}
		r.many = c.vectors.get(len(c.length)) + 1
		for _, s := range r.few {
			r.set(s.chain, s.index, c)
		}
	}
	r.set(chain, index, c)
}

func (r *readers) set(chain, index int32, c *clocks) {
	dense := grow(c.vectors.all[r.many-1], len(c.length))
	dense[chain] = max(dense[chain], index)
	c.vectors.all[r.many-1] = dense
}

// unordered returns the reader on the lowest chain that is not before the task with the given clock; index 0 means that
// there is none.
func (r *readers) unordered(clock []int32, c *clocks) (chain, index int32) {
	if r.many == 0 {
		for _, s := range r.few[:r.n] {
			if at(clock, s.chain) < s.index && (index == 0 || s.chain < chain) {
				chain, index = s.chain, s.index
			}
		}
		return chain, index
	}
	c.vectors.seen += len(c.vectors.all[r.many-1])
	for k, i := range c.vectors.all[r.many-1] {
		if i > 0 && at(clock, int32(k)) < i {
			return int32(k), i
		}
	}
	return 0, 0
}

func (r *readers) has(chain, index int32, c *clocks) bool {
	if r.many > 0 {
		return at(c.vectors.all[r.many-1], chain) == index
	}
	for _, s := range r.few[:r.n] {
		if s == (stamp{chain, index}) {
			return true
		}
	}
	return false
}

func (r *readers) clear(c *clocks) {
	if r.many > 0 {
		c.vectors.free = append(c.vectors.free, r.many-1)
	}
	r.n, r.many = 0, 0
}
