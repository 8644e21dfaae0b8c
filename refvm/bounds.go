package refvm

import (
	"errors"
	"fmt"
)

// A program may ask one task for any number of products, and for any number of elements between its ops. Who runs what
// others have written bounds both: it stops a pass in the middle of an op, and says how much a task may hold.

// Bounds are the limits of a pass. The zero value means no limits.
type Bounds struct {
	Stop    <-chan struct{} // closed when the caller wants no more: the pass ends with ErrStopped; nil: never
	Scratch int             // elements that a task may compute with at once, besides its buffers; 0: any number
	Touches int             // that are noted of a task, under Options.Record; 0: any number
}

// ErrStopped is the error of a pass whose Bounds.Stop was closed.
var ErrStopped = errors.New("stopped")

// A BoundError is the error of a pass with a task that needs more than its Bounds allow.
type BoundError struct{ What string }

func (e *BoundError) Error() string { return e.What }

// ended is what a worker panics with when a bound ends its task: kernels have no errors to pass on where they compute.
type ended struct{ err error }

// reason returns the error of a task that a bound has ended, given what was recovered. Any other panic goes on.
func reason(recovered any) error {
	if e, ok := recovered.(ended); ok {
		return e.err
	}
	panic(recovered)
}

// lookEvery is how much work is done between two looks at Stop: about a millisecond of products, and less than a tenth
// of a second of anything else.
const lookEvery = 1 << 20

// spend notes work that is about to be done, in elements or products, and ends the task if the caller wants no more. A
// kernel calls it for whatever is not linear in its operands and its result: reading and making these is counted.
func (w *worker) spend(n int) {
	if w.spent += n; w.spent >= lookEvery {
		w.look()
	}
}

func (w *worker) look() {
	w.spent = 0
	select {
	case <-w.bounds.Stop:
		panic(ended{ErrStopped})
	default:
	}
}

// claim counts elements that the current op makes room for.
func (w *worker) claim(n int) {
	w.spend(n)
	if w.claimed += n; w.bounds.Scratch > 0 && w.claimed > w.bounds.Scratch {
		panic(ended{&BoundError{fmt.Sprintf("%v and what is left of the ops before it take more than %d elements "+
			"besides the buffers", w.task.ops[w.op].src.Code, w.bounds.Scratch)}})
	}
}

// claimInts is claim of a list of integers: they have twice the size, and a list that grows leaves a copy behind.
func (w *worker) claimInts(n int) { w.claim(4 * n) }

// piece returns where the piece ends that begins with element lo of n, and counts it: for functions that take long for
// each element.
func (w *worker) piece(lo, n int) int {
	hi := min(n, lo+1<<14)
	w.spend(hi - lo)
	return hi
}
