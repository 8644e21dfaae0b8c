// Package population makes programs for testing how sound validate is: lowerings of the AMK profile, mutants of them
// with one injected defect each, random graphs, programs drawn from templates in text form, and what operators make of
// all that have stages. A case is made from its class and a seed alone, so that a name is enough to make it again.
//
// No verdict comes with a case. The package makes programs and judges none, and must import neither what judges or runs
// them (validate, refvm, an oracle) nor the passes. Only tests and the soundness run import it.
package population
