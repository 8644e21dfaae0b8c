package ir

// ScheduleConfig is the point of the search space that produced a program. Its seven fields are those of the AMK IR; the
// knobs that matter to amkc live under Tiling. ARCHITECTURE.md says what each one changes.
type ScheduleConfig struct {
	Tiling            map[string]map[string]int `json:"tiling"`
	FusionGrouping    [][]string                `json:"fusion_grouping"`
	SMAssignment      Assignment                `json:"sm_assignment"`
	PipeliningDepth   int                       `json:"pipelining_depth"` // weight chunks in flight per SM; 0: the default
	PageAllocation    string                    `json:"page_allocation"`  // graph_color, linear or none
	ThreadsPerBlock   int                       `json:"threads_per_block"`
	SMemBytesPerBlock int                       `json:"smem_bytes_per_block"` // 0: all that the target has
}

// Assignment is a policy by name, or an explicit task -> SM map.
type Assignment struct {
	Policy   string         // contiguous, load_balance or round_robin; empty when Explicit is set
	Explicit map[string]int // stage name -> rotation, or task name -> SM
}

// Knob returns Tiling[group][name], or def when it is absent.
func (c *ScheduleConfig) Knob(group, name string, def int) int {
	if v, ok := c.Tiling[group][name]; ok {
		return v
	}
	return def
}
