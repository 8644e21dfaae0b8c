package cost

// A Calibration holds the constants that cannot be measured separately: they were fitted so that the predictions match
// all rows of section bench in docs/results/h200.json together: the latency, the ceiling, which waits for no words, and
// the drain, which waits for no bytes. internal/costcheck finds them, and bounds how many there may be.
type Calibration struct {
	// Spread makes an exchange later by Spread·ln(writers) microseconds: it waits for the slowest of them, whose
	// delays have exponential tails.
	Spread float64

	// Tail is the part of what memory and L2 need for all bytes in flight that an exchange of all SMs takes longer
	// for them. Design probes: all of it is p99.9 of one word's latency.
	Tail float64

	// Uneven is how much later than the mean SM's the slowest one's bytes come: Uneven·√(t·way) microseconds t after
	// its ring was full, if a chunk is in flight for so long, as random delays add up. Design probes: at the end of a
	// stage the mean SM is done 1.6 to 3.2 µs before the slowest, another one in each layer. Section bench on its own
	// asks for 1.1, with which passes of the H100 in int4 are 12 % off.
	Uneven float64

	// Partials is the additional time in microseconds until 16 splits of a context are with who combines them. Design
	// probes: the hop takes 2.3 µs in all on an idle machine.
	Partials float64

	// StageCode is the instructions of a stage before it looks for its words, and again after its last product.
	StageCode float64

	// Ragged is the instructions more of a matrix stage whose columns do not divide into quads, one for each warp in
	// turn: every load and product has a guard then.
	Ragged float64

	// MatrixQuad is the instructions for each quad (128 columns) that a warp has of a tile.
	MatrixQuad float64

	// UnitCycles is what a unit of attention takes for each pass of the block's threads over its results:
	// straight-line code, and its warps' results are merged.
	UnitCycles float64
}

// Calibrated is the calibration of predictions.
func Calibrated() Calibration {
	return Calibration{
		Spread:     0.116,
		Tail:       0.434,
		Uneven:     0.93,
		Partials:   1.255,
		StageCode:  85.4,
		MatrixQuad: 88.3,
		UnitCycles: 1430,
		Ragged:     140,
	}
}
