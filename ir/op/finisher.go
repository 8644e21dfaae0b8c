package op

// A Finisher declares a function of the device runtime (runtime/cuda/amk/finish.cuh) that computes an op on a finished
// row. The emitter writes calls from it, and the reader of a build turns calls into ops, each with separate code. A
// test compares the function's parameters with it.
type Finisher struct {
	Func string // its name
	// Row: the function takes the Row before the value, because it reads other rows too.
	Row bool
	// Result is the name of the variable in emitted code for a result without a name.
	Result string
	// Halves: every two rows become one, which is in the even row. At most once in a stage.
	Halves bool
	// Shape is the type that is constructed from a vector of weights when the stage begins: the op's second operand, of
	// Weights elements, which all rows share. The function takes it after the value. "": the op has one operand.
	Shape   string
	Weights int
	// Args are the keys of real parameters, in the order in which they follow the value. An op on finished rows must
	// have all of them.
	Args []string
}
