// The explorer's own entry points of libamkcpu.so, besides those of a CUDA driver. Strings that are
// returned are the library's, and stay until the next call.
#pragma once

extern "C" {

// What the GPU is. JSON: {"arch":90,"sms":4,"shared_per_block":232448,"name":"..."}; what is not
// there stays. With "gpus":n, 1 by default, these are the SMs of n GPUs: a cooperative launch of a
// block for each SM has the blocks of one GPU after those of another, and so do n launches, one for
// each GPU, that run when the last is there. Call it before cuInit,
// or set the environment variable AMK_CPU_DEVICE to it. Returns what is wrong with it, or null.
const char* amk_explore_device(const char* json);

// Begins a schedule: that of all launches from here to the next call. JSON, all of it optional:
//   "strategy"    "replay" (the default: nothing but "deviations"), "random", "pct", "exhaustive"
//   "seed"        of random and pct
//   "depth"       places where priorities change (pct); the most deviations (exhaustive)
//   "last"        n: block n - 1, modulo their number, runs only when no other can (pct)
//   "expected"    choices of a run, about (pct)
//   "deviations"  [[index, value], ...] in order (replay)
//   "reduced"     true: threads change places before operations that do not commute alone, which
//                 leaves fewer schedules; "deviations" are then of those of such a run
//   "assume"      {"l2-single-copy": false, ...}: assumptions that are not there are an error
//   "mutant"      the number of one of kernels that have mutants (mutant.h); 0: none
//   "max_steps"   steps that a launch may have
//   "host_stores" [{"step":n,"pointer_at":n,"value":n}, ...]: n steps after the schedule
//                 began the host stores a word of 4 bytes at the address that lies at this byte of
//                 the kernel's argument
// Forgets findings and counts. Returns what is wrong with it, or null.
const char* amk_explore_schedule(const char* json);

// Prepares the next schedule of an exhaustive strategy, and forgets findings and counts. 0: the one
// that has run was the last.
int amk_explore_next(void);

// What has happened since the schedule began. A finding that has been returned is listed once more
// if it happens again. JSON:
//   {"findings":[{"kind":"...","message":"...","sites":[{"file":"...","line":1,"block":0,"thread":0},
//                 {"module":"...","offset":1,"block":0,"thread":0}]}],
//    "choices":n,"deviations":[[index,value],...],"steps":n,"launches":n,"abandoned":false,
//    "reached":[site,...],"counts":{"loads":n,...}}
// A module is what cuModuleLoadDataEx got a path for, or the number of the load; offset is that of
// an instruction in it.
const char* amk_explore_result(void);

// Assumptions that the memory model rests on. JSON: [{"name":"...","meaning":"...","on":true}]
const char* amk_explore_assumptions(void);
}
