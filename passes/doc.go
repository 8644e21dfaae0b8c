// Package passes turns a checkpoint into a scheduled program: import has package importers build the operator graph,
// lower turns it into stages, and the passes after it fuse, tile, assign, roll and place those stages. A pass is a
// value in a file of its name, together with its supporting types, or in several files whose names begin with it. Pass
// loop is package loops. compiler/pipeline.go has the order. Every pass except import and lower works only on an
// ir.Program, so each can run on a program that was read from a file.
//
// The package also supplies weights (Weights), because lower and fuse determine the order of their rows.
//
// The package must not import validate or refvm, which judge what it produces (its tests do), nor anything that runs
// after it.
package passes
