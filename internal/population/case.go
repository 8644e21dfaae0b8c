package population

import (
	"amkc/interchange"
	"amkc/ir"
)

// A Case is a program whose safety is to be judged. Cases share what they have in common with others: do not modify
// one.
type Case struct {
	Name    string               // unique and reproducible: class, base and seed
	Class   string               // "lowering", "cycle", ..., "dag", "native", or a mutation operator
	Profile *interchange.Program // a program of the AMK profile; nil for the others
	Flat    *ir.Flat             // an unrolled program; nil if Profile or Program is set
	Program *ir.Program          // a native program; nil if Profile or Flat is set
	Target  *ir.Target           // of Flat, where one is known
	Kernel  bool                 // Flat is for the generated kernel, which reads some operands ahead of the waits
}
