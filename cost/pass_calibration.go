package cost

// A PassCalibration is what a pass of several tokens has besides the constants of a step. They were chosen together, on
// the rows of section pass_times in docs/results/h100.json, each of which has the latency and the ceiling of two
// passes of eight tokens.
type PassCalibration struct {
	// TokenCode is the instructions of a warp for the words of four tokens in a quad of its columns: to ask for them,
	// to see that they are there, and to put values together.
	TokenCode float64

	// IntegerQuad is the cycles that a warp takes to multiply a quad of integers by four tokens, and to scale and add
	// the sums of its quarters.
	IntegerQuad float64

	// DigitQuad is the cycles that a warp takes to make digits of the activations of four tokens in a quad of its
	// columns. docs/passes.md has 3.7 µs for 4096 columns of eight tokens, which would be 915.
	DigitQuad float64

	// Rereads is the part of a round of polls that comes after the last word. A round of several tokens asks for all of
	// its words again: half of one is in flight then, on average, in which some warps find theirs.
	Rereads float64
}

// PassCalibrated is the calibration of predictions of passes.
func PassCalibrated() PassCalibration {
	return PassCalibration{TokenCode: 28, IntegerQuad: 105, DigitQuad: 770, Rereads: 0.67}
}
