package cost

// A Calibration holds the constants that nobody measured by themselves: they were chosen so that the predictions fit all rows of section
// bench in docs/results/h200.json together. internal/costcheck finds them, and bounds how many there may be.
type Calibration struct {
	// Spread makes an exchange later by Spread·ln(writers) microseconds: it waits for the slowest of them, whose delays have
	// exponential tails.
	Spread float64

	// Uneven is how much later than the mean SM's the slowest one's bytes come: Uneven·√t microseconds where the mean one waits t for
	// its own, as random delays add up. Design probes: at the end of a stage the mean SM is done 1.6 to 3.2 µs before the slowest,
	// another one in each layer.
	Uneven float64

	// Partials is the additional time in microseconds until the splits of a context are with who combines them. Design probes: the hop
	// takes 2.3 µs in all on an idle machine.
	Partials float64

	// MatrixCode is the instructions of a matrix stage before it looks for its vector, and again after its last product.
	MatrixCode float64

	// MatrixQuad is the instructions for each quad (128 columns) that a warp has of a tile.
	MatrixQuad float64

	// UnitCycles is what a unit of attention takes once: its code is fetched, its warps' results are merged.
	UnitCycles float64

	// FragmentCycles is what a warp takes for each 16 elements of a head in a block of 16 cache rows.
	FragmentCycles float64

	// WordsCode is the instructions of a stage without weights before it looks for its words, and again after them.
	WordsCode float64

	// EndCode is the instructions of each of the two ends of a step: the best logit of the block, the rotation of the position.
	EndCode float64
}

// Calibrated is the calibration that predictions are made with.
func Calibrated() Calibration {
	return Calibration{
		Spread:         0.112,
		Uneven:         0.818,
		Partials:       1.15,
		MatrixCode:     123,
		MatrixQuad:     25.6,
		UnitCycles:     500,
		FragmentCycles: 227,
		WordsCode:      158,
		EndCode:        1255,
	}
}
