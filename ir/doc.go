// Package ir holds amkc's two levels of program and their text and JSON forms.
//
//   - Graph: one node per model operation, as an importer builds it.
//   - Program: the scheduled task graph of one decode step. A Program lists buffers, pages and, for each interval of
//     the position, a Variant: counters and a body of stages and loops. A Stage stands for all tasks of one fused
//     operation in one layer; its distribution says which SM runs which span of the stage's axis.
//   - Flat: a Variant unrolled, one entry per task, every name resolved. Validate proves it, refvm runs it, and
//     programs of the AMK profile are converted to it.
//
// All other packages of amkc communicate through these types: validate, refvm and cost import only this package and
// ir/op, which declares the opcodes. Package ir imports only the standard library, ir/diag and ir/op.
package ir
