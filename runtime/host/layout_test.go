package host

import (
	"encoding/binary"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		abort_device stalls stop_ids
		spin_limit_ns first_epoch steps position token n_stop`), fields(read("launch.cuh"), "Launch"))
	require.Equal(t, strings.Fields("valid stage layer step wait index expected warp"),
		fields(read("launch.cuh"), "Stall"))
	require.Equal(t, strings.Fields(`abi sms threads shared_bytes exchange_bytes exchanges_per_step trace_stride
		vocab max_seq
		layers hidden element_bytes variants flagged weight_bytes cache_bytes
		variant_end`), fields(read("info.cuh"), "Info"))
	require.Contains(t, read("info.cuh"), "kMaxVariants = "+strconv.Itoa(maxVariants)+";")
	require.Contains(t, read("platform.cuh"), "#define AMK_RUNTIME_ABI "+strconv.Itoa(abi)+"\n")
	words := func(header string) string { return strings.Join(strings.Fields(read(header)), " ") }
	require.Contains(t, words("launch.cuh"),
		"enum class Wait : u32 { kJoin = 0, kExchange = 1, kRingFull = 2, kRingEmpty = 3, kStep = 4, kLayer = 5 };")

	ref := read("reference.cuh")
	require.Equal(t, strings.Fields("weights cache scratch layer position token reserved"), fields(ref, "Reference"))
	require.Equal(t, strings.Fields("kernel blocks repeats kind result"), fields(ref, "Operation"))
	require.Equal(t, strings.Fields("stage offset elements bytes"), fields(ref, "Result"))
	require.Equal(t, strings.Fields("abi threads layers vocab scratch_bytes"), fields(ref, "ReferenceInfo"))
	require.Contains(t, ref, "kOnce = 0, kEachLayer = 1, kObserves = 2;")

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
		Abort:       9,
		AbortDevice: 10, Stalls: 11, StopIDs: 12, SpinLimitNS: 13, FirstEpoch: 14, Steps: 15, Position: 16, Token: -17,
		NStop: 18}
	raw := p.encode()
	require.Len(t, raw, launchSize)
	for i := range 14 {
		require.Equal(t, uint64(i+1), binary.LittleEndian.Uint64(raw[8*i:]))
	}
	for i, want := range []int32{15, 16, -17, 18} {
		require.Equal(t, want, int32(binary.LittleEndian.Uint32(raw[112+4*i:])))
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

// What a cache of integers has for scales is finite too, and keeps its values near those of other caches.
func TestMadeUpScalesAreSmall(t *testing.T) {
	b := madeUp(1<<16, &Model{DType: "F16", Cache: "I8"})
	for i := 0; i < len(b); i += 2 {
		scale := float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[i:])) << 16))
		require.True(t, math.Abs(scale) >= 1.0/1024 && math.Abs(scale) < 1.0/128, "%v", scale)
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
