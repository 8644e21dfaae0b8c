package simulate

import "hash/maphash"

// Explore runs every schedule of the steps, and stops at the first hazard. Two reductions keep that feasible, unless
// Options.Full: an event that commutes with every other one that may still happen is not postponed, and a state that
// was met before is not explored again.
func Explore(runs []Run, fp *Footprints, opts Options) Verdict {
	m, h, err := build(runs, fp, opts)
	if m == nil {
		return Verdict{Hazard: h, Complete: h != nil, Limit: err}
	}
	return m.explore()
}

func (m *machine) explore() Verdict {
	x := explorer{m: m, met: map[[2]uint64]bool{}, complete: true, maxStates: m.opts.MaxStates}
	if x.maxStates == 0 {
		x.maxStates = 200_000
	}
	x.seeds[0], x.seeds[1] = maphash.MakeSeed(), maphash.MakeSeed()
	x.visit(start(m), nil)
	return Verdict{Hazard: x.hazard, Complete: x.complete || x.hazard != nil, States: len(x.met), Limit: x.limit}
}

type explorer struct {
	m         *machine
	maxStates int
	met       map[[2]uint64]bool
	seeds     [2]maphash.Seed
	buf       []byte
	possible  []event
	hazard    *Hazard
	complete  bool
	limit     error
	work      int
}

// spent reports whether no more is to be looked at.
func (x *explorer) spent() bool {
	if x.work++; x.m.opts.MaxWork > 0 && x.work > x.m.opts.MaxWork {
		x.complete = false
	} else if x.work%64 == 0 && x.m.opts.stopped() {
		x.complete, x.limit = false, errStopped{}
	}
	return !x.complete
}

// visit explores everything that may follow.
func (x *explorer) visit(s *state, path []event) {
	for {
		if s.hazard != nil {
			x.hazard = s.found(path)
			return
		}
		if x.spent() {
			return
		}
		e, ok := x.commuting(s)
		if !ok {
			break
		}
		s.apply(e)
		path = append(path, e)
	}
	x.buf = s.key(x.buf[:0])
	id := [2]uint64{maphash.Bytes(x.seeds[0], x.buf), maphash.Bytes(x.seeds[1], x.buf)}
	if x.met[id] {
		return
	}
	x.met[id] = true
	if len(x.met) >= x.maxStates {
		x.complete = false
		return
	}
	next := s.events()
	if len(next) == 0 {
		if s.stuck(); s.hazard != nil {
			x.hazard = s.found(path)
		}
		return
	}
	for i, e := range next {
		then := s
		if i+1 < len(next) {
			then = s.fork()
		}
		then.apply(e)
		if x.visit(then, append(path[:len(path):len(path)], e)); x.hazard != nil || !x.complete {
			return
		}
	}
}

// events lists everything that may happen.
func (s *state) events() []event {
	var out []event
	for _, t := range s.ready {
		out = append(out, event{what: begins, n: t})
	}
	for _, t := range s.going {
		out = s.eventsOf(t, out)
	}
	for _, m := range s.pending {
		if s.mayLand(m) {
			out = append(out, event{what: lands, n: m})
		}
	}
	return out
}

func (s *state) eventsOf(t int32, out []event) []event {
	at := int(s.pc[t]) - 1
	if at == len(s.m.tasks[t].ops) || len(s.m.tasks[t].ops[at].polls) == 0 {
		if e, ok := s.possible(t, 0); ok {
			out = append(out, e)
		}
		return out
	}
	all, ps := true, s.m.tasks[t].ops[at].polls
	for k, got := range s.polls(t) {
		if !got {
			all = false
			if s.answered(t, &ps[k]) {
				out = append(out, event{what: polls, n: t, poll: int32(k)})
			}
		}
	}
	if all {
		out = append(out, event{what: works, n: t})
	}
	return out
}

// stuck notes tasks that will never be done, when nothing may happen any more.
func (s *state) stuck() {
	if s.left == 0 || s.hazard != nil {
		return
	}
	for _, t := range s.going {
		at := int(s.pc[t]) - 1
		for k, got := range s.polls(t) {
			if p := &s.m.tasks[t].ops[at].polls[k]; !got {
				s.fail(Stuck, t, "polls %s for ever", s.m.where(int(p.cell), p.buf))
			}
		}
	}
	for t := range s.m.tasks {
		if s.pc[t] == 0 {
			for _, w := range s.m.tasks[t].waits {
				if int(s.count[w.counter]) < w.threshold {
					s.fail(Stuck, int32(t), "waits for a counter to reach %d, it stays at %d", w.threshold,
						s.count[w.counter])
				}
			}
		}
	}
	for t := range s.m.tasks {
		if int(s.pc[t]) < len(s.m.tasks[t].ops)+2 {
			s.fail(Stuck, int32(t), "never runs")
		}
	}
}
