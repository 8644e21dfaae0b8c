package validate

// maxHints bounds the search for what a message might suggest; beyond it, messages suggest less.
const maxHints = 1 << 22

// kin says how one task is related to all others by queue order and waits of any kind. It is only asked for messages.
type kin struct {
	of     int32  // the task, plus 1
	before []bool // tasks that it comes after
	after  []bool // tasks that come after it
	next   []int32
	joined []bool
	stack  []int32
}

// kin is valid until the next call: a message mostly asks for the kin of the task that the last one was about.
func (p *Proof) kin(t int32) *kin {
	f, k := p.flat, &p.kinship
	if k.of == t+1 {
		return k
	}
	n := len(f.Tasks)
	k.of, k.before, k.after, k.next, k.joined = t+1, sized(k.before, n), sized(k.after, n), sized(k.next, n),
		sized(k.joined, len(f.Counters))
	prev, next, joined := p.queueBefore(), k.next, k.joined
	for i := range next {
		next[i] = -1
	}
	for i, q := range prev {
		if q >= 0 {
			next[q] = int32(i)
		}
	}
	p.spread(t, k.before, func(q int32, visit func(int32)) {
		if prev[q] >= 0 {
			visit(prev[q])
		}
		for _, w := range f.Tasks[q].Waits {
			if !joined[w.Counter] {
				joined[w.Counter] = true
				for _, r := range p.producers.of(w.Counter) {
					visit(r)
				}
			}
		}
	})
	clear(joined)
	p.spread(t, k.after, func(q int32, visit func(int32)) {
		if next[q] >= 0 {
			visit(next[q])
		}
		if c := f.Tasks[q].Signal; c >= 0 && !joined[c] {
			joined[c] = true
			for _, r := range p.waiting.of(c) {
				visit(r)
			}
		}
	})
	return k
}

// spread marks what can be reached from a task.
func (p *Proof) spread(from int32, seen []bool, edges func(t int32, visit func(int32))) {
	stack := append(p.kinship.stack[:0], from)
	visit := func(t int32) {
		if !seen[t] {
			seen[t] = true
			stack = append(stack, t)
		}
	}
	for len(stack) > 0 {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		edges(t, visit)
	}
	p.kinship.stack = stack
}

// any reports whether one of the tasks comes after.
func (k *kin) any(tasks []int32) bool {
	for _, t := range tasks {
		if k.after[t] {
			return true
		}
	}
	return false
}
