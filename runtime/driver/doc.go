// Package driver calls the CUDA driver API of the installed NVIDIA driver, without cgo and without a CUDA toolkit.
//
// It loads libcuda.so.1 when it is first needed, so a binary that links this package starts on any machine and reports
// a missing driver as an error.
//
// # Threads
//
// A CUDA context is current on a thread, and goroutines move between threads. So [Open] starts one goroutine, locked
// to its OS thread, that retains the device's primary context and makes every call for that [Device]; methods hand
// their call to it over a channel and wait. All methods are therefore safe for concurrent use, and run one at a time.
// Two consequences:
//
//   - [Stream.Synchronize] and [Event.Synchronize] occupy that thread until the GPU is done, and other calls queue
//     behind them. Memory from [Device.AllocPinned] needs no call to read or write, so a running kernel can be told to
//     stop all the same; or poll [Stream.Query].
//   - A hop to the thread costs microseconds. [Device.Do] runs a function there, and calls made inside it do not hop.
//
// [Count] and [Probe] create no context and run on the caller's thread.
//
// # Limits
//
// The package reads facts and runs work; clocks and settings it reads through NVML ([Device.Monitor]), which it also
// binds only when asked. It never changes the state of the GPU that outlives the process: no clocks, no power limits,
// no compute mode, no partitioning, no persistence mode.
//
// It is copied into every emitted launcher, so it imports only the standard library and
// github.com/ebitengine/purego, and must not import any package of amkc. It is the only package that may import purego.
// Errors are plain: [Error] for a failed call, [Problem] where it is known what the user can do about it.
package driver
