// Package readback reads a schedule back out of the sources of a build. schedule.h, pages.h and model_config.h open
// with a block of literals, the constants that the kernel is compiled with, and stages.h with the functions of its
// matrix stages; megakernel.cu calls them, between marks. docs/verify.md has the grammars. From them, and from what
// package kernel declares that the functions of amk/ do on the device, the package rebuilds the program, so that
// what is proved is what runs. It knows the constants of compiled models and the names that their entities have; a
// program that calls its buffers otherwise compiles to sources that it cannot read.
//
// It is an oracle of codegen: it shares declarations with it (ir, kernel, knobs) and no code. It must not know
// templates, passes or codegen, nor see program.json before its own program is complete. It never panics, whatever
// the bytes; reading them is linear, and the program that they describe has to keep within the budgets of ir.Check.
package readback
