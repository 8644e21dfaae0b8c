// Package refvm executes a program on the CPU, in plain Go and float32. It is the reference that the CUDA kernel is
// compared with, and the engine on a machine without a GPU.
//
// It imports the standard library, ir and the packages below it, and must not import any other package of amkc: a
// reference that shares code with its subject shares its bugs. One decision is shared on purpose:
// ir/format.InFixedPoint tells both the compiler and the VM whether a quantised matrix is multiplied in fixed point or
// in fp16. Each implements that separately. TestProductsOfTheKernel (compiler/cli, products.cc) compares the products
// of the device code, for each format, with the elements that the plain kernels read.
//
// # A decode step
//
// A step takes one token at one position and computes logits: a number for each entry of the vocabulary, the largest of
// which is the next token. These kernels compute them, in this order:
//
//	embed             the token's row of a table is x, a vector of the model's hidden size (embed.go)
//	for each layer:
//	  rmsnorm, gemv     x, scaled, times one matrix: queries, keys and values of all heads (norm.go, gemv.go)
//	  rope              queries and keys are rotated by the position (rope.go)
//	  attention         for each head, a softmax over the products of its query with the keys of all rows so far
//	                    weights their values; kvAppend stores the new key and value for later steps (attention.go)
//	  gemv, add         times a matrix, added to x (elementwise.go)
//	  rmsnorm, gemv     x, scaled, times one matrix: gate and up of the feed-forward network, interleaved row by row
//	  siluMul           silu(gate) * up
//	  gemv, add         times a matrix, added to x
//	rmsnorm, gemv     logits
//	argmax            the next token (argmax.go)
//
// The program divides each of these stages into tasks, one for the span of rows of each SM, and its counters specify
// which task waits for which. The VM runs a task when its waits are satisfied and the tasks before it in the queue of
// its SM are done (order.go, step.go). A program that validate accepts has the same results, to the bit, in every order
// and with any number of workers.
//
// Ops access buffers through their worker, a range of elements at a time (worker.go), which records accesses and
// refuses those to the shared memory of another SM. Buffers are stored by logical element, whatever their layout on the
// device. Buffers on one page share storage, so that a wrong page leads to wrong numbers (memory.go).
//
// # Rounding
//
// Arithmetic is float32 throughout, transcendental functions are computed in float64 and rounded. With Options.Round
// None nothing else is rounded. With Device, values are rounded where the kernel rounds, to nearest, ties to even:
//
//	every value written to a BF16 or F16 buffer       to that type: exchanged vectors, rows of the KV cache
//	weights                                           to the type of their buffer, when they are loaded
//	RMSNORM of a BF16 or F16 vector x into a temporary  x·g is rounded once to x's type; the products with a matrix
//	                                                  are summed in float32 and the sum is scaled by 1/rms; so is the
//	                                                  last hidden state, from which logits are computed
//	LAYERNORM of a BF16 or F16 vector                 the result is rounded once to x's type
//	a vector of a 16-bit model times one of I4 or I8  to 16-bit integers, by 128 columns, for the product (digits.go)
//	a vector of a 16-bit model times one of floats    to F16 times a power of two, by 128 columns, for it (round.go)
//	rows of a KV cache of I8                          to multiples of the scale of the row, including the row of the
//	                                                  current step as attention reads it (cache.go)
//	attention probabilities, before they weight V     to the type of the cache, except that of the current step's
//	                                                  row, which only kernels on tensor cores round; their sum is not
//	                                                  rounded
//
// Everything else is float32: the residual, scores, partial results of attention, dot products, logits.
//
// # Radii
//
// With Options.Radii the VM computes an error bound for each value: how far the value of a correct kernel may be from
// it. A kernel may add in another order, and its functions have the errors that CUDA documents (radius.go). A step can
// also continue from the values that a kernel has published, instead of its own.
package refvm
