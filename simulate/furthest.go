package simulate

import (
	"math"
	"slices"
)

// furthest is how far each task can come at most from a state on, whatever happens in which order. A task that waits
// for a word finds it if it is in memory, on its way or still to be stored, also where another store would be over it
// by then. So what happens keeps nothing else from happening, there is one end, and no order comes further. A task that
// is not done at this end is not done in any order that goes on from the state; from the beginning, in none at all.
type furthest struct {
	s     *state  // from where
	pc    []int32 // by task, as in a state
	count []int32 // by counter
	left  int     // tasks that are not done

	todo    []int32 // tasks that may be able to go on
	blocked []int32 // by task: what it still needs to start
	got     []int32 // by task: how many words of its current op it has found, from the first one on
	calls   []call  // whom to call when a message is sent
	last    []int32 // by message: the last call for it, or -1
	since   []int32 // by task: calls before this one are for words that it has found
}

// A call is for a task that waits for a message, and comes after another call for that message, or -1.
type call struct{ task, before int32 }

func (s *state) furthest() *furthest {
	n := len(s.m.tasks)
	f := &furthest{s: s, pc: slices.Clone(s.pc), count: slices.Clone(s.count), left: s.left,
		blocked: slices.Clone(s.blocked), got: make([]int32, n), since: make([]int32, n),
		last: slices.Repeat([]int32{-1}, len(s.m.messages))}
	for t := range s.m.tasks {
		if s.blocked[t] == 0 {
			f.todo = append(f.todo, int32(t))
		}
	}
	for len(f.todo) > 0 {
		t := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		f.advance(t)
	}
	return f
}

func (f *furthest) done(t int32) bool { return int(f.pc[t]) == len(f.s.m.tasks[t].ops)+2 }

// advance lets a task that has started, or may, come as far as it can for now.
func (f *furthest) advance(t int32) {
	for task := &f.s.m.tasks[t]; !f.done(t); f.pc[t]++ {
		switch at := int(f.pc[t]) - 1; {
		case at == len(task.ops):
			f.signal(t)
		case at >= 0:
			if !f.polls(t, at) {
				return
			}
			for _, n := range task.ops[at].sends {
				f.send(n)
			}
		}
	}
}

// polls reports whether a task finds all words of its current op. If not, it is called when the first one that is
// missing is sent.
func (f *furthest) polls(t int32, at int) bool {
	list := f.s.m.tasks[t].ops[at].polls
	for ; int(f.got[t]) < len(list); f.got[t]++ {
		if f.finds(t, at, int(f.got[t])) {
			continue
		}
		f.since[t] = int32(len(f.calls))
		for _, n := range f.s.m.awaits(&list[f.got[t]]) {
			if f.s.sent[n] == unsent {
				f.calls, f.last[n] = append(f.calls, call{t, f.last[n]}), int32(len(f.calls))
			}
		}
		return false
	}
	f.got[t] = 0
	return true
}

// finds reports whether a task has found a word of its current op, or can.
func (f *furthest) finds(t int32, at, k int) bool {
	p := &f.s.m.tasks[t].ops[at].polls[k]
	if p.answers == 0 || int(f.s.pc[t])-1 == at && f.s.polls(t)[k] {
		return true
	}
	return slices.ContainsFunc(f.s.m.awaits(p), func(n int32) bool {
		switch msg := &f.s.m.messages[n]; f.s.sent[n] {
		case unsent:
			return f.pc[msg.task]-1 > msg.op
		case landed:
			return f.s.memory[msg.cell] == n
		}
		return true
	})
}

func (f *furthest) send(n int32) {
	for i := f.last[n]; i >= 0; i = f.calls[i].before {
		if t := f.calls[i].task; i >= f.since[t] {
			f.since[t] = math.MaxInt32 // it need not be called twice
			f.todo = append(f.todo, t)
		}
	}
}

func (f *furthest) signal(t int32) {
	f.left--
	if c := f.s.m.tasks[t].signal; c >= 0 {
		f.count[c]++
		for _, w := range f.s.m.counters[c].waitersAt(int(f.count[c])) {
			f.unblock(int32(w.task))
		}
	}
	for _, n := range f.s.m.next[t] {
		f.unblock(n)
	}
}

func (f *furthest) unblock(t int32) {
	if f.blocked[t]--; f.blocked[t] == 0 {
		f.todo = append(f.todo, t)
	}
}
