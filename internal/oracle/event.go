package oracle

import (
	"fmt"
	"slices"
)

// An event is one thing that happens. Events of one task happen in order; all else is interleaved.
type event struct {
	what kindOfEvent
	n    int32 // the task, or the message
	poll int32 // which word of the op
}

type kindOfEvent uint8

const (
	begins  kindOfEvent = iota // a task starts: it knows what its counters have seen
	polls                      // it reads one word
	works                      // an op reads and writes plain memory, and sends its words
	signals                    // a task is done
	lands                      // a word reaches memory
)

func (m *machine) describe(e event) string {
	if e.what == lands {
		msg := &m.messages[e.n]
		return fmt.Sprintf("%s's store to %s lands", m.tasks[msg.task].name, m.where(msg.cell, msg.buf))
	}
	t := &m.tasks[e.n]
	switch e.what {
	case begins:
		return t.name + " starts"
	case polls:
		return fmt.Sprintf("%s polls word %d of an op", t.name, e.poll)
	case works:
		return t.name + " runs an op"
	default:
		return t.name + " is done"
	}
}

// possible reports whether the next event of a task that has started may happen, and which it is. An op with several
// words left to poll has several; first is where to look from.
func (s *state) possible(t int32, first int) (event, bool) {
	task := &s.m.tasks[t]
	at := int(s.pc[t]) - 1
	if at == len(task.ops) {
		if task.counted && s.onTheirWay(task.queue) {
			return event{}, false // a release: what it announces has landed
		}
		return event{what: signals, n: t}, true
	}
	op := &task.ops[at]
	all := true
	for i := range op.polls {
		k := (first + i) % len(op.polls)
		if s.polls(int32(t))[k] {
			continue
		}
		all = false
		if s.answered(t, at, k) {
			return event{what: polls, n: t, poll: int32(k)}, true
		}
	}
	return event{what: works, n: t}, all
}

func (s *state) onTheirWay(queue int) bool {
	return slices.ContainsFunc(s.pending, func(m int32) bool { return s.m.tasks[s.m.messages[m].task].queue == queue })
}

// mayLand: stores of one SM to one word land in order.
func (s *state) mayLand(i int) bool {
	msg := &s.m.messages[s.pending[i]]
	for _, other := range s.pending[:i] {
		if o := &s.m.messages[other]; o.cell == msg.cell && s.m.tasks[o.task].queue == s.m.tasks[msg.task].queue {
			return false
		}
	}
	return true
}

// answered reports whether a poll would find what it waits for. A read that waits for nothing is always answered, once
// the SM's own stores to the word have landed.
func (s *state) answered(t int32, at, k int) bool {
	op := &s.m.tasks[t].ops[at]
	cell := op.polls[k].lo
	if len(op.awaits[k]) > 0 {
		return slices.Contains(op.awaits[k], s.memory[cell])
	}
	return !slices.ContainsFunc(s.pending, func(n int32) bool {
		msg := &s.m.messages[n]
		return msg.cell == cell && s.m.tasks[msg.task].queue == s.m.tasks[t].queue
	})
}

// apply makes an event happen.
func (s *state) apply(e event) {
	switch e.what {
	case begins:
		s.begin(e.n)
	case polls:
		s.poll(e.n, int(s.pc[e.n])-1, int(e.poll))
	case works:
		s.work(e.n)
	case signals:
		s.signal(e.n)
	case lands:
		i := slices.Index(s.pending, e.n)
		s.pending = slices.Delete(s.pending, i, i+1)
		s.sent[e.n] = landed
		s.memory[s.m.messages[e.n].cell] = e.n
	}
}

func (s *state) begin(t int32) {
	task := &s.m.tasks[t]
	s.ready = slices.DeleteFunc(s.ready, func(o int32) bool { return o == t })
	s.going = append(s.going, t)
	if task.after >= 0 {
		s.known.of(int(t)).join(s.known.of(int(task.after)))
		s.known.of(int(t)).add(task.after)
	}
	for _, w := range task.waits {
		s.known.of(int(t)).join(s.arrived.of(w.counter))
	}
	s.enter(t, 1)
}

// enter moves a task to its next op.
func (s *state) enter(t, pc int32) {
	s.pc[t] = pc
	clear(s.polls(t))
}

// poll reads a word.
func (s *state) poll(t int32, at, k int) {
	m, a := s.m, s.m.tasks[t].ops[at].polls[k]
	s.polls(int32(t))[k] = true
	found := s.memory[a.lo]
	if found < 0 {
		s.fail(Undefined, int(t), "reads %s, which nobody has written", m.where(a.lo, a.buf))
		return
	}
	msg := &m.messages[found]
	if from := &m.tasks[msg.task]; !slices.Contains(m.tasks[t].ops[at].awaits[k], found) {
		switch {
		case msg.task != int(t) && !s.known.of(int(t)).has(msg.task):
			s.fail(Race, int(t), "reads %s, written by %s, of which it does not know", m.where(a.lo, a.buf), from.name)
		case msg.buf.Name != a.buf.Name:
			s.fail(Clobbered, int(t), "reads %s, where %s has written %s", m.where(a.lo, a.buf), from.name,
				msg.buf.Name)
		case from.step != m.tasks[t].step:
			s.fail(Undefined, int(t), "reads %s, written in the step before", m.where(a.lo, a.buf))
		}
	}
	at32 := look{t, int32(at), int32(a.lo)}
	if was, again := s.seen[at32]; again && was != found {
		s.fail(WhichProducer, int(t), "reads %s: in this schedule from %s, in another from %s", m.where(a.lo, a.buf),
			m.tasks[msg.task].name, m.tasks[m.messages[was].task].name)
	}
	s.seen[at32] = found
}

// work runs an op on plain memory, and issues its stores to words.
func (s *state) work(t int32) {
	op := &s.m.tasks[t].ops[s.pc[t]-1]
	for _, a := range op.reads {
		for c := a.lo; c < a.hi; c++ {
			s.read(int(t), c, a)
		}
	}
	for _, a := range op.writes {
		for c := a.lo; c < a.hi; c++ {
			s.write(int(t), c, a)
		}
	}
	for _, m := range op.sends {
		s.sent[m] = onItsWay
		s.pending = append(s.pending, int32(m))
	}
	s.enter(t, s.pc[t]+1)
}

func (s *state) signal(t int32) {
	task := &s.m.tasks[t]
	s.pc[t]++
	s.left--
	s.going = slices.DeleteFunc(s.going, func(o int32) bool { return o == t })
	if c := task.signal; c >= 0 {
		s.count[c]++
		s.arrived.of(c).join(s.known.of(int(t)))
		s.arrived.of(c).add(int(t))
		for _, w := range s.m.counters[c].waiters {
			if w.threshold == int(s.count[c]) {
				s.unblock(int32(w.task))
			}
		}
	}
	for _, n := range s.m.next[t] {
		s.unblock(n)
	}
}

func (s *state) unblock(t int32) {
	if s.blocked[t]--; s.blocked[t] == 0 {
		s.ready = append(s.ready, t)
	}
}
