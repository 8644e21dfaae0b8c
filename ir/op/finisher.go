package op

// A Finisher is a function of the device runtime (runtime/cuda/amk/finish.cuh) that carries out an op on a
// finished row. The emitter writes calls by it and the reader of a build turns calls into ops by it, each with its
// own code; a test holds the function's parameters to it.
type Finisher struct {
	Func string // its name
	// Row: it is given the Row before the value, because it looks at rows other than its own.
	Row bool
	// Result names the variable that the emitted code has for a result without a name.
	Result string
	// Halves: every two rows become one, which the even row gets. Once in a stage.
	Halves bool
	// Shape is the type that a vector of weights becomes when the stage begins: the op's second operand, of Weights
	// elements, which all rows share. The function is given it after the value. "": the op has one operand.
	Shape   string
	Weights int
	// Args are the keys of real parameters, in the order in which they follow the value. On finished rows an op
	// states all of them.
	Args []string
}
