package simulate

// otherwise completes the hazard of a poll that finds different writers. It takes two orders to show, and the hazard
// has the later one: run, which has found it, is asked for the earlier one. That comes first again, as what is known
// beforehand is only what the poll has found in the later order.
func (h *Hazard) otherwise(run func(*state) *Hazard) {
	if h.Kind != WhichProducer {
		return
	}
	later := start(h.m)
	for _, e := range h.path {
		later.apply(e)
	}
	if later.hazard != nil {
		return // an op that polls a word twice: one order shows it
	}
	s := start(h.m)
	for at := range h.seen {
		s.seen[at] = later.seen[at]
	}
	h.Other = run(s)
}

// seeded notes the seeds of the sampled orders that show a hazard, the last of which is given. Where it takes two, the
// other is the one before: it has gone right, so that every task has made its polls in it.
func (m *machine) seeded(h *Hazard, order uint64) {
	h.Seed, h.Orders = &order, 1
	h.otherwise(func(s *state) *Hazard {
		order, h.Orders = order-1, 2
		other, _ := m.adversary(order).run(s)
		return other
	})
}
