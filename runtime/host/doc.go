// Package host runs a build: it opens the directory that amkc wrote, puts weights and cache on the GPU, and decodes,
// checks and measures with the kernels of the build.
//
// [Open] refuses what cannot work before it loads anything large: a device other than the one compiled for, files
// that do not belong together, too little memory. A [Session] then holds the GPU memory and the position of the next
// token. [Session.Feed], [Session.Generate] and [Session.Complete] decode, [Session.Check] compares the megakernel
// with the plain kernels of the same build, [Session.Bisect] names the first stage in which the two differ,
// [Session.Bench] measures, and [Session.Profile] records who did what when; both refuse to before the check has
// passed.
//
// # Launches
//
// One launch runs consecutive steps of one variant. What crosses a launch stays on the GPU: the cache, and the exchange
// pages, whose words carry epochs. Epochs count the steps since the pages were cleared, so this package clears them
// whenever the variant changes and after a launch that was given up, and counts anew.
//
// Tokens arrive in pinned host memory while the kernel runs. An abort word in the same memory makes a kernel that waits
// in vain give up; where each SM gave up comes back as a [StallError].
//
// The package is copied into every emitted launcher. It imports the standard library, runtime/driver, runtime/infile
// and runtime/printable, and must not import any other package of amkc. Errors are plain types, see errors.go.
package host
