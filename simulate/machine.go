package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
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

// Options select what is run, and in what detail.
type Options struct {
	Target    *ir.Target      // of which the shared memory is known; nil: any
	MaxStates int             // Explore stops there and the verdict is not complete; 0: 200,000
	MaxWork   int             // the same, in tasks and words looked at; 0: no limit
	Stop      <-chan struct{} // closed when the caller wants no more; nil: never
	Bytes     bool            // a cell for every byte, not for bytes that every task touches together
	Full      bool            // interleave everything, also what commutes
}

// machine is what is run: one or two steps, made of tasks, cells and counters. It does not change while it runs.
type machine struct {
	runs     []Run
	opts     Options
	tasks    []task
	counters []counter
	places   []place
	byPlace  map[placeKey]int
	cells    []cell
	messages []message // stores of exchange words
	answers  []int32   // of all polls: the messages that answer them
	next     [][]int32 // by task: those after it in its queue
	homes    []home    // by task: where what is known of it is noted
	words    int       // of the bits of a set of tasks
	queues   int       // of several tasks
	sources  int       // queues in all
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
	reads, writes []access // of plain cells
	polls         []poll   // reads of words
	sends         []int32  // messages
}

// An access is to cells [lo, hi) through a buffer.
type access struct {
	lo, hi int
	buf    *ir.Buffer
}

// A poll is the read of one cell of words. It is answered by messages, from number first on in the machine's list; by
// none: it waits for nothing.
type poll struct {
	cell, first, answers int32
	buf                  *ir.Buffer
}

// awaits lists the messages that answer a poll.
func (m *machine) awaits(p *poll) []int32 { return m.answers[p.first : p.first+p.answers] }

type wait struct{ counter, threshold int }

type waiter struct{ task, threshold int }

type counter struct {
	name      string
	init      int
	producers []int
	waiters   []waiter // by threshold
	partial   bool     // some wait can be satisfied before every producer is done
	counted   bool
}

// place is memory that has addresses of its own: a page, or a buffer that is on none; of exchange words, one copy of
// it.
type place struct {
	words bool
	smem  bool
	copy  int
	base  int   // its first cell
	at    []int // boundaries of cells, in bytes
}

type cell struct {
	place, lo, hi int
	initial       bool
	messages      []int32  // stores to it, of words
	pollers       []poller // reads of it, of words
	peeked        bool     // by a read that waits for nothing
	owner         int      // on-chip: 1 + the SM, or the task, that touches it
}

type poller struct{ task, op, poll int32 }

// message is a store of one word cell.
type message struct {
	task, op, cell int32
	before         int32 // the one before it from the same queue to the same cell, or -1: they land in order
	buf            *ir.Buffer
}

// region is bytes of a place that an op touches.
type region struct {
	place, lo, hi int
	task, op      int
	buf           *ir.Buffer
	write         bool
}

// build makes the machine, or finds what is wrong whatever the schedule. The error says that there is no machine
// because the program is too large for one, or because the caller stopped.
func build(runs []Run, fp *Footprints, opts Options) (*machine, *Hazard, error) {
	m := &machine{runs: runs, opts: opts, byPlace: map[placeKey]int{}}
	var regions []region
	for step, r := range runs {
		if h := wellFormed(r.Flat); h != nil {
			return nil, h, nil
		}
		for _, pos := range r.at() {
			if pos < r.Flat.Lo || pos > r.Flat.Hi {
				return nil, &Hazard{Kind: Malformed,
					Detail: fmt.Sprintf("position %d is outside %d to %d", pos, r.Flat.Lo, r.Flat.Hi)}, nil
			}
		}
		m.addTasks(step, r.Flat)
		more, h, err := m.footprints(step, r, fp, regions)
		if h != nil || err != nil {
			return nil, h, err
		}
		regions = more
	}
	m.settle()
	if noted := (len(m.tasks) + len(m.counters)) * (8*m.words + 4*m.queues); noted > maxNoted {
		return nil, nil, tooLarge("what its %d tasks know of each other takes %d MB, want at most %d", len(m.tasks),
			noted>>20, maxNoted>>20)
	}
	m.next = make([][]int32, len(m.tasks))
	for t := range m.tasks {
		if after := m.tasks[t].after; after >= 0 {
			m.next[after] = append(m.next[after], int32(t))
		}
	}
	if err := m.cut(regions); err != nil {
		return nil, nil, err
	}
	if h, err := m.assign(regions); h != nil || err != nil {
		return nil, h, err
	}
	for _, check := range []func([]region) *Hazard{m.aliases, m.outputs, m.capacity} {
		if h := check(regions); h != nil {
			return nil, h, nil
		}
		if opts.stopped() { // a check that sees it ends early, and its silence says nothing
			return nil, nil, ErrStopped
		}
	}
	if h, err := m.indices(); h != nil || err != nil {
		return nil, h, err
	}
	return m, nil, nil
}

// addTasks adds the tasks and counters of a step. Queues of SMs are 0 to SMs-1, in every step; a task without an SM has
// a queue of its own. A counter of scope sm is one counter for each SM.
func (m *machine) addTasks(step int, f *ir.Flat) {
	first := len(m.tasks)
	last := map[int]int{} // by SM
	type place struct{ counter, queue int }
	number := map[place]int{}
	find := func(c, queue int) int {
		h := place{c, -1}
		if f.Counters[c].Scope == ir.ScopeSM {
			h.queue = queue
		}
		n, ok := number[h]
		if !ok {
			n = len(m.counters)
			number[h] = n
			m.counters = append(m.counters, counter{name: f.Counters[c].Name, init: f.Counters[c].Init,
				counted: f.Counters[c].How == ir.ByCounter})
		}
		return n
	}
	ends, before := m.stepEnds(step), map[int]int{} // by queue: the last task of the steps before
	for i := range first {
		before[m.tasks[i].queue] = i
	}
	for i := range f.Tasks {
		src := &f.Tasks[i]
		t := task{name: src.Name, flat: src, step: step, queue: src.SM, after: -1, signal: -1}
		if src.SM < 0 {
			t.queue = -2 - len(m.tasks) // a number that no SM has, and not the -1 of a counter that all share
		} else if earlier, ok := last[src.SM]; ok {
			t.after = earlier
		}
		if step > 0 {
			t.name += " (next step)"
			end, seen := ends[everyQueue]
			if !seen {
				end, seen = ends[t.queue]
			}
			if t.after < 0 && seen {
				t.waits = append(t.waits, wait{end, m.counters[end].init + len(m.counters[end].producers)})
			}
			if earlier, ok := before[t.queue]; ok && t.after < 0 {
				t.after = earlier
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
		slices.SortStableFunc(c.waiters, func(a, b waiter) int { return cmp.Compare(a.threshold, b.threshold) })
		for _, w := range c.waiters {
			c.partial = c.partial || w.threshold < c.init+len(c.producers)
			m.partial = m.partial || c.partial
		}
	}
}

// everyQueue stands for all queues. It is the number of none.
const everyQueue = -1

// stepEnds returns the counters that end the step before, if they are realised by counting, by the queue that sees
// them: one of scope sm is seen by that of its SM, one of scope gpu by those of its rank, and any other by all.
func (m *machine) stepEnds(step int) map[int]int {
	out := map[int]int{}
	for i := range m.tasks {
		t := &m.tasks[i]
		if t.step != step-1 || !t.counted {
			continue
		}
		switch c := &m.runs[t.step].Flat.Counters[t.flat.Signal]; {
		case c.Role != ir.RoleStep:
		case c.Scope == ir.ScopeSM:
			out[t.queue] = t.signal
		case c.Scope == ir.ScopeGPU && t.queue >= 0 && m.runs[t.step].Flat.Ranks > 1:
			f := m.runs[t.step].Flat
			for sm := range f.SMs {
				if f.RankOf(sm) == f.RankOf(t.queue) {
					out[sm] = t.signal
				}
			}
		default:
			out[everyQueue] = t.signal
		}
	}
	return out
}

// footprints adds what the tasks of a step touch, as the reference code does, to a list of regions.
func (m *machine) footprints(step int, r Run, fp *Footprints, out []region) ([]region, *Hazard, error) {
	first := len(m.tasks) - len(r.Flat.Tasks)
	pages := pagesOf(r.Flat)
	for i := range r.Flat.Tasks {
		if m.opts.stopped() {
			return nil, nil, ErrStopped
		}
		who := "task " + m.tasks[first+i].name
		for k := range r.Flat.Tasks[i].Ops {
			for _, b := range r.Flat.Tasks[i].Ops[k].OutBuf {
				if b >= 0 && r.Flat.Buffers[b].Kind.ReadOnly() {
					return nil, &Hazard{Kind: ReadOnly, Where: who, Detail: "writes " + r.Flat.Buffers[b].Name}, nil
				}
			}
		}
		touches, bufs, err := fp.of(r.Flat, i, r.at(), m.opts.Stop)
		if errors.Is(err, ErrStopped) {
			return nil, nil, err
		}
		var large *errTooLarge
		if errors.As(err, &large) {
			return nil, nil, fmt.Errorf("%s: %w", who, large)
		}
		if err != nil {
			return nil, refused(who, err), nil
		}
		for _, t := range touches {
			b := &r.Flat.Buffers[bufs[t.Buf]]
			if r.Flat.Copies(b) > 1 && r.Flat.Tasks[i].SM < 0 {
				return nil, &Hazard{Kind: Malformed, Where: who,
					Detail: fmt.Sprintf("touches %s, of which each SM has a copy, and runs on no SM", b.Name)}, nil
			}
			at := m.placesOf(r.Flat, b, r.Flat.Tasks[i].SM, t.Write, step)
			for _, x := range bytesOf(b, t.Lo, t.N) {
				if len(b.Pages) > 0 && x[1] > pages[b.Pages[0]].Bytes {
					return nil, &Hazard{Kind: Outside, Where: who,
						Detail: fmt.Sprintf("bytes %d to %d of %s are beyond page %s", x[0], x[1]-1, b.Name,
							b.Pages[0])}, nil
				}
				for _, place := range at {
					out = append(out, region{place, x[0], x[1], first + i, t.Op, b, t.Write})
				}
			}
			if len(out) > maxRegions {
				return nil, nil, tooLarge("its tasks touch more than %d stretches of memory", maxRegions)
			}
		}
	}
	return out, nil, nil
}

// refused is the hazard of a task that the reference code does not run.
func refused(who string, err error) *Hazard {
	h := &Hazard{Kind: Refused, Where: who, Detail: err.Error()}
	if d := (*diag.Diagnostic)(nil); errors.As(err, &d) {
		h.Detail = d.Msg
	}
	return h
}
