package interchange

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/ir/diag"
)

// ToAMK exports one step of a native program, as pass lower leaves it: one op per stage, nothing distributed over SMs.
// theta is the base of its rotary embedding, which a native program does not hold; 0 refuses programs that rotate.
//
// The profile's host ends a run, and knows when a step has ended: the stages of STOP and of the join stay behind. It
// gives no embeddings and asks for no hidden state: EMBED looks up tokens alone, and the stage of the last hidden state
// stays behind too.
//
// The profile writes things differently in six places. Loops are written out. Vectors are rows of a matrix. An
// instruction has one output, so that a second one becomes a COPY. A buffer that is updated in place becomes a new one
// at each update. Rows of q and k stand in the checkpoint's order and not in rotation pairs, which changes no dot
// product. Attention reads the row of this step from the cache, after the appends.
//
// What the profile cannot express is an error that names the first stage, buffer or counter in the way, and the program
// is nil then.
func ToAMK(p *ir.Program, pos int, theta float64) (*Program, diag.List) {
	if diags := ir.Check(p); diags.Err() != nil {
		return nil, diags
	}
	if p.Pass.NumTokens() > 1 {
		return nil, diag.List{diag.Errorf(codeExport, "program", "takes %d rows of %d sequences in a pass; one row "+
			"of one is accepted", p.Pass.NumRows(), p.Pass.NumSequences())}
	}
	if n := p.NumRanks(); n > 1 {
		return nil, diag.List{diag.Errorf(codeExport, "program", "is for %d ranks; one is accepted", n)}
	}
	flat := *p // its variants and buffers become others
	flat.Variants = slices.Clone(p.Variants)
	if err := ir.Expand(&flat); err != nil {
		return nil, diag.List{diag.Errorf(codeExport, "", "%v", err)}
	}
	p = &flat
	e := &exporter{
		native: p, pos: pos, theta: theta,
		out:      &Program{IRVersion: IRVersion, ABIVersion: ABIVersion, Target: target(p.Target)},
		buffers:  map[string]*ir.Buffer{},
		values:   map[string]exported{},
		inputs:   map[string]int{},
		caches:   map[string][2]int{},
		counters: map[string]exportedCounter{},
		appends:  map[string]*[2]*ir.Stage{},
		appended: map[*ir.Stage]int{},
	}
	e.program()
	if e.failed != nil {
		return nil, diag.List{e.failed}
	}
	e.out.Meta = e.meta()
	return e.out, nil
}

type exporter struct {
	native   *ir.Program
	pos      int
	theta    float64
	out      *Program
	buffers  map[string]*ir.Buffer
	values   map[string]exported        // by native buffer, caches apart
	inputs   map[string]int             // pos and reshape_id0, which native programs have not
	caches   map[string][2]int          // by native cache: the buffers of k and v
	counters map[string]exportedCounter // by native counter
	appends  map[string]*[2]*ir.Stage   // by native cache: the stages that append k and v
	appended map[*ir.Stage]int          // those that are exported, and the counters they signal
	failed   *diag.Diagnostic
}

// exported is the buffer that holds a native buffer's value now.
type exported struct {
	id    int
	pairs int // the native value has its heads of this size in rotation pairs; 0: it has the same order
}

// exportedCounter stands for a native counter.
type exportedCounter struct {
	id     int
	native int // tasks that signal the native counter
}

func (e *exporter) fail(pos, format string, args ...any) {
	if e.failed == nil {
		e.failed = diag.Errorf(codeExport, pos, format, args...)
	}
}

func (e *exporter) program() {
	v := e.variant()
	if v == nil {
		return
	}
	for i := range e.native.Buffers {
		e.buffers[e.native.Buffers[i].Name] = &e.native.Buffers[i]
	}
	stages := e.stages(v)
	for _, s := range stages {
		e.survey(s)
	}
	e.declareCounters(v, stages)
	for _, s := range stages {
		if e.failed != nil {
			return
		}
		e.stage(s)
	}
	e.joinWaits()
}

func (e *exporter) variant() *ir.Variant {
	for i := range e.native.Variants {
		if v := &e.native.Variants[i]; v.Lo <= e.pos && e.pos <= v.Hi {
			return v
		}
	}
	e.fail("program", "has no variant for position %d; positions 0 to %d are accepted", e.pos, e.native.Model.MaxSeq-1)
	return nil
}

// keepsHidden reports whether a stage makes the last hidden state.
func (e *exporter) keepsHidden(s *ir.Stage) bool {
	return slices.ContainsFunc(s.Ops, func(o ir.Op) bool {
		return len(o.Out) == 1 && e.buffers[o.Out[0].Buf] != nil && e.buffers[o.Out[0].Buf].HasRole(ir.RoleHidden)
	})
}

func (e *exporter) stages(v *ir.Variant) []*ir.Stage {
	var stages []*ir.Stage
	for _, n := range v.Body {
		if st, ok := n.(*ir.Stage); ok && !endsRun(st) && !e.keepsHidden(st) { // there are no loops any more
			stages = append(stages, st)
		}
	}
	return stages
}

// endsRun reports whether a stage finds that the run ends, or joins.
func endsRun(s *ir.Stage) bool {
	return len(s.Ops) == 1 && (s.Ops[0].Code == ir.STOP || s.Ops[0].Code == ir.NOP)
}

// survey checks the form of a stage and notes which stages append to which cache.
func (e *exporter) survey(s *ir.Stage) {
	at := "stage " + s.Name
	switch {
	case len(s.Ops) != 1:
		e.fail(at, "runs %d ops in a task; one is accepted, as pass lower leaves them", len(s.Ops))
		return
	case s.Dist.Kind != ir.Whole && s.Dist.Kind != ir.Tiled:
		e.fail(at, "is distributed over SMs (%v); stages as pass lower leaves them are accepted", s.Dist.Kind)
		return
	}
	op := &s.Ops[0]
	for _, list := range [][]ir.Operand{op.In, op.Out} {
		for _, o := range list {
			if e.buffer(at, o) == nil {
				return
			}
		}
	}
	if op.Code != ir.KVAppend || len(op.Out) != 1 {
		return
	}
	cache := op.Out[0].Buf
	if e.appends[cache] == nil {
		e.appends[cache] = &[2]*ir.Stage{}
	}
	if half := e.half(op.Out[0]); half >= 0 {
		e.appends[cache][half] = s
	}
}

// buffer returns the buffer of an operand, if the profile can hold it.
func (e *exporter) buffer(at string, o ir.Operand) *ir.Buffer {
	b := e.buffers[o.Buf]
	switch {
	case o.IsTemp():
		e.fail(at, "uses the temporary %s; buffers are accepted", o.Buf)
	case b == nil:
		e.fail(at, "uses buffer %s, which does not exist or is one of a family; buffers as pass lower declares them "+
			"are accepted", o.Buf)
	case b.Layout != ir.Layout{}:
		e.fail("buffer "+b.Name, "has layout %v; rowmajor is accepted", b.Layout)
		return nil
	case len(b.Pages) > 0:
		e.fail("buffer "+b.Name, "is on page %s; a buffer of its own is accepted", b.Pages[0])
		return nil
	case len(o.Dims) != len(b.Shape):
		e.fail(at, "has a view of %s with %d ranges; %d are accepted", b.Name, len(o.Dims), len(b.Shape))
		return nil
	}
	return b
}

// declareCounters maps the counters that stages wait on. The others order nothing within the step.
func (e *exporter) declareCounters(v *ir.Variant, stages []*ir.Stage) {
	signals := map[string]int{}
	waited := map[string]bool{}
	for _, s := range stages {
		signals[s.Signal] += s.Dist.NumTasks()
		for _, w := range s.Waits {
			waited[w.Counter] = true
		}
	}
	for i := range v.Counters {
		c := &v.Counters[i]
		if !waited[c.Name] {
			continue
		}
		if c.How == ir.Flagged || c.Scope != ir.ScopeGPU {
			e.fail("counter "+c.Name, "is %v with scope %v; one that is undecided, or a counter of scope "+
				"gpu, is accepted", c.How, c.Scope)
			return
		}
		e.counters[c.Name] = exportedCounter{id: e.counter(c.Name), native: signals[c.Name]}
		e.out.Counters[len(e.out.Counters)-1].Init = c.Init
	}
}

func (e *exporter) counter(note string) int {
	id := len(e.out.Counters)
	e.out.Counters = append(e.out.Counters, Counter{ID: id, Note: note})
	return id
}

// waits translates those of a stage. Their thresholds are left to joinWaits.
func (e *exporter) waits(s *ir.Stage) []Wait {
	var out []Wait
	for _, w := range s.Waits {
		c, ok := e.counters[w.Counter]
		switch {
		case !ok:
			e.fail("stage "+s.Name, "waits on counter %s, which does not exist or is one of a family; counters as "+
				"pass lower declares them are accepted", w.Counter)
		case w.Threshold != c.native:
			e.fail("stage "+s.Name, "waits for %d of the %d tasks that signal %s; waiting for all is accepted",
				w.Threshold, c.native, w.Counter)
		}
		out = append(out, Wait{Counter: c.id})
	}
	return out
}

// joinWaits makes every wait one for all tasks that signal its counter, now that all of them are there.
func (e *exporter) joinWaits() {
	producers := make([]int, len(e.out.Counters))
	for i := range e.out.Tasks {
		producers[e.out.Tasks[i].OutCounter]++
	}
	for i := range e.out.Tasks {
		t := &e.out.Tasks[i]
		for k := range t.Waits {
			t.Waits[k].Threshold = producers[t.Waits[k].Counter]
		}
		if len(t.Waits) > MaxWaits {
			e.fail("stage "+t.Label, "needs %d waits; up to %d are accepted", len(t.Waits), MaxWaits)
		}
	}
}

func (e *exporter) meta() json.RawMessage {
	m := &e.native.Model
	gpu := "?"
	if e.native.Target != nil {
		gpu = e.native.Target.Name
	}
	bytes := 0
	for i := range e.out.Buffers {
		if b := &e.out.Buffers[i]; b.Kind == ir.Weight {
			bytes += b.DType.Bytes((&ir.Buffer{Shape: b.Shape}).Numel())
		}
	}
	return object("model", m.Architecture, "gpu", gpu, "regime", "decode", "pos", e.pos, "kv_len", e.pos+1,
		"dtype", m.DTypes.String(), "n_layers", m.Layers, "weight_bytes", bytes)
}

// declare adds a buffer to the exported program.
func (e *exporter) declare(name string, b *ir.Buffer, shape ...int) int {
	id := len(e.out.Buffers)
	space := b.Space
	e.out.Buffers = append(e.out.Buffers, Buffer{
		ID: id, Name: name, Kind: b.Kind, DType: b.DType, Shape: slices.Clone(shape), Space: space,
	})
	return id
}

// task adds a task, without the estimates that a lowering of AutoMegaKernel makes.
func (e *exporter) task(t Task) {
	t.ID, t.EstBytes, t.EstFLOPs = len(e.out.Tasks), "0", "0"
	if t.Params == nil {
		t.Params = object()
	}
	t.Waits = append([]Wait{}, t.Waits...) // null becomes an empty list
	e.out.Tasks = append(e.out.Tasks, t)
}

// object is a JSON object of keys and values in turn: text, integers, and floats, which Python must not take for
// integers.
func object(fields ...any) json.RawMessage {
	text := []byte("{")
	for i := 0; i < len(fields); i += 2 {
		value, err := json.Marshal(fields[i+1])
		if err != nil {
			panic(fmt.Sprintf("interchange: %v", err)) // a program that ir.Check has passed holds finite numbers
		}
		if f, isFloat := fields[i+1].(float64); isFloat {
			if value = strconv.AppendFloat(nil, f, 'g', -1, 64); !bytes.ContainsAny(value, ".e") {
				value = append(value, ".0"...)
			}
		}
		text = fmt.Appendf(text, "%q:%s,", fields[i], value)
	}
	return append(bytes.TrimSuffix(text, []byte(",")), '}')
}
