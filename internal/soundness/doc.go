// Package soundness measures validate against the oracles: it draws programs from the populations, asks both, and
// counts. A program that validate accepts and an oracle finds unsafe is a false accept, of which there must be none.
// One that validate rejects although the oracles found nothing is either explained, by the hazard that they cannot
// see, or a finding.
//
// Only tests and `make soundness` use it. It may import validate, the oracle and the population, and nothing of passes
// or codegen.
package soundness
