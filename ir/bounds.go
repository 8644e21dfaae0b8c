package ir

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// A Bound is the interval of accepted values of an integer from an input, both ends included.
type Bound struct{ Lo, Hi int }

// Has reports whether n is in the interval.
func (b Bound) Has(n int) bool { return b.Lo <= n && n <= b.Hi }

func (b Bound) String() string { return fmt.Sprintf("%d to %d", b.Lo, b.Hi) }

// Bounds of the integers of a program, by entity and key. The emitted code holds sizes and positions as int and bytes
// as size_t, or unsigned on chip: what is within bounds fits its type, and so do the sums and products that the code
// makes of the facts of a model, but for those that codegen checks because the sizes of a cache or an exchange are in
// them. Importers hold config.json to the same bounds. docs/ir.md has this table.
var bounds = map[string]map[string]Bound{
	"model": { // 0: not known
		"layers": {0, 1 << 9}, "hidden": {0, 1 << 20}, "intermediate": {0, 1 << 22}, "heads": {0, 1 << 14},
		"kv_heads": {0, 1 << 14}, "experts": {0, 1 << 12}, "per_token": {0, 1 << 8},
		"shared": {0, 1 << 22}, "shared_gates": {0, 1}, "channels": {0, 1 << 20},
		"state_heads": {0, 1 << 16}, "state_key_heads": {0, 1 << 16}, "state_keys": {0, 1 << 12},
		"state_values": {0, 1 << 12}, "taps": {0, 1 << 10},
		"head_dim": {0, 1 << 10}, "vocab": {0, 1 << 24}, "max_seq": {0, math.MaxInt32},
	},
	"pass": {"sequences": {0, MaxSequences}, "rows": {0, MaxRows}},
	"target": {"sms": {1, MaxTargetSMs}, "smem_optin": {0, 1 << 24}, "l2_bytes": {0, maxBytes},
		"hbm_bytes": {0, maxBytes}},
	"config": {
		"tiling": {0, math.MaxInt32}, "sm_assignment": {0, MaxSMs - 1}, // each value of these two
		"pipelining_depth": {0, math.MaxInt32}, "smem_bytes_per_block": {0, 1 << 24},
	},
}

// ModelBound returns the bound of a fact of the model by its key in the model line, such as "hidden".
func ModelBound(key string) Bound { return bounds["model"][key] }

// A Size is an integer of the model with its key.
type Size struct {
	Key   string
	Value int
}

// Sizes returns the integers of the model in the order of the model line.
func (m *Model) Sizes() []Size {
	var out []Size
	for _, f := range m.fields("arch") {
		if n, ok := f.ptr.(*int); ok {
			out = append(out, Size{f.key, *n})
		}
	}
	return out
}

// Bounds of a target's bandwidth, in 10^9 bytes per second; 0 is not known. It divides in predictions.
const minGBs, maxGBs = 1e-3, 1e6

// The least and the largest magnitude of a float32 that every unit of a GPU computes with. Smaller ones are
// subnormal, and are taken for 0 where code is compiled to flush them.
const (
	MinSingle = 0x1p-126
	MaxSingle = math.MaxFloat32
)

// What is accepted, for messages: Singles are the positive normal numbers of float32, and SingleWant is what IsSingle
// accepts.
const (
	Singles    = "1.1754944e-38 to 3.4028235e+38, the normal float32 numbers"
	SingleWant = "0, or a magnitude of " + Singles
)

// IsSingle reports whether a number can enter the emitted code: it is 0, or a finite normal number when it is rounded
// to float32. The literal that is emitted then reads back as that number.
func IsSingle(v float64) bool {
	abs := math.Abs(float64(float32(v)))
	return v == 0 || abs >= MinSingle && abs <= MaxSingle
}

// numbers checks the fields of an entity. Every integer has a bound.
func (c *checker) numbers(entity, pos string, fields []field) {
	for _, f := range fields {
		if n, ok := f.ptr.(*int); ok {
			c.bounded(pos, f.key, *n, bounds[entity][f.key])
		}
	}
}

func (c *checker) bounded(pos, key string, n int, b Bound) {
	if !b.Has(n) {
		c.fail(CodeRange, pos, "%s %d, want %v", key, n, b)
	}
}

func (c *checker) config() {
	s, of := &c.p.Config, bounds["config"]
	c.numbers("config", "config", s.integers())
	for _, group := range slices.Sorted(maps.Keys(s.Tiling)) {
		for _, name := range slices.Sorted(maps.Keys(s.Tiling[group])) {
			c.bounded("config", "tiling."+clip(group)+"."+clip(name), s.Tiling[group][name], of["tiling"])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.SMAssignment.Rotations)) {
		c.bounded("config", "sm_assignment."+clip(name), s.SMAssignment.Rotations[name], of["sm_assignment"])
	}
}

// integers are the fields of the configuration that are plain integers.
func (s *ScheduleConfig) integers() []field {
	return []field{
		{"pipelining_depth", &s.PipeliningDepth}, {"smem_bytes_per_block", &s.SMemBytesPerBlock},
	}
}
