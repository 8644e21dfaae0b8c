package evaluate

import (
	"amkc/ir/diag"
	"amkc/search"
)

var (
	codeUnforeseen = diag.New("AMK6101", "an evaluation failed in a way it did not foresee", `
Something failed that no diagnostic describes, while a configuration was lowered, proved, emitted or measured. The
message is that of the operating system or of a library.`)

	codeLate = diag.New("AMK6102", "an evaluation took too long", `
A configuration is given a time to be lowered, proved, built and measured in. This one took longer, and was ended; the
class of its verdict is TIMEOUT. A search goes on with the next one, and after three such ends with one value of a knob
it leaves that value alone.`)

	codeFloor = diag.New(search.CodeFloor, "a time is below what is possible", `
A step cannot take less time than streaming its bytes through the ring without waits (the ceiling), except for a little
where SMs stream unequal shares (docs/bench.md), or through memory if they do not fit the L2. The limit of a prediction
is the measured bandwidth of memory, and else that of the data sheet. A shorter time shows a fault of the measurement or
of the prediction, and says nothing about the configuration: it is rejected, and the number is not reported.`)

	codeDiffers = diag.New("AMK6104", "a configuration computes something else", `
On a GPU the kernel's logits are compared with those of the plain kernels of the same build. Without one, those of small
models are held, on the reference VM, to the program with every knob at its default: to the bit, unless a knob was
changed that decides in which order sums are added up. The class of the verdict is FAIL, and there is no time.`)

	codeMeasure = diag.New("AMK6105", "a measurement failed", `
Candidate, incumbent and the incumbent's twin are open at once on one GPU, interleaved. If the incumbent cannot be
opened or measured, there is nothing to compare with, and no verdict; if the candidate cannot, its class is CRASH. Three
builds must fit the memory of the GPU together.`)

	codePosition = diag.New("AMK6106", "a position is beyond those of the model", `
Positions count from 0, up to the last one that the model is compiled for. --max-seq compiles for more.`)

	codeTools = diag.New("AMK6107", "nvcc is not here", `
--registers has nvcc compile the sources and report what ptxas gives each kernel: registers, and bytes that spill. make
cuda fetches an nvcc; it needs g++. Without the flag, nvcc is asked for predictions where it is here.`)

	codeIdle = diag.New(search.CodeIdle, "a candidate emits the same step as its baseline", `
The candidate has other settings than its baseline, and what is emitted for a step is the same, byte for byte. The
message names the settings from which nothing follows. To measure such a candidate would be to compare a kernel with
itself, so it is REJECTED before anything is built. That the digest of its build would be another one means nothing:
program.json states every setting. A setting has no effect if the model does not use it (gemv.split_k where no columns
are cut), if its value amounts to another one (attention.max_splits 24 where there are SMs for 16), or if it is the
value that the baseline has by default.

amkc search space lists the values that make a difference on their own, those that make the kernels of another value
(same), and the knobs that have no effect here. A candidate with the settings of its baseline is judged: that shows the
noise.`)

	codeMemory = diag.New(search.CodeMemory, "a configuration takes too much of the GPU's memory", `
Weights, cache and scratch of a configuration that is judged may take 80 % of the memory of its target, as its record
has it, or --memory. What the driver, libraries and other processes take of the rest is not known, and a campaign
that runs for hours is not to end with memory that has run out. Compile for fewer positions (--max-seq), store weights
in fewer bits (--weights), or name a GPU with more memory. amkc itself compiles what fits (amkc cost and amkc compile
say how much that is).`)

	codeOrder = diag.New(search.CodeOrder, "a candidate adds up in another order than its baseline", `
With --same-bits a search, or an evaluation, leaves alone what decides in which order sums are added up, so that logits
keep their last bits. The knob that the message names is another one than in the baseline: because it is stated, or
because its default follows another knob, as tiling.ring.chunk_bytes follows smem_bytes_per_block where the ring is
small. State it as it is in the baseline, or leave --same-bits out.`)
)
