package ir

import (
	"slices"
	"strings"

	"amkc/ir/diag"
)

// Unroll turns variant v of the program into its flat form. The flat form is returned only if there is no error. Tasks
// share what is equal in them: callers read it and change nothing.
func Unroll(p *Program, v *Variant) (*Flat, diag.List) { return UnrollRanks(p, v, p.NumRanks()) }

// UnrollRanks returns the flat form with the tasks of the first n ranks alone. With one rank, buffers and counters have
// the numbers of their members in the directories of the program; with more, those of the first rank have.
func UnrollRanks(p *Program, v *Variant, n int) (*Flat, diag.List) { return newUnroller(p, v, n).run() }

// UnrollWithPeers returns the flat form with the tasks of the first rank, and with those of its peers that reach it or
// that differ: of stages that push, that signal a counter of all ranks, or whose ops mention the rank. They come after
// the tasks of the first rank, wait for nothing, and signal no counter but one of all ranks. What they name of their
// own has the first rank's number.
func UnrollWithPeers(p *Program, v *Variant) (*Flat, diag.List) {
	n := p.NumRanks()
	if n > MaxRanks {
		return nil, diag.List{diag.Errorf(CodeRange, "ranks", "%d, want 1 to %d", n, MaxRanks)}
	}
	u := newUnroller(p, v, 1)
	u.peers, u.flat.Peers = n-1, n-1
	u.needsTarget(n)
	return u.run()
}

func (u *unroller) run() (*Flat, diag.List) {
	p, v := u.program, u.variant
	if d := p.tooLarge(); d != nil {
		return nil, append(u.diags, d)
	}
	u.declare()
	u.flat.Tasks = make([]Task, 0, min(satMul(u.ranks, v.numTasks()), MaxTasks)) // an insane distribution has none
	for _, n := range v.Body {
		switch n := n.(type) {
		case *Stage:
			u.stage(n, 0, new(binding))
		case *Loop:
			bound := make([]binding, len(n.Body))
			for k := 0; k < n.Count && len(n.Body) > 0 && !u.stop(); k++ {
				for b, s := range n.Body {
					if n.Runs(s, k) {
						u.stage(s, n.Index(k), &bound[b])
					}
				}
			}
		}
	}
	if u.diags.Err() != nil {
		return nil, u.diags
	}
	return u.flat, u.diags
}

// numTasks returns the number of tasks of the variant, at most.
func (v *Variant) numTasks() int {
	n := 0
	for _, node := range v.Body {
		switch node := node.(type) {
		case *Stage:
			n = satAdd(n, node.Dist.NumTasks())
		case *Loop:
			for _, s := range node.Body {
				n = satAdd(n, satMul(node.Count, s.Dist.NumTasks()))
			}
		}
	}
	return max(0, n)
}

func newUnroller(p *Program, v *Variant, ranks int) *unroller {
	u := &unroller{program: p, variant: v, ranks: ranks,
		flat:    &Flat{Name: v.Name, Lo: v.Lo, Hi: v.Hi, Pass: p.Pass, Target: p.Target},
		buffers: bufferDirectory(p), counters: counterDirectory(v)}
	if p.Target != nil {
		u.flat.SMs = p.Target.SMs
		if u.flat.SMs < 1 || u.flat.SMs > MaxTargetSMs {
			u.fail(CodeSize, "target "+p.Target.Name, "has %d SMs, want 1 to %d", u.flat.SMs, MaxTargetSMs)
		}
	}
	u.flat.Pages = slices.Clip(p.Pages)
	if ranks > 1 {
		u.flat.Ranks = ranks
		u.needsTarget(ranks)
	}
	u.perRank = u.flat.SMs
	u.flat.SMs *= ranks
	return u
}

// needsTarget refuses several ranks that have nobody knows how many SMs.
func (u *unroller) needsTarget(ranks int) {
	if ranks > 1 && u.program.Target == nil {
		u.fail(CodeSize, "ranks", "%d, and no target says how many SMs each has, want a target", ranks)
	}
}

// maxUnrollErrors stops a hostile file from producing a diagnostic per task.
const maxUnrollErrors = 50

type unroller struct {
	program   *Program
	variant   *Variant
	ranks     int
	perRank   int           // SMs of each, if there are several ranks
	peers     int           // further ranks, of which some tasks are listed
	ofRank    []rankMembers // rank by rank
	namesOnly bool          // leave out what tasks do: Check asks for names alone
	flat      *Flat
	buffers   *Directory
	counters  *Directory
	diags     diag.List
}

// stop reports whether going on would add nothing.
func (u *unroller) stop() bool { return len(u.diags) >= maxUnrollErrors }

// A binding holds a stage's ops bound to each of its spans. In every iteration of a loop the k-th span is the same and
// only its SM differs, so that the ops are bound once unless one mentions it; and once for all ranks, unless one
// mentions the rank.
type binding struct{ ofRank [][][]Op }

func (u *unroller) fail(code *diag.Code, pos, format string, args ...any) {
	if len(u.diags) < maxUnrollErrors {
		u.diags.Add(diag.Errorf(code, pos, format, args...))
	}
}

// declare lists buffers and counters, and writes out their families.
func (u *unroller) declare() {
	refuse := func(code *diag.Code, pos, format string, args ...any) bool {
		u.fail(code, pos, format, args...)
		return !u.stop()
	}
	p, v := u.program, u.variant
	for n := range p.Buffers {
		b := &p.Buffers[n]
		u.buffers.declare(b.indices(), refuse, func(m Member) {
			u.flat.Buffers = append(u.flat.Buffers, b.member(m.Name, m.K))
		})
	}
	u.buffers.groups(p.Buffers, p.Groups, refuse)
	for n := range v.Counters {
		c := &v.Counters[n]
		u.counters.declare(c.indices(), refuse, func(m Member) {
			u.flat.Counters = append(u.flat.Counters, c.member(m.Name))
		})
	}
	u.declareRanks()
}

// member returns the k-th member of a family, of that name, as a buffer of its own.
func (b *Buffer) member(name string, k int) Buffer {
	m := *b
	m.Name, m.First, m.Count, m.Step = name, 0, 0, 0
	if len(b.Pages) > 1 {
		turn := b.Turn(k) % len(b.Pages)
		m.Pages = b.Pages[turn : turn+1]
	}
	return m
}

// member returns the member of a family with that name as a counter of its own.
func (c *Counter) member(name string) Counter {
	m := *c
	m.Name, m.First, m.Count, m.Step = name, 0, 0, 0
	return m
}

// stage appends the tasks of one stage in iteration i.
func (u *unroller) stage(s *Stage, i int, bound *binding) {
	if u.stop() {
		return
	}
	name, err := Resolve(s.Name, i)
	if err != nil {
		u.fail(CodeName, "stage "+s.Name, "%v", err)
		return
	}
	if why := s.Dist.insane(); why != "" {
		u.fail(CodeShape, "stage "+name, "%s", why)
		return
	}
	proto := Task{Signal: -1, Waits: make([]FlatWait, 0, len(s.Waits))}
	proto.Layer, _ = s.Layer.At(i)
	for _, w := range s.Waits {
		proto.Waits = append(proto.Waits, FlatWait{u.counter(name, w.Counter, i), w.Threshold})
	}
	if s.Signal != "" {
		proto.Signal = u.counter(name, s.Signal, i)
	}
	ops := make([]FlatOp, len(s.Ops))
	for k := range s.Ops {
		ops[k].OutBuf = u.operands(name, s.Ops[k].Out, i)
		ops[k].InBuf = u.operands(name, s.Ops[k].In, i)
	}
	spans := s.Dist.Tasks(i)
	if u.namesOnly {
		ops = nil
	} else {
		bind(s, spans, bound, u.ranks+u.peers)
	}
	if u.stop() || len(u.diags) > 0 && u.ranks > 1 { // the numbers of what is not there are no rank's
		return
	}
	first := len(u.flat.Tasks)
	for r := range u.ranks {
		u.tasks(name, s, spans, bound, proto, ops, r)
	}
	if u.peers > 0 && u.concernsPeers(s, proto, ops) {
		for r := 1; r <= u.peers; r++ {
			u.peerTasks(first, bound, r)
		}
	}
}

// tasks appends a task of a rank for each span: the prototype with its name, its SM and its ops.
func (u *unroller) tasks(name string, s *Stage, spans []TaskSpan, bound *binding, proto Task, ops []FlatOp, rank int) {
	names := taskNames(name, s.Dist.Kind, spans)
	if rank > 0 {
		proto, ops = u.taskOf(rank, proto), slices.Clone(ops)
		for k := range ops {
			ops[k].OutBuf, ops[k].InBuf = u.buffersOf(rank, ops[k].OutBuf), u.buffersOf(rank, ops[k].InBuf)
		}
	}
	all := make([]FlatOp, len(spans)*len(ops))
	for n, t := range spans {
		task := proto
		task.Name, task.SM = onRank(names[n], rank), t.SM
		if t.SM >= 0 {
			task.SM += rank * u.perRank
		}
		task.Ops, all = all[:len(ops):len(ops)], all[len(ops):]
		for k := range ops {
			task.Ops[k] = FlatOp{Op: bound.ofRank[rank][n][k], OutBuf: ops[k].OutBuf, InBuf: ops[k].InBuf}
		}
		u.flat.SMs = max(u.flat.SMs, task.SM+1)
		u.flat.Tasks = append(u.flat.Tasks, task)
	}
}

// concernsPeers reports whether what other ranks do in a stage reaches the first one, or differs.
func (u *unroller) concernsPeers(s *Stage, proto Task, ops []FlatOp) bool {
	pushed := func(b int) bool { return b >= 0 && u.flat.Buffers[b].Space == PeerScratch }
	pushes := func(o FlatOp) bool { return slices.ContainsFunc(o.OutBuf, pushed) }
	return u.ofAllRanks(proto.Signal) || slices.ContainsFunc(ops, pushes) ||
		slices.ContainsFunc(s.Ops, func(o Op) bool { return o.uses(OnRank) })
}

// ofAllRanks reports whether all ranks have a counter in common; -1 is none.
func (u *unroller) ofAllRanks(counter int) bool {
	return counter >= 0 && u.flat.Counters[counter].Scope == ScopeSystem
}

// peerTasks appends the tasks that a peer has in place of those from first on.
func (u *unroller) peerTasks(first int, bound *binding, rank int) {
	for n, task := range u.flat.Tasks[first : first+len(bound.ofRank[rank])] {
		task.Name, task.Rank, task.Twin, task.Waits = onRank(task.Name, rank), rank, first+n, nil
		if !u.ofAllRanks(task.Signal) {
			task.Signal = -1
		}
		task.Ops = slices.Clone(task.Ops)
		for k := range task.Ops {
			task.Ops[k].Op = bound.ofRank[rank][n][k]
		}
		u.flat.Tasks = append(u.flat.Tasks, task)
	}
}

// bind binds the ops of a stage to its spans, unless an earlier iteration has.
func bind(s *Stage, spans []TaskSpan, bound *binding, ranks int) {
	mentions := func(symbol Sym) bool {
		return slices.ContainsFunc(s.Ops, func(o Op) bool { return o.uses(symbol) })
	}
	if bound.ofRank != nil && !mentions(OnSM) {
		return
	}
	bound.ofRank = make([][][]Op, ranks)
	own := mentions(OnRank)
	for r := range ranks {
		switch {
		case own:
			bound.ofRank[r] = bindSpans(opsOnRank(s.Ops, r), spans)
		case r == 0:
			bound.ofRank[r] = bindSpans(s.Ops, spans)
		default:
			bound.ofRank[r] = bound.ofRank[0]
		}
	}
}

// bindSpans returns the ops bound to each span.
func bindSpans(ops []Op, spans []TaskSpan) [][]Op {
	bound := make([][]Op, len(spans))
	all := make([]Op, len(spans)*len(ops))
	for n := range spans {
		bound[n], all = all[:len(ops):len(ops)], all[len(ops):]
	}
	for k := range ops {
		b := newBinder(&ops[k], len(spans))
		for n, t := range spans {
			bound[n][k] = b.bind(t)
		}
	}
	return bound
}

// uses reports whether a view or a parameter of the op mentions s.
func (o *Op) uses(s Sym) bool {
	for _, list := range [][]Operand{o.In, o.Out} {
		for _, v := range list {
			for _, r := range v.Dims {
				if r.Lo.Uses(s) || r.Hi.Uses(s) || r.Part.Uses(s) {
					return true
				}
			}
		}
	}
	return slices.ContainsFunc(o.Params, func(p Param) bool { return p.Int.Uses(s) })
}

// taskNames names the tasks of a stage after their SM, unit or first element, whichever the distribution makes unique.
// The names are parts of one string: a program has tens of thousands.
func taskNames(stage string, kind DistKind, spans []TaskSpan) []string {
	var seen map[TaskSpan]int // an explicit distribution may give an SM several spans
	if kind == Explicit {
		seen = make(map[TaskSpan]int, len(spans))
	}
	var all strings.Builder
	all.Grow(len(spans) * (len(stage) + 8))
	ends := make([]int, len(spans))
	suffix := make([]byte, 0, 64)
	for n, t := range spans {
		all.WriteString(stage)
		suffix = suffix[:0]
		switch {
		case kind == Whole:
		case kind == ByUnit:
			suffix = appendPadded(append(suffix, ".u"...), t.A)
		case t.SM < 0:
			suffix = appendInt(append(suffix, ".t"...), t.A)
		default:
			suffix = appendPadded(append(suffix, ".s"...), t.SM)
		}
		if kind == Explicit {
			key := TaskSpan{SM: t.SM}
			if t.SM < 0 {
				key.A = t.A
			}
			if seen[key]++; seen[key] > 1 {
				suffix = appendInt(append(suffix, '.'), seen[key])
			}
		}
		all.Write(suffix)
		ends[n] = all.Len()
	}
	text, names, start := all.String(), make([]string, len(spans)), 0
	for n, end := range ends {
		names[n], start = text[start:end], end
	}
	return names
}

// appendPadded prints n >= 0 with at least three digits.
func appendPadded(dst []byte, n int) []byte {
	for limit := 100; limit > 1 && n < limit; limit /= 10 {
		dst = append(dst, '0')
	}
	return appendInt(dst, n)
}

func (u *unroller) counter(stage, name string, i int) int {
	m, err := u.counters.At(name, i)
	if err != nil {
		u.fail(CodeName, "stage "+stage, "%v", err)
		return -1
	}
	return m.Number
}

func (u *unroller) operands(stage string, ops []Operand, i int) []int {
	out := make([]int, len(ops))
	for k := range ops {
		out[k] = -1
		if ops[k].IsTemp() {
			continue
		}
		m, err := u.buffers.At(ops[k].Buf, i)
		if err != nil {
			u.fail(CodeName, "stage "+stage, "%v", err)
			continue
		}
		if dims := len(u.program.Buffers[m.Declared].Shape); len(ops[k].Dims) != dims {
			u.fail(CodeShape, "stage "+stage, "view of %s has %d ranges, the buffer has %d dimensions", m.Name,
				len(ops[k].Dims), dims)
			continue
		}
		out[k] = m.Number
	}
	return out
}
