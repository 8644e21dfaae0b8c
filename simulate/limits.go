package simulate

import (
	"errors"
	"fmt"

	"amkc/refvm"
)

// What a machine may consist of. Numbers in a program are cheap to write; these bound what they make the machine
// allocate, to less than 1 GB. Llama-3.1-8B on 132 SMs, two steps in a row at position 4,095, has 73 % of the polls and
// less than a fifth of all else.
const (
	maxRegions = 1 << 20 // that tasks touch
	maxCells   = 1 << 20
	maxTouched = 1 << 25   // cells of all regions
	maxPolls   = 1 << 23   // and answers to them, and messages
	maxNoted   = 192 << 20 // bytes of what all tasks, and all counters, know
	maxBox     = 1 << 24   // elements of the part of a buffer that a task looks at
	maxBoxes   = 1 << 26   // and of the parts of all buffers, but for weights, which share theirs
	maxScratch = 1 << 26   // elements that a task computes with besides those
	maxTouches = 1 << 21   // reads and writes of a task
	maxIndices = 1 << 21   // row indices that tasks read and write, one by one
	maxKnown   = 1 << 22   // stretches of memory that are remembered of tasks
	maxRuns    = 1 << 19   // stretches of elements side by side that a task looks at
	// bytes of the states that are held while others are explored, and how few states are not worth the while
	maxForked = 128 << 20
	minStates = 64
)

// errTooLarge says that a program asks for more than the machine may consist of.
type errTooLarge struct{ what string }

func (e *errTooLarge) Error() string { return e.what }

func tooLarge(format string, args ...any) error { return &errTooLarge{fmt.Sprintf(format, args...)} }

// ErrStopped is the error after Options.Stop was closed.
var ErrStopped = errors.New("stopped")

// stopped reports whether the caller has cancelled.
func (o *Options) stopped() bool {
	select {
	case <-o.Stop:
		return true
	default:
		return false
	}
}

// outOfBounds is the error of a pass of the reference code that ended because of its bounds; nil: something else ended
// it.
func outOfBounds(err error) error {
	var bound *refvm.BoundError
	switch {
	case errors.Is(err, refvm.ErrStopped):
		return ErrStopped
	case errors.As(err, &bound):
		return tooLarge("%v", bound)
	}
	return nil
}
