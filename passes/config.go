package passes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// A knob is an integer of ScheduleConfig.Tiling.
type knob struct {
	group, name string
	def         int
	accept      func(n int) bool
	want        string
}

func between(lo, hi int) (func(int) bool, string) {
	return func(n int) bool { return lo <= n && n <= hi }, fmt.Sprintf("%d to %d", lo, hi)
}

func oneOf(values ...int) (func(int) bool, string) {
	return func(n int) bool { return slices.Contains(values, n) }, fmt.Sprintf("one of %v", values)
}

func newKnob(group, name string, def int, accept func(int) bool, want string) knob {
	return knob{group, name, def, accept, want}
}

// knobs are all there are. tiling.ring.in_flight is accepted as well, as another name of pipelining_depth.
var knobs = func() []knob {
	rows := func(n int) bool { return n >= 8 && n <= 256 && n%8 == 0 }
	anyDepth, depthWant := between(0, 64)
	anyPace, paceWant := between(0, maxPace)
	stocked, stockedWant := between(1, maxInFlight)
	flag, flagWant := oneOf(0, 1)
	copies, copiesWant := oneOf(1, 2, 4)
	position, positionWant := between(0, 1<<30)
	splits, splitsWant := between(1, 32) // lanes of a warp, which combine them
	warps, warpsWant := oneOf(8, 4, 2, 1)
	all := []knob{
		newKnob("ring", "chunk_bytes", defaultChunk, ir.IsChunk, ir.ChunkSizes),
		newKnob("ring", "run_ahead", defaultRunAhead, anyDepth, depthWant),
		newKnob("ring", "pace", defaultPace, anyPace, paceWant),
		newKnob("ring", "stock", 0, anyDepth, depthWant),
		newKnob("ring", "in_flight_stocked", 1, stocked, stockedWant),
		newKnob("exchange", "flagged", 1, flag, flagWant),
		newKnob("exchange", "copies", 2, copies, copiesWant),
		newKnob("attention", "split_from", 512, position, positionWant),
		newKnob("attention", "max_splits", 16, splits, splitsWant),
		newKnob("gemv", "rows", 8, rows, "a multiple of 8 from 8 to 256"),
		newKnob("loop", "barrier", 0, flag, flagWant),
		newKnob("loop", "roll", 1, flag, flagWant),
	}
	for _, stage := range []string{"qkv", "o", "gate_up", "down", "lm_head"} {
		all = append(all, newKnob("warps", stage, 8, warps, warpsWant))
	}
	return all
}()

const (
	blockThreads     = 288 // 8 consumer warps and 1 producer warp; the prefetcher of ring.run_ahead is a warp on top
	defaultInFlight  = 3
	defaultRunAhead  = 8
	defaultPace      = 800 // cycles
	maxPace          = 1 << 16
	maxInFlight      = 16
	defaultPages     = "graph_color"
	defaultPolicy    = "load_balance"
	configPos        = "config"
	pipeliningAlias  = "in_flight"
	aliasGroup       = "ring"
	policyContiguous = "contiguous"
	policyBalance    = "load_balance"
	policyRoundRobin = "round_robin"
)

// normalise checks a configuration and returns it with every knob stated.
func normalise(c ir.ScheduleConfig, target *ir.Target) (ir.ScheduleConfig, error) {
	var diags diag.List
	out := ir.ScheduleConfig{Tiling: map[string]map[string]int{}}
	for _, k := range knobs {
		n := c.Knob(k.group, k.name, k.def)
		if !k.accept(n) {
			diags.Add(diag.Errorf(codeKnobRange, configPos+": tiling."+k.group+"."+k.name, "%d; want %s", n, k.want))
		}
		if out.Tiling[k.group] == nil {
			out.Tiling[k.group] = map[string]int{}
		}
		out.Tiling[k.group][k.name] = n
	}
	diags.Add(unknownKnobs(&c)...)
	depth, bad := depthOf(&c)
	diags.Add(bad)
	diags.Add(idleKnobs(&out, depth, target)...)
	out.PipeliningDepth = depth
	out.FusionGrouping, bad = fusionOf(c.FusionGrouping)
	diags.Add(bad)
	out.SMAssignment, bad = assignmentOf(c.SMAssignment, target)
	diags.Add(bad)
	out.PageAllocation = c.PageAllocation
	switch c.PageAllocation {
	case "":
		out.PageAllocation = defaultPages
	case "graph_color", "linear", "none":
	default:
		diags.Add(diag.Errorf(codePages, configPos+": page_allocation", "%q is not known; %s", c.PageAllocation,
			diag.Guess(c.PageAllocation, []string{"graph_color", "linear", "none"},
				"want graph_color, linear or none")))
	}
	out.ThreadsPerBlock = blockThreads
	if c.ThreadsPerBlock != 0 && c.ThreadsPerBlock != blockThreads {
		diags.Add(diag.Errorf(codeThreads, configPos+": threads_per_block",
			"%d; the kernel has 8 consumer warps and 1 producer warp, so want %d or nothing", c.ThreadsPerBlock,
			blockThreads))
	}
	out.SMemBytesPerBlock, bad = smemOf(&c, target, depth, out.Knob("ring", "chunk_bytes", 0))
	diags.Add(bad)
	return out, diags.Err()
}

func unknownKnobs(c *ir.ScheduleConfig) []*diag.Diagnostic {
	var out []*diag.Diagnostic
	for _, group := range slices.Sorted(maps.Keys(c.Tiling)) {
		for _, name := range slices.Sorted(maps.Keys(c.Tiling[group])) {
			known := slices.ContainsFunc(knobs, func(k knob) bool { return k.group == group && k.name == name })
			if !known && (group != aliasGroup || name != pipeliningAlias) {
				out = append(out, diag.Errorf(codeKnob, configPos+": tiling."+group+"."+name,
					"there is no such knob; %s", diag.Guess(group+"."+name, knobNames(),
						"there are "+strings.Join(knobNames(), ", "))))
			}
		}
	}
	return out
}

// idleKnobs names the knobs of the ring that something else switches off. Those out of range have been refused before.
func idleKnobs(c *ir.ScheduleConfig, depth int, target *ir.Target) []*diag.Diagnostic {
	var out []*diag.Diagnostic
	idle := func(name, format string, args ...any) {
		out = append(out, diag.Errorf(codeKnob, configPos+": tiling.ring."+name, "%d would have no effect: "+format,
			append([]any{c.Knob("ring", name, 0)}, args...)...))
	}
	bulk := target == nil || target.BulkCopy
	stock, stocked := c.Knob("ring", "stock", 0), c.Knob("ring", "in_flight_stocked", 1)
	switch pace := c.Knob("ring", "pace", defaultPace); {
	case pace == defaultPace || pace < 0 || pace > maxPace:
	case !bulk:
		idle("pace", "%s has no bulk copies, and nothing runs ahead without them; want %d", target.Name, defaultPace)
	case c.Knob("ring", "run_ahead", defaultRunAhead) == 0:
		idle("pace", "ring.run_ahead is 0; want ring.run_ahead above 0, or %d", defaultPace)
	}
	switch {
	case stock > 0 && !bulk:
		idle("stock", "%s has no bulk copies, which alone are counted one by one; want 0", target.Name)
	case stock > 0 && depth == 1:
		idle("stock", "one chunk is in flight anyway; want more by ring.in_flight, or 0")
	case stock > 0 && stocked >= depth && stocked <= maxInFlight:
		idle("in_flight_stocked", "%d chunks are in flight anyway; want less, or ring.stock 0", depth)
	case stock == 0 && stocked > 1 && stocked <= maxInFlight:
		idle("in_flight_stocked", "ring.stock is 0; want ring.stock above 0, or 1")
	}
	return out
}

func knobNames() []string {
	names := []string{aliasGroup + "." + pipeliningAlias}
	for _, k := range knobs {
		names = append(names, k.group+"."+k.name)
	}
	slices.Sort(names)
	return names
}

// depthOf reads the two spellings of the number of chunks in flight. What is normalised states pipelining_depth alone,
// so that an edit of a printed program cannot contradict itself.
func depthOf(c *ir.ScheduleConfig) (int, *diag.Diagnostic) {
	depth := c.PipeliningDepth
	alias, given := c.Tiling[aliasGroup][pipeliningAlias]
	switch {
	case given && depth != 0 && depth != alias:
		return depth, diag.Errorf(codeDepth, configPos+": pipelining_depth",
			"%d, but tiling.ring.in_flight is %d; give one of them", depth, alias)
	case given:
		depth = alias
	case depth == 0:
		depth = defaultInFlight
	}
	if depth < 1 || depth > maxInFlight {
		return depth, diag.Errorf(codeKnobRange, configPos+": pipelining_depth", "%d; want 1 to %d chunks in flight",
			depth, maxInFlight)
	}
	return depth, nil
}

func smemOf(c *ir.ScheduleConfig, target *ir.Target, depth, chunk int) (int, *diag.Diagnostic) {
	limit := c.SMemBytesPerBlock
	if target != nil {
		limit = target.SMemOptin
	}
	smem := c.SMemBytesPerBlock
	if smem == 0 {
		smem = limit
	}
	pos := configPos + ": smem_bytes_per_block"
	switch need := (depth + 1) * chunk; {
	case smem < 0 || smem > limit:
		return smem, diag.Errorf(codeSMem, pos,
			"%d; want 1 to %d bytes, which is what a block of the target has, or 0 for all of them", smem, limit)
	case depth < 1 || depth > maxInFlight || !ir.IsChunk(chunk): // refused for itself
	case smem < need && (target != nil || smem != 0):
		want := "want fewer chunks in flight, or smaller ones"
		if need <= limit {
			want = fmt.Sprintf("want at least %d, or fewer or smaller chunks", need)
		}
		return smem, diag.Errorf(codeSMem, pos, "%d bytes cannot hold a ring of %d chunks of %d bytes; %s", smem,
			depth+1, chunk, want)
	}
	return smem, nil
}
