package ir

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"amkc/ir/diag"
)

// append prints the canonical encoding: one line, the fields in the order of the struct, the keys of maps sorted.
// pipelining_depth, of which 0 is not a value, is left out where it is not stated.
func (c *ScheduleConfig) append(dst []byte) []byte {
	dst = append(dst, `{"tiling":`...)
	dst = appendMap(dst, c.Tiling, func(dst []byte,
		group map[string]int) []byte {
		return appendMap(dst, group, appendInt)
	})
	dst = append(dst, `,"sm_assignment":`...)
	if c.SMAssignment.Rotations != nil {
		dst = appendMap(dst, c.SMAssignment.Rotations, appendInt)
	} else {
		dst = appendString(dst, c.SMAssignment.Policy)
	}
	if c.PipeliningDepth != 0 {
		dst = appendInt(append(dst, `,"pipelining_depth":`...), c.PipeliningDepth)
	}
	dst = appendString(append(dst, `,"page_allocation":`...), c.PageAllocation)
	dst = appendInt(append(dst, `,"smem_bytes_per_block":`...), c.SMemBytesPerBlock)
	return append(dst, '}')
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}

// appendNames prints an array of strings.
func appendNames(dst []byte, names []string) []byte {
	dst = append(dst, '[')
	for i, n := range names {
		dst = appendString(appendComma(dst, i), n)
	}
	return append(dst, ']')
}

// appendMap prints an object, its keys sorted.
func appendMap[V any](dst []byte, m map[string]V, value func([]byte, V) []byte) []byte {
	dst = append(dst, '{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		dst = value(append(appendString(appendComma(dst, i), k), ':'), m[k])
	}
	return append(dst, '}')
}

// MarshalJSON returns the canonical encoding.
func (c ScheduleConfig) MarshalJSON() ([]byte, error) { return c.append(nil), nil }

// UnmarshalJSON is ParseConfig; the error is a diag.List.
func (c *ScheduleConfig) UnmarshalJSON(data []byte) error {
	parsed, diags := ParseConfig(data, "config")
	*c = parsed
	return diags.Err()
}

// ParseConfig reads a configuration. Omitted fields are zero, and unknown fields are errors. Package knobs and the
// passes check the groups and knobs of `tiling`, and the values of fields.
func ParseConfig(data []byte, file string) (ScheduleConfig, diag.List) {
	s := string(data)
	return parseConfig(s, 0, filePos(file, s))
}

// parseConfig reads the configuration that is the rest of s from off on.
func parseConfig(s string, off int, pos func(int) string) (ScheduleConfig, diag.List) {
	r := newJSONReader(s, off, pos)
	c := r.config()
	r.end()
	return c, r.diags
}

// configFields are the fields of a configuration, as config reads them.
var configFields = []string{"tiling", "sm_assignment", "pipelining_depth", "page_allocation",
	"smem_bytes_per_block"}

func (r *jsonReader) config() ScheduleConfig {
	var c ScheduleConfig
	fields := []field{{"page_allocation", &c.PageAllocation}, {"smem_bytes_per_block", &c.SMemBytesPerBlock}}
	r.object("configuration", nil, func(key string) bool {
		switch key {
		case "tiling":
			r.object(key, nil, func(group string) bool {
				if c.Tiling == nil {
					c.Tiling = map[string]map[string]int{}
				}
				r.checkName(r.i, "a group of tiling", group)
				c.Tiling[group] = r.ints("tiling." + group)
				return true
			})
		case "sm_assignment":
			switch r.peek() {
			case '"':
				c.SMAssignment.Policy = r.name(key)
			case '{':
				c.SMAssignment.Rotations = r.ints(key)
			default:
				r.wrong(key, "a policy's name, or an object of rotations by stage")
			}
		case "pipelining_depth":
			c.PipeliningDepth = r.stated(key, "would be no prefetch, which the kernel does not have")
		default:
			if !r.field(fields, key) {
				r.advice = "; " + diag.Guess(key, configFields, "there are "+strings.Join(configFields, ", "))
				return false
			}
		}
		return true
	})
	return c
}

// stated reads an integer of which 0 is not a value: in memory that is one that is not stated.
func (r *jsonReader) stated(what, why string) int {
	r.peek()
	at, before := r.i, len(r.diags)
	n := r.int(what)
	if n == 0 && len(r.diags) == before {
		r.errorf(at, "%s: 0 %s; want 1 or more, or leave the field out for the default", what, why)
	}
	return n
}

// ints reads an object of integers.
func (r *jsonReader) ints(what string) map[string]int {
	m := map[string]int{}
	r.object(what, nil, func(key string) bool {
		r.checkName(r.i, "a key of "+what, key)
		m[key] = r.int(key)
		return true
	})
	return m
}

// names reads an array of names, at most as many as limit says.
func (r *jsonReader) names(what string, limit int) []string {
	out := []string{}
	r.arrayOf(what, limit, func() { out = append(out, r.name(what)) })
	return out
}
