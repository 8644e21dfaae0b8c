package simulate

import (
	"cmp"
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

// possible reports whether the next event of a task that has started may happen, and which it is. An op with several
// words left to poll has several; first is where to look from.
func (s *state) possible(t int32, first int) (event, bool) {
	task := &s.m.tasks[t]
	at := int(s.pc[t]) - 1
	if at == len(task.ops) {
		if task.counted && s.inFlight[task.queue] > 0 {
			return event{}, false // a release: what it announces has landed
		}
		return event{what: signals, n: t}, true
	}
	op, got := &task.ops[at], s.polls(t)
	all := true
	for i := range op.polls {
		k := (first + i) % len(op.polls)
		if got[k] {
			continue
		}
		all = false
		if s.answered(t, &op.polls[k]) {
			return event{what: polls, n: t, poll: int32(k)}, true
		}
	}
	return event{what: works, n: t}, all
}

// mayLand: stores of one SM to one word land in order.
func (s *state) mayLand(n int32) bool {
	before := s.m.messages[n].before
	return before < 0 || s.sent[before] != onItsWay
}

// answered reports whether a poll would find what it waits for. A read that waits for nothing is always answered, once
// the SM's own stores to the word have landed.
func (s *state) answered(t int32, p *poll) bool {
	if p.answers > 0 {
		return slices.Contains(s.m.awaits(p), s.memory[p.cell])
	}
	return !slices.ContainsFunc(s.m.cells[p.cell].messages, func(n int32) bool {
		return s.sent[n] == onItsWay && s.m.tasks[s.m.messages[n].task].queue == s.m.tasks[t].queue
	})
}

// may reports whether an event may happen now.
func (s *state) may(e event) bool {
	if e.what == lands {
		return s.sent[e.n] == onItsWay && s.mayLand(e.n)
	}
	task, at := &s.m.tasks[e.n], int(s.pc[e.n])-1
	switch {
	case e.what == begins:
		return at < 0 && s.blocked[e.n] == 0
	case at < 0 || at > len(task.ops):
		return false
	case e.what == signals:
		return at == len(task.ops) && !(task.counted && s.inFlight[task.queue] > 0)
	case at == len(task.ops):
		return false
	case e.what == works:
		return !slices.Contains(s.polls(e.n), false)
	}
	list := task.ops[at].polls
	return int(e.poll) < len(list) && !s.polls(e.n)[e.poll] && s.answered(e.n, &list[e.poll])
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
		s.land(e.n)
	}
}

// land brings a store to memory.
func (s *state) land(n int32) {
	msg := &s.m.messages[n]
	i, last := s.slot[n], len(s.pending)-1
	s.pending[i] = s.pending[last]
	s.slot[s.pending[i]] = i
	s.pending = s.pending[:last]
	s.inFlight[s.m.tasks[msg.task].queue]--
	s.sent[n] = landed
	s.memory[msg.cell] = n
}

func (s *state) begin(t int32) {
	task := &s.m.tasks[t]
	s.ready = slices.DeleteFunc(s.ready, func(o int32) bool { return o == t })
	s.going = append(s.going, t)
	if task.after >= 0 {
		s.known.of(int(t)).join(s.known.of(task.after))
		s.known.of(int(t)).add(s.m.homes[task.after])
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
	m, p := s.m, &s.m.tasks[t].ops[at].polls[k]
	s.polls(t)[k] = true
	found := s.memory[p.cell]
	if found < 0 {
		for _, n := range m.cells[p.cell].messages {
			if by := &m.messages[n]; by.buf == p.buf && m.tasks[by.task].step == m.tasks[t].step && by.task != t {
				s.fail(Undefined, t, by.task, "reads %s before %s has stored it", m.where(int(p.cell), p.buf),
					m.tasks[by.task].name)
			}
		}
		s.fail(Undefined, t, -1, "reads %s, which nobody has written", m.where(int(p.cell), p.buf))
		return
	}
	msg := &m.messages[found]
	if from := &m.tasks[msg.task]; !slices.Contains(m.awaits(p), found) {
		switch {
		case msg.task != t && !s.known.of(int(t)).has(m.homes[msg.task]):
			s.fail(Race, t, msg.task, "reads %s, which %s writes, and nothing orders the two",
				m.where(int(p.cell), p.buf), from.name)
		case msg.buf.Name != p.buf.Name:
			s.fail(Clobbered, t, msg.task, "reads %s, where %s has written %s", m.where(int(p.cell), p.buf), from.name,
				msg.buf.Name)
		case from.step != m.tasks[t].step:
			s.fail(Undefined, t, -1, "reads %s, written in the step before", m.where(int(p.cell), p.buf))
		}
	}
	if p.answers == 1 {
		return // there is nothing else that it can find
	}
	at32 := look{t, int32(at), p.cell}
	if was, again := s.seen[at32]; again && was != found && s.hazard == nil {
		s.fail(WhichProducer, t, msg.task, "reads %s: in this order from %s, in another from %s",
			m.where(int(p.cell), p.buf), m.tasks[msg.task].name, m.tasks[m.messages[was].task].name)
		s.hazard.seen = map[look]int32{at32: was}
		return
	}
	s.seen[at32] = found
}

// work runs an op on plain memory, and issues its stores to words.
func (s *state) work(t int32) {
	op := &s.m.tasks[t].ops[s.pc[t]-1]
	for _, a := range op.reads {
		for c := a.lo; c < a.hi; c++ {
			s.read(t, c, a)
		}
	}
	for _, a := range op.writes {
		for c := a.lo; c < a.hi; c++ {
			s.write(t, c, a)
		}
	}
	for _, n := range op.sends {
		s.sent[n], s.slot[n] = onItsWay, int32(len(s.pending))
		s.pending = append(s.pending, n)
	}
	s.inFlight[s.m.tasks[t].queue] += int32(len(op.sends))
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
		s.arrived.of(c).add(s.m.homes[t])
		for _, w := range s.m.counters[c].waitersAt(int(s.count[c])) {
			s.unblock(int32(w.task))
		}
	}
	for _, n := range s.m.next[t] {
		s.unblock(n)
	}
}

// waitersAt returns those that wait for a counter to reach a number.
func (c *counter) waitersAt(n int) []waiter {
	find := func(n int) int {
		at, _ := slices.BinarySearchFunc(c.waiters, n, func(w waiter, n int) int { return cmp.Compare(w.threshold, n) })
		return at
	}
	return c.waiters[find(n):find(n+1)]
}

func (s *state) unblock(t int32) {
	if s.blocked[t]--; s.blocked[t] == 0 {
		s.ready = append(s.ready, t)
	}
}
