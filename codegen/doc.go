// Package codegen turns a validated program into the files of a standalone CUDA project. It is pure: programs in, a
// map from file name to content out, the same bytes every time.
//
// It reads the program and nothing else: the layer loop, the order of stages, strides, pages and thresholds all come
// from it. It must not import passes, validate or refvm, and must not touch the file system.
package codegen
