package loops

import (
	"cmp"
	"container/heap"
	"slices"

	"amkc/ir"
)

// longestBody bounds the stages of a body that is looked for, and with it the time that looking takes.
const longestBody = 256

// A stretch is a span of stages with a period: throughout [lo, hi) a stage has the shape of the one a period after it
// and, if order is 2, of the one after that, and is rotated by the same step from each to the next. So what repeats
// ends order periods after hi: two bodies are alike by a stretch of order 1, more by one of order 2.
type stretch struct {
	period, order int
	lo, hi        int

	// The best run in it.
	start, count int
	indices      int // that the names of the body's stages carry
}

func (s *stretch) covered() int { return s.period * s.count }

// better is the order in which runs are taken: most stages covered, then the smallest body, then the body whose names
// carry fewest indices, so that a body is a layer and not the end of one with the beginning of the next, then the
// leftmost.
func (s *stretch) better(t *stretch) int {
	return cmp.Or(cmp.Compare(t.covered(), s.covered()), cmp.Compare(s.period, t.period),
		cmp.Compare(s.indices, t.indices),
		cmp.Compare(s.start, t.start))
}

// A matcher finds runs of isomorphic bodies in the stages of a variant.
type matcher struct {
	shapes, rots, sms []int
	layers            []int // of the stages, or -1
	queue             stretches
}

func newMatcher(stages []*ir.Stage, shapes *shaper) *matcher {
	m := &matcher{}
	for _, st := range stages {
		layer := -1
		if n, known := st.Layer.At(0); known {
			layer = n
		}
		m.shapes = append(m.shapes, shapes.number(st))
		m.rots, m.sms, m.layers = append(m.rots, st.Dist.Rot), append(m.sms, max(1, st.Dist.SMs)),
			append(m.layers, layer)
	}
	return m
}

// A window is count bodies of period stages each, one after the other from start.
type window struct{ start, period, count int }

func (w window) end() int { return w.start + w.period*w.count }

// find returns disjoint windows of at least two equal bodies, from left to right. It takes the best window first.
// accept says how many bodies of a window, from its first on, can be rolled: all, none at all (0), or fewer than all;
// what is beyond those is then looked at on its own.
func (m *matcher) find(accept func(window) int) []window {
	for p := 1; p <= min(longestBody, len(m.shapes)/2); p++ {
		m.stretches(p)
	}
	var taken []window // in order
	for len(m.queue) > 0 {
		s := heap.Pop(&m.queue).(*stretch)
		w := window{s.start, s.period, s.count}
		next, _ := slices.BinarySearchFunc(taken, w.start,
			func(t window, start int) int { return cmp.Compare(t.end(), start+1) })
		if next < len(taken) && taken[next].start < w.end() {
			m.clip(s, 0, taken[next].start)
			m.clip(s, taken[next].end(), len(m.shapes))
			continue
		}
		keep := accept(w)
		switch {
		case keep == w.count:
			taken = slices.Insert(taken, next, w)
		case keep > 0:
			m.clip(s, w.start, w.start+keep*w.period)
			m.clip(s, w.start+keep*w.period, w.end())
		}
	}
	return taken
}

// stretches queues the maximal stretches of a period.
func (m *matcher) stretches(p int) {
	n := len(m.shapes)
	alike := func(t int) bool { return t+p < n && m.shapes[t] == m.shapes[t+p] }
	steady := func(t int) bool { return alike(t) && alike(t+p) && m.turn(t, p) == m.turn(t+p, p) }
	for order, holds := range []func(int) bool{alike, steady} {
		for lo := 0; lo < n; lo++ {
			if !holds(lo) {
				continue
			}
			hi := lo
			for holds(hi) {
				hi++
			}
			m.push(&stretch{period: p, order: order + 1, lo: lo, hi: hi})
			lo = hi
		}
	}
}

// turn is how much further the stage one period after t is rotated.
func (m *matcher) turn(t, p int) int { return mod(m.rots[t+p]-m.rots[t], m.sms[t]) }

// clip queues what of a stretch is in [from, to).
func (m *matcher) clip(s *stretch, from, to int) {
	m.push(&stretch{period: s.period, order: s.order, lo: max(s.lo, from), hi: min(s.hi, to-s.order*s.period)})
}

// push queues a stretch if it holds a run. Of the places where its best run may start it chooses.
func (m *matcher) push(s *stretch) {
	room := s.hi - s.lo
	if room < s.period {
		return
	}
	s.count = room/s.period + 2
	slack := room % s.period
	if s.order == 1 {
		s.count, slack = 2, min(room-s.period, s.period)
	}
	carried := map[int]int{}
	for t := s.lo; t < s.lo+s.period; t++ {
		carried[m.layers[t]]++
	}
	s.start, s.indices = s.lo, len(carried)
	for start := s.lo + 1; start <= s.lo+slack; start++ {
		gone := m.layers[start-1]
		if carried[gone]--; carried[gone] == 0 {
			delete(carried, gone)
		}
		carried[m.layers[start+s.period-1]]++
		if len(carried) < s.indices {
			s.start, s.indices = start, len(carried)
		}
	}
	heap.Push(&m.queue, s)
}

// stretches is a heap, the best first.
type stretches []*stretch

func (q stretches) Len() int           { return len(q) }
func (q stretches) Less(i, j int) bool { return q[i].better(q[j]) < 0 }
func (q stretches) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *stretches) Push(s any)        { *q = append(*q, s.(*stretch)) }
func (q *stretches) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	*q = (*q)[:last]
	return s
}

func mod(n, m int) int { return (n%m + m) % m }
