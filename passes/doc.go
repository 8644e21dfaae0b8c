// Package passes turns a checkpoint into a scheduled program: import has package importers build the operator graph,
// lower turns it into stages, and the passes after it fuse, tile, assign, roll and place those stages. One pass is one
// value and, with its supporting types, one file named after it, or several whose names begin with it; loop is package
// loops. compiler/pipeline.go has the order. Every pass but import and lower works on an ir.Program alone, so that each
// can be run on a program that was read from a file.
//
// Weights are supplied through the same package (Weights), because the arrangement of their rows is what lower and fuse
// decided.
//
// The package must not import validate or refvm, which judge what it produces (its tests do), nor anything that runs
// after it.
package passes
