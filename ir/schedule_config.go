package ir

// ScheduleConfig is the point of the search space that produced a program. Its fields are among those of the AMK IR;
// most knobs live under Tiling. It is what a file says: package knobs has the table of them, and gives their values.
type ScheduleConfig struct {
	Tiling       map[string]map[string]int `json:"tiling"`
	SMAssignment Assignment                `json:"sm_assignment"`
	// fields that hold a knob of their own; 0 and the empty string are the default, as which a file does not state a
	// pipelining_depth of 0
	PipeliningDepth   int    `json:"pipelining_depth"`
	PageAllocation    string `json:"page_allocation"`
	SMemBytesPerBlock int    `json:"smem_bytes_per_block"`
}

// Assignment is a policy by name, or a rotation for each stage that it names: how many SMs its spans are moved on.
// Single tasks have no SM of their own here. The kernel computes an SM's span from the rotation, and the weights of a
// span are in one piece.
type Assignment struct {
	Policy    string         // contiguous, load_balance or round_robin; empty when Rotations is set
	Rotations map[string]int // stage name without its layer -> rotation
}
