package simulate

import "fmt"

// Kind is the kind of a hazard.
type Kind string

const (
	Malformed     Kind = "malformed"      // names or indices that mean nothing
	Refused       Kind = "refused"        // the reference code does not run it
	Outside       Kind = "outside"        // bytes beyond the page
	ReadOnly      Kind = "read-only"      // a write to a weight, a constant or an input
	Aliased       Kind = "aliased"        // operands of one op overlap
	Owner         Kind = "owner"          // on-chip memory of another SM
	Capacity      Kind = "capacity"       // more on-chip memory than there is
	Index         Kind = "index"          // a row that the table does not have
	OutputGap     Kind = "output gap"     // bytes of an output that no task writes
	Race          Kind = "race"           // conflicting accesses, of which the later does not know of the earlier
	Undefined     Kind = "undefined"      // a read of what nobody wrote, in this step where that matters
	Clobbered     Kind = "clobbered"      // a read of what was written through another buffer
	WhichProducer Kind = "which producer" // one read, different writers in different schedules
	Stuck         Kind = "stuck"          // tasks that never finish
)

// A Hazard is an error that was found. One that depends on the order of tasks has a script, made by [Hazard.Script];
// one that occurs in every order has none.
type Hazard struct {
	Kind   Kind
	Where  string // what is at fault: "task NAME", "buffer NAME" and so on; "": the program
	Detail string
	Runs   []Run   // the step in which it goes wrong, or that and the one before it
	Seed   *uint64 // of the first of the sampled orders that show it; nil: it was found otherwise
	Orders int     // how many of them from that seed on: one, or two that differ; 0: it was found otherwise
	Other  *Hazard // of WhichProducer: the order in which the poll finds the other writer; nil: not known

	m           *machine // nil: no order of tasks matters
	path        []event
	task, other int32          // the task, and the one that it conflicts with, or -1
	late        int32          // a task that has not run when it should have, or -1
	why         []reason       // of Stuck
	always      bool           // of Stuck: no order avoids it
	lost        []int32        // of Stuck, if some order does: tasks that keep words from being polled
	seen        map[look]int32 // what the poll of WhichProducer has found in another order
}

// At returns the positions at which it goes wrong: of each step, those of all sequences.
func (h *Hazard) At() [][]int {
	var out [][]int
	for _, r := range h.Runs {
		out = append(out, r.at())
	}
	return out
}

func (h *Hazard) String() string { return fmt.Sprintf("%s: %s: %s", h.Where, h.Kind, h.Detail) }

// A Verdict is the result of an oracle.
type Verdict struct {
	Hazard   *Hazard // the first one, or nil
	Complete bool    // every order at every position was looked at, or a hazard was found
	Explored bool    // every order was run, at the positions at which any was, and nothing went wrong
	States   int     // explored, of the programs that are small enough
	Orders   int     // run, of the others
	Tasks    int     // of the largest step, or of two steps in a row
	At       [][]int // the positions at which it was run, each time those of all sequences
	// Limit is why not all was looked at that was asked for: the program is too large, or the caller has stopped.
	Limit error
}

// Unsafe reports whether an order with a hazard was found.
func (v Verdict) Unsafe() bool { return v.Hazard != nil }
