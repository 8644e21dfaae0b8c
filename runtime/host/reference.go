package host

import "amkc/runtime/driver"

// A Reference decodes with the plain kernels of reference.cu, one operation a kernel, on the weights and the cache of a
// session. [Session.Check] and [Session.Bisect] hold the megakernel to it.
type Reference interface {
	// Step decodes token at a position: it reads the rows of the cache before the position, writes the position's own
	// row, and returns the logits [vocab], valid until the next call. All its work is done when it returns.
	Step(token, position int) ([]float32, error)
	// Follow carries out the step that was traced, and gives every stage the inputs that the megakernel gave its own,
	// so that an error shows in the stage that makes it and in no later one. It returns the results of all stages
	// that both have, in order, and what the megakernel has left in the cache.
	Follow(token int, t *Trace) ([]StagePair, error)
	// Close frees what the reference holds besides the session's memory.
	Close() error
}

// Resident is what a session has on the GPU, for a [Reference] to work on.
type Resident struct {
	Dir     string // of the build
	Device  *driver.Device
	Facts   *Facts
	Info    Info
	Weights driver.Ptr // the data section of weights.safetensors
	Cache   driver.Ptr // Info.CacheBytes, in the layout of the megakernel
}

// A ReferenceOpener looks up the kernels of a reference and allocates its scratch memory.
type ReferenceOpener func(Resident) (Reference, error)
