package refvm

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"amkc/ir"
	"amkc/ir/diag"
)

// Options determine how a VM computes and what it records.
type Options struct {
	Round   Rounding
	Workers int  // goroutines of a step in the order Parallel; 0: one per processor
	Record  bool // note what every task touches, and start each step with NaN in all activations

	// Radii: know how far a correct kernel may be from each value; see [VM.Reach] and [VM.Give]. Buffers share no page.
	Radii bool
	// SameSums, with Radii: know as well how far two kernels may be apart that add up in one order, and whose functions
	// err alone; see [VM.Apart].
	SameSums bool

	// Products is told what matrices are multiplied with, by the task that has the first row of one: the number of the
	// matrix in Flat.Buffers, its column that the vectors begin at, and the vectors, one after another and n elements
	// each. They are its own until it returns. Tasks of several workers call it at the same time; nil is not called.
	Products func(matrix, column int, vectors []float32, n int)

	Bounds
}

// VM runs one flat program: a variant of a native one, or a program of the AMK profile. It is for one
// goroutine at a time; a step spreads its tasks over goroutines of its own.
type VM struct {
	flat *ir.Flat
	mem  *memory
	opts Options
	// activations is the type that values are published in, where that is 16 bits, and else F32
	activations ir.DType
	tasks       []task
	inOrder     []int32 // the tasks in program order
	counters    []atomic.Int64
	steps       atomic.Uint32 // steps begun: what task.done holds once it has run in this one
	failed      atomic.Bool
	workers     []*worker
	touched     [][]Touch // by task, under Options.Record
	tried       int       // positions at which lengths of views were evaluated one by one
}

// A task is ready to run: views and kernels are resolved, and what may start when is known.
type task struct {
	src   *ir.Task
	ops   []op
	temps int   // how many temporaries it has
	after int32 // the task before it in its SM's queue, or -1
	done  atomic.Uint32
}

// An op is one operation of a task.
type op struct {
	src     *ir.FlatOp
	run     kernel
	in, out []operand
	moving  []moving // the parameters that depend on a position or a row
	keeps   bool     // an output is a temporary, which lives on in scratch
}

// A kernel computes an op on its views. All it touches it gets from the worker's read and emit methods.
type kernel func(w *worker, o *op) error

// New returns a VM for a flat program. Buffers start as zeros, but for the weights.
//
// Errors are *diag.Diagnostic: programs that no step could run. New does not check that a program is safe in every
// legal order: that is what validate proves.
func New(flat *ir.Flat, w Weights, opts Options) (*VM, error) {
	mem, err := newMemory(flat, func(k int) ([]float32, error) { return w.Floats(&flat.Buffers[k], 0) }, opts.Round,
		nil)
	if err != nil {
		return nil, err
	}
	return newVM(flat, mem, opts)
}

func newVM(flat *ir.Flat, mem *memory, opts Options) (*VM, error) {
	vm := &VM{flat: flat, mem: mem, opts: opts}
	if opts.Radii {
		mem.track(opts.SameSums)
	}
	if i := slices.IndexFunc(flat.Buffers, func(b ir.Buffer) bool {
		return b.Kind == ir.Activation && b.DType.Bits() == 16
	}); i >= 0 {
		vm.activations = flat.Buffers[i].DType
	}
	vm.tasks = make([]task, len(flat.Tasks))
	vm.counters = make([]atomic.Int64, len(flat.Counters))
	last := map[int]int32{} // by SM
	for i := range flat.Tasks {
		t := &vm.tasks[i]
		t.src, t.after = &flat.Tasks[i], -1
		if sm := t.src.SM; sm >= 0 {
			if before, ok := last[sm]; ok {
				t.after = before
			}
			last[sm] = int32(i)
		}
		if err := vm.compile(t); err != nil {
			return nil, err
		}
	}
	if opts.Record {
		vm.touched = make([][]Touch, len(vm.tasks))
	}
	vm.makeWorkers()
	var err error
	vm.inOrder, err = vm.schedule(Order{Kind: InOrder})
	return vm, err
}

func (t *task) pos() string { return "task " + t.src.Name }

// compile resolves the ops of a task.
func (vm *VM) compile(t *task) error {
	if s := t.src.Signal; s < -1 || s >= len(vm.counters) {
		return diag.Errorf(CodeOp, t.pos(), "signals counter %d, there are %d", s, len(vm.counters))
	}
	for _, w := range t.src.Waits {
		if w.Counter < 0 || w.Counter >= len(vm.counters) {
			return diag.Errorf(CodeOp, t.pos(), "waits on counter %d, there are %d", w.Counter, len(vm.counters))
		}
	}
	temps := temps{slots: map[string]int{}}
	t.ops = make([]op, len(t.src.Ops))
	for i := range t.ops {
		if err := vm.compileOp(t, &t.ops[i], &t.src.Ops[i], &temps); err != nil {
			return err
		}
	}
	t.temps = len(temps.slots)
	return nil
}

// temps are the temporaries of a task that have been written: the slot of each, and what it holds, F32 or I32.
type temps struct {
	slots map[string]int
	types []ir.DType
}

func (vm *VM) compileOp(t *task, o *op, src *ir.FlatOp, temps *temps) error {
	fail := func(format string, args ...any) error {
		return diag.Errorf(CodeOp, t.pos(), "%v %s", src.Code, fmt.Sprintf(format, args...))
	}
	if src.Code < 0 || int(src.Code) >= len(kernels) || kernels[src.Code] == nil {
		return fail("cannot be run, want an opcode other than FUSED; a recipe's ops can be listed as the task's")
	}
	spec := ir.Ops[src.Code]
	if n := len(src.In); !spec.In.Has(n) || n != len(src.InBuf) {
		return fail("has %d inputs, want %v", n, spec.In)
	}
	if n := len(src.Out); !spec.Out.Has(n) || n != len(src.OutBuf) {
		return fail("has %d outputs, want %v", n, spec.Out)
	}
	o.src, o.run = src, kernels[src.Code]
	var problem string
	if o.moving, problem = checkParams(&src.Op, vm.flat.Pass); problem != "" {
		return fail("%s", problem)
	}
	o.in, o.out = make([]operand, len(src.In)), make([]operand, len(src.Out))
	in, out := make([]ir.DType, len(src.In)), make([]ir.DType, len(src.Out))
	for k := range src.In {
		if src.InBuf[k] < 0 && src.In[k].IsTemp() && len(src.In[k].Dims) == 0 {
			slot, written := temps.slots[src.In[k].Buf]
			if !written {
				return fail("reads %s, which no op of the task has written", src.In[k].Buf)
			}
			o.in[k].slot, in[k] = slot, temps.types[slot]
			continue
		}
		if err := vm.bind(t, &o.in[k], src.InBuf[k], &src.In[k]); err != nil {
			return err
		}
		in[k] = o.in[k].st.buf.ValueType()
	}
	for k := range src.Out {
		if src.OutBuf[k] < 0 && src.Out[k].IsTemp() && len(src.Out[k].Dims) == 0 {
			out[k] = ir.F32
			if yieldsInts(&src.Op, k, in) {
				out[k] = ir.I32
			}
			o.out[k].slot, o.keeps = temps.set(src.Out[k].Buf, out[k]), true
			continue
		}
		if err := vm.bind(t, &o.out[k], src.OutBuf[k], &src.Out[k]); err != nil {
			return err
		}
		b := o.out[k].st.buf
		if b.Kind.ReadOnly() {
			return fail("writes %s, which is a %v", b.Name, b.Kind)
		}
		out[k] = b.ValueType()
	}
	if problem := cmp.Or(checkTypes(&src.Op, in, out), checkScaledRows(o)); problem != "" {
		return fail("%s", problem)
	}
	if problem := cmp.Or(vm.checkLengths(o), checkShare(o)); problem != "" {
		return diag.Errorf(CodeSizes, t.pos(), "%v %s", src.Code, problem)
	}
	return nil
}

// set gives a temporary a slot, if it has none, and a type.
func (s *temps) set(name string, d ir.DType) int {
	slot, known := s.slots[name]
	if !known {
		slot = len(s.types)
		s.slots[name], s.types = slot, append(s.types, d)
	}
	s.types[slot] = d
	return slot
}

// bind resolves a view. Its box is evaluated here unless it moves with the position.
func (vm *VM) bind(t *task, o *operand, buf int, src *ir.Operand) error {
	dims := src.Dims
	if buf < 0 || buf >= len(vm.mem.stores) || src.IsTemp() {
		return diag.Errorf(CodeOp, t.pos(), "names buffer %d for %s, there are %d", buf, src.Buf, len(vm.mem.stores))
	}
	st := vm.mem.stores[buf]
	if len(dims) != len(st.buf.Shape) {
		return diag.Errorf(CodeView, t.pos(), "view of %s has %d ranges, the buffer has %d dimensions", st.buf.Name,
			len(dims), len(st.buf.Shape))
	}
	o.st, o.view, o.moving = st, dims, moves(dims)
	if s, known := ir.Sequence(dims); known && s < vm.flat.Pass.NumSequences() {
		o.sequence = max(0, s)
	} else {
		return diag.Errorf(CodeView, t.pos(), "view %s, want the position of one of %d sequences", src,
			vm.flat.Pass.NumSequences())
	}
	if o.moving {
		return nil
	}
	var bad string
	if o.box, bad = newBox(st, dims, vm.flat.Lo); bad != "" {
		return diag.Errorf(CodeView, t.pos(), "view of %s: %s", st.buf.Name, bad)
	}
	return nil
}
