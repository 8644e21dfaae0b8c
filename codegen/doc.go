// Package codegen turns a validated program into the files of a standalone CUDA project. It is a pure function from
// programs to a map of file names and contents, with the same bytes every time.
//
// It reads only the program: the layer loop, the order of stages, strides, pages and thresholds all come from it. It
// must not import passes, validate or refvm, and must not touch the file system.
package codegen
