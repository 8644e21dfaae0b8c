package interchange

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/ir/diag"
)

// Flatten returns the program in the form that is proved and run: every id an index, every operand an explicit view
// at the program's one position. Parameters that say which part of a buffer a task touches (n_off, N_tile, m_off,
// M_tile, kv_start, kv_len, pos) become views as they are, out of range or not: to reject them is for the proof.
// Parameters that repeat what shapes say (K, hidden, head_dim) must agree with them. FUSED tasks become the ops of
// their recipe.
//
// Errors are what the flat form cannot hold: ids that name nothing or two things, more operands than an opcode takes or
// the device's records hold, parameters that are missing or contradict the shapes. The program is nil then.
func (p *Program) Flatten() (*ir.Flat, diag.List) {
	f := &flattener{
		prog: p, buffers: map[int]int{}, counters: map[int]int{}, bufferNames: namer{}, taskNames: namer{},
		flat: &ir.Flat{Name: "amk", SMs: p.queues()},
	}
	if t := p.Target; t != nil {
		f.flat.Target = &ir.Target{Name: t.Name, SMs: t.NumSMs, SMemOptin: t.SmemBytesPerBlockOptin}
	}
	f.flat.Lo = p.position()
	f.flat.Hi = f.flat.Lo
	f.declare()
	ids := map[int]bool{}
	for i := range p.Tasks {
		if f.full() {
			break // what follows would only be more of the same
		}
		t := &p.Tasks[i]
		f.unique("task", ids, t.ID)
		f.task(t)
	}
	if f.diags.Err() != nil {
		return nil, f.diags
	}
	return f.flat, f.diags
}

// position is meta.pos or, where that is missing, the first row that the program appends to a cache.
func (p *Program) position() int {
	if pos, ok := intOf(fieldsOf(p.Meta)["pos"]); ok {
		return pos
	}
	first := -1
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.Op == ir.KVAppend {
			if pos, ok := intOf(fieldsOf(t.Params)["pos"]); ok && (first < 0 || pos < first) {
				first = pos
			}
		}
	}
	return max(0, first)
}

// intOf returns the integer that a JSON value is; 10000.0 is not an integer.
func intOf(raw json.RawMessage) (n int, ok bool) {
	return n, len(raw) > 0 && string(raw) != "null" && json.Unmarshal(raw, &n) == nil
}

// queues is the number of SMs: the target's, or as many as the tasks name.
func (p *Program) queues() int {
	if p.Target != nil {
		return p.Target.NumSMs
	}
	n := 0
	for i := range p.Tasks {
		if sm := p.Tasks[i].SM; sm != nil {
			n = max(n, *sm+1)
		}
	}
	return n
}

type flattener struct {
	prog        *Program
	flat        *ir.Flat
	buffers     map[int]int // by id
	counters    map[int]int
	bufferNames namer
	taskNames   namer
	diags       diag.List
}

func (f *flattener) full() bool { return len(f.diags) >= maxErrors }

func (f *flattener) fail(code *diag.Code, pos, format string, args ...any) {
	if !f.full() {
		f.diags.Add(diag.Errorf(code, pos, format, args...))
	}
}

func (f *flattener) unique(what string, ids map[int]bool, id int) {
	if ids[id] {
		f.fail(codeTwice, fmt.Sprintf("%s %d", what, id),
			"id %d is that of two %ss; a different id for each is accepted", id, what)
	}
	ids[id] = true
}

// A namer hands out names that are unique, what ir.CheckName accepts, and not those of temporaries.
type namer map[string]bool

func (n namer) take(name, what string, id int) string {
	if ir.CheckName(name) != nil || name[0] == '%' {
		name = what + strconv.Itoa(id)
	}
	for n[name] {
		name += "#" + strconv.Itoa(id)
	}
	n[name] = true
	return name
}

// declare turns pages, buffers and counters into those of the flat form.
func (f *flattener) declare() {
	pages := map[int]*Page{}
	if f.prog.Pages != nil {
		ids := map[int]bool{}
		for i := range f.prog.Pages.Pages {
			pg := &f.prog.Pages.Pages[i]
			if f.unique("page", ids, pg.ID); f.full() {
				return
			}
			pages[pg.ID] = pg
			f.flat.Pages = append(f.flat.Pages, ir.Page{Name: pageName(pg.ID), Space: pg.Space, Bytes: pg.NBytes})
		}
	}
	ids := map[int]bool{}
	for i := range f.prog.Buffers {
		if f.full() {
			return
		}
		b := &f.prog.Buffers[i]
		f.unique("buffer", ids, b.ID)
		f.buffer(b)
	}
	f.bindPages(pages)
	names := namer{}
	ids = map[int]bool{}
	for i := range f.prog.Counters {
		if f.full() {
			return
		}
		c := &f.prog.Counters[i]
		f.unique("counter", ids, c.ID)
		f.counters[c.ID] = i
		counter := ir.Counter{Name: names.take(c.Note, "counter", c.ID), Init: c.Init, How: ir.ByCounter}
		counter.Role = counter.NamedRole()
		f.flat.Counters = append(f.flat.Counters, counter)
	}
}

func pageName(id int) string { return "page" + strconv.Itoa(id) }

// What the profile calls inputs that native programs have under other names, or do not have.
const tokenName, positionName = "token_id", "pos"

func (f *flattener) buffer(b *Buffer) {
	if len(b.Shape) > MaxRank {
		f.fail(codeCapacity, fmt.Sprintf("buffer %d (%s)", b.ID, b.Name), "has %d dimensions; up to %d are accepted",
			len(b.Shape), MaxRank)
	}
	out := ir.Buffer{
		Name: f.bufferNames.take(b.Name, "buffer", b.ID), Kind: b.Kind, DType: b.DType,
		Shape: slices.Clone(b.Shape), Space: b.Space,
	}
	if len(out.Shape) == 0 {
		out.Shape = []int{1} // a scalar
	}
	if b.Source != nil && (b.Kind == ir.Weight || b.Kind == ir.Const) {
		out.Pieces = []ir.Piece{{Key: *b.Source}}
	}
	switch out.Role = out.NamedRole(); {
	case out.Kind != ir.Input || out.DType != ir.I32:
	case out.Name == tokenName:
		out.Role = ir.RoleToken
	case out.Name == positionName:
		out.Role = ir.RolePosition
	}
	f.buffers[b.ID] = len(f.flat.Buffers)
	f.flat.Buffers = append(f.flat.Buffers, out)
}

// bindPages places buffers on their pages. A page says where its buffers are, whatever space they were declared in.
func (f *flattener) bindPages(pages map[int]*Page) {
	if f.prog.Pages == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(f.prog.Pages.BufferToPage)) {
		page := f.prog.Pages.BufferToPage[id]
		b, known := f.buffers[id]
		pg := pages[page]
		if !known || pg == nil {
			f.fail(codeDangling, "pages", "buffer %d is bound to page %d, and one of them does not exist", id, page)
			continue
		}
		f.flat.Buffers[b].Pages = []string{pageName(page)}
		f.flat.Buffers[b].Space = pg.Space
	}
}

// task appends one task, or says why the flat form cannot hold it.
func (f *flattener) task(t *Task) {
	pos := fmt.Sprintf("task %d", t.ID)
	if t.Label != "" {
		pos += " (" + t.Label + ")"
	}
	out := ir.Task{Name: f.taskNames.take(t.Label, "task", t.ID), SM: -1}
	if t.SM != nil {
		out.SM = *t.SM
		if out.SM < 0 {
			f.fail(codeDangling, pos, "runs on SM %d; null or an SM from 0 on is accepted", out.SM)
		}
	}
	if len(t.Inputs) > MaxInputs || len(t.Outputs) > MaxOutputs || len(t.Waits) > MaxWaits {
		f.fail(codeCapacity, pos, "has %d inputs, %d outputs and %d waits; up to %d, %d and %d are accepted",
			len(t.Inputs), len(t.Outputs), len(t.Waits), MaxInputs, MaxOutputs, MaxWaits)
		return
	}
	out.Signal = f.counter(pos, "signals", t.OutCounter)
	for _, w := range t.Waits {
		out.Waits = append(out.Waits, ir.FlatWait{Counter: f.counter(pos, "waits on", w.Counter),
			Threshold: w.Threshold})
	}
	step := opStep{f: f, pos: pos, op: t.Op, params: fieldsOf(t.Params)}
	step.in, step.out = f.operands(pos, "reads", t.Inputs), f.operands(pos, "writes", t.Outputs)
	switch {
	case step.in == nil || step.out == nil:
		return
	case t.Op == ir.FUSED:
		out.Ops = step.recipe(out.Name)
	default:
		out.Ops = step.translate()
	}
	f.flat.Tasks = append(f.flat.Tasks, out)
}

func (f *flattener) counter(pos, does string, id int) int {
	c, ok := f.counters[id]
	if !ok {
		f.fail(codeDangling, pos, "%s counter %d, which does not exist; the id of a counter is accepted", does, id)
	}
	return c
}

// operands resolves buffer ids. It returns nil if one of them names nothing.
func (f *flattener) operands(pos, does string, ids []int) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		b, ok := f.buffers[id]
		if !ok {
			f.fail(codeDangling, pos, "%s buffer %d, which does not exist; the id of a buffer is accepted", does, id)
			return nil
		}
		out[i] = b
	}
	return out
}
