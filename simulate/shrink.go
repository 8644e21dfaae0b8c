package simulate

import (
	"maps"
	"slices"
)

// A shrinker takes tasks out of an order in which something goes wrong, as long as it still does.
type shrinker struct {
	h    *Hazard // as it is told
	path []event
	left int             // events that may still be run; less than 0: no more runs
	stop <-chan struct{} // closed when the caller wants no more
	// what is looked for: the hazard, or early that of one of two tasks in conflict, which comes too early
	kind        Kind
	task, other int32
	early       bool
}

// Shrink returns a hazard with an order of as few tasks as still show it, one after the other as far as that does. It
// runs parts of the order in which it was found again: some events in all, and those of the run that was begun. Once
// stop is closed, it returns the order that it has by then; nil never is. The same task may read something else in the
// order that is left, and then that is what goes wrong.
func (h *Hazard) Shrink(events int, stop <-chan struct{}) *Hazard {
	if h.m == nil || h.always() {
		return h
	}
	told := *h
	s := &shrinker{h: &told, path: h.path, left: events, stop: stop, kind: h.Kind, task: h.task, other: h.other}
	s.slice()
	s.leaveOut()
	s.inTurns()
	s.leaveOut()
	told.path, told.late = s.path, -1
	if s.kind == Undefined {
		told.late = s.other
	}
	return &told
}

// always reports whether no order avoids the hazard.
func (h *Hazard) always() bool { return len(h.why) > 0 && h.why[len(h.why)-1].poll < 0 }

// again runs those of a list of events that may happen, and returns them up to where the hazard shows, if it does.
func (s *shrinker) again(list []event) ([]event, bool) {
	if s.left < 0 || s.stopped() {
		return nil, false
	}
	st := s.start()
	out := make([]event, 0, len(list))
	for _, e := range list {
		if s.left--; s.left%looks == 0 && s.stopped() {
			return nil, false
		}
		if !st.may(e) {
			continue
		}
		st.apply(e)
		out = append(out, e)
		if st.hazard != nil {
			return out, s.same(st)
		}
	}
	return out, s.same(st)
}

// looks is after how many events a run looks whether it is to stop.
const looks = 256

// stopped reports whether the caller wants no more; then nothing is run any more.
func (s *shrinker) stopped() bool {
	select {
	case <-s.stop:
		s.left = -1
		return true
	default:
		return false
	}
}

func (s *shrinker) start() *state {
	st := start(s.h.m)
	maps.Copy(st.seen, s.h.seen)
	return st
}

// same reports whether a state shows the hazard.
func (s *shrinker) same(st *state) bool {
	if s.kind == Stuck {
		return st.hazard == nil && s.inVain(st)
	}
	return st.hazard != nil && st.hazard.Kind == s.kind && st.hazard.task == s.task &&
		(s.early || st.hazard.Detail == s.h.Detail)
}

// inVain reports whether the task that is stuck polls a word of which all that would answer has been overwritten.
func (s *shrinker) inVain(st *state) bool {
	why := s.h.why[len(s.h.why)-1]
	at := int(st.pc[why.task]) - 1
	if at < 0 || at >= len(s.h.m.tasks[why.task].ops) || st.polls(why.task) == nil || st.polls(why.task)[why.poll] {
		return false
	}
	p := &s.h.m.tasks[why.task].ops[at].polls[why.poll]
	return !slices.Contains(s.h.m.awaits(p), st.memory[p.cell]) &&
		!slices.ContainsFunc(s.h.m.awaits(p), func(n int32) bool { return st.sent[n] != landed })
}

// slice leaves out tasks that nothing in the order has waited for.
func (s *shrinker) slice() {
	m := s.h.m
	before := make([][]int32, len(m.tasks)) // what each has waited for
	arrived := make([][]int32, len(m.counters))
	memory := map[int32]int32{}
	at := make([]int, len(m.tasks))
	for _, e := range s.path {
		switch e.what {
		case begins:
			if a := m.tasks[e.n].after; a >= 0 {
				before[e.n] = append(before[e.n], int32(a))
			}
			for _, w := range m.tasks[e.n].waits {
				first := max(0, w.threshold-m.counters[w.counter].init)
				before[e.n] = append(before[e.n], arrived[w.counter][:first]...)
			}
		case polls:
			if n, ok := memory[m.tasks[e.n].ops[at[e.n]].polls[e.poll].cell]; ok {
				before[e.n] = append(before[e.n], m.messages[n].task)
			}
		case works:
			at[e.n]++
		case signals:
			if c := m.tasks[e.n].signal; c >= 0 {
				arrived[c] = append(arrived[c], e.n)
			}
		case lands:
			memory[m.messages[e.n].cell] = e.n
		}
	}
	needed := make([]bool, len(m.tasks))
	queue := []int32{s.task}
	if s.other >= 0 {
		queue = append(queue, s.other)
	}
	for _, n := range s.overwriters(memory) {
		queue = append(queue, n)
	}
	for len(queue) > 0 {
		t := queue[len(queue)-1]
		if queue = queue[:len(queue)-1]; !needed[t] {
			needed[t] = true
			queue = append(queue, before[t]...)
		}
	}
	if out, ok := s.again(s.only(needed)); ok {
		s.path = out
	}
}

// overwriters returns who has stored last to the word that is polled in vain, and who would have answered.
func (s *shrinker) overwriters(memory map[int32]int32) []int32 {
	if s.kind != Stuck {
		return nil
	}
	m, why := s.h.m, s.h.why[len(s.h.why)-1]
	var out []int32
	for k := range m.tasks[why.task].ops {
		if op := &m.tasks[why.task].ops[k]; why.poll < len(op.polls) {
			for _, n := range m.awaits(&op.polls[why.poll]) {
				out = append(out, m.messages[n].task)
			}
			if n, ok := memory[op.polls[why.poll].cell]; ok {
				out = append(out, m.messages[n].task)
			}
		}
	}
	return out
}

// only returns the events of some tasks.
func (s *shrinker) only(keep []bool) []event {
	return slices.DeleteFunc(slices.Clone(s.path), func(e event) bool { return !keep[s.h.m.of(e)] })
}

// tasks lists the tasks of the order, the last one to come first.
func (s *shrinker) tasks() []int32 {
	var out []int32
	met := map[int32]bool{}
	for _, e := range slices.Backward(s.path) {
		if t := s.h.m.of(e); !met[t] {
			met[t] = true
			out = append(out, t)
		}
	}
	return out
}

// leaveOut takes tasks out, many at a time and then fewer, until none can be spared or the events are spent. A task
// that has waited for one that is taken out goes with it.
func (s *shrinker) leaveOut() {
	for size := max(1, len(s.tasks())/2); s.left >= 0; {
		list, spared := s.tasks(), false
		for lo := 0; lo < len(list) && s.left >= 0; lo += size {
			keep := make([]bool, len(s.h.m.tasks))
			for _, t := range s.tasks() {
				keep[t] = true
			}
			for _, t := range list[lo:min(lo+size, len(list))] {
				keep[t] = t == s.task && keep[t]
			}
			if out, ok := s.again(s.only(keep)); ok && len(out) < len(s.path) {
				s.path, spared = out, true
			}
		}
		if size == 1 && !spared {
			return
		}
		if !spared {
			size = max(1, size/2)
		}
		size = min(size, max(1, len(s.tasks())/2))
	}
}

// inTurns looks for an order that goes task by task. Of two tasks in conflict the one that the program lists later
// comes first, so that one sees what may go wrong, and otherwise the one at fault as soon as it may.
func (s *shrinker) inTurns() {
	list := s.tasks()
	slices.Sort(list)
	if s.kind == Race {
		first, last := min(s.task, s.other), max(s.task, s.other)
		switch out, h := s.inTurn(without(list, first), first); {
		case h == nil:
		case h.Kind == Undefined && h.task == last:
			s.path, s.kind, s.task, s.other, s.early = out, Undefined, last, first, true
			return
		case h.Kind == Race && min(h.task, h.other) == first && max(h.task, h.other) == last:
			s.tell(out, h)
			return
		}
	}
	for _, l := range [][]int32{append([]int32{s.task}, without(list, s.task)...), list} {
		out, h := s.inTurn(l)
		switch {
		case h != nil && h.task == s.task && h.Kind != WhichProducer:
			s.tell(out, h)
			return
		case h == nil && s.kind == Stuck:
			if out, ok := s.again(out); ok {
				s.path = out
				return
			}
		}
	}
}

// tell makes another order, and what goes wrong in it, those that are told.
func (s *shrinker) tell(path []event, h *Hazard) {
	s.h.Kind, s.h.Where, s.h.Detail, s.h.task, s.h.other, s.h.why = h.Kind, h.Where, h.Detail, h.task, h.other, nil
	s.path, s.kind, s.task, s.other = path, h.Kind, h.task, h.other
}

func without(list []int32, t int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(o int32) bool { return o == t })
}

// inTurn runs tasks one after the other, always the first one of the list that can run, and stops at a hazard. Stores
// land at once.
func (s *shrinker) inTurn(list []int32, last ...int32) ([]event, *Hazard) {
	list = append(slices.Clip(list), last...)
	st := s.start()
	var out []event
	for moved := true; moved; {
		moved = false
		for _, t := range list {
			if s.left--; s.left < 0 || s.left%looks == 0 && s.stopped() {
				return nil, nil
			}
			for e, ok := s.next(st, t); ok; e, ok = s.next(st, t) {
				st.apply(e)
				out, moved, s.left = append(out, e), true, s.left-1
				if st.hazard != nil {
					return out, st.hazard
				}
				for len(st.pending) > 0 {
					e := event{what: lands, n: slices.Min(st.pending)}
					st.apply(e)
					out = append(out, e)
				}
			}
			if moved {
				break
			}
		}
	}
	return out, nil
}

// next returns what a task may do now.
func (s *shrinker) next(st *state, t int32) (event, bool) {
	switch {
	case st.pc[t] == 0:
		e := event{what: begins, n: t}
		return e, st.may(e)
	case int(st.pc[t]) == len(s.h.m.tasks[t].ops)+2:
		return event{}, false
	}
	return st.possible(t, 0)
}
