package simulate

import "math/rand/v2"

// Sample runs orders of the steps, n at most: random ones, and adversarial ones that let one task, one store, one SM's
// stores, or all stores wait for as long as anything else can happen. Order i follows from seed+i alone; that a poll
// finds different writers takes two orders to show. It is for programs that are too large to explore.
func Sample(runs []Run, fp *Footprints, opts Options, seed uint64, n int) Verdict {
	m, h, err := build(runs, fp, opts)
	if m == nil {
		return Verdict{Hazard: h, Complete: h != nil, Limit: err}
	}
	return m.sample(seed, n)
}

func (m *machine) sample(seed uint64, n int) Verdict {
	v := Verdict{}
	seen := map[look]int32{}
	for work := 0; v.Orders < n && v.Hazard == nil && (m.opts.MaxWork == 0 || work < m.opts.MaxWork); {
		order := seed + uint64(v.Orders)
		a, s := m.adversary(order), start(m)
		s.seen = seen
		if v.Hazard, v.Limit = a.run(s); v.Limit != nil {
			break
		}
		if v.Hazard != nil {
			m.seeded(v.Hazard, order)
		}
		work += a.work
		v.Orders++
		if !m.partial && len(m.messages) == 0 {
			v.Explored = v.Hazard == nil // what tasks know is the same in every order
			break
		}
	}
	v.Complete = v.Hazard != nil
	return v
}

// adversary is a policy: what it delays happens when nothing else can.
type adversary struct {
	m      *machine
	r      *rand.Rand
	task   int   // delayed, or -1
	queue  int   // whose stores are delayed, or -1
	store  int32 // delayed until a later one to its word has landed, or -1
	stores bool  // all stores are delayed
	last   bool  // of what may happen, what came up last goes first
	until  int   // events, after which nothing is delayed any more
	work   int
}

func (m *machine) adversary(seed uint64) *adversary {
	r := rand.New(rand.NewPCG(seed, 0x6f7261636c65))
	a := &adversary{m: m, r: r, task: -1, queue: -1, store: -1}
	if len(m.tasks) == 0 {
		return a
	}
	if a.until = 1 << 30; r.IntN(2) == 0 {
		a.until = r.IntN(8 * len(m.tasks))
	}
	switch seed % 7 {
	case 6:
		if len(m.messages) > 0 {
			a.store = int32(r.IntN(len(m.messages)))
		}
	case 1, 4:
		a.task = m.suspect(r)
	case 2:
		a.stores = true
	case 3:
		a.queue = m.tasks[m.suspect(r)].queue
	case 5:
		a.task, a.last = m.suspect(r), true
	}
	return a
}

// suspect picks a task whose delay may matter: a producer of a counter that can be found short of it, a task that sends
// or polls words that are sent again, or any.
func (m *machine) suspect(r *rand.Rand) int {
	for range 8 {
		t := r.IntN(len(m.tasks))
		task := &m.tasks[t]
		if task.signal >= 0 && m.counters[task.signal].partial {
			return t
		}
		for k := range task.ops {
			for n := range task.ops[k].polls {
				if len(m.cells[task.ops[k].polls[n].cell].messages) > 1 {
					return t
				}
			}
			for _, n := range task.ops[k].sends {
				if len(m.cells[m.messages[n].cell].messages) > 1 {
					return t
				}
			}
		}
	}
	return r.IntN(len(m.tasks))
}

// run plays one order to its end, or until the caller stops.
func (a *adversary) run(s *state) (*Hazard, error) {
	var path []event
	for s.hazard == nil {
		if len(path)%16 == 0 && a.m.opts.stopped() { // an event may be chosen among a million tasks
			return nil, ErrStopped
		}
		a.work, a.until = a.work+1, a.until-1
		e, ok := a.pick(s)
		if !ok {
			s.stuck()
			break
		}
		s.apply(e)
		path = append(path, e)
	}
	if s.hazard != nil {
		return s.found(path), nil
	}
	return nil, nil
}

// pick chooses an event: a delayed store where it does harm, else by lot, else the first that may happen, else one that
// is delayed.
func (a *adversary) pick(s *state) (event, bool) {
	if n := a.store; n >= 0 && s.sent[n] == onItsWay && s.mayLand(n) && s.memory[a.m.messages[n].cell] > n {
		return event{what: lands, n: n}, true // a later one has landed
	}
	n := len(s.ready) + len(s.going) + len(s.pending)
	for range min(n, 12) {
		i := a.r.IntN(n)
		if a.last {
			i = n - 1 - min(a.r.IntN(n), a.r.IntN(n), a.r.IntN(n))
		}
		if e, ok := a.at(s, i); ok && !a.delays(e) {
			return e, true
		}
	}
	var late event
	have := false
	for i := range n {
		a.work++
		if e, ok := a.at(s, i); ok {
			if !a.delays(e) {
				return e, true
			}
			late, have = e, true
		}
	}
	return late, have
}

// at returns the event of the i-th task or store that could have one.
func (a *adversary) at(s *state, i int) (event, bool) {
	switch {
	case i < len(s.ready):
		return event{what: begins, n: s.ready[i]}, true
	case i < len(s.ready)+len(s.going):
		return s.possible(s.going[i-len(s.ready)], a.r.IntN(1<<20))
	}
	i -= len(s.ready) + len(s.going)
	return event{what: lands, n: s.pending[i]}, s.mayLand(s.pending[i])
}

func (a *adversary) delays(e event) bool {
	if a.until < 0 {
		return false
	}
	if e.what == lands {
		return a.stores || e.n == a.store || a.m.tasks[a.m.messages[e.n].task].queue == a.queue
	}
	return int(e.n) == a.task
}
