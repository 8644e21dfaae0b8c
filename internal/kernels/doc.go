// Package kernels gives nvcc the emitted CUDA of small models, warnings as errors: a table of cases that together have
// all forms of the code, for all architectures. What nvcc makes is kept in amkc's cache, so that a source is compiled
// again only if it or a header that it includes has changed.
//
// It is tests alone, and `make kernels`: nothing imports it.
package kernels
