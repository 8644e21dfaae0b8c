// Package amk is the AMK IR 0.2.0 interchange profile: the JSON programs that AutoMegaKernel writes and loads. It reads
// them, writes them back byte for byte, and lowers a request (a model shape, a target, a position) to the program that
// AutoMegaKernel would have written for it. Flatten turns a program into the form that is proved and run, and ToAMK
// exports a native program, as far as the profile can express it.
//
// The profile is a foreign format. Its oddities (configuration knobs without effect, operand counts above its own
// registry) are part of it and are kept; amkc compiles its native form, package ir, and never this one.
//
// It stands at the edge of the tree: the command line and tests read it, and nothing that a compile is made of does. It
// imports the standard library, ir and ir/diag, and must not import passes, validate, refvm or codegen: those
// judge and execute what this package loads.
package amk

// The versions that the lowering writes. A file is refused when the text before the first dot of its own differs.
const (
	IRVersion  = "0.2.0"
	ABIVersion = "0.2"
)

// Capacity limits of the profile's device ABI. Parse does not enforce them: a program above them is well-formed and
// for a validator to reject.
const (
	MaxInputs  = 8
	MaxOutputs = 4
	MaxWaits   = 8
	MaxRank    = 4
)
