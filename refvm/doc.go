// Package refvm executes a program on the CPU, in plain Go and float32. It is the oracle that the CUDA kernel is
// compared with, and the engine on a machine without a GPU.
//
// It imports the standard library, ir and the packages below it, and must import no other package of amkc: an oracle
// that shares code with what it checks shares its bugs. One choice it shares on purpose: ir/format.InFixedPoint says
// for the compiler and for the VM whether a quantised matrix is multiplied by digits or by values in fp16. Each does
// that in code of its own. TestProductsOfTheKernel (compiler/cli, products.cc) compares what the device code makes of
// matrices of each format, whatever is chosen, with the elements that the plain kernels find.
//
// # A decode step
//
// A step takes one token at one position and yields logits: a number for each entry of the vocabulary, the largest of
// which is the next token. To read what happens in between, read the kernels in this order:
//
//	embed             the token's row of a table is x, a vector of the model's hidden size (embed.go)
//	for each layer:
//	  rmsnorm, gemv     x, scaled, times one matrix: queries, keys and values of all heads (norm.go, gemv.go)
//	  rope              queries and keys are turned by the position (rope.go)
//	  attention         each head looks back: a softmax over products of its query with the keys of all rows so far
//	                    weighs their values; kvAppend keeps the new key and value for the steps to come (attention.go)
//	  gemv, add         times a matrix, added to x (elementwise.go)
//	  rmsnorm, gemv     x, scaled, times one matrix: gate and up of the feed-forward network, interleaved row by row
//	  siluMul           silu(gate) * up
//	  gemv, add         times a matrix, added to x
//	rmsnorm, gemv     logits
//	argmax            the next token (argmax.go)
//
// The program cuts each of these stages into tasks, one for each SM's span of rows, and says with counters which task
// waits for which. The VM runs a task when its waits are satisfied and the tasks before it in its SM's queue are done
// (order.go, step.go). A program that validate accepts yields the same bits in every order and with any number of
// workers.
//
// What an op touches it gets from its worker, element ranges at a time (worker.go). That is where accesses are recorded
// and where a task that reaches for another SM's shared memory is caught. Buffers are held by logical element; layouts
// are the device's matter. Buffers on one page share storage, so that a wrong page shows as wrong numbers (memory.go).
//
// # Rounding
//
// Arithmetic is float32 throughout, transcendental functions are computed in float64 and rounded. With Options.Round
// None nothing else is rounded. With Device, values are rounded where the kernel rounds, to nearest, ties to even:
//
//	every value written to a BF16 or F16 buffer       to that type: exchanged vectors, rows of the KV cache
//	weights                                           to the type of their buffer, when they are loaded
//	RMSNORM of a BF16 or F16 vector x into a temporary  x·g is rounded once to x's type; the products with a matrix
//	                                                  are summed in float32 and the sum is scaled by 1/rms; and so is
//	                                                  the last hidden state, which logits are made of
//	LAYERNORM of a BF16 or F16 vector                 the result is rounded once to x's type
//	a vector of a 16-bit model times one of I4 or I8  to 16-bit integers, by 128 columns, for the product (digits.go)
//	a vector of a 16-bit model times one of F8E4M3    to F16 times a power of two, by 128 columns, for it (round.go)
//	rows of a KV cache of I8                          to multiples of the scale of the row, also the step's own as
//	                                                  attention sees it; see cache.go for how their values are weighed
//	attention probabilities, before they weigh V      to the type of the cache, except that of the step's own row, which
//	                                                  kernels round on tensor cores alone; they add up unrounded
//
// All else stays float32: the residual, scores, partial results of attention, dot products, logits.
//
// # Radii
//
// With Options.Radii the VM keeps with each value how far that of a correct kernel may be from it: sums may be added up
// in another order, functions have the errors that CUDA documents (radius.go). Where the kernel has published
// something, a step can go on from that.
package refvm
