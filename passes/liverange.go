package passes

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/rewrite"
)

// unrolledWords returns the variants of a program, unrolled, with no other operands than words. Of several ranks there
// are two: what holds between these holds between any, since all run the same text and push to all.
func unrolledWords(p *ir.Program) ([]*ir.Flat, error) {
	var flats []*ir.Flat
	handed := wordsAlone(p)
	for i := range handed.Variants {
		flat, diags := ir.UnrollRanks(handed, &handed.Variants[i], min(2, p.NumRanks()))
		if err := diags.Err(); err != nil {
			return nil, err
		}
		flats = append(flats, flat)
	}
	return flats, nil
}

// interference returns whether two buffers of words of unrolled variants, by index, may not share memory: in some
// variant there is an access of either that is not known to precede a write of the other. A step ends before the next
// begins, so that only accesses of the same step matter.
//
// What is known to precede what is the relation that holds for any realisation of counters: the queue order of an
// SM, and from the writer of a flagged word, with all that its SM did before, to the reader of that word. Counters
// that count order more than that, never less.
func interference(flats []*ir.Flat) (func(a, b int) bool, error) {
	var orders []*order
	for _, flat := range flats {
		o, err := newOrder(flat)
		if err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return func(a, b int) bool {
		for _, o := range orders {
			if !o.precedes(a, b) && !o.precedes(b, a) {
				return true
			}
		}
		return false
	}, nil
}

// wordsAlone returns a program whose tasks do nothing but read and write the words that others of p do: unrolling all
// else that tasks do would take most of the time.
func wordsAlone(p *ir.Program) *ir.Program {
	buffers := rewrite.NewBuffers(p)
	handed := *p
	handed.Variants = slices.Clone(p.Variants)
	for i := range handed.Variants {
		v := &handed.Variants[i]
		v.Body = slices.Clone(v.Body)
		for n, node := range v.Body {
			switch node := node.(type) {
			case *ir.Stage:
				v.Body[n] = wordsOfStage(buffers, node, nil)
			case *ir.Loop:
				loop := *node
				loop.Body = make([]*ir.Stage, len(node.Body))
				for k, s := range node.Body {
					loop.Body[k] = wordsOfStage(buffers, s, node)
				}
				v.Body[n] = &loop
			}
		}
	}
	return &handed
}

// wordsOfStage returns a stage whose ops are left with their operands in buffers of words.
func wordsOfStage(buffers rewrite.Buffers, s *ir.Stage, loop *ir.Loop) *ir.Stage {
	words := func(list []ir.Operand) (out []ir.Operand) {
		for _, o := range list {
			if !o.IsTemp() && buffers.HaveWords(o.Buf, loop) {
				out = append(out, o)
			}
		}
		return out
	}
	handed := *s
	handed.Ops = nil
	for i := range s.Ops {
		if in, out := words(s.Ops[i].In), words(s.Ops[i].Out); len(in)+len(out) > 0 {
			handed.Ops = append(handed.Ops, ir.Op{Code: s.Ops[i].Code, In: in, Out: out})
		}
	}
	return &handed
}

// A clock says for each SM how many tasks of its queue have been overtaken. One that queues share is not changed.
type clock []int32

// join adds what d has overtaken.
func (c clock) join(d clock) {
	for s := range c {
		c[s] = max(c[s], d[s])
	}
}

// within reports whether all that c has overtaken, d has too.
func (c clock) within(d clock) bool {
	for s := range c {
		if c[s] > d[s] {
			return false
		}
	}
	return true
}

// A queue is what the current task of an SM has overtaken: of other SMs what its clock says, of its own the tasks
// before it, whatever the clock says. So the SMs that have read the same vectors share one clock, and what is done
// with it once need not be done for each of them.
type queue struct {
	known clock
	own   int32
}

// An order holds what pages depend on in one variant: how far each queue is when the last access of a buffer is done,
// and how far each queue is known to be when any of its writes begins. Both are nil for buffers that the variant does
// not use.
type order struct {
	done   []clock
	before []beginning
}

// precedes reports whether every access of a is known to be done before any write of b begins.
func (o *order) precedes(a, b int) bool {
	return o.done[a] == nil || o.before[b].known == nil || o.done[a].within(o.before[b].known)
}

// A beginning is the least that the writers of a buffer have overtaken.
type beginning struct {
	known clock
	last  *int32 // the clock of the writer that was noted last, by its first element
	sm    int    // on which that one is, or -1 where several have that clock
}

// note lowers it to what a task of an SM has overtaken. A clock that writers on two SMs have shared stands for all the
// others that have it, since each knows more of its own queue and else the same.
func (g *beginning) note(q *queue, sm int) {
	if g.known == nil {
		*g = beginning{slices.Clone(q.known), &q.known[0], sm}
		g.known[sm] = q.own
		return
	}
	if g.last == &q.known[0] {
		if g.sm == sm || g.sm < 0 {
			return
		}
		g.sm = -1
	} else {
		g.last, g.sm = &q.known[0], sm
	}
	for s := range g.known {
		if s == sm {
			g.known[s] = min(g.known[s], q.own)
		} else {
			g.known[s] = min(g.known[s], q.known[s])
		}
	}
}

// words are those that tasks wait for: a range of a buffer, announced by a counter. All tasks that read the same range
// have one clock for it, which gathers those of its writers.
type words struct {
	dims    [8]int
	written clock  // how far each queue is when all writers so far are done; nil before the first
	writer  *int32 // the clock of the last writer, by its first element: it is in written

	reader *int32 // the clock of the last reader before it read, by its first element; nil once more is written
	read   clock  // and after it had
	shared clock  // written, for those who knew no more than that; nil once more is written
}

// write notes that a task of an SM is done, which had overtaken so much; its own is the last of that.
func (w *words) write(q *queue, sm int) {
	switch {
	case w.written == nil:
		w.written = slices.Clone(q.known)
	case w.writer != &q.known[0]:
		w.written.join(q.known)
	}
	w.written[sm] = max(w.written[sm], q.own)
	w.writer, w.reader, w.shared = &q.known[0], nil, nil
}

// readBy moves a queue on to what its task has overtaken once it has read the words.
func (w *words) readBy(q *queue) {
	if w.written == nil {
		return
	}
	if w.reader != &q.known[0] {
		w.reader = &q.known[0]
		if q.known.within(w.written) {
			if w.shared == nil {
				w.shared = slices.Clone(w.written)
			}
			w.read = w.shared
		} else {
			w.read = slices.Clone(w.written)
			w.read.join(q.known)
		}
	}
	q.known = w.read
}

type announced struct{ counter, buf int }

// A wordRange is a range of words that tasks wait for.
type wordRange struct {
	announced
	dims [8]int
}

// wordReads lists the distinct ranges that tasks wait for, and finds them again.
type wordReads struct {
	of    map[announced][]*words
	known map[wordRange]*words
	last  wordRange // that was looked for, and what was found: tasks of one stage read the same, mostly
	found *words
}

// find returns a range; nil if no task waits for it.
func (r *wordReads) find(of wordRange) *words {
	if r.found == nil || r.last != of {
		r.last, r.found = of, r.known[of]
	}
	return r.found
}

// newWordReads looks at all tasks once. So a write is noted where it will be read and nowhere else, in memory for the
// ranges and not for the tasks, of which there may be very many on very many SMs.
func newWordReads(flat *ir.Flat) *wordReads {
	r := &wordReads{of: map[announced][]*words{}, known: map[wordRange]*words{}}
	var accesses []ir.Access
	for t := range flat.Tasks {
		task := &flat.Tasks[t]
		if len(task.Waits) == 0 {
			continue
		}
		accesses = task.Footprint(accesses[:0])
		for i := range accesses {
			a := &accesses[i]
			if a.Write || !flat.Buffers[a.Buf].Layout.Words() {
				continue
			}
			dims, fixed := fixedDims(a.Dims)
			if !fixed {
				continue
			}
			for _, w := range task.Waits {
				if key := (wordRange{announced{w.Counter, a.Buf}, dims}); r.find(key) == nil {
					r.known[key] = &words{dims: dims}
					r.of[key.announced] = append(r.of[key.announced], r.known[key])
				}
			}
		}
	}
	return r
}

// newOrder walks the tasks in program order, in which every writer of a word comes before its readers: an edge that
// pointed backwards would not be seen, and leave more buffers interfering.
func newOrder(flat *ir.Flat) (*order, error) {
	o := &order{done: make([]clock, len(flat.Buffers)), before: make([]beginning, len(flat.Buffers))}
	queues := make([]queue, flat.SMs)
	for s, nothing := 0, make(clock, flat.SMs); s < len(queues); s++ {
		queues[s].known = nothing
	}
	reads := newWordReads(flat)
	var accesses []ir.Access
	for t := range flat.Tasks {
		task := &flat.Tasks[t]
		if task.SM < 0 {
			return nil, diag.Errorf(codeOrder, "pass pagecolor",
				"task %s has no SM; want a program that has been assigned", task.Name)
		}
		now := &queues[task.SM]
		accesses = task.Footprint(accesses[:0])
		for i := range accesses {
			a := &accesses[i]
			if a.Write || !flat.Buffers[a.Buf].Layout.Words() {
				continue
			}
			if dims, fixed := fixedDims(a.Dims); fixed {
				for _, w := range task.Waits {
					reads.find(wordRange{announced{w.Counter, a.Buf}, dims}).readBy(now)
				}
			}
		}
		for i := range accesses {
			o.note(&accesses[i], now, task.SM)
		}
		now.own++
		for i := range accesses {
			a := &accesses[i]
			if !a.Write || task.Signal < 0 || !flat.Buffers[a.Buf].Layout.Words() {
				continue
			}
			dims, fixed := fixedDims(a.Dims)
			if !fixed {
				continue
			}
			for _, read := range reads.of[announced{task.Signal, a.Buf}] {
				if overlap(&dims, &read.dims) {
					read.write(now, task.SM)
				}
			}
		}
	}
	return o, nil
}

// note records an access by the next task of an SM, which began when it had overtaken so much.
func (o *order) note(a *ir.Access, begin *queue, sm int) {
	if o.done[a.Buf] == nil {
		o.done[a.Buf] = make(clock, len(begin.known))
	}
	o.done[a.Buf][sm] = max(o.done[a.Buf][sm], begin.own+1)
	if a.Write {
		o.before[a.Buf].note(begin, sm)
	}
}

// fixedDims returns the bounds of a view that is the same at every position and has no share. Other views order
// nothing.
func fixedDims(dims []ir.Range) (out [8]int, fixed bool) {
	if len(dims) > 4 {
		return out, false
	}
	for i, r := range dims {
		lo, ok1 := r.Lo.IsConst()
		hi, ok2 := r.Hi.IsConst()
		if !ok1 || !ok2 || r.Shared() {
			return out, false
		}
		out[2*i], out[2*i+1] = lo, hi
	}
	for i := len(dims); i < 4; i++ {
		out[2*i+1] = 1
	}
	return out, true
}

func overlap(a, b *[8]int) bool {
	for i := 0; i < 8; i += 2 {
		if max(a[i], b[i]) >= min(a[i+1], b[i+1]) {
			return false
		}
	}
	return true
}
