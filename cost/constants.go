package cost

import "amkc/ir"

// The constants of the model, each with its unit and with where it is from. "Design probes" are the measurements of
// the hand-written probes on an H200 that docs/cost-model.md lists; sections are those of docs/results/h200.json, of
// which such a constant follows from a row or two on their own; data sheets are the vendor's. Those that were chosen
// to fit are in calibration.go.

// Memory and L2 of the H200, and what is taken over from it for other GPUs.
const (
	// memoryLatency is from asking memory for a chunk to its first bytes, in microseconds, when nothing else is on its
	// way. With chunkSpeed, a chunk of 16 KB takes 0.70. Design probes: an SM that keeps 16 KB in flight gets 22 GB/s.
	memoryLatency = 0.50

	// chunkSpeed is the bytes a microsecond at which one chunk comes from then on. A search from a slow start on an
	// H200: with one chunk of 4 KB in flight the ceiling of Llama-3.2-1B is 2,532 µs, 0.55 for each chunk of an SM.
	chunkSpeed = 82e3

	// knee is how sharply the bandwidth stops growing with the bytes in flight. Design probes: 2904, 4209 and 4558
	// GB/s with 16, 32 and 48 KB in flight per SM.
	knee = 4

	// l2Latency is a round trip to L2 in microseconds, on an idle machine. Design probes: the last round of polls of
	// a warp.
	l2Latency = 0.19

	// oneWay is the mean time of a word from SM to SM in microseconds, on an idle machine. Design probes.
	oneWay = 0.24

	// rereads is the part of a vector that the last round of polls reads again. Design probes: 0.35 µs for 32 KB,
	// 0.19 µs for 8 KB.
	rereads = 0.2

	// join is a barrier of all SMs in microseconds, on an idle machine. Design probes.
	join = 0.92

	// counterHop is what a counter costs above flagged words in microseconds: one more trip to L2 and back, fences,
	// and a barrier of the block. Section ablations, flagged-off of the 0.6B shape at 128: 150 µs in 141 exchanges.
	counterHop = 1.06

	// l2Bytes a cycle and SM come out of L2. Published micro-benchmarks of the H100: some 5.5 TB/s.
	l2Bytes = 21

	// l2Alone is the bytes a cycle that an SM gets out of L2 where the others do not read at the same time. Published
	// micro-benchmarks of Volta and of what came after it.
	l2Alone = 64

	// l2Chunk is from asking for a chunk that L2 has to its last byte, in microseconds. Section contexts, ceiling of
	// the 0.6B shape at 32752: 1146 µs, in which an SM copies 2290 chunks, one at a time. Chosen so that the model
	// has that ceiling, in which L2 has most of them.
	l2Chunk = 0.47

	// producerChunk is the microseconds that a producer takes for a chunk, however small: to see a slot given back
	// and an older chunk land, and to ask for the next. Section ablations, chunk-8k: the ceiling of Llama-3.2-1B is
	// 728 µs, in which an SM copies 2290 chunks.
	producerChunk = 0.318

	// splitJoined is the microseconds that it takes longer to join a split of a context more than the 16 of
	// Calibration.Partials. Verdicts on candidates for defaults (docs/results/campaigns.md): 8, 12, 32 and 64 splits in
	// place of 16, at 600 to 2048.
	splitJoined = 0.020

	// splitElement is what comes to splitJoined for each element of all heads. The same verdicts, of models whose heads
	// have 576 to 3584 elements.
	splitElement = 25e-6

	measuredSplits = 16 // of Calibration.Partials

	// coldLine is the microseconds that an exchange takes longer on lines that were last used a step ago, and are not
	// in L2 any more. Searches on an H200: with a page for every exchange, steps of Qwen3-0.6B at 128 are 7 to 11 µs
	// longer, in 113 exchanges.
	coldLine = 0.1

	// heldAhead is the part of L2 up to which chunks that were asked for ahead of the ring are still there when the
	// ring comes to them. Llama-3.2-1B on an H100, with a stock: its ring takes 830 and 1432 µs with 16 and 64 chunks
	// ahead (35 and 138 MB), and 790 with few; the 0.6B shape on an H200, whose L2 is larger, loses nothing with 16.
	heldAhead = 0.62

	// maxShare is how many times its even share of the memory's bandwidth an SM gets at most while the others wait for
	// it with full rings. The ring of Qwen3-0.6B on an H100 takes 452 µs where the same SMs attend in each layer, and
	// 385 where they change; section ablations, split-off of Llama-3.2-1B at 2032, says some 1.9.
	maxShare = 1.75

	// assumedRead is the part of the data sheet's bandwidth that a GPU without measurements is taken to read at.
	// Published copies reach 0.89 on the A100. The ring reads at 0.98 of the data sheet on the H200 and at 0.94 on
	// the H100.
	assumedRead = 0.92
)

// Instructions and cycles. Straight-line code is executed once per layer by two warps per scheduler, and most of it
// waits for what is just before it.
const (
	// instructionCycles is what an instruction of such code takes. docs/performance.md, clocks in the attention units.
	instructionCycles = 3

	// firstCode is the instructions between a matrix stage's vector and its first product. Counted in the emitted code.
	firstCode = 30

	// tileCycles are lost at the end of each round of tiles. Section ablations, warps-8 of the 0.6B shape: with eight
	// warps per tile in place of four, 212 rounds more and 56 quads less a warp take 13.2 µs more, the mean of both
	// positions.
	tileCycles = 193

	// roundCycles and fragmentCycles are what a warp takes for a block of 16 cache rows, and for each 16 elements of
	// a head in it. Section contexts, drains at 8192 and 32752, 11.5 rounds of a block per warp apart: 778 cycles per
	// round of Llama-3.2-1B, whose heads have 64 elements, 1399 of the 0.6B shape, whose heads have 128.
	roundCycles, fragmentCycles = 157, 155.2

	// drainTensor is bytes per cycle that an SM's consumers take out of the ring where tensor cores multiply. Design
	// probes: consumers alone, 160 GB/s per SM.
	drainTensor = 81

	// offsetCycles is what it takes longer to make digits of a quad of columns where integers are multiplied with an
	// offset, as those of int4 are: the sum of the digits comes from an mma on its own. Counted in digits.cuh and
	// fragments.cuh: eight instructions, and 33 cycles until an mma.m16n8k32 is done (published micro-benchmarks).
	offsetCycles = 57
)

// A chip is what the model knows of a GPU besides its target record.
type chip struct {
	clock float64 // cycles a microsecond, the boost clock of the data sheet
	read  float64 // part of the data sheet's bandwidth at which memory can be read
	held  bool    // docs/results has rows of this GPU, with which predictions are compared
}

// CalibratedOn is the GPU that the constants were measured on. Design probes: a ring without dependencies read the
// weights of Llama-3.1-8B at 4.68 TB/s, where the data sheet has 4.80.
const CalibratedOn = "h200"

// chips are the GPUs of ir.Targets. Clocks: the sources that stand there. The H100's read is what fits the ceilings
// of its rows best (TestReads of internal/costcheck).
var chips = map[string]chip{
	"a100":        {1410, assumedRead, false},
	"a10g":        {1710, assumedRead, false},
	"a6000":       {1800, assumedRead, false},
	"b200":        {1965, assumedRead, false},
	"gb200":       {2062, assumedRead, false},
	"h100":        {1980, 0.937, true},
	CalibratedOn:  {1980, 0.979, true},
	"jetson-orin": {1300, assumedRead, false},
	"l4":          {2040, assumedRead, false},
	"l40":         {2490, assumedRead, false},
	"l40s":        {2520, assumedRead, false},
	"rtx3090":     {1695, assumedRead, false},
	"rtx4080":     {2505, assumedRead, false},
	"rtx4090":     {2520, assumedRead, false},
	"rtx5080":     {2617, assumedRead, false},
	"rtx5090":     {2407, assumedRead, false},
	"t4":          {1590, assumedRead, false},
}

// unknownChip stands for a GPU that has a bandwidth but no record here.
var unknownChip = chip{1700, assumedRead, false}

func chipOf(target string) (c chip, known bool) {
	if c, known = chips[target]; !known {
		c = unknownChip
	}
	return c, known
}

// ReadGBs is the rate at which the memory of a GPU can be read, in 10^9 bytes per second: as measured, or as in the
// data sheet of a GPU that was never measured.
func ReadGBs(t *ir.Target) float64 {
	if !Held(t.Name) {
		return t.HBMGBs
	}
	return chips[t.Name].read * t.HBMGBs
}

// Held reports whether internal/costcheck holds the predictions for a target to measurements in docs/results.
func Held(target string) bool { return chips[target].held }
