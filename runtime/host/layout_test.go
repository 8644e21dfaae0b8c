package host

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/runtime/driver"
	"amkc/runtime/shape"
)

// The structs that cross to the device are built byte by byte, so the headers are read to see that they agree.
func TestDeviceStructs(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../cuda/amk/" + name)
		require.NoError(t, err)
		return string(text)
	}
	fields := func(text, structure string) []string {
		_, rest, found := strings.Cut(text, "struct "+structure+" {\n")
		require.True(t, found)
		body, _, _ := strings.Cut(rest, "\n};")
		var names []string
		for line := range strings.Lines(body) {
			line, _, _ = strings.Cut(line, "//")
			if m := regexp.MustCompile(`(\w+)(\[\w+\])?;`).FindStringSubmatch(line); m != nil {
				names = append(names, m[1])
			}
		}
		return names
	}
	require.Equal(t, strings.Fields(`weights cache exchange logits trace profile forced tokens host_tokens abort
		abort_device stalls stop_ids sampling choices rounds embeddings hidden
		spin_limit_ns first_epoch steps position token n_stop logit_stride chooses positions
		peers rank reserved`), // the last ones of a build for several GPUs alone
		fields(read("launch.cuh"), "Launch"))
	require.Equal(t, strings.Fields("temperature seed"), fields(read("launch.cuh"), "Sampling"))
	require.Contains(t, read("launch.cuh"), "sizeof(Sampling) == "+strconv.Itoa(samplingSize))
	require.Equal(t, strings.Fields(`bias uses allowed recent repetition frequency presence rest min_p top_k n_recent
		counts set`), fields(read("launch.cuh"), "Choice"))
	require.Contains(t, read("launch.cuh"), "sizeof(Choice) == "+strconv.Itoa(choiceSize))
	require.Equal(t, choiceSize, binary.Size(deviceChoice{}))
	require.Contains(t, read("launch.cuh"), "sizeof(Rounds) == 64 + 3 * 8 * 3088")
	require.Equal(t, 64+3*8*3088, roundsSize)
	require.Contains(t, read("launch.cuh"), fmt.Sprintf("kNoToken = %#x;", noToken))
	require.Equal(t, 4*ir.SamplingWords, samplingSize)
	require.Equal(t, strings.Fields("valid stage layer step wait index expected warp"),
		fields(read("launch.cuh"), "Stall"))
	require.Equal(t, strings.Fields(`abi sms threads shared_bytes exchange_bytes exchanges_per_step trace_stride
		vocab max_seq
		layers hidden element_bytes variants flagged weight_bytes cache_bytes
		variant_end tokens sequences model cache_fragments`), fields(read("info.cuh"), "Info"))
	require.Contains(t, read("launch.cuh"), "kMaxSequences = "+strconv.Itoa(shape.MaxTokens)+";")
	require.Contains(t, read("launch.cuh"), "kMaxRanks = "+strconv.Itoa(ir.MaxRanks)+";")
	require.Contains(t, read("launch.cuh"), "kAbsent = "+strconv.Itoa(absent)+";")
	require.Contains(t, read("step.cuh"), "constexpr int kGiven = kVocab;")
	require.Contains(t, read("info.cuh"), "kMaxVariants = "+strconv.Itoa(maxVariants)+";")
	require.Contains(t, read("platform.cuh"), "#define AMK_RUNTIME_ABI "+strconv.Itoa(abi)+"\n")
	words := func(header string) string { return strings.Join(strings.Fields(read(header)), " ") }
	require.Contains(t, words("launch.cuh"),
		"enum class Wait : u32 { kJoin = 0, kExchange = 1, kRingFull = 2, kRingEmpty = 3, kStep = 4, kLayer = 5, "+
			"kChoice = 6 };")

	ref := read("reference.cuh")
	require.Equal(t, strings.Fields("weights cache scratch layer position token reserved"), fields(ref, "Reference"))
	require.Equal(t, strings.Fields("kernel blocks repeats kind result"), fields(ref, "Operation"))
	require.Equal(t, strings.Fields("stage offset elements bytes"), fields(ref, "Result"))
	require.Equal(t, strings.Fields("abi threads layers vocab scratch_bytes"), fields(ref, "ReferenceInfo"))
	require.Contains(t, ref, "kOnce = 0, kEachLayer = 1, kObserves = 2, kSums = 3;")
	require.Equal(t, repetition(3), sums)

	profile := read("profile.cuh")
	require.Equal(t, strings.Fields("begin end stage layer"), fields(profile, "Span"))
	require.Equal(t, strings.Fields("begin_clock begin_time end_clock end_time spans reserved"),
		fields(profile, "Recording"))
	require.Equal(t, strings.Fields("capacity reserved"), fields(profile, "ProfileHeader"))
	require.Contains(t, words("profile.cuh"), "enum class Did : u32 { kExchangeWait = 0, kCompute = 1, kSignal = 2, "+
		"kSlotWait = 3, kStepWait = 4 };")
	require.Equal(t, strings.Fields("data bytes sum passes reserved"), fields(read("read.cuh"), "Read"))
	require.Contains(t, read("read.cuh"), "kReadThreads = "+strconv.Itoa(readThreads)+";")
	require.Contains(t, read("read.cuh"), "kReadBlocks = "+strconv.Itoa(readBlocks)+";")

	p := launchParams{Weights: 1, Cache: 2, Exchange: 3, Logits: 4, Trace: 5, Forced: 6, Tokens: 7, HostTokens: 8,
		Abort: 9, AbortDevice: 10, Stalls: 11, StopIDs: 12, Sampling: 13, Choices: 14, Rounds: 15,
		Embeddings: 16, Hidden: 17, SpinLimitNS: 18, FirstEpoch: 19, Steps: 20, Position: 21, Token: -22,
		NStop: 23, LogitStride: 24,
		Positions: [shape.MaxTokens]int{25, -26, 27, 28, 29, 30, 31, 32}}
	raw := p.encode()
	require.Len(t, raw, launchSize)
	for i := range 19 {
		require.Equal(t, uint64(i+1), binary.LittleEndian.Uint64(raw[8*i:]))
	}
	for i, want := range []int32{20, 21, -22, 23, 24, 0, 25, -26, 27, 28, 29, 30, 31, 32} {
		require.Equal(t, want, int32(binary.LittleEndian.Uint32(raw[152+4*i:])))
	}
	p.Weights, p.Cache, p.Exchange, p.Stalls = 100, 200, 300, 400
	s := &Session{gpus: make([]gpu, 2), info: Info{SMs: 3}, allocated: []allocation{
		{[]driver.Ptr{100, 1100}, 100}, {[]driver.Ptr{200, 1200}, 100}, {[]driver.Ptr{290, 1290}, 100}}}
	for rank, want := range [][]uint64{{100, 200, 300, 4, 8, 400}, {1100, 1200, 1300, 4, 0, 400 + 3*stallSize}} {
		raw = p.encodeFor(s, rank)
		require.Len(t, raw, launchSize+8*(maxRanks+1))
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(raw[8*i:]) }
		require.Equal(t, want, []uint64{word(0), word(1), word(2), word(3), word(7), word(10)})
		require.Equal(t, []uint64{300, 1300, 0}, []uint64{word(26), word(27), word(28)}, "pages of all ranks")
		require.Equal(t, uint64(rank), word(34))
	}
}

func TestMadeUpCacheIsFinite(t *testing.T) {
	for _, dtype := range []string{"BF16", "F16", "F32"} {
		b := madeUp(1<<16, &Model{DType: dtype})
		require.Len(t, b, 1<<16)
		for i := 0; i < len(b); i += 4 {
			var x float64
			switch dtype {
			case "BF16":
				x = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[i:])) << 16))
			case "F16":
				h := binary.LittleEndian.Uint16(b[i:])
				x = math.Ldexp(1+float64(h&0x3FF)/1024, int(h>>10&31)-15)
			case "F32":
				x = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
			}
			require.True(t, math.Abs(x) >= 0.125 && math.Abs(x) < 1, "%s: %v", dtype, x)
		}
	}
}

// Of a cache of integers every byte of the range is met about as often, every row has a scale of its own, positive and
// such that values are near those of other caches, and layers, heads and runs of them differ. Head sizes that are
// padded and layers that are aligned keep elements and scales apart.
func TestMadeUpIntegers(t *testing.T) {
	for _, m := range []Model{
		{DType: "F16", Cache: "I8", HeadDim: 20, KVHeads: 3, MaxSeq: 150},
		{DType: "BF16", Cache: "I8", HeadDim: 128, KVHeads: 8, MaxSeq: 1024}, // the pattern repeats
	} {
		const layers = 5
		block := 16 * (2*((m.HeadDim+15)/16*16) + 4)
		blocks := (m.MaxSeq + 15) / 16 * m.KVHeads
		layer := (blocks*block + 255) / 256 * 256
		cache := make([]byte, layers*layer)
		pattern := patternOf(len(cache), &m)
		require.NoError(t, makeUp(len(cache), 0, pattern, &m, func(at, from, to int) error {
			copy(cache[at:], pattern[from:to])
			return nil
		}))
		var seen [256]int
		elements, scales, exponents, first := 0, map[uint16]bool{}, map[uint16]int{}, map[string]bool{}
		for l := range layers {
			for i := range blocks {
				b := cache[l*layer+i*block:][:block]
				for _, q := range b[:block-64] {
					seen[q]++
					elements++
				}
				for at := block - 64; at < block; at += 2 {
					bits := binary.LittleEndian.Uint16(b[at:])
					scale := float64(math.Float32frombits(uint32(bits) << 16))
					require.True(t, scale >= 1.0/1024 && scale < 1.0/128, "%v", scale)
					scales[bits] = true
					exponents[bits>>7]++
				}
				if i%(blocks/m.KVHeads) == 0 {
					first[string(b)] = true
				}
			}
		}
		require.Len(t, first, layers*m.KVHeads, "the same rows begin two heads")
		require.Len(t, scales, 3*128)
		require.Len(t, exponents, 3)
		require.Zero(t, seen[0x80])
		for q, n := range seen {
			if q != 0x80 {
				require.InEpsilon(t, elements/255, n, 0.2, "%d", int8(q))
			}
		}
	}
}

func TestCompareIsRelative(t *testing.T) {
	d := compare([]float32{100, 0, 0}, []float32{101, 0, 0})
	require.InDelta(t, 1.0/101, d.max, 1e-9)
	require.InDelta(t, 1.0/101, d.rms, 1e-9)
	require.True(t, Tolerance{RMS: 0.01, Max: 0.01}.holds(d))
	require.False(t, Tolerance{RMS: 0.01, Max: 0.001}.holds(d))
	d = compare([]float32{0.25}, []float32{0})
	require.Equal(t, 0.25, d.max, "differences of small logits are absolute")
	nan := float32(math.NaN())
	require.NotEmpty(t, compare([]float32{nan}, []float32{0}).problem)
	require.NotEmpty(t, compare([]float32{0}, []float32{nan}).problem)
	require.False(t, Tolerance{RMS: 1, Max: 1}.holds(compare([]float32{nan}, []float32{0})))
}

func TestQuantiles(t *testing.T) {
	require.Equal(t, Quantiles{Median: 5, P10: 1, P90: 9}, quantiles([]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}))
	require.Equal(t, Quantiles{Median: 3, P10: 3, P90: 3}, quantiles([]float64{3}))
}
