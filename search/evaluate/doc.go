// Package evaluate judges one configuration of a schedule: it is lowered, proved and emitted, held to the reference VM
// or to the plain kernels, and predicted or measured alongside the configuration that it is to beat. What comes out is
// a verdict (package search). It also says which values of knobs make a difference for a model and a target.
//
// Nothing is launched that is not proved, and no time leaves the package without a check that has passed. It must not
// decide what to try next.
package evaluate
