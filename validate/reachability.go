package validate

// maxHints bounds the search for what a message might suggest; beyond it, messages suggest less.
const maxHints = 1 << 22

// reachability says how one task is related to all others by queue order and waits of any kind. It is only asked for
// messages.
type reachability struct {
	of     int32  // the task, plus 1
	before []bool // tasks that it comes after
	after  []bool // tasks that come after it
	next   []int32
	joined []bool
	stack  []int32
	hints  int // pieces of views looked at for the sake of messages
}

// reachability is valid until the next call: a message mostly asks about the task that the last one was about.
func (p *Proof) reachability(t int32) *reachability {
	f, k := p.flat, &p.related
	if k.of == t+1 {
		return k
	}
	n := len(f.Tasks)
	k.of, k.before, k.after, k.next, k.joined = t+1, sized(k.before, n), sized(k.after, n), sized(k.next, n),
		sized(k.joined, len(f.Counters))
	prev, next, joined := p.schedule.queueBefore(f), k.next, k.joined
	for i := range next {
		next[i] = -1
	}
	for i, q := range prev { // none of a peer's tasks
		if q >= 0 {
			next[q] = int32(i)
		}
	}
	k.spread(t, k.before, func(q int32, visit func(int32)) {
		if prev[q] >= 0 {
			visit(prev[q])
		}
		for _, w := range f.Tasks[q].Waits {
			if !joined[w.Counter] {
				joined[w.Counter] = true
				for _, r := range p.counters.producers.of(w.Counter) {
					visit(r)
				}
			}
		}
	})
	clear(joined)
	k.spread(t, k.after, func(q int32, visit func(int32)) {
		if next[q] >= 0 {
			visit(next[q])
		}
		if c := f.Tasks[q].Signal; c >= 0 && !joined[c] {
			joined[c] = true
			for _, r := range p.counters.waiting.of(c) {
				visit(r)
			}
		}
	})
	return k
}

// spread marks what can be reached from a task.
func (k *reachability) spread(from int32, seen []bool, edges func(t int32, visit func(int32))) {
	stack := append(k.stack[:0], from)
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
	k.stack = stack
}

// leadsTo reports whether one of the tasks comes after.
func (k *reachability) leadsTo(tasks []int32) bool {
	for _, t := range tasks {
		if k.after[t] {
			return true
		}
	}
	return false
}
