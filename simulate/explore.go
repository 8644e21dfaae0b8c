package simulate

import (
	"hash/maphash"
	"slices"
)

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
	x := m.exploreFrom(start(m))
	if x == nil {
		return Verdict{Tasks: len(m.tasks)}
	}
	if x.hazard != nil {
		x.hazard.otherwise(func(s *state) *Hazard { return m.exploreFrom(s).hazard })
	}
	return Verdict{Hazard: x.hazard, Complete: x.complete || x.hazard != nil, Explored: x.complete && x.hazard == nil,
		States: len(x.met), Tasks: len(m.tasks), Limit: x.limit}
}

// exploreFrom explores what may follow a state; nil: states are so large that too few can be held.
func (m *machine) exploreFrom(s *state) *explorer {
	x := &explorer{m: m, met: map[[2]uint64]bool{}, complete: true, maxStates: m.opts.MaxStates}
	if x.maxStates == 0 {
		x.maxStates = 200_000
	}
	if x.maxStates = min(x.maxStates, maxForked/m.stateBytes()); x.maxStates < minStates {
		return nil
	}
	x.seeds[0], x.seeds[1] = maphash.MakeSeed(), maphash.MakeSeed()
	x.visit(s, nil)
	return x
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
	asked     int // how often over was
}

// spent reports whether no more is to be looked at.
func (x *explorer) spent() bool {
	if x.work++; x.m.opts.MaxWork > 0 && x.work > x.m.opts.MaxWork {
		x.complete = false
	}
	return x.over() || !x.complete
}

// over reports whether the caller wants no more. It looks every few times that it is asked, which no other work counts
// for: a number that others add to may miss every multiple.
func (x *explorer) over() bool {
	if x.asked++; x.asked%64 == 0 && x.m.opts.stopped() {
		x.complete, x.limit = false, ErrStopped
	}
	return x.limit != nil
}

// way is a list of events, the latest first. Ways share what they have in common.
type way struct {
	event
	before *way
}

// events returns those of a way in their order.
func (w *way) events() []event {
	var out []event
	for ; w != nil; w = w.before {
		out = append(out, w.event)
	}
	slices.Reverse(out)
	return out
}

// visit explores everything that may follow.
func (x *explorer) visit(s *state, path *way) {
	for {
		if s.hazard != nil {
			x.hazard = s.found(path.events())
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
		path = &way{e, path}
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
			x.hazard = s.found(path.events())
		}
		return
	}
	for i, e := range next {
		then := s
		if i+1 < len(next) {
			then = s.fork()
		}
		then.apply(e)
		if x.visit(then, &way{e, path}); x.hazard != nil || !x.complete {
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
