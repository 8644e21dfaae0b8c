package simulate

import "slices"

// commuting returns an event that may as well happen now, because nothing that can happen before it interferes:
// exploring it alone is enough (a persistent set of one event, Godefroid 1996).
//
//   - A task that starts, or is done, interferes with counters that somebody may find below their final value.
//   - A poll of a word interferes with stores to that word, as far as these can happen while the task stands still.
//   - A store that lands interferes with other stores to its word, and with polls that wait for something else there,
//     as far as these can happen while it is on its way.
//   - Plain memory is judged by what tasks know, whenever it is touched.
func (x *explorer) commuting(s *state) (event, bool) {
	if x.m.opts.Full {
		return event{}, false
	}
	for _, t := range s.ready {
		if !slices.ContainsFunc(x.m.tasks[t].waits, func(w wait) bool { return x.m.counters[w.counter].partial }) {
			return event{what: begins, n: t}, true
		}
	}
	for _, t := range s.going {
		x.possible = s.eventsOf(t, x.possible[:0])
		x.work += 1 + len(s.polls(t))
		for _, e := range x.possible {
			task := &x.m.tasks[t]
			switch {
			case e.what == works, e.what == signals && (task.signal < 0 || !x.m.counters[task.signal].partial),
				e.what == polls && x.quiet(s, t, task.ops[s.pc[t]-1].polls[e.poll].cell):
				return e, true
			}
		}
	}
	for _, msg := range s.pending {
		if x.over() {
			break
		}
		if s.mayLand(msg) && x.landsAlone(s, msg) {
			return event{what: lands, n: msg}, true
		}
	}
	return event{}, false
}

// quiet reports whether no store to a word can land while task t stands still.
func (x *explorer) quiet(s *state, t, cell int32) bool {
	var reach []int32
	for _, m := range x.m.cells[cell].messages {
		if s.sent[m] == onItsWay {
			return false
		}
		if s.sent[m] == unsent {
			if reach == nil {
				reach = x.reach(s, t, -1)
			}
			if msg := &x.m.messages[m]; reach[msg.task] > msg.op {
				return false
			}
		}
	}
	return true
}

// landsAlone reports whether nothing that can happen while a store is on its way interferes with its landing.
func (x *explorer) landsAlone(s *state, msg int32) bool {
	cell := x.m.messages[msg].cell
	if len(x.m.cells[cell].pollers) == 0 || len(x.m.cells[cell].messages) == 1 && !x.m.cells[cell].peeked {
		return true
	}
	reach := x.reach(s, -1, msg)
	for _, m := range x.m.cells[cell].messages {
		if other := &x.m.messages[m]; m != msg &&
			(s.sent[m] == onItsWay || s.sent[m] == unsent && reach[other.task] > other.op) {
			return false
		}
	}
	for _, p := range x.m.cells[cell].pollers {
		if s.pc[p.task]-1 > p.op || s.pc[p.task]-1 == p.op && s.polls(p.task)[p.poll] || reach[p.task] < p.op {
			continue // it has polled, or cannot come to it
		}
		if awaits := x.m.awaits(&x.m.tasks[p.task].ops[p.op].polls[p.poll]); len(awaits) != 1 || awaits[0] != msg {
			return false
		}
	}
	return true
}

// reach returns for every task how many ops it can run at most while one task stands still and one store is on its way
// (-1: none). It is generous: a wait is satisfied by whatever could satisfy it, in any order.
func (x *explorer) reach(s *state, still, msg int32) []int32 {
	m := x.m
	reach := make([]int32, len(m.tasks)) // ops + 1: done
	for t := range reach {
		reach[t] = max(0, s.pc[t]-1)
	}
	for changed := true; changed; {
		changed = false
		x.work += len(m.tasks)
		for t := range m.tasks {
			if x.over() {
				return reach // less far than they can come: what follows from it is not complete
			}
			if int32(t) == still {
				continue
			}
			if r := x.advance(s, t, reach, msg); r > reach[t] {
				reach[t], changed = r, true
			}
		}
	}
	return reach
}

// advance returns how far a task can come, given how far the others can.
func (x *explorer) advance(s *state, t int, reach []int32, msg int32) int32 {
	m, task, at := x.m, &x.m.tasks[t], reach[t]
	if s.pc[t] == 0 && at == 0 {
		if a := task.after; a >= 0 && int(reach[a]) <= len(m.tasks[a].ops) {
			return 0
		}
		for _, w := range task.waits {
			n := m.counters[w.counter].init
			for _, p := range m.counters[w.counter].producers {
				if int(reach[p]) > len(m.tasks[p].ops) {
					n++
				}
			}
			if n < w.threshold {
				return 0
			}
		}
	}
	for ; int(at) < len(task.ops); at++ {
		for k := range task.ops[at].polls {
			awaits := m.awaits(&task.ops[at].polls[k])
			if s.pc[t]-1 > at || s.pc[t]-1 == at && s.polls(int32(t))[k] || len(awaits) == 0 {
				continue
			}
			if !slices.ContainsFunc(awaits, func(n int32) bool {
				return n != msg && reach[m.messages[n].task] > m.messages[n].op
			}) {
				return at
			}
		}
	}
	return int32(len(task.ops)) + 1
}
