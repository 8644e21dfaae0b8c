package refvm

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"amkc/ir"
	"amkc/ir/diag"
)

// makeWorkers prepares the workers: each keeps its scratch from task to task and from step to step.
func (vm *VM) makeWorkers() {
	n := vm.opts.Workers
	if n < 1 {
		n = runtime.GOMAXPROCS(0)
	}
	for range n {
		vm.workers = append(vm.workers, &worker{vm: vm, bounds: vm.opts.Bounds,
			at: make([]int, vm.flat.Pass.NumSequences())})
	}
}

// Step decodes one token at a position.
func (vm *VM) Step(pos, token int, order Order) error {
	return vm.Pass([]int{pos}, []int{token}, order)
}

// Pass decodes rows of tokens, those of each sequence from its position on. Tokens are numbered sequence by sequence;
// one below 0 leaves its element of the input as Write has set it. KV caches, outputs and inputs stay from pass to
// pass; activations are undefined at the start of each.
//
// After an error the contents of the buffers are undefined, but for those that no task writes.
func (vm *VM) Pass(at, tokens []int, order Order) error {
	if p := vm.flat.Pass; len(at) != p.NumSequences() || len(tokens) != p.NumTokens() {
		return diag.Errorf(CodePosition, "variant "+vm.flat.Name, "takes %d rows of %d sequences, not %d tokens at %d "+
			"positions", p.NumRows(), p.NumSequences(), len(tokens), len(at))
	}
	for _, pos := range at {
		if pos < vm.flat.Lo || pos > vm.flat.Hi {
			return diag.Errorf(CodePosition, "variant "+vm.flat.Name, "is for positions %d to %d, not for %d",
				vm.flat.Lo, vm.flat.Hi, pos)
		}
	}
	for i, token := range tokens {
		if token > math.MaxInt32 {
			return diag.Errorf(CodeValue, "position", "%d has token %d, want an id of 32 bits",
				at[i/vm.flat.Pass.NumRows()], token)
		}
	}
	vm.input(ir.RolePosition, at)
	vm.input(ir.RoleToken, tokens)
	vm.mem.begin(vm.opts.Record)
	for c := range vm.counters {
		vm.counters[c].Store(int64(vm.flat.Counters[c].Init))
	}
	vm.steps.Add(1)
	vm.failed.Store(false)
	for _, w := range vm.workers {
		copy(w.at, at)
	}
	if order.Kind == Parallel {
		return vm.parallel()
	}
	tasks := vm.inOrder
	if order.Kind != InOrder {
		var err error
		if tasks, err = vm.schedule(order); err != nil {
			return err
		}
	}
	for _, i := range tasks {
		if err := vm.workers[0].run(int(i)); err != nil {
			return err
		}
	}
	return nil
}

// input fills the integer inputs of a role, if the program has them, with a value for each of their rows; those below 0
// are left out.
func (vm *VM) input(role string, values []int) {
	for _, s := range vm.mem.byRole[role] {
		n := max(1, len(s.data)/len(values))
		for i := range s.data {
			if v := values[min(i/n, len(values)-1)]; v >= 0 {
				s.data[i] = fromInt(int32(v))
			}
		}
	}
}

// parallel runs the tasks in program order: each worker takes the next one, waits until it may start, and runs it. The
// first task that is not done can always start, because all before it in the order are.
func (vm *VM) parallel() error {
	type failure struct {
		at  int
		err error
	}
	var taken atomic.Int64
	failures := make([]failure, len(vm.workers))
	var wg sync.WaitGroup
	for k, w := range vm.workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				at := int(taken.Add(1)) - 1
				if at >= len(vm.inOrder) || !vm.await(&vm.tasks[vm.inOrder[at]]) {
					return
				}
				i := int(vm.inOrder[at])
				if err := w.run(i); err != nil {
					failures[k] = failure{at, err}
					vm.failed.Store(true)
					return
				}
				t := &vm.tasks[i]
				t.done.Store(vm.steps.Load())
				if t.src.Signal >= 0 {
					vm.counters[t.src.Signal].Add(1)
				}
			}
		}()
	}
	wg.Wait()
	first := failure{at: len(vm.inOrder)}
	for _, f := range failures {
		if f.err != nil && f.at < first.at {
			first = f
		}
	}
	return first.err
}

// await waits until a task may start, and reports false if that is no longer of use.
func (vm *VM) await(t *task) bool {
	for tries := 0; !vm.mayStart(t); tries++ {
		switch {
		case vm.failed.Load():
			return false
		case tries > 2000:
			time.Sleep(20 * time.Microsecond) // the processors are somebody else's at the moment
		case tries > 50:
			runtime.Gosched()
		}
	}
	return true
}

func (vm *VM) mayStart(t *task) bool {
	if t.after >= 0 && vm.tasks[t.after].done.Load() != vm.steps.Load() {
		return false
	}
	for _, w := range t.src.Waits {
		if vm.counters[w.Counter].Load() < int64(w.Threshold) {
			return false
		}
	}
	return true
}

// Read returns the elements of a buffer in row-major order, integers as numbers.
func (vm *VM) Read(name string) ([]float32, error) {
	s := vm.mem.byName[name]
	if s == nil {
		return nil, diag.Errorf(CodeBuffer, "buffer "+name, "does not exist")
	}
	return s.get(), nil
}

// Write sets the elements of a buffer that a step may find set: an input, an output or a cache.
func (vm *VM) Write(name string, values []float32) error {
	s := vm.mem.byName[name]
	switch {
	case s == nil:
		return diag.Errorf(CodeBuffer, "buffer "+name, "does not exist")
	case s.buf.Kind == ir.Weight || s.buf.Kind == ir.Const || len(values) != len(s.data):
		return diag.Errorf(CodeBuffer, "buffer "+name,
			"%d values for a %v of %d elements, want as many for an input, an output, a cache or an activation",
			len(values), s.buf.Kind, len(s.data))
	}
	s.set(values)
	return nil
}

// Logits returns the logits of the last step or pass, row by row, or nil if the program has none. Those of several
// ranks, each of which has as many, stand side by side. The slice is valid until the next one.
func (vm *VM) Logits() []float32 {
	shares := vm.mem.byRole[ir.RoleLogits]
	switch len(shares) {
	case 0:
		return nil
	case 1:
		return shares[0].data
	}
	rows := vm.flat.Pass.NumTokens()
	each := len(shares[0].data) / rows
	out := make([]float32, 0, len(shares)*len(shares[0].data))
	for t := range rows {
		for _, s := range shares {
			out = append(out, s.data[t*each:(t+1)*each]...)
		}
	}
	return out
}

// Next returns the token that the last step chose, or -1 if the program chooses none.
func (vm *VM) Next() int {
	if chosen := vm.Chosen(); len(chosen) > 0 {
		return chosen[0]
	}
	return -1
}

// Chosen returns the token that the last pass chose after each of its tokens, or nothing if the program chooses none.
// All ranks choose the same.
func (vm *VM) Chosen() (tokens []int) {
	for _, s := range vm.mem.byRole[ir.RoleNext] {
		for _, f := range s.data {
			tokens = append(tokens, int(toInt(f)))
		}
		break
	}
	return tokens
}

// Touched returns the accesses of a task in the last step, in order, if the VM records them. The slice is valid until
// the next step.
func (vm *VM) Touched(task int) []Touch {
	if vm.touched == nil {
		return nil
	}
	return vm.touched[task]
}
