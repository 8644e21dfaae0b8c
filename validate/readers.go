package validate

// readers is the set of tasks that read a segment since it was written, compressed to the last one of every chain:
// earlier ones of a chain are before it. A few are kept in place; more of them as a vector.
type readers struct {
	n     int8
	few   [3]stamp
	many  bool
	dense []int32 // kept, cleared, for the next time
}

type stamp struct{ chain, index int32 }

func (r *readers) add(chain, index int32, c *clocks) {
	if !r.many {
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
		r.many = true
		for _, s := range r.few {
			r.set(s.chain, s.index, c)
		}
	}
	r.set(chain, index, c)
}

func (r *readers) set(chain, index int32, c *clocks) {
	if int(chain) >= len(r.dense) {
		old := r.dense
		r.dense = c.alloc(len(c.length))
		copy(r.dense, old)
	}
	r.dense[chain] = max(r.dense[chain], index)
}

func (r *readers) unordered(clock []int32) (chain, index int32) {
	if !r.many {
		for _, s := range r.few[:r.n] {
			if at(clock, s.chain) < s.index {
				return s.chain, s.index
			}
		}
		return 0, 0
	}
	for c, i := range r.dense {
		if i > 0 && at(clock, int32(c)) < i {
			return int32(c), i
		}
	}
	return 0, 0
}

func (r *readers) has(chain, index int32) bool {
	if r.many {
		return at(r.dense, chain) == index
	}
	for _, s := range r.few[:r.n] {
		if s == (stamp{chain, index}) {
			return true
		}
	}
	return false
}

func (r *readers) none() bool { return r.n == 0 }

func (r *readers) clear() {
	if r.many {
		clear(r.dense)
	}
	r.n, r.many = 0, false
}
