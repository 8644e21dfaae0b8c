// Package cost turns bytes, exchanges and ring into a predicted time for a target: what a step of a program should
// take on a GPU, and where the time should go, from the program and a handful of constants. docs/cost-model.md has
// the formulae and holds them to what was measured.
//
// A prediction is not a measurement, and says so. The package runs nothing, imports ir and ir/diag alone, and takes
// programs that ir.Check accepts; what it cannot judge it refuses with a diagnostic. The same program gives the same
// numbers.
package cost
