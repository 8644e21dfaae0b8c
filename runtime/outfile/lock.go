package outfile

// lockState is what came of an attempt to lock a file.
type lockState int

const (
	locked lockState = iota
	lockedElsewhere
	lockUnknown // there are no locks here
)
