package cost

import "amkc/ir/diag"

// What the model has no answer for. The codes are those of the schedule's judges, after validate's.
var (
	codeTarget = diag.New("AMK3601", "the cost model does not know the GPU", `
A time follows from the bandwidth of the memory, the number of multiprocessors and the clock of a GPU. The program
names no target, as programs of the AMK profile do, or its target says nothing of its bandwidth: one given as sm_NN
with --num-sms.

    amkc cost model/ --target h100

amkc targets lists the GPUs whose records have it.`)

	codePosition = diag.New("AMK3602", "no variant of the program runs at the position", `
A program is a list of variants, each for an interval of positions, up to the --max-seq it was compiled for. A
prediction is for one position; the message lists the intervals.`)

	codeJudge = diag.New("AMK3603", "the cost model cannot judge the program", `
The model follows the stages of a variant in their order, on the SMs that their tasks are assigned to. It judges
programs as passes leave them after assign: every task has an SM of the target, and a stage waits for counters that
stages before it signal. The message names the stage that is different. A step, of
one token, and a pass of several are predicted by rules of their own: what asks for a step wants one row of one
sequence.`)
)
