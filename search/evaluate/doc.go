// Package evaluate judges one configuration of a schedule: it lowers, proves and emits it, compares its results with
// the reference VM or the plain kernels, and predicts or measures its time together with that of the baseline. The
// result is a verdict (package search). It also finds the values of knobs that make a difference for a model and a
// target.
//
// Only proved kernels are launched, and a measured time is returned only if the check has passed. The package must not
// decide what to try next.
package evaluate
