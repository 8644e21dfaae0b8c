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
	end         *furthest // of Stuck: to where the last order leads in which the hazard has shown
}

// Shrink returns a hazard with an order of as few tasks as still show it, one after the other as far as that does. It
// runs parts of the order in which it was found again: some events in all, and those of the run that was begun. Once
// stop is closed, it returns the order that it has by then; nil never is. The same task may read something else in the
// order that is left, and then that is what goes wrong.
func (h *Hazard) Shrink(events int, stop <-chan struct{}) *Hazard {
	if h.m == nil || h.always {
		return h
	}
	told := *h
	s := &shrinker{h: &told, path: h.path, left: events, stop: stop, kind: h.Kind, task: h.task, other: h.other}
	s.slice()
	s.leaveOut()
	s.inTurns()
	s.leaveOut()
	told.path, told.late = s.path, -1
	if s.kind == Stuck && s.end != nil {
		way := s.end.explanation([]int32{s.task})
		told.why = s.end.texts(way)
		told.Where, told.Detail = "task "+told.m.tasks[way[0]].name, told.why[0].text
	}
	if s.kind == Undefined {
		told.late = s.other
	}
	return &told
}

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

// inVain reports whether the task that is stuck polls a word of which it has missed an answer, and will not find
// another one, whatever happens from then on.
func (s *shrinker) inVain(st *state) bool {
	if st.polls(s.task) == nil {
		return false
	}
	f := st.furthest()
	if f.pc[s.task] != st.pc[s.task] || !f.obstacle(s.task).missed {
		return false
	}
	s.end = f
	return true
}

// slice leaves out tasks that nothing in the order has waited for. What a task has waited for at a counter are the
// first ones of those that have added to it. They are looked at once, however many tasks have waited for them: there
// may be many of both.
func (s *shrinker) slice() {
	m := s.h.m
	before := make([][]int32, len(m.tasks)) // whose words each has polled
	arrived := make([][]int32, len(m.counters))
	memory := map[int32]int32{}
	begun, at := make([]bool, len(m.tasks)), make([]int, len(m.tasks))
	for i, e := range s.path {
		if i%looks == 0 && s.stopped() {
			return
		}
		switch e.what {
		case begins:
			begun[e.n] = true
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
	looked := make([]int, len(m.counters)) // how many of those that have arrived are needed
	queue := append([]int32{s.task}, s.h.lost...)
	if s.other >= 0 {
		queue = append(queue, s.other)
	}
	for n := 0; len(queue) > 0; n++ {
		if n%looks == 0 && s.stopped() {
			return
		}
		t := queue[len(queue)-1]
		if queue = queue[:len(queue)-1]; needed[t] {
			continue
		}
		needed[t] = true
		if !begun[t] {
			continue
		}
		queue = append(queue, before[t]...)
		if a := m.tasks[t].after; a >= 0 {
			queue = append(queue, int32(a))
		}
		for _, w := range m.tasks[t].waits {
			if first := w.threshold - m.counters[w.counter].init; first > looked[w.counter] {
				queue = append(queue, arrived[w.counter][looked[w.counter]:first]...)
				looked[w.counter] = first
			}
		}
	}
	if out, ok := s.again(s.only(needed)); ok {
		s.path = out
	}
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
				for _, n := range slices.Sorted(slices.Values(st.pending)) {
					e := event{what: lands, n: n}
					st.apply(e)
					out = append(out, e)
				}
				if s.left%looks == 0 && s.stopped() { // a task may poll a million words
					return nil, nil
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
