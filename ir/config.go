package ir

// ScheduleConfig is the point of the search space that produced a program. Its seven fields are those of the AMK IR;
// the knobs that matter to amkc live under Tiling. ARCHITECTURE.md says what each one changes.
type ScheduleConfig struct {
	Tiling         map[string]map[string]int `json:"tiling"`
	FusionGrouping [][]string                `json:"fusion_grouping"`
	SMAssignment   Assignment                `json:"sm_assignment"`
	// weight chunks in flight per SM; 0: the default
	PipeliningDepth   int    `json:"pipelining_depth"`
	PageAllocation    string `json:"page_allocation"` // graph_color, linear or none
	ThreadsPerBlock   int    `json:"threads_per_block"`
	SMemBytesPerBlock int    `json:"smem_bytes_per_block"` // 0: all that the target has
}

// Assignment is a policy by name, or a rotation for each stage that it names: how many SMs its spans are moved on.
// Single tasks have no SM of their own here. The kernel computes an SM's span from the rotation, and the weights of a
// span lie in one piece.
type Assignment struct {
	Policy    string         // contiguous, load_balance or round_robin; empty when Rotations is set
	Rotations map[string]int // stage name without its layer -> rotation
}

// Knob returns Tiling[group][name], or def when it is absent.
func (c *ScheduleConfig) Knob(group, name string, def int) int {
	if v, ok := c.Tiling[group][name]; ok {
		return v
	}
	return def
}
