package host

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var tinyFacts = &Facts{Model: tinyModel}

var tinyModel = Model{DType: "BF16", Heads: 4, KVHeads: 2, HeadDim: 16}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		stage   string
		element int
		want    string
	}{
		{"L00.qkv", 0, "row 0 (q of head 0, dim 0)"},
		{"L00.qkv", 17, "row 17 (q of head 1, dim 8)"},
		{"L00.qkv", 64 + 18, "row 82 (k of head 1, dim 1)"},
		{"L00.qkv", 96 + 5, "row 101 (v of head 0, dim 5)"},
		{"L00.kv", 0, "row 64 (k of head 0, dim 0)"},
		{"L00.kv", 32 + 16, "row 112 (v of head 1, dim 0)"},
		{"L12.attn", 35, "head 2, dim 3"},
		{"L12.part", 18*2*3 + 18 + 5, "unit 3, head 1 of its group, dim 5"},
		{"L12.part", 16, "unit 0, head 0 of its group, the maximum"},
		{"L12.part", 17, "unit 0, head 0 of its group, the sum"},
		{"L12.gate_up", 5, "rows 10 and 11"},
		{"L12.down", 5, "row 5"},
		{"lm_head", 5, "row 5"},
	} {
		require.Equal(t, c.want, tinyFacts.place(c.stage, c.element))
	}
	inPart := tinyModel
	inPart.Rotated = 12
	require.Equal(t, "row 17 (q of head 1, dim 6)", (&Facts{Model: inPart}).place("L00.qkv", 17))
	require.Equal(t, "row 29 (q of head 1, dim 13)", (&Facts{Model: inPart}).place("L00.qkv", 29), "not rotated")
	require.Equal(t, "row 3", (&Facts{}).place("L00.qkv", 3))
}

func bound(rms, most float64) StageTolerances {
	t := Tolerance{RMS: rms, Max: most}
	return StageTolerances{Attention: t, Other: t}
}

// One rounding is not an error, however large the element; more is, however small it is compared with the others; and
// attention has rounded before.
func TestStageTolerances(t *testing.T) {
	same, integers := TolerancesOfStages(&Model{DType: "BF16"}, false),
		TolerancesOfStages(&Model{DType: "F32", Cache: "I8"}, false)
	for _, c := range []struct {
		stage     string
		got, want []float32
		right     bool
	}{
		{"L00.o", []float32{64.5, 1}, []float32{64, 1}, true},
		{"L00.o", []float32{65, 1}, []float32{64, 1}, false},
		{"L00.o", []float32{64, 1.25}, []float32{64, 1}, false},
		{"L00.o", []float32{64, 1.0078125}, []float32{64, 1}, true},
		{"L00.attn", []float32{64, 1.25}, []float32{64, 1}, true},
		{"L00.part", []float32{64, 1.25}, []float32{64, 1}, true},
		{"L00.attn", []float32{64, 3}, []float32{64, 1}, false},
		{"L00.o", []float32{64, 1}, []float32{64, float32(math.Inf(1))}, false},
	} {
		d, _ := FirstDifference(tinyFacts, 0, []StagePair{{c.stage, c.got, c.want}}, same)
		require.Equal(t, c.right, d == nil, "%s %v %v", c.stage, c.got, c.want)
	}
	row := []float32{127, 100, -90, 60, 127, 100, -90, 60}
	next := []float32{127, 100, -90, 61, 127, 100, -90, 60}
	d, _ := FirstDifference(tinyFacts, 0, []StagePair{{"L00.kv", next, row}}, integers)
	require.Nil(t, d, "an integer may be the next one")
	d, _ = FirstDifference(tinyFacts, 0, []StagePair{{"L00.kv", []float32{0, 100, -90, 60, 127, 100, -90, 60}, row}},
		integers)
	require.NotNil(t, d)
	require.Zero(t, TolerancesOfStages(&Model{DType: "F32"}, false).Rounding)
	require.Equal(t, 2*tolerances["F16"].RMS, TolerancesOfStages(&Model{DType: "F16"}, true).Other.RMS)
	require.Equal(t, tolerances["BF16"], toleranceOf(&Model{DType: "BF16", Layers: 32}))
	require.InEpsilon(t, 9e-2, toleranceOf(&Model{DType: "BF16", Layers: 72}).RMS, 1e-9)
	d, _ = FirstDifference(tinyFacts, 0, []StagePair{{"L00.attn", []float32{64, 1.25}, []float32{64, 1}}}, integers)
	require.Nil(t, d, "attention has rows that were rounded the other way")
	d, _ = FirstDifference(tinyFacts, 0, []StagePair{{"L00.attn", []float32{64, 2}, []float32{64, 1}}}, integers)
	require.NotNil(t, d)
	chain := TolerancesOfStages(&Model{DType: "F32", Cache: "I8"}, true)
	require.Equal(t, Tolerance{RMS: 1.5e-2, Max: 2e-2}, *chain.Cache, "rows may have another scale")
	require.Less(t, chain.Other.RMS, TolerancesOfStages(&Model{DType: "BF16"}, true).Other.RMS)
}

func TestFirstDifference(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	right := StageVector{Stage: "a", Values: []float32{1, 2, -4}}
	wrong := StageVector{Stage: "L00.o", Values: []float32{1, 2.5, -4, -inf}}
	pairs := PairStages([]StageVector{right, wrong, {Stage: "L00.part"}},
		[]StageVector{{Stage: "L00.o", Values: []float32{1, 2, -4, -inf}}, right})
	require.Len(t, pairs, 2, "a stage that only one has is left out")
	d, seen := FirstDifference(tinyFacts, 9, pairs, bound(0.2, 0.2))
	require.Nil(t, d)
	require.Equal(t, 0.125, seen.Max)
	d, seen = FirstDifference(tinyFacts, 9, pairs, bound(0.2, 0.1))
	require.Zero(t, seen)
	require.Equal(t, &StageDifference{Position: 9, Stage: "L00.o", Element: 1, Place: "row 1", Got: 2.5, Want: 2,
		Wrong: 1, Of: 4,
		RMS: d.RMS, Max: 0.125}, d)
	require.InDelta(t, 0.5/math.Sqrt(21), d.RMS, 1e-12)

	loose := bound(1, 1)
	for _, c := range []struct{ got, want []float32 }{
		{[]float32{1, nan}, []float32{1, 2}}, {[]float32{1, 2}, []float32{1, nan}},
		{[]float32{1, inf}, []float32{1, -inf}}, {[]float32{1, inf}, []float32{1, 2}},
	} {
		d, _ := FirstDifference(tinyFacts, 0, []StagePair{{"lm_head", c.got, c.want}}, loose)
		require.Equal(t, 1, d.Element)
		_, err := json.Marshal(d)
		require.NoError(t, err)
	}
	d, _ = FirstDifference(tinyFacts, 0, []StagePair{{"embed", []float32{1}, []float32{1, 2}}}, loose)
	require.Equal(t, "position 0: stage embed: it has 1 elements, and 2 are expected", d.String())
	d, _ = FirstDifference(tinyFacts, 0, []StagePair{{"embed", []float32{1e-9}, []float32{0}}}, loose)
	require.NotNil(t, d, "relative, however small")
	d, _ = FirstDifference(tinyFacts, 0, []StagePair{{"embed", []float32{0}, []float32{0}}}, bound(0, 0))
	require.Nil(t, d)
}

func TestUnrolledExchanges(t *testing.T) {
	list := []Exchange{{Stage: "embed", Elements: 8}, {Stage: "L00.qkv"}, {Stage: "L{i}.qkv", First: 1, Layers: 2},
		{Stage: "L{i}.o", First: 1, Layers: 2},
		{Stage: "L{i}.qkv", First: 3, Layers: 1}, {Stage: "L{i}.o", First: 3, Layers: 1, Loop: 1},
		{Stage: "L{i}.qkv", First: 4, Layers: 2, Step: 2, Loop: 2},
		{Stage: "L{i+1}.qkv", First: 4, Layers: 2, Step: 2, Loop: 2}, {Stage: "lm_head"}}
	var names []string
	for _, e := range unrolled(list, 100) {
		names = append(names, e.Stage)
	}
	require.Equal(t, []string{"embed", "L00.qkv", "L01.qkv", "L01.o", "L02.qkv", "L02.o", "L03.qkv", "L03.o", "L04.qkv",
		"L05.qkv", "L06.qkv", "L07.qkv", "lm_head"}, names)
	require.Len(t, unrolled([]Exchange{{Stage: "L{i}.o", Layers: 1 << 40}}, 4), 4, "a manifest cannot make it long")
}

// Every half, and every bf16 of a sample, comes back as it was.
func TestElements(t *testing.T) {
	require.Equal(t, []float32{1, -2, 0x1p-24, 65504, float32(math.Inf(-1))},
		DecodeElements(halves(0x3C00, 0xC000, 0x0001, 0x7BFF, 0xFC00), "F16"))
	require.Equal(t, []float32{1, -2}, DecodeElements(halves(0x3F80, 0xC000), "BF16"))
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	for _, dtype := range []string{"F16", "BF16", "F32"} {
		raw := halves(all...)
		require.Equal(t, raw, encodeElements(DecodeElements(raw, dtype), dtype), dtype)
	}
}

// What lies between two values goes to the nearer, and what is in the middle to the even one.
func TestElementsAreRounded(t *testing.T) {
	const tie = 1 + 0x1p-11
	for in, want := range map[float32]uint16{tie: 0x3C00, tie + 0x1p-20: 0x3C01, 1 + 0x3p-11: 0x3C02, 65519: 0x7BFF,
		65520: 0x7C00, 0x1p-25: 0, 0x3p-25: 2, 0x1.ffcp-15: 0x0400, -tie: 0xBC00} {
		require.Equal(t, halves(want), encodeElements([]float32{in}, "F16"), "%v", in)
	}
	for in, want := range map[float32]uint16{1 + 0x1p-8: 0x3F80, 1 + 0x3p-8: 0x3F82, 1 + 0x1.1p-8: 0x3F81,
		math.MaxFloat32: 0x7F80} {
		require.Equal(t, halves(want), encodeElements([]float32{in}, "BF16"), "%v", in)
	}
	for _, dtype := range []string{"F16", "BF16"} {
		nan := DecodeElements(encodeElements([]float32{math.Float32frombits(0x7F800001)}, dtype), dtype)[0]
		require.True(t, nan != nan, dtype)
	}
}

// A vector that is published in parts is their sum.
func TestPartsAreAddedUp(t *testing.T) {
	require.Equal(t, []float32{1, 2}, SumOfParts([]float32{1, 2}, 2))
	require.Equal(t, []float32{11.5, 22}, SumOfParts([]float32{1, 2, 10, 20, 0.5, 0}, 2))
}

func halves(bits ...uint16) []byte {
	var raw []byte
	for _, b := range bits {
		raw = binary.LittleEndian.AppendUint16(raw, b)
	}
	return raw
}

// encodePlan is what a fatbin holds.
func encodePlan(p plan) (info, kinds, step []byte) {
	le := binary.LittleEndian
	for _, v := range []int{abi, p.threads, p.layers, p.vocab} {
		info = le.AppendUint32(info, uint32(v))
	}
	info = le.AppendUint64(info, uint64(p.scratchBytes))
	for _, kind := range p.kinds {
		kinds = le.AppendUint32(kinds, uint32(kind))
	}
	name := func(s string) []byte { return append([]byte(s), make([]byte, 32-len(s))...) }
	for _, o := range p.operations {
		step = append(step, name(o.kernel)...)
		step = le.AppendUint32(le.AppendUint32(step, uint32(o.blocks)), uint32(o.repeats))
		step = le.AppendUint32(step, uint32(o.kind))
		step = append(step, name(o.stage)...)
		for _, v := range []int{o.offset, o.elements, o.elementBytes} {
			step = le.AppendUint32(step, uint32(v))
		}
	}
	return info, kinds, step
}

func TestPlan(t *testing.T) {
	p := plan{threads: 256, layers: 3, vocab: 8, scratchBytes: 64, kinds: []int{0, 1}, operations: []operation{
		{kernel: "first", blocks: 1, stage: "embed", elements: 4, elementBytes: 2},
		{kernel: "a", blocks: 2, repeats: eachLayer}, {kernel: "b", blocks: 3, repeats: observes},
		{kernel: "c", blocks: 1, repeats: eachLayer, kind: 1},
		{kernel: "last", blocks: 1, stage: "lm_head", offset: 32, elements: 8, elementBytes: 4},
	}}
	info, kinds, step := encodePlan(p)
	got, err := decodePlan(info, kinds, step, 1)
	require.NoError(t, err)
	require.Equal(t, &p, got)
	var order []string
	require.NoError(t, got.walk(func(o *operation, layer int) error {
		order = append(order, o.kernel+string(rune('0'+layer)))
		return nil
	}))
	require.Equal(t, []string{"first0", "a0", "b0", "c1", "a2", "b2", "last0"}, order)

	for text, edit := range map[string]func(p *plan){
		"lies outside":           func(p *plan) { p.operations[4].offset = 36 },
		`operation 1 ("")`:       func(p *plan) { p.operations[1].kernel = "" },
		`operation 1 ("a")`:      func(p *plan) { p.operations[1].blocks = 0 },
		`operation 2 ("b")`:      func(p *plan) { p.operations[2].repeats = 3 },
		"2 (\"b\") is malformed": func(p *plan) { p.operations[2].elements = 3 },
		"operation 4 (\"last\")": func(p *plan) { p.operations[4].repeats, p.operations[4].elementBytes = sums, 2 },
		"does not make logits":   func(p *plan) { p.operations = p.operations[:3] },
		"0 bytes":                func(p *plan) { p.operations = nil },
		"has 0 bytes":            func(p *plan) { p.kinds = nil },
	} {
		bad := p
		bad.operations = slices.Clone(p.operations)
		edit(&bad)
		info, kinds, step := encodePlan(bad)
		_, err := decodePlan(info, kinds, step, 1)
		require.ErrorContains(t, err, text)
	}
	info[0] = 12
	_, err = decodePlan(info, kinds, step, 1)
	require.ErrorContains(t, err, "its runtime ABI is 12")
}
