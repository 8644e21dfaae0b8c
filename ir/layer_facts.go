package ir

import (
	"fmt"
	"slices"
)

// LayerFacts are the sizes of a layer. What else tells layers apart, such as a window or an activation, is in their
// ops.
type LayerFacts struct {
	Intermediate, Heads, KVHeads, HeadDim int

	// Where the MLP is a mixture of experts, how many there are, and how many of them a router chooses for each token.
	// Intermediate is then the width of an expert. 0: it is one MLP.
	Experts, PerToken int

	// Shared is the width of an expert that every token has besides; 0: there is none. What it makes may be multiplied
	// by the sigmoid of one number more that the router makes: SharedGates is then 1.
	Shared, SharedGates int

	Mixer
}

// A Mixer is what a layer has in place of attention. All are 0 in a layer with attention.
type Mixer struct {
	// Channels is how many a short convolution has.
	Channels int `json:"channels,omitempty"`

	// StateHeads is how many heads with a recurrent state there are, each of StateKeys rows of StateValues elements.
	// Neighbours share the keys of one of StateKeyHeads, as many each.
	StateHeads    int `json:"state_heads,omitempty"`
	StateKeyHeads int `json:"state_key_heads,omitempty"`
	StateKeys     int `json:"state_keys,omitempty"`
	StateValues   int `json:"state_values,omitempty"`

	// Taps is how many positions the convolution sees, or that of what enters a state; its own is among them.
	Taps int `json:"taps,omitempty"`
}

func (x *Mixer) fields() []field {
	return []field{{"channels", &x.Channels}, {"state_heads", &x.StateHeads}, {"state_key_heads", &x.StateKeyHeads},
		{"state_keys", &x.StateKeys}, {"state_values", &x.StateValues}, {"taps", &x.Taps}}
}

// StateChannels is how many elements of a token enter the states of a layer: queries, keys and values.
func (x *Mixer) StateChannels() int {
	return 2*x.StateKeyHeads*x.StateKeys + x.StateHeads*x.StateValues
}

func (f *LayerFacts) fields() []field {
	return slices.Concat([]field{{"intermediate", &f.Intermediate}, {"experts", &f.Experts},
		{"per_token", &f.PerToken}, {"shared", &f.Shared}, {"shared_gates", &f.SharedGates}}, f.Mixer.fields(),
		[]field{{"heads", &f.Heads}, {"kv_heads", &f.KVHeads}, {"head_dim", &f.HeadDim}})
}

// ofSome are the facts that layers of attention and one MLP have none of.
var ofSome = []string{"experts", "per_token", "shared", "shared_gates", "channels", "state_heads",
	"state_key_heads", "state_keys", "state_values", "taps"}

// stated leaves out what says that there are none.
func stated(fields []field) []field {
	return slices.DeleteFunc(fields, func(f field) bool {
		n, ok := f.ptr.(*int)
		return ok && *n == 0 && slices.Contains(ofSome, f.key)
	})
}

// MLP is the width of the MLP that every token has; 0 where it has experts alone.
func (f *LayerFacts) MLP() int {
	if f.Experts > 0 {
		return f.Shared
	}
	return f.Intermediate
}

// Scores is how many numbers the router makes for a token.
func (f *LayerFacts) Scores() int { return f.Experts + f.SharedGates }

// QueryRows is how many elements the queries of a token have, and KeyRows how many its keys have, and its values.
func (f *LayerFacts) QueryRows() int { return f.Heads * f.HeadDim }
func (f *LayerFacts) KeyRows() int   { return f.KVHeads * f.HeadDim }

// Group is how many query heads a kv head has.
func (f *LayerFacts) Group() int { return max(1, f.Heads/max(1, f.KVHeads)) }

// State is the rows that a layer keeps of positions: attention its keys and values, or a convolution what it convolves;
// nothing in a layer with a recurrent state.
func (f *LayerFacts) State() State {
	if f.Taps > 0 {
		return f.Convolved()
	}
	return f.Attended()
}

// keeping is how many units of a sequence keep something from step to step: kv heads, groups of channels, or states.
func (f *LayerFacts) keeping() int {
	if f.StateHeads > 0 {
		return f.StateHeads
	}
	return f.State().Heads
}

// Attended is what attention keeps; nothing in a layer without.
func (f *LayerFacts) Attended() State {
	if f.Taps > 0 {
		return State{}
	}
	return State{Heads: f.KVHeads, Elements: f.HeadDim}
}

// Convolved is what a convolution keeps, of groups of channels; nothing in a layer without.
func (f *LayerFacts) Convolved() State {
	if f.Channels == 0 {
		return State{}
	}
	channels := commonDivisor(f.Channels, groupChannels)
	return State{Heads: f.Channels / max(1, channels), Elements: channels, Inputs: true}
}

// groupChannels is how many channels of a convolution are convolved together, at most.
const groupChannels = 64

// commonDivisor is the largest number that divides both.
func commonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Facts are those of each kind of layers: one where all have the same.
func (m *Model) Facts() []LayerFacts {
	if len(m.Kinds) > 0 {
		return m.Kinds
	}
	return []LayerFacts{m.first()}
}

// first are the facts of the first layer, which are the model's.
func (m *Model) first() LayerFacts {
	return LayerFacts{m.Intermediate, m.Heads, m.KVHeads, m.HeadDim, m.Experts, m.PerToken, m.Shared, m.SharedGates,
		m.Mixer}
}

// Of returns the facts of a layer.
func (m *Model) Of(layer int) *LayerFacts {
	facts, n := m.Facts(), len(m.LayerKinds)
	if layer >= 0 && n > 0 {
		if kind := m.LayerKinds[layer%n]; 0 <= kind && kind < len(facts) { // Check refuses others
			return &facts[kind]
		}
	}
	return &facts[0]
}

// FirstIndex is the value of {i} in the first iteration that a stage runs in; 0 outside of loops, where l is nil.
// Iterations of other kinds may have buffers of another format by the same names.
func FirstIndex(s *Stage, l *Loop) int {
	if l == nil {
		return 0
	}
	k := 0
	for k < len(l.Kinds)-1 && !l.Runs(s, k) {
		k++
	}
	return l.Index(k)
}

// FactsOf returns the facts of the layer of a stage; those of the first layer for a stage that belongs to none.
func (p *Program) FactsOf(s *Stage, l *Loop) *LayerFacts {
	layer, _ := s.Layer.At(FirstIndex(s, l))
	return p.Model.Of(layer)
}

// SetFacts says what the layers are, one after another. What the model itself has is then of the first.
func (m *Model) SetFacts(layers []LayerFacts) {
	f := layers[0]
	m.Intermediate, m.Heads, m.KVHeads, m.HeadDim = f.Intermediate, f.Heads, f.KVHeads, f.HeadDim
	m.Experts, m.PerToken, m.Shared, m.SharedGates = f.Experts, f.PerToken, f.Shared, f.SharedGates
	m.Mixer = f.Mixer
	m.Kinds, m.LayerKinds = nil, nil
	for _, f := range layers {
		kind := slices.Index(m.Kinds, f)
		if kind < 0 {
			kind, m.Kinds = len(m.Kinds), append(m.Kinds, f)
		}
		m.LayerKinds = append(m.LayerKinds, kind)
	}
	if m.LayerKinds = Repeating(m.LayerKinds); len(m.Kinds) == 1 {
		m.Kinds, m.LayerKinds = nil, nil
	}
}

// Most is the largest value of a size over the kinds of layers.
func (m *Model) Most(size func(f *LayerFacts) int) int {
	most := 0
	for _, f := range m.Facts() {
		most = max(most, size(&f))
	}
	return most
}

// Differ reports whether layers of several kinds differ in a size.
func (m *Model) Differ(size func(f *LayerFacts) int) bool {
	return slices.ContainsFunc(m.Kinds, func(f LayerFacts) bool { return size(&f) != size(&m.Kinds[0]) })
}

// HeadsDiffer reports whether layers differ in their heads: in how many there are, or in how large they are.
func (m *Model) HeadsDiffer() bool {
	return m.Differ(HeadsOf) || m.Differ(KVHeadsOf) || m.Differ(HeadDimOf)
}

// StatesDiffer reports whether layers differ in what they keep from step to step.
func (m *Model) StatesDiffer() bool {
	return slices.ContainsFunc(m.Kinds, func(f LayerFacts) bool { return f.State() != m.Kinds[0].State() })
}

// CacheBlock is the bytes of a block of keys and values, of the layers with the largest; 1 where none has
// attention.
func (m *Model) CacheBlock() int {
	return max(1, m.Most(func(f *LayerFacts) int { return f.Attended().Block(m.Cache) }))
}

// Sizes of layers, for Most and Differ.
func ExpertsOf(f *LayerFacts) int       { return f.Experts }
func PerTokenOf(f *LayerFacts) int      { return f.PerToken }
func SharedOf(f *LayerFacts) int        { return f.Shared }
func SharedGatesOf(f *LayerFacts) int   { return f.SharedGates }
func IntermediateOf(f *LayerFacts) int  { return f.Intermediate }
func HeadsOf(f *LayerFacts) int         { return f.Heads }
func KVHeadsOf(f *LayerFacts) int       { return f.KVHeads }
func HeadDimOf(f *LayerFacts) int       { return f.HeadDim }
func ChannelsOf(f *LayerFacts) int      { return f.Channels }
func StateHeadsOf(f *LayerFacts) int    { return f.StateHeads }
func StateKeyHeadsOf(f *LayerFacts) int { return f.StateKeyHeads }
func StateKeysOf(f *LayerFacts) int     { return f.StateKeys }
func StateValuesOf(f *LayerFacts) int   { return f.StateValues }
func TapsOf(f *LayerFacts) int          { return f.Taps }

// Columns are those of the products of layers of all kinds: the hidden size, and what attention and the MLP leave.
func (m *Model) Columns() []int {
	out := []int{m.Hidden}
	for _, f := range m.Facts() {
		out = append(out, f.QueryRows(), f.Intermediate, f.MLP(), f.Channels,
			f.StateHeads*f.StateValues)
	}
	return out
}

// Width is that of the widest MLP.
func (m *Model) Width() int {
	return m.Most(func(f *LayerFacts) int { return max(f.Intermediate, f.Shared) })
}

// Repeating returns the shortest list that gives a list when it is repeated.
func Repeating(list []int) []int {
	if len(list) == 0 {
		return list
	}
	again := make([]int, len(list)) // for each beginning of the list, how much of its start ends it too
	for i, k := 1, 0; i < len(list); i++ {
		for k > 0 && list[i] != list[k] {
			k = again[k-1]
		}
		if list[i] == list[k] {
			k++
		}
		again[i] = k
	}
	return list[:len(list)-again[len(list)-1]]
}

// FactsAmiss says what is wrong with the facts of the layers and what is wanted, or nothing.
func (m *Model) FactsAmiss() string {
	n := len(m.LayerKinds)
	for _, f := range m.Facts() {
		if (f.Experts != 0 || f.PerToken != 0) && (f.PerToken < 1 || f.PerToken > f.Experts) {
			return fmt.Sprintf("has layers that choose %d of %d experts for each token; want at least one, and at "+
				"most all, or no experts", f.PerToken, f.Experts)
		}
		if f.Shared < 0 || f.Shared > 0 && f.Experts == 0 || f.SharedGates < 0 || f.SharedGates > 1 ||
			f.SharedGates > 0 && f.Shared == 0 {
			return fmt.Sprintf("has layers with %d experts, one of width %d that every token has, and %d gates of "+
				"that one; want it besides others, and one gate at most", f.Experts, f.Shared, f.SharedGates)
		}
	}
	switch amiss := m.mixersAmiss(); {
	case amiss != "":
		return amiss
	case (n == 0) != (len(m.Kinds) == 0) || n > m.Layers:
		return fmt.Sprintf("has facts of %d kinds of layers, and says the kinds of %d; want those of at most its %d "+
			"layers, and facts of each kind", len(m.Kinds), n, m.Layers)
	case n == 0:
		return ""
	case len(m.Kinds) == 1:
		return "has facts of one kind of layers; want them to be the model's"
	case m.LayerKinds[0] != 0 || m.Kinds[0] != m.first():
		return "has other sizes than its first layer; want the same, and kind 0 for that layer"
	}
	used := 0
	for i, kind := range m.LayerKinds {
		if kind < 0 || kind >= len(m.Kinds) {
			return fmt.Sprintf("has layer %d of kind %d, and facts of %d; want a kind from 0 on", i, kind, len(m.Kinds))
		}
		if kind > used {
			return fmt.Sprintf("has layer %d of kind %d, and none of kind %d before; want kinds in the order of layers",
				i, kind, used)
		}
		used = max(used, kind+1)
	}
	if used < len(m.Kinds) {
		return fmt.Sprintf("has facts of kind %d, which no layer has; want facts of the kinds that layers have", used)
	}
	twice := slices.Concat(m.LayerKinds, m.LayerKinds)
	if list := Repeating(twice[:min(len(twice), m.Layers)]); len(list) < n {
		return fmt.Sprintf("lists the kinds of %d layers, of which the first %d repeat; want those alone", n, len(list))
	}
	for i := range m.Kinds {
		if slices.Contains(m.Kinds[:i], m.Kinds[i]) {
			return "has the same facts for two kinds of layers; want them to be one kind"
		}
	}
	return ""
}

// mixersAmiss says what is wrong with the facts of what layers have in place of attention, or nothing.
func (m *Model) mixersAmiss() string {
	for _, f := range m.Facts() {
		states := []int{f.StateHeads, f.StateKeyHeads, f.StateKeys, f.StateValues}
		if (f.Channels == 0 && f.StateHeads == 0) != (f.Taps == 0) || f.Channels != 0 && f.StateHeads != 0 {
			return fmt.Sprintf("has layers with a convolution of %d channels, %d heads with states, and %d taps; want "+
				"one of the first two with taps, or none", f.Channels, f.StateHeads, f.Taps)
		}
		if slices.Min(states) < 0 || (slices.Min(states) == 0) != (slices.Max(states) == 0) ||
			f.StateHeads > 0 && f.StateHeads%f.StateKeyHeads != 0 {
			return fmt.Sprintf("has layers with %d heads of %d by %d elements with states, and %d of keys; want as "+
				"many for each of these, or none of any", f.StateHeads, f.StateKeys, f.StateValues, f.StateKeyHeads)
		}
	}
	return ""
}

// layerFacts checks what a model says of kinds of layers.
func (c *checker) layerFacts() {
	m := &c.p.Model
	if amiss := m.FactsAmiss(); amiss != "" {
		c.fail(CodeShape, "model", "%s", amiss)
	}
	for i := range m.Kinds {
		c.numbers("model", "model", m.Kinds[i].fields())
	}
}
