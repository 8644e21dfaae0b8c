// Package cost predicts how long a step, a pass or a prompt of a program takes on a target, and on what the time is
// spent, from the bytes, the exchanges and the ring of the program and a few constants. docs/cost-model.md has the
// formulae and compares them with measurements.
//
// Predictions are labelled as such and never presented as measurements. The package runs nothing. It takes programs
// that ir.Check accepts, refuses with a diagnostic what it cannot predict, and is deterministic.
package cost
