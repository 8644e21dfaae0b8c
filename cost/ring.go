package cost

// A ring is one SM's stream: what the memory has sent ahead of the consumers, in microseconds and bytes.
type ring struct {
	capacity float64 // bytes of its slots, as full as the program's chunks fill them
	rate     float64 // bytes a microsecond from memory
	fast     float64 // bytes a microsecond from L2
	ahead    float64 // bytes that may wait in L2
	restart  float64 // microseconds from a free slot to the first bytes in it, after the ring was full

	now    float64 // up to when the rest is known
	level  float64 // bytes in the ring
	cached float64 // bytes of what comes next that wait in L2
	resume float64 // when the stream goes on after a halt
	full   bool
	idle   float64 // microseconds with a full ring
}

// fullAt reports whether the ring is full at time t if nothing is consumed until then.
func (r *ring) fullAt(t float64) bool {
	return r.full || r.now+r.fillTime(r.capacity-r.level) <= t
}

// until lets the stream run on while nothing is consumed.
func (r *ring) until(t float64) {
	if t <= r.now {
		return
	}
	if !r.full {
		done := r.now + r.fillTime(r.capacity-r.level)
		if done > t {
			r.fill(t)
			return
		}
		r.fill(done)
		r.level, r.full = r.capacity, true
	}
	r.cached = min(r.ahead, r.cached+r.rate*(t-r.now))
	r.idle += t - r.now
	r.now = t
}

// take consumes bytes from time t on, at most at the given speed, and returns when the last one is consumed.
func (r *ring) take(t, bytes, speed float64) float64 {
	r.until(t)
	if r.full {
		r.full, r.resume = false, t+r.restart
	}
	end := max(t+bytes/speed, r.now+r.fillTime(bytes-r.level))
	r.fill(end)
	r.level -= bytes
	if r.level >= r.capacity {
		r.idle += (r.level - r.capacity) / r.rate
		r.level, r.full = r.capacity, true
	}
	return end
}

// fillTime is how long the stream takes from now on for some bytes.
func (r *ring) fillTime(bytes float64) float64 {
	if bytes <= 0 {
		return 0
	}
	near := min(bytes, r.cached)
	return max(0, r.resume-r.now) + near/r.fast + (bytes-near)/r.rate
}

// fill adds what arrives up to time t.
func (r *ring) fill(t float64) {
	dt := t - max(r.now, r.resume)
	r.now = max(t, r.now)
	if dt <= 0 {
		return
	}
	near := min(r.cached, dt*r.fast)
	r.cached -= near
	r.level += near + (dt-near/r.fast)*r.rate
}

// empty throws away what is ahead: the stream starts anew at time t.
func (r *ring) empty(t float64) {
	r.until(t)
	r.level, r.cached, r.full, r.resume = 0, 0, false, t+r.restart
}
