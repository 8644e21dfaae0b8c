package cost

import "math"

// A feed is how the stream of an SM comes, whatever its ring holds: chunks in flight, and the speeds that they give,
// in bytes per microsecond.
type feed struct {
	capacity float64 // bytes of the slots, as full as the program's chunks fill them
	chunk    float64 // bytes
	// bytes on their way at once for each chunk in flight: all of it, unless lanes have registers for less
	flight  float64
	window  int       // chunks in flight
	stock   int       // chunks in the ring from which fewer are; 0: never
	least   int       // chunks in flight then
	memory  []float64 // speed from memory with n chunks in flight
	l2      []float64 // and from L2
	ahead   float64   // bytes that L2 may be asked for ahead of the ring
	pace    float64   // at which it is, while the ring is full or holds its stock
	restart float64   // microseconds from a free slot to the first bytes in it, after the ring was full
}

// A ring is one SM's stream at a time: what has come ahead of the consumers, in microseconds and bytes. Between
// events, which are a chunk more or less in the ring or an end of what waits in L2, all of its speeds are constant.
type ring struct {
	*feed
	now    float64 // up to when the rest is known
	level  float64 // bytes in the ring
	asked  float64 // bytes of what comes next that are to come into L2
	cached float64 // and those of them that are there
	resume float64 // when the stream goes on after a halt
	worked float64 // bytes in slots that warps work on, and have not given back
	filled float64 // when the ring was full last
	idle   float64 // microseconds with a full ring
}

// flows are the speeds of a moment.
type flows struct {
	in, out float64 // into the ring, and out of it
	asked   float64 // growth of what has been asked for
	arrived float64 // what comes into L2 ahead of the ring
	cached  float64 // growth of what waits there
}

func (r *ring) full() bool { return r.level >= r.capacity }

// short is how many chunks a ring that holds some bytes is short of its stock, which counts those on their way and
// what warps still work on.
func (r *ring) short(level float64) int {
	return r.stock - int(math.Ceil((level+r.worked-negligible)/r.chunk))
}

// inFlight is how many chunks are on their way into a ring that holds some bytes.
func (r *ring) inFlight(level float64) int {
	if r.stock == 0 {
		return r.window
	}
	return min(r.window, max(r.least, r.short(level)))
}

// stocked reports whether a ring that holds some bytes has its stock once all that may be on its way is.
func (r *ring) stocked(level float64) bool { return r.stock > 0 && r.short(level) <= r.window }

// speed is that of the stream into a ring that holds some bytes.
func (r *ring) speed(level float64) float64 {
	n := r.inFlight(level)
	switch {
	case r.cached > 0:
		return r.l2[n]
	case r.asked > 0:
		return min(r.l2[n], r.memory[r.window])
	}
	return r.memory[n]
}

// flows are what flows if consumers ask for `out`. At the edge of a chunk the stream is slower above than below: what
// comes in is what is asked for, if that is between the two. A full ring is such an edge, above which nothing comes.
func (r *ring) flows(out float64) flows {
	above, below := 0.0, 0.0
	if r.now >= r.resume {
		if above, below = r.speed(r.level+1), r.speed(r.level-1); r.full() {
			above = 0
		}
	}
	f := flows{in: min(max(out, above), max(above, below)), out: out}
	if r.level == 0 {
		f = flows{in: above, out: min(out, above)}
	}
	fromL2 := 0.0
	if r.asked > 0 {
		fromL2 = f.in
	}
	if r.ahead > 0 && r.asks(f) {
		f.asked = r.pace
	}
	switch {
	case r.asked == 0:
		f.asked = max(0, f.asked-f.in)
	case r.asked >= r.ahead:
		f.asked = min(0, f.asked-fromL2)
	default:
		f.asked -= fromL2
	}
	if f.arrived = max(0, r.memory[r.window]-(f.in-fromL2)); r.cached >= r.asked {
		f.arrived = min(f.arrived, f.asked+fromL2)
	}
	f.cached = f.arrived - fromL2
	return f
}

// asks reports whether L2 is asked for what comes next: on the side of an edge to which the ring is on its way.
func (r *ring) asks(f flows) bool {
	if f.in >= f.out {
		return r.full() || r.stocked(r.level+1)
	}
	return r.stocked(r.level - 1)
}

// loads are the bytes in flight: from memory, for the ring or ahead of it, and from L2.
func (r *ring) loads() (memory, l2 float64) {
	memory = r.asked - r.cached + r.restart*r.flows(0).arrived
	own := min(float64(r.inFlight(r.level))*r.flight, r.capacity-r.level)
	if r.asked > 0 {
		return memory, own
	}
	return memory + own, 0
}

// late is how much later the slowest SM has the bytes that this one has just taken. Each chunk is delayed by a part of
// the time that it is in flight, which is what is in flight over the speed: with more in flight than the bandwidth
// needs, chunks wait for each other. Such delays add up since the ring was full, but for no longer than ring and
// run-ahead take to fill: by then an SM that is ahead stands still. What is left in the ring makes up for them.
func (r *ring) late(uneven float64) float64 {
	room := r.capacity
	if r.stock > 0 {
		room += r.ahead
	}
	t := min(r.now-r.filled, room/r.memory[r.window])
	n := r.inFlight(r.level)
	way := float64(n) * r.flight / r.memory[n]
	return max(0, uneven*math.Sqrt(t*way)-r.level/r.speed(r.level))
}

// until lets the stream run on while nothing is consumed.
func (r *ring) until(t float64) { r.pass(t, math.Inf(1), 0) }

// take consumes bytes from time t on, at most at the given speed, and returns when the last one is consumed.
// Meanwhile warps work on some bytes that they have taken.
func (r *ring) take(t, bytes, speed, worked float64) float64 {
	r.begin(t, worked)
	r.finish(bytes, speed)
	return r.now
}

// begin is the beginning of take, and finish its end.
func (r *ring) begin(t, worked float64) {
	r.until(t)
	if r.full() {
		r.resume = t + r.restart
	}
	r.worked = worked
}

func (r *ring) finish(bytes, speed float64) {
	r.pass(math.Inf(1), bytes, speed)
	r.worked = 0
}

// pass lets time pass up to t, or until n bytes have been consumed at a speed of at most `out`. It returns what
// is left of them.
func (r *ring) pass(t, bytes, out float64) float64 {
	for r.now < t && bytes > negligible {
		f := r.flows(out)
		dt := t - r.now
		within := func(way, speed float64) {
			if speed > negligible {
				dt = min(dt, max(0, way)/speed)
			}
		}
		if r.now < r.resume {
			dt = min(dt, r.resume-r.now)
		}
		within(bytes, f.out)
		up, down := r.edges()
		within(up-r.level, f.in-f.out)
		within(r.level-down, f.out-f.in)
		within(r.ahead-r.asked, f.asked)
		within(r.asked, -f.asked)
		within(r.cached, -f.cached)
		within(r.asked-r.cached, f.cached-f.asked)
		if math.IsInf(dt, 1) {
			return bytes
		}
		r.advance(dt, f)
		bytes -= f.out * dt
	}
	return bytes
}

// edges are the next levels above and below at which the speed of the stream may change.
func (r *ring) edges() (up, down float64) {
	if r.stock == 0 {
		return r.capacity, 0
	}
	return min(r.capacity, (math.Floor((r.level+negligible)/r.chunk)+1)*r.chunk),
		max(0, (math.Ceil((r.level-negligible)/r.chunk)-1)*r.chunk)
}

// negligible is how close to an edge is on it, in bytes.
const negligible = 1e-6

func (r *ring) advance(dt float64, f flows) {
	if r.full() {
		r.filled = r.now
		if f.out == 0 {
			r.idle += dt
		}
	}
	r.now += dt
	level := r.level + (f.in-f.out)*dt
	r.level = onto(level, r.capacity, math.Round(level/r.chunk)*r.chunk)
	r.asked = onto(r.asked+f.asked*dt, 0, r.ahead)
	r.cached = onto(r.cached+f.cached*dt, 0, r.asked)
}

// onto is v, or an edge that it is close to.
func onto(v float64, edges ...float64) float64 {
	for _, e := range edges {
		if math.Abs(v-e) < negligible {
			return e
		}
	}
	return v
}

// empty discards what is ahead: the stream restarts at time t.
func (r *ring) empty(t float64) {
	r.until(t)
	r.level, r.asked, r.cached, r.resume = 0, 0, 0, t+r.restart
}
