package simulate

import (
	"fmt"
	"slices"
)

// A reason is why a task is not done when nothing may happen any more.
type reason struct {
	task int32
	text string
	on   []int32 // tasks any of which would have to do something first; none: nobody can help
	// poll is the number of the word that it polls in vain, of which all that would have answered was overwritten
	// before it looked, else -1. That depends on the order; the other reasons do not.
	poll int
}

// stuck notes tasks that will never be done, when nothing may happen any more: those of the shortest explanation.
func (s *state) stuck() {
	if s.left == 0 || s.hazard != nil {
		return
	}
	why := s.explanation()
	last := why[len(why)-1]
	s.fail(Stuck, why[0].task, -1, "%s", why[0].text)
	s.hazard.why = why
	if last.poll >= 0 {
		s.hazard.task = last.task
	}
}

// maxSearched bounds the tasks from which the shortest circle is looked for.
const maxSearched = 256

// explanation returns a task that nobody can help, or a circle of tasks that wait for each other, the shortest found.
func (s *state) explanation() []reason {
	left := []int32{}
	reasons := map[int32]reason{}
	for t := range s.m.tasks {
		if int(s.pc[t]) < len(s.m.tasks[t].ops)+2 {
			r := s.reason(int32(t))
			if len(r.on) == 0 {
				return []reason{r}
			}
			left, reasons[int32(t)] = append(left, int32(t)), r
		}
	}
	var best []reason
	for _, t := range left[:min(len(left), maxSearched)] {
		if c := circle(t, reasons); c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
	}
	if best == nil { // all that were searched wait for a circle without being in it
		t, met := left[0], map[int32]bool{}
		for !met[t] {
			met[t], t = true, reasons[t].on[0]
		}
		best = circle(t, reasons)
	}
	return best
}

// circle returns the shortest way from a task back to it, or nil.
func circle(from int32, reasons map[int32]reason) []reason {
	before := map[int32]int32{}
	queue := []int32{from}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		for _, next := range reasons[t].on {
			if next == from {
				out := []reason{reasons[t]}
				for t != from {
					t = before[t]
					out = append(out, reasons[t])
				}
				slices.Reverse(out)
				return out
			}
			if _, met := before[next]; !met {
				before[next] = t
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// reason says why a task that is not done cannot go on.
func (s *state) reason(t int32) reason {
	m, task := s.m, &s.m.tasks[t]
	undone := func(t int32) bool { return int(s.pc[t]) < len(m.tasks[t].ops)+2 }
	if at := int(s.pc[t]) - 1; at >= 0 {
		for k, got := range s.polls(t) {
			if !got {
				return s.polling(t, at, k)
			}
		}
	}
	if a := task.after; a >= 0 && undone(int32(a)) {
		return reason{t, fmt.Sprintf("comes after %s on its SM", m.tasks[a].name), []int32{int32(a)}, -1}
	}
	for _, w := range task.waits {
		if int(s.count[w.counter]) >= w.threshold {
			continue
		}
		c, r := &m.counters[w.counter], reason{task: t, poll: -1}
		for _, p := range c.producers {
			if undone(int32(p)) {
				r.on = append(r.on, int32(p))
			}
		}
		r.text = fmt.Sprintf("waits for counter %s to reach %d; it is at %d, and ", c.name, w.threshold,
			s.count[w.counter])
		if len(r.on) == 0 {
			r.text += "no task is left that adds to it"
		} else if r.text += m.tasks[r.on[0]].name; len(r.on) > 1 {
			r.text += fmt.Sprintf(" and %d more would add to it", len(r.on)-1)
		} else {
			r.text += " would add to it"
		}
		return r
	}
	return reason{t, "never runs", nil, -1}
}

// polling is the reason of a task that polls a word in vain.
func (s *state) polling(t int32, at, k int) reason {
	m, p := s.m, &s.m.tasks[t].ops[at].polls[k]
	r := reason{task: t, poll: k, text: "polls " + m.where(int(p.cell), p.buf) + " for ever: "}
	for _, n := range m.awaits(p) {
		if s.sent[n] != landed {
			r.on, r.poll = append(r.on, m.messages[n].task), -1
		}
	}
	switch found := s.memory[p.cell]; {
	case len(r.on) > 0:
		r.text += m.tasks[r.on[0]].name + " has not stored it"
	case found >= 0:
		by := &m.messages[found]
		r.text += fmt.Sprintf("%s has stored %s over it", m.tasks[by.task].name, by.buf.Name)
	default:
		r.text += "nobody stores it"
	}
	return r
}
