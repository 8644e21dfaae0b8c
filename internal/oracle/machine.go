package oracle

import (
	"fmt"

	"amkc/ir"
)

// A Run is one step or pass: a variant, with the position of each sequence.
type Run struct {
	Flat   *ir.Flat
	Pos    int   // of the first sequence
	Others []int // of those after it, which have Pos too if nothing is said
}

// at returns the positions of all sequences.
func (r Run) at() []int {
	out := make([]int, r.Flat.Pass.NumSequences())
	for s := range out {
		if out[s] = r.Pos; s > 0 && s <= len(r.Others) {
			out[s] = r.Others[s-1]
		}
	}
	return out
}

// of returns the position that a view goes by.
func (r Run) of(dims []ir.Range) int {
	s, _ := ir.Sequence(dims)
	return r.at()[max(0, s)]
}

// Options choose what is run, and how finely.
type Options struct {
	Target    *ir.Target // of which the shared memory is known; nil: any
	MaxStates int        // Explore stops there and the verdict is not complete; 0: 200,000
	MaxWork   int        // the same, in tasks and words looked at; 0: no limit
	Bytes     bool       // a cell for every byte, not for bytes that every task touches together
	Full      bool       // interleave everything, also what commutes
}

// machine is what is run: one or two steps, made of tasks, cells and counters. It does not change while it runs.
type machine struct {
	runs     []Run
	opts     Options
	tasks    []task
	counters []counter
	places   []place
	byPlace  map[string]int
	cells    []cell
	messages []message // stores of exchange words
	next     [][]int32 // by task: those after it in its queue
	words    int       // bits of a set of tasks, in words
	polls    []int     // by task: where what it has polled of an op is kept
	polled   int       // and how much of that there is
	partial  bool      // some wait can be satisfied before every producer is done
}

type task struct {
	name    string
	flat    *ir.Task
	step    int
	queue   int
	after   int      // the task before it in its queue, or -1
	waits   []wait   // on counters realised by counting
	flagged []int    // counters that it waits on by polling
	ops     []opCode // in order
	signal  int      // or -1
	counted bool     // the signal is a release
}

type opCode struct {
	reads, writes []access  // of plain cells
	polls         []access  // reads of words, a cell each
	awaits        [][]int32 // by poll: the messages that answer it; none: it waits for nothing
	sends         []int     // messages
}

// An access is to cells [lo, hi) through a buffer.
type access struct {
	lo, hi int
	buf    *ir.Buffer
}

type wait struct{ counter, threshold int }

type waiter struct{ task, threshold int }

type counter struct {
	init      int
	producers []int
	waiters   []waiter
	partial   bool // some wait can be satisfied before every producer is done
	counted   bool
}

// place is memory that has addresses of its own: a page, or a buffer that is on none.
type place struct {
	name  string
	words bool
	smem  bool
	base  int   // its first cell
	at    []int // boundaries of cells, in bytes
}

type cell struct {
	place, lo, hi int
	initial       bool
	messages      []int    // stores to it, of words
	pollers       []poller // reads of it, of words
	peeked        bool     // by a read that waits for nothing
	owner         int      // on-chip: 1 + the SM, or the task, that touches it
}

type poller struct{ task, op, poll int }

// message is a store of one word cell.
type message struct {
	task, op, cell int
	buf            *ir.Buffer
}

// region is bytes of a place that an op touches.
type region struct {
	place, lo, hi int
	task, op      int
	buf           *ir.Buffer
	write         bool
}

// build makes the machine, or finds what is wrong whatever the schedule.
func build(runs []Run, fp *Footprints, opts Options) (*machine, *Hazard) {
	m := &machine{runs: runs, opts: opts, byPlace: map[string]int{}}
	var regions []region
	for step, r := range runs {
		if h := wellFormed(r.Flat); h != nil {
			return nil, h
		}
		for _, pos := range r.at() {
			if pos < r.Flat.Lo || pos > r.Flat.Hi {
				return nil, &Hazard{Kind: Malformed,
					Detail: fmt.Sprintf("position %d is outside %d to %d", pos, r.Flat.Lo, r.Flat.Hi)}
			}
		}
		m.addTasks(step, r.Flat)
		more, h := m.footprints(step, r, fp)
		if h != nil {
			return nil, h
		}
		regions = append(regions, more...)
	}
	m.words = (len(m.tasks) + 63) / 64
	m.next = make([][]int32, len(m.tasks))
	for t := range m.tasks {
		if after := m.tasks[t].after; after >= 0 {
			m.next[after] = append(m.next[after], int32(t))
		}
	}
	m.cut(regions)
	for _, check := range []func([]region) *Hazard{m.assign, m.aliases, m.outputs, m.capacity, m.indices} {
		if h := check(regions); h != nil {
			return nil, h
		}
	}
	return m, nil
}

// addTasks adds the tasks and counters of a step. Queues of SMs are 0 to SMs-1, in every step; a task without an SM has
// a queue of its own. A counter of scope sm is one counter for each SM.
func (m *machine) addTasks(step int, f *ir.Flat) {
	first := len(m.tasks)
	last := map[int]int{} // by SM
	type home struct{ counter, queue int }
	number := map[home]int{}
	find := func(c, queue int) int {
		h := home{c, -1}
		if f.Counters[c].Scope == ir.ScopeSM {
			h.queue = queue
		}
		n, ok := number[h]
		if !ok {
			n = len(m.counters)
			number[h] = n
			m.counters = append(m.counters, counter{init: f.Counters[c].Init,
				counted: f.Counters[c].How == ir.ByCounter})
		}
		return n
	}
	end := m.stepEnd(step)
	for i := range f.Tasks {
		src := &f.Tasks[i]
		t := task{name: src.Name, flat: src, step: step, queue: src.SM, after: -1, signal: -1}
		if src.SM < 0 {
			t.queue = maxSMs + len(m.tasks)
		} else if before, ok := last[src.SM]; ok {
			t.after = before
		}
		if step > 0 {
			t.name = "next step: " + t.name
			if t.after < 0 && end >= 0 {
				t.waits = append(t.waits, wait{end, m.counters[end].init + len(m.counters[end].producers)})
			}
			if t.after < 0 && src.SM >= 0 {
				t.after = m.lastOf(first, src.SM)
			}
		}
		last[src.SM] = len(m.tasks)
		for _, w := range src.Waits {
			if c := find(w.Counter, t.queue); m.counters[c].counted {
				t.waits = append(t.waits, wait{c, w.Threshold})
			} else {
				t.flagged = append(t.flagged, c)
			}
		}
		if src.Signal >= 0 {
			t.signal = find(src.Signal, t.queue)
			t.counted = m.counters[t.signal].counted
			m.counters[t.signal].producers = append(m.counters[t.signal].producers, len(m.tasks))
		}
		m.tasks = append(m.tasks, t)
	}
	for i := first; i < len(m.tasks); i++ {
		for _, w := range m.tasks[i].waits {
			m.counters[w.counter].waiters = append(m.counters[w.counter].waiters, waiter{i, w.threshold})
		}
	}
	for i := range m.counters {
		c := &m.counters[i]
		for _, w := range c.waiters {
			c.partial = c.partial || w.threshold < c.init+len(c.producers)
			m.partial = m.partial || c.partial
		}
	}
}

// maxSMs is where the queues of tasks without an SM begin.
const maxSMs = 1 << 20

// lastOf returns the last task of an SM in the steps before, or -1.
func (m *machine) lastOf(before, sm int) int {
	for i := before - 1; i >= 0; i-- {
		if m.tasks[i].queue == sm {
			return i
		}
	}
	return -1
}

// stepEnd returns the counter that ends the step before, if it is realised by counting, else -1.
func (m *machine) stepEnd(step int) int {
	for i := range m.tasks {
		t := &m.tasks[i]
		if t.step == step-1 && t.counted && m.runs[t.step].Flat.Counters[t.flat.Signal].Role == ir.RoleStep {
			return t.signal
		}
	}
	return -1
}

// footprints lists what the tasks of a step touch, as the reference code does.
func (m *machine) footprints(step int, r Run, fp *Footprints) ([]region, *Hazard) {
	first := len(m.tasks) - len(r.Flat.Tasks)
	var out []region
	for i := range r.Flat.Tasks {
		who := m.tasks[first+i].name
		for k := range r.Flat.Tasks[i].Ops {
			for _, b := range r.Flat.Tasks[i].Ops[k].OutBuf {
				if b >= 0 && r.Flat.Buffers[b].Kind.ReadOnly() {
					return nil, &Hazard{Kind: ReadOnly, Task: who, Detail: "writes " + r.Flat.Buffers[b].Name}
				}
			}
		}
		touches, bufs, err := fp.of(r.Flat, i, r.at())
		if err != nil {
			return nil, &Hazard{Kind: Refused, Task: who, Detail: err.Error()}
		}
		for _, t := range touches {
			b := &r.Flat.Buffers[bufs[t.Buf]]
			if b.Kind.ReadOnly() && b.Kind != ir.Input {
				continue // nobody may write it, so that nothing can go wrong
			}
			at := m.placeOf(b, step)
			for _, x := range bytesOf(b, t.Lo, t.N) {
				if len(b.Pages) > 0 && x[1] > pageBytes(r.Flat, b.Pages[0]) {
					return nil, &Hazard{Kind: Outside, Task: who,
						Detail: fmt.Sprintf("bytes %d to %d of %s are beyond page %s", x[0], x[1]-1, b.Name,
							b.Pages[0])}
				}
				out = append(out, region{at, x[0], x[1], first + i, t.Op, b, t.Write})
			}
		}
	}
	return out, nil
}

func pageBytes(f *ir.Flat, name string) int {
	for i := range f.Pages {
		if f.Pages[i].Name == name {
			return f.Pages[i].Bytes
		}
	}
	return 0
}
