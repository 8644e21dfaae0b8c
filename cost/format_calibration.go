package cost

// A FormatCalibration is what steps of integers, and of models without tensor cores, have besides the constants of
// 16-bit elements. They were chosen together, on the rows of sections roofline and compare in docs/results/h200.json
// whose weights are int8, int4 or fp32, at positions 0 and 128.
type FormatCalibration struct {
	// VectorQuad is the cycles that a warp takes to make digits of the activations of a quad of its columns, before it
	// multiplies integers by them. docs/performance.md has 0.4 µs for each product of the 0.6B shape, of one quad or
	// two.
	VectorQuad float64

	// ProductQuad is the cycles that a warp takes to multiply a quad of integers, and to scale and add the sums of its
	// quarters. They are spent while bytes leave the ring; whichever takes longer counts.
	ProductQuad float64

	// ProductBatch is the cycles that come to it for each batch of up to four quads, whose products are in flight
	// together: until the first of them is there. A chunk with one quad for each warp is a batch of one.
	ProductBatch float64

	// PlainStage is the cycles until the first product of a stage without tensor cores: the vector goes to shared
	// memory, with the weights of a norm that are fetched only then, and the block meets at a barrier.
	PlainStage float64

	// PlainBlock is the cycles that a warp takes there for 8 rows by 32 columns: loads from shared memory, and eight
	// additions one after the other.
	PlainBlock float64

	// PlainHead is the cycles that a warp takes without tensor cores for 16 elements of a block of cache rows, for each
	// head: loops over elements, each of which waits for a load.
	PlainHead float64
}

// FormatsCalibrated is the calibration of predictions for these formats and models.
func FormatsCalibrated() FormatCalibration {
	return FormatCalibration{VectorQuad: 129, ProductQuad: 81, ProductBatch: 241, PlainStage: 650, PlainBlock: 332,
		PlainHead: 1214}
}

// FormatError is the RMS error of the ratio of two formats' predicted times, as a part: what internal/costcheck finds
// over all pairs of rows that differ in nothing else.
const FormatError = 0.051
