package cost

import (
	"slices"

	"amkc/kernel"
)

// How SMs share the memory where few of them have cache rows to stream: once the rings of the others are full, these
// leave their part to them.

// A memoryShare is what the SMs that stream in a stage have of the memory, if some do not.
type memoryShare struct {
	feed *feed
	from float64 // when the rings of the others are full
}

// memoryShareOf returns nil for a stage in which all SMs stream alike, or none does.
func (r *run) memoryShareOf(in *instance) *memoryShare {
	if s := r.stages[in.stage]; !r.streams || s.body.Streams != kernel.CacheRows {
		return nil
	}
	streaming, n := make([]bool, r.sms), 0
	for k, sm := range in.sms {
		if r.stages[in.stage].tasks[k].streamed > 0 && !streaming[sm] {
			streaming[sm] = true
			n++
		}
	}
	if n == 0 || n == r.sms {
		return nil
	}
	c := &memoryShare{feed: r.feedsOfFew[n]}
	if c.feed == nil {
		c.feed = r.feedOf(whileOthersWait(max(r.times(slices.Max(r.load)), float64(r.sms)/float64(n))))
		r.feedsOfFew[n] = c.feed
	}
	for sm := range r.rings {
		if ring := &r.rings[sm]; !streaming[sm] {
			c.from = max(c.from, max(ring.now, r.at[sm])+(ring.capacity-ring.level)/ring.memory[ring.window])
		}
	}
	return c
}

// take is the ring's, with the part of the memory that these SMs have.
func (c *memoryShare) take(r *ring, t, bytes, speed, worked float64) float64 {
	if c == nil {
		return r.take(t, bytes, speed, worked)
	}
	r.begin(t, worked)
	bytes = r.pass(max(c.from, r.now), bytes, speed)
	alone := r.feed
	r.feed = c.feed
	r.finish(bytes, speed)
	r.feed = alone
	return r.now
}
