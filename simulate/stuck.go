package simulate

import (
	"fmt"
	"iter"
	"slices"
)

// A reason is why a task waits forever, in words.
type reason struct {
	task int32
	text string
}

// stuck notes tasks that will never be done, when nothing may happen any more: those of the shortest explanation. If
// some would not be done in any order, it is about these. Else some task polls a word whose answer is overwritten
// before it looks, which another order avoids, and it is about such tasks.
func (s *state) stuck() {
	if s.left == 0 || s.hazard != nil {
		return
	}
	f := start(s.m).furthest()
	always := f.left > 0
	if !always {
		f = s.furthest()
	}
	var from []int32
	for t := range s.m.tasks {
		if !f.done(int32(t)) && (always || f.obstacle(int32(t)).missed) {
			from = append(from, int32(t))
		}
	}
	way := f.explanation(from)
	s.fail(Stuck, way[0], -1, "%s", f.text(way[0]))
	s.hazard.why, s.hazard.always = f.texts(way), always
	if !always {
		s.hazard.lost = f.lost(way[0])
	}
}

// An obstacle is what a task that is not done at the furthest end waits for: one of three things.
type obstacle struct {
	after  int32 // the task before it on its SM, or -1
	wait   *wait // or nil
	poll   *poll // or nil
	missed bool  // an answer of the poll has been overwritten
}

// obstacle returns the first one of a task. If it is at several polls, one of which it has missed an answer goes first:
// that is what depends on the order.
func (f *furthest) obstacle(t int32) obstacle {
	task := &f.s.m.tasks[t]
	if at := int(f.pc[t]) - 1; at >= 0 {
		out := obstacle{after: -1}
		for k := range task.ops[at].polls {
			if p := &task.ops[at].polls[k]; !f.finds(t, at, k) && !out.missed {
				missed := slices.ContainsFunc(f.s.m.awaits(p), func(n int32) bool { return f.s.sent[n] == landed })
				if missed || out.poll == nil {
					out.poll, out.missed = p, missed
				}
			}
		}
		return out
	}
	if a := int32(task.after); a >= 0 && !f.done(a) {
		return obstacle{after: a}
	}
	i := slices.IndexFunc(task.waits, func(w wait) bool { return int(f.count[w.counter]) < w.threshold })
	return obstacle{after: -1, wait: &task.waits[i]}
}

// helped reports whether there is a task that would help another one, if it came further.
func (f *furthest) helped(t int32) bool {
	switch o, m := f.obstacle(t), f.s.m; {
	case o.wait != nil:
		c := &m.counters[o.wait.counter]
		return int(f.count[o.wait.counter]) < c.init+len(c.producers)
	case o.poll != nil:
		return slices.ContainsFunc(m.awaits(o.poll), func(n int32) bool { return f.s.sent[n] == unsent })
	}
	return true
}

// helpers goes through the tasks any of which would have to do something first.
func (f *furthest) helpers(o obstacle) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		switch m := f.s.m; {
		case o.wait != nil:
			for _, p := range m.counters[o.wait.counter].producers {
				if !f.done(int32(p)) && !yield(int32(p)) {
					return
				}
			}
		case o.poll != nil:
			for _, n := range m.awaits(o.poll) {
				if f.s.sent[n] == unsent && !yield(m.messages[n].task) {
					return
				}
			}
		default:
			yield(o.after)
		}
	}
}

// blockers iterates over the tasks that a task waits for, directly and through others, the nearest first, each once and
// with one that waits for it. The task itself is among them if it waits for itself. For a task that nobody can help it
// says -1. The producers of a counter are looked at once, however many wait for it.
func (f *furthest) blockers(from int32) iter.Seq2[int32, int32] {
	return func(yield func(t, helper int32) bool) {
		met, counters := make([]bool, len(f.pc)), make([]bool, len(f.count))
		for queue := []int32{from}; len(queue) > 0; {
			t := queue[0]
			queue = queue[1:]
			o := f.obstacle(t)
			if o.wait != nil {
				if counters[o.wait.counter] {
					continue
				}
				counters[o.wait.counter] = true
			}
			helped := false
			for h := range f.helpers(o) {
				if helped = true; met[h] {
					continue
				}
				if met[h] = true; !yield(t, h) {
					return
				}
				if h != from {
					queue = append(queue, h)
				}
			}
			if !helped && !yield(t, -1) {
				return
			}
		}
	}
}

// maxSearched bounds the tasks from which the shortest explanation is looked for.
const maxSearched = 256

// explanation returns tasks of which each waits for the next one: one of some that nobody can help, or the shortest way
// from one of them that was found, back to it or to another one that nobody can help.
func (f *furthest) explanation(from []int32) []int32 {
	for _, t := range from {
		if !f.helped(t) {
			return []int32{t}
		}
	}
	var best []int32
	for _, t := range from[:min(len(from), maxSearched)] {
		if f.s.m.opts.stopped() {
			break
		}
		if w := f.way(t); w != nil && (best == nil || len(w) < len(best)) {
			best = w
		}
	}
	if best == nil { // all that were searched wait for a circle without being in it, or none was searched
		t := from[0]
		for met := map[int32]bool{}; !met[t]; {
			met[t] = true
			for t = range f.helpers(f.obstacle(t)) {
				break
			}
		}
		best = f.way(t)
	}
	return best
}

// way returns the shortest way from a task back to it or to one that nobody can help, or nil.
func (f *furthest) way(from int32) []int32 {
	before := make([]int32, len(f.pc))
	for t, h := range f.blockers(from) {
		if h >= 0 && h != from {
			before[h] = t
			continue
		}
		out := []int32{t}
		for t != from {
			t = before[t]
			out = append(out, t)
		}
		slices.Reverse(out)
		return out
	}
	return nil
}

// lost lists the tasks that have stored words that were overwritten too early, and those that have overwritten them, as
// far as that is why a task waits forever: those words that it has missed, and those that later tasks have.
func (f *furthest) lost(t int32) []int32 {
	var out []int32
	add := func(t int32) {
		if o := f.obstacle(t); o.missed {
			for _, n := range append(slices.Clone(f.s.m.awaits(o.poll)), f.s.memory[o.poll.cell]) {
				if f.s.sent[n] == landed {
					out = append(out, f.s.m.messages[n].task)
				}
			}
		}
	}
	add(t)
	for _, h := range f.blockers(t) {
		if h >= 0 && h != t {
			add(h)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (f *furthest) texts(list []int32) []reason {
	var out []reason
	for _, t := range list {
		out = append(out, reason{t, f.text(t)})
	}
	return out
}

// text says why a task waits forever.
func (f *furthest) text(t int32) string {
	m, o := f.s.m, f.obstacle(t)
	helper, more := "", -1
	for h := range f.helpers(o) {
		if more++; more == 0 {
			helper = m.tasks[h].name
		}
	}
	switch {
	case o.wait != nil:
		c, n := &m.counters[o.wait.counter], f.count[o.wait.counter]
		out := fmt.Sprintf("waits for counter %s to reach %d; it is at %d, and ", c.name, o.wait.threshold, n)
		if n > f.s.count[o.wait.counter] {
			out = fmt.Sprintf("waits for counter %s to reach %d; it comes to %d at most, and ", c.name,
				o.wait.threshold, n)
		}
		switch more {
		case -1:
			return out + "no task is left that adds to it"
		case 0:
			return out + helper + " would add to it"
		}
		return out + fmt.Sprintf("%s and %d more would add to it", helper, more)
	case o.poll != nil:
		out := "polls " + m.where(int(o.poll.cell), o.poll.buf) + " forever: "
		if o.missed {
			by := &m.messages[f.s.memory[o.poll.cell]]
			if out += fmt.Sprintf("%s has stored %s over it", m.tasks[by.task].name, by.buf.Name); more >= 0 {
				out += ", and "
			}
		}
		if more >= 0 {
			out += helper + " has not stored it"
		}
		return out
	}
	return fmt.Sprintf("comes after %s on its SM", m.tasks[o.after].name)
}
