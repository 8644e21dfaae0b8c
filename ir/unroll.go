package ir

import (
	"fmt"

	"amkc/ir/diag"
)

// Budgets of Unroll. They bound memory whatever a file asks for; Llama-3.1-8B needs some 25,000 tasks.
const (
	MaxTasks   = 4_000_000
	MaxBuffers = 1_000_000
)

// Unroll turns variant v of the program into its flat form. The flat form is returned only if there is no error.
func Unroll(p *Program, v *Variant) (*Flat, diag.List) {
	u := unroller{flat: &Flat{Name: v.Name, Lo: v.Lo, Hi: v.Hi}, buffers: map[string]int{}, counters: map[string]int{}}
	if p.Target != nil {
		u.flat.SMs = p.Target.SMs
	}
	u.flat.Pages = p.Pages
	u.expandBuffers(p.Buffers)
	u.expandCounters(v.Counters)
	for _, n := range v.Body {
		switch n := n.(type) {
		case *Stage:
			u.stage(n, 0)
		case *Loop:
			for i := n.First; i < n.First+n.Count && len(u.diags) < maxUnrollErrors; i++ {
				for _, s := range n.Body {
					u.stage(s, i)
				}
			}
		}
	}
	if u.diags.Err() != nil {
		return nil, u.diags
	}
	return u.flat, u.diags
}

// maxUnrollErrors stops a hostile file from producing a diagnostic per task.
const maxUnrollErrors = 50

type unroller struct {
	flat     *Flat
	buffers  map[string]int
	counters map[string]int
	diags    diag.List
	tooLarge bool
}

func (u *unroller) fail(code *diag.Code, pos, format string, args ...any) {
	if len(u.diags) < maxUnrollErrors {
		u.diags.Add(diag.Errorf(code, pos, format, args...))
	}
}

// members calls f for every member of a family, or once for a plain name.
func (u *unroller) members(what, name string, first, count, have int, f func(name string, i int)) {
	if !IsFamily(name) {
		if count != 0 {
			u.fail(CodeName, what+" "+name, "has a count but no {i} in its name")
			return
		}
		f(name, 0)
		return
	}
	if count < 1 || count > MaxBuffers-have {
		u.fail(CodeSize, what+" "+name, "family of %d members, want 1 to %d", count, MaxBuffers-have)
		return
	}
	for i := first; i < first+count; i++ {
		full, err := Resolve(name, i)
		if err != nil {
			u.fail(CodeName, what+" "+name, "%v", err)
			return
		}
		f(full, i)
	}
}

func (u *unroller) expandBuffers(bufs []Buffer) {
	for k := range bufs {
		b := &bufs[k]
		u.members("buffer", b.Name, b.First, b.Count, len(u.flat.Buffers), func(name string, i int) {
			if _, taken := u.buffers[name]; taken {
				u.fail(CodeName, "buffer "+name, "is defined twice")
				return
			}
			m := *b
			m.Name, m.First, m.Count = name, 0, 0
			if len(b.Pages) > 1 {
				m.Pages = b.Pages[i%len(b.Pages) : i%len(b.Pages)+1]
			}
			u.buffers[name] = len(u.flat.Buffers)
			u.flat.Buffers = append(u.flat.Buffers, m)
		})
	}
}

func (u *unroller) expandCounters(counters []Counter) {
	for k := range counters {
		c := &counters[k]
		u.members("counter", c.Name, c.First, c.Count, len(u.flat.Counters), func(name string, _ int) {
			if _, taken := u.counters[name]; taken {
				u.fail(CodeName, "counter "+name, "is defined twice")
				return
			}
			m := *c
			m.Name, m.First, m.Count = name, 0, 0
			u.counters[name] = len(u.flat.Counters)
			u.flat.Counters = append(u.flat.Counters, m)
		})
	}
}

// stage appends the tasks of one stage in iteration i.
func (u *unroller) stage(s *Stage, i int) {
	name, err := Resolve(s.Name, i)
	if err != nil {
		u.fail(CodeName, "stage "+s.Name, "%v", err)
		return
	}
	if s.Dist.Kind != Explicit && (s.Dist.Extent < 0 || s.Dist.Extent > MaxTasks*64 || s.Dist.Grain < 0 || s.Dist.SMs < 0 || s.Dist.SMs > 1<<16) {
		u.fail(CodeShape, "stage "+name, "distribution with extent %d, grain %d, %d SMs", s.Dist.Extent, s.Dist.Grain, s.Dist.SMs)
		return
	}
	spans := s.Dist.Tasks(i)
	if len(u.flat.Tasks)+len(spans) > MaxTasks {
		if !u.tooLarge {
			u.fail(CodeSize, "stage "+name, "the program has more than %d tasks", MaxTasks)
		}
		u.tooLarge = true
		return
	}
	waits := make([]FlatWait, 0, len(s.Waits))
	for _, w := range s.Waits {
		waits = append(waits, FlatWait{u.counter(name, w.Counter, i), w.Threshold})
	}
	signal := -1
	if s.Signal != "" {
		signal = u.counter(name, s.Signal, i)
	}
	ops := make([]FlatOp, len(s.Ops))
	for k := range s.Ops {
		ops[k].Op = s.Ops[k]
		ops[k].OutBuf = u.operands(name, s.Ops[k].Out, i)
		ops[k].InBuf = u.operands(name, s.Ops[k].In, i)
	}
	seen := map[string]int{}
	for _, t := range spans {
		task := Task{Name: taskName(name, s.Dist.Kind, t, seen), SM: t.SM, Waits: waits, Signal: signal, Ops: make([]FlatOp, len(ops))}
		for k := range ops {
			task.Ops[k] = FlatOp{Op: ops[k].Op.Bind(t), OutBuf: ops[k].OutBuf, InBuf: ops[k].InBuf}
		}
		u.flat.SMs = max(u.flat.SMs, t.SM+1)
		u.flat.Tasks = append(u.flat.Tasks, task)
	}
}

// taskName names a task after its SM, its unit or its first element, whichever its distribution makes unique.
func taskName(stage string, kind DistKind, t TaskSpan, seen map[string]int) string {
	var name string
	switch {
	case kind == Whole:
		return stage
	case kind == ByUnit:
		name = fmt.Sprintf("%s.u%03d", stage, t.A)
	case t.SM < 0:
		name = fmt.Sprintf("%s.t%d", stage, t.A)
	default:
		name = fmt.Sprintf("%s.s%03d", stage, t.SM)
	}
	seen[name]++
	if n := seen[name]; n > 1 { // an explicit distribution may give an SM several spans
		name = fmt.Sprintf("%s.%d", name, n)
	}
	return name
}

func (u *unroller) counter(stage, name string, i int) int {
	full, err := Resolve(name, i)
	if err != nil {
		u.fail(CodeName, "stage "+stage, "%v", err)
		return -1
	}
	c, ok := u.counters[full]
	if !ok {
		u.fail(CodeName, "stage "+stage, "counter %s is not defined", full)
		return -1
	}
	return c
}

func (u *unroller) operands(stage string, ops []Operand, i int) []int {
	out := make([]int, len(ops))
	for k := range ops {
		out[k] = -1
		if ops[k].IsTemp() {
			continue
		}
		full, err := Resolve(ops[k].Buf, i)
		if err != nil {
			u.fail(CodeName, "stage "+stage, "%v", err)
			continue
		}
		b, ok := u.buffers[full]
		if !ok {
			u.fail(CodeName, "stage "+stage, "buffer %s is not defined", full)
			continue
		}
		if len(ops[k].Dims) != len(u.flat.Buffers[b].Shape) {
			u.fail(CodeShape, "stage "+stage, "view of %s has %d ranges, the buffer has %d dimensions", full, len(ops[k].Dims), len(u.flat.Buffers[b].Shape))
			continue
		}
		out[k] = b
	}
	return out
}
