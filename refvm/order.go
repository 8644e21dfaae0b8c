package refvm

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"amkc/ir/diag"
)

// OrderKind names a way to choose the next task among those that may run. A task may run when every wait is satisfied
// and every task before it in its SM's queue is done. A step's result is the same in every order.
type OrderKind int

const (
	Parallel OrderKind = iota // program order, tasks spread over the workers
	InOrder                   // the first in the program: the queues merged
	Random                    // by a lot drawn for each task from Seed
	Latest                    // the last in the program: what nobody waits for yet
	Starve                    // tasks of SM only when no other may run
)

// Order is an order of the tasks of a step. The zero Order is Parallel.
type Order struct {
	Kind OrderKind
	Seed uint64 // of Random
	SM   int    // of Starve
}

// less reports whether task i goes before task j when both may run.
func (o Order) less(vm *VM, i, j int32) bool {
	switch o.Kind {
	case Random:
		return cmp.Or(cmp.Compare(lot(o.Seed, i), lot(o.Seed, j)), cmp.Compare(i, j)) < 0
	case Latest:
		return i > j
	case Starve:
		if a, b := vm.tasks[i].src.SM == o.SM, vm.tasks[j].src.SM == o.SM; a != b {
			return b
		}
	}
	return i < j
}

// lot mixes a seed and a task number (the finaliser of splitmix64, Steele, Lea and Flood 2014).
func lot(seed uint64, i int32) uint64 {
	z := seed + (uint64(i)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// ready is the heap of tasks that may run.
type ready struct {
	vm    *VM
	order Order
	tasks []int32
}

func (r *ready) Len() int           { return len(r.tasks) }
func (r *ready) Less(i, j int) bool { return r.order.less(r.vm, r.tasks[i], r.tasks[j]) }
func (r *ready) Swap(i, j int)      { r.tasks[i], r.tasks[j] = r.tasks[j], r.tasks[i] }
func (r *ready) Push(x any)         { r.tasks = append(r.tasks, x.(int32)) }
func (r *ready) Pop() any {
	n := len(r.tasks) - 1
	x := r.tasks[n]
	r.tasks = r.tasks[:n]
	return x
}

// A waiter is a task that waits for a counter to reach a threshold.
type waiter struct {
	task      int32
	threshold int
}

// schedule plays the counters and returns all tasks in the given order. What runs when depends on no data, so that a
// whole step can be ordered ahead of it.
func (vm *VM) schedule(o Order) ([]int32, error) {
	count := make([]int, len(vm.counters))
	waiters := make([][]waiter, len(vm.counters)) // by counter, the smallest threshold first
	blocked := make([]int, len(vm.tasks))         // by task: waits that are not met, and its queue
	next := make([]int32, len(vm.tasks))          // in the queue, or -1
	r := &ready{vm: vm, order: o}
	for c := range count {
		count[c] = vm.flat.Counters[c].Init
	}
	for i := range vm.tasks {
		t := &vm.tasks[i]
		next[i] = -1
		if t.after >= 0 {
			next[t.after] = int32(i)
			blocked[i]++
		}
		for _, w := range t.src.Waits {
			if count[w.Counter] < w.Threshold {
				waiters[w.Counter] = append(waiters[w.Counter], waiter{int32(i), w.Threshold})
				blocked[i]++
			}
		}
		if blocked[i] == 0 {
			r.tasks = append(r.tasks, int32(i))
		}
	}
	for _, ws := range waiters {
		slices.SortStableFunc(ws, func(a, b waiter) int { return cmp.Compare(a.threshold, b.threshold) })
	}
	heap.Init(r)
	free := func(i int32) {
		if blocked[i]--; blocked[i] == 0 {
			heap.Push(r, i)
		}
	}
	out := make([]int32, 0, len(vm.tasks))
	for r.Len() > 0 {
		i := heap.Pop(r).(int32)
		out = append(out, i)
		if n := next[i]; n >= 0 {
			free(n)
		}
		if c := vm.tasks[i].src.Signal; c >= 0 {
			for count[c]++; len(waiters[c]) > 0 && waiters[c][0].threshold <= count[c]; waiters[c] = waiters[c][1:] {
				free(waiters[c][0].task)
			}
		}
	}
	if len(out) < len(vm.tasks) {
		return nil, vm.stuck(blocked, count)
	}
	return out, nil
}

// stuck names the first task whose waits are never met. There is one: a queue stops only at such a task.
func (vm *VM) stuck(blocked, count []int) error {
	err := diag.Errorf(CodeStuck, "variant "+vm.flat.Name, "some tasks never run")
	for i := range vm.tasks {
		for _, w := range vm.tasks[i].src.Waits {
			if blocked[i] > 0 && count[w.Counter] < w.Threshold {
				return err.With(fmt.Sprintf("%s waits for counter %s to reach %d, it stays at %d", vm.tasks[i].pos(),
					vm.flat.Counters[w.Counter].Name, w.Threshold, count[w.Counter]))
			}
		}
	}
	return err
}
