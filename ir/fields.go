package ir

import (
	"slices"
	"strconv"
)

// A field is a keyed value of an entity: its key in both forms, and a pointer to an int, bool, float64, string or
// DType. The tables below give both forms one order and one set of keys.
type field struct {
	key string
	ptr any
}

// fields of a model; the text form shortens the key of the architecture. dtype is the type of weights, and of what
// has no key of its own.
func (m *Model) fields(archKey string) []field {
	return slices.Concat([]field{
		{archKey, &m.Architecture}, {"dtype", &m.Weights}, {"activations", &m.Activations}, {"cache", &m.Cache},
		{"layers", &m.Layers}, {"hidden", &m.Hidden}, {"intermediate", &m.Intermediate},
		{"experts", &m.Experts}, {"per_token", &m.PerToken}, {"shared", &m.Shared}, {"shared_gates", &m.SharedGates},
	}, m.Mixer.fields(), []field{
		{"heads", &m.Heads}, {"kv_heads", &m.KVHeads}, {"head_dim", &m.HeadDim},
		{"vocab", &m.Vocab}, {"max_seq", &m.MaxSeq}, {"tied", &m.Tied}, {"eps", &m.Eps},
	})
}

// printed are the fields that the forms show: types that are those of the weights go without saying.
func (m *Model) printed(archKey string) []field {
	return slices.DeleteFunc(stated(m.fields(archKey)), func(f field) bool {
		d, ok := f.ptr.(*DType)
		return ok && f.key != "dtype" && *d == m.Weights
	})
}

// unstated is a type that a reader has not met yet.
const unstated DType = -1

// reading returns the fields for a reader, and what to call when it has read them.
func (m *Model) reading(archKey string) (fields []field, done func()) {
	m.Activations, m.Cache = unstated, unstated
	return m.fields(archKey), func() {
		for _, d := range []*DType{&m.Activations, &m.Cache} {
			if *d == unstated {
				*d = m.Weights
			}
		}
	}
}

func (t *Target) fields() []field {
	return []field{
		{"arch", &t.Arch}, {"sms", &t.SMs}, {"smem_optin", &t.SMemOptin}, {"l2_bytes", &t.L2Bytes},
		{"hbm_bytes", &t.HBMBytes}, {"hbm_gbs", &t.HBMGBs}, {"bulk_copy", &t.BulkCopy}, {"async_copy", &t.AsyncCopy},
		{"mma16816", &t.TensorCores},
	}
}

// fields of a distribution; those at their default are left out, see printed.
func (d *Dist) fields() []field {
	return []field{
		{"extent", &d.Extent}, {"grain", &d.Grain}, {"sms", &d.SMs}, {"rot", &d.Rot}, {"step", &d.Step},
	}
}

// onSMs reports whether the distribution is a rule that gives tasks to SMs.
func (d *Dist) onSMs() bool { return d.Kind == Spread || d.Kind == ByUnit }

// printed reports whether the forms show a field: what matters to the kind always, the rest only off its default.
func (d *Dist) printed(f field) bool {
	v := *f.ptr.(*int)
	switch f.key {
	case "extent":
		return d.Kind != Explicit || v != 0
	case "grain":
		return d.Kind == Spread || d.Kind == Tiled || v != d.defaultGrain()
	}
	return d.onSMs() || v != 0
}

func (d *Dist) defaultGrain() int {
	if d.Kind == ByUnit {
		return 1
	}
	return 0
}

// append prints the field's value as the text form has it.
func (f field) append(dst []byte) []byte {
	switch p := f.ptr.(type) {
	case *int:
		return strconv.AppendInt(dst, int64(*p), 10)
	case *bool:
		return strconv.AppendBool(dst, *p)
	case *float64:
		return append(dst, formatFloat(*p)...)
	case *DType:
		return append(dst, p.String()...)
	}
	return appendName(dst, *f.ptr.(*string))
}

// read sets the field from the text form.
func (f field) read(c *cursor) {
	switch p := f.ptr.(type) {
	case *int:
		*p = c.int(f.key)
	case *bool:
		*p = enum(c, f.key, parseBool)
	case *float64:
		c.peek()
		end := c.i
		for end < len(c.s) && isNameByte(c.s[end]) {
			end++
		}
		*p = c.float(end)
	case *DType:
		*p = enum(c, f.key, ParseDType)
	case *string:
		*p = c.name(f.key)
	}
}

func parseBool(s string) (bool, error) {
	i, err := enumCode([]string{"false", "true"}, s, "truth value")
	return i == 1, err
}

// keyed reads `key=value` pairs into the fields, in any order, each at most once; rest gets any other key and
// reports whether it knew it.
func (c *cursor) keyed(fields []field, rest func(key string) bool) {
	var seen uint32
	for !c.done() {
		start := c.i
		key := c.name("a key")
		if c.err != nil {
			return
		}
		i := 0
		for i < len(fields) && fields[i].key != key {
			i++
		}
		switch {
		case i < len(fields) && seen&(1<<i) != 0:
			c.fail(start, "%s is given twice", key)
		case i < len(fields):
			seen |= 1 << i
			c.expect("=")
			fields[i].read(c)
		case rest == nil || !rest(key):
			c.fail(start, "unknown key %s, want one of %s", clip(key), fieldKeys(fields))
		}
	}
}

func fieldKeys(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}
