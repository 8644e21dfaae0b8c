package simulate

import "amkc/ir/diag"

// Codes of errors in running a program, and of programs that cannot be run.
var (
	CodeRace = diag.New("AMK3701", "an order of tasks in which two conflict", `
Two tasks touch the same memory, one of them writes it, and neither waits for the other: which of them comes first is
left to chance. The script has an order in which the wrong one does.

    1. SM 1  use.s001   starts, runs COPY
    2. SM 0  make.s000  comes too late

Let the later one wait for a counter that the earlier one signals, or put them on one SM. amkc validate says which wait
is missing (AMK3130 to AMK3137).`)

	CodeStuck = diag.New("AMK3702", "tasks that wait forever", `
The program stops before all tasks are done: tasks wait for each other in a circle, for a counter that nobody adds to,
or for a word that was overwritten before they looked. The script has the order in which a word is lost, if one is, and
the tasks that wait then.

    p.amk: stops at position 0 in every order; 2 tasks wait for each other:
      1.  SM 0  a.s000  waits for counter d to reach 1; it is at 0, and b.s001 would add to it
      2.  SM 1  b.s001  waits for counter c to reach 1; it is at 0, and a.s000 would add to it`)

	CodeUndefined = diag.New("AMK3703", "an order in which a task reads what nobody has written", `
A task reads bytes that no task of the step has written when it looks, that the step before has left, or rows of a cache
that are not there yet. The message names the task that writes them, if there is one: let the reader wait for it.`)

	CodeClobbered = diag.New("AMK3704", "an order in which a task reads another buffer's bytes", `
Two buffers lie on one page, and the bytes of one are read where the other was written last: they are live together. Put
them on two pages, or let the writer wait for the reader.`)

	CodeWhich = diag.New("AMK3705", "a read that finds different writers in different orders", `
Two tasks store the word that a third one polls, both are among those that it waits for, and the order decides whose it
finds. It takes two orders to see that: each has a script. Give each a buffer, or a counter, of its own.`)

	CodeAccess = diag.New("AMK3706", "an access that is wrong in every order", `
A task writes what is read-only, touches bytes beyond its page, or shared memory of another SM or more of it than there
is; or an op writes what it reads. There is no script: no order makes it right.`)

	CodeRow = diag.New("AMK3707", "a row that a table does not have", `
EMBED or SELECTED_TILE looks up a row or a matrix whose number was computed, and for some values the number is not one
of the table's, or none at all. amkc validate proves that it is (AMK3143).`)

	CodeUnwritten = diag.New("AMK3708", "an output that is not written in full", `
Every element of an output is written by each step; the message names the first byte that is not.`)

	CodeNotRun = diag.New("AMK3709", "a program that cannot be run", `
The program has no meaning as one, or the reference VM refuses to run one of its tasks: operands that do not fit
each other, a view outside its buffer, a parameter out of range. amkc validate says more.`)

	CodeTooLarge = diag.New("AMK3710", "a program that is too large to simulate, or for the time that it was given", `
simulate holds every stretch of memory that a task touches, every word that one polls, and what tasks know of each
other. The message says what there is too much of. Llama-3.1-8B on 132 SMs, two steps in a row, is well within;
amkc validate takes larger programs.

Or the time was over before one order had been run to its end, and nothing can be said: give a longer --time, or name
one --position. Of an order Llama-3.1-8B takes some 2 s.`)
)

var codes = map[Kind]*diag.Code{
	Race: CodeRace, Stuck: CodeStuck, Undefined: CodeUndefined, Clobbered: CodeClobbered, WhichProducer: CodeWhich,
	Outside: CodeAccess, ReadOnly: CodeAccess, Aliased: CodeAccess, Owner: CodeAccess, Capacity: CodeAccess,
	Index: CodeRow, OutputGap: CodeUnwritten, Malformed: CodeNotRun, Refused: CodeNotRun,
}

// Diagnostic returns the hazard as an error of amkc.
func (h *Hazard) Diagnostic() *diag.Diagnostic {
	return diag.Errorf(codes[h.Kind], h.Where, "%s", h.Detail)
}
