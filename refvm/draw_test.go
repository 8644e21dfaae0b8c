package refvm

import (
	"math"
	"slices"
)

// drawCases are cases of [TestOps].
var drawCases = []caseOp{
	{
		name: "a token of two that are drawn", op: `index[0:2] = SAMPLE(z[0:2,0:8], settings[0:2,0:4]) pos=pos`, pos: 3,
		ints:    map[string][]float32{"z": append(drawn, drawn...), "settings": append(halved(2), halved(3)...)},
		buffers: drawBuffers,
		want:    func([][]float64) []float64 { return []float64{0, 6} },
	},
	{
		name: "drawn from a part", op: `out[1], index[1] = SAMPLE(z[0,2:8], settings[1,0:4]) partial=1 first=2 pos=pos`,
		ints:    map[string][]float32{"z": append(drawn, drawn...), "settings": append(halved(0), halved(3)...)},
		buffers: drawBuffers, pos: 3,
		want: func([][]float64) []float64 { return []float64{0.75, 6} },
	},
	{
		name: "of a part of -Inf alone there is none", pos: 3,
		op:      `out[1], index[1] = SAMPLE(z[0,2:4], settings[1,0:4]) partial=1 first=2 pos=pos`,
		ints:    map[string][]float32{"z": minusInf(16), "settings": append(halved(0), halved(3)...)},
		buffers: drawBuffers,
		want:    func([][]float64) []float64 { return []float64{math.Inf(-1), noIndex} },
	},
	{
		name: "drawn from what parts have drawn", pos: 3,
		op: `index[0] = SAMPLE(z[0,0:4], ids[0:4], settings[1,0:4]) pos=pos`,
		ints: map[string][]float32{"z": append([]float32{0.25, 1, -0.5, 0.75}, make([]float32, 12)...),
			"ids": {0, 3, 4, 6}, "settings": append(halved(0), halved(3)...)},
		buffers: drawBuffers,
		want:    func([][]float64) []float64 { return []float64{6} },
	},
	{
		name: "settings of 0 choose the largest", op: `index[1] = SAMPLE(z[0,0:8], settings[1,0:4]) pos=pos`, pos: 3,
		ints:    map[string][]float32{"z": append(drawn, drawn...), "settings": make([]float32, 8)},
		buffers: drawBuffers,
		want:    func([][]float64) []float64 { return []float64{3} },
	}, {
		name: "a whole row is counted from 0", op: `index[1] = SAMPLE(z[0,0:8], settings[1,0:4]) pos=pos first=2`,
		pos:     3,
		ints:    map[string][]float32{"z": append(drawn, drawn...), "settings": make([]float32, 8)},
		buffers: drawBuffers,
		want:    func([][]float64) []float64 { return []float64{3} },
	},
}

// What is drawn from these numbers at position 4 with a temperature of 0.5 is what package sampling draws: by the seeds
// 0 to 5 the tokens 2, 3, 0, 6, 2 and 3.
var drawn = []float32{0.25, -1, 0.5, 1, -0.5, 0.125, 0.75, 0}

func minusInf(n int) []float32 { return slices.Repeat([]float32{float32(math.Inf(-1))}, n) }

// halved are the settings of a temperature of 0.5.
func halved(seed float32) []float32 { return []float32{0, 0x3FE00000, seed, 0} }

const drawBuffers = "buffer z IO_INPUT F32 [2,8] HBM rowmajor\nbuffer settings IO_INPUT I32 [2,4] HBM rowmajor\n" +
	"buffer ids IO_INPUT I32 [4] HBM rowmajor\nbuffer index ACTIVATION I32 [2] HBM rowmajor\n" +
	"buffer out ACTIVATION F32 [2] HBM rowmajor"
