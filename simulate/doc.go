// Package simulate judges scheduled programs by running them: it is what amkc simulate shows a user, and what the
// validator is measured against. It says unsafe when it has found an order of tasks in which something goes wrong, and
// shows that order, cut down to few tasks.
//
// It shares nothing with validate but package ir and what is below it. What a task touches it takes from what the
// reference code really touched (refvm, recording, one task at a time, on the parts of buffers that its views span),
// not from the views that the task declares. It must import no package of amkc but ir, what is below it, and refvm.
//
// # The machine
//
// Memory is shadow memory: a cell for every byte, which holds who wrote it. Bytes that every task touches together
// share a cell; with Options.Bytes none do. A program is one decode step, or two in a row with the variants and
// positions given.
//
// A task starts when the task before it on its SM is done and its counters have reached their thresholds. Its ops run
// in order. It then adds one to its counter. Tasks of different SMs, and tasks without an SM, are interleaved in
// every way.
//
// Plain memory (everything but exchange words) is ordered by synchronisation alone. Each task knows of other tasks:
// those before it on its SM, those whose arrival it has seen in a counter that is realised by counting, and all that
// these know of. An access that meets a conflicting one of which its task does not know is a race, in whatever order
// the two happened. Knowledge is what arrived, not what was declared: a wait that is satisfied early knows only of
// those that were early.
//
// Exchange words are relaxed. A store waits in the queue of its SM and reaches memory at any later time, in any order
// with stores to other words, at the latest when the SM signals a counter that is realised by counting, which is a
// release. A task that waits on a flagged counter polls: the read of a word that a producer of the counter writes
// happens when memory holds such a value, and not before. (Loads at gpu scope are served by memory: an SM does not see
// its own stores earlier than others do.) Each word is polled on its own. A word that the task has polled is known to
// it from then on. Where a layout has copies, each is memory of its own: a store is one to every copy, which land
// apart, and a task reads the copy of its SM's number modulo theirs.
//
// Nothing else orders anything: an SM's steps follow each other, and if counter step is realised by counting, nothing
// of a step begins before all of its predecessor has arrived there.
//
// # What goes wrong
//
// A race; a task that waits forever, be it for a counter or for a word that has been overwritten; a read of bytes
// that nobody has written, or that hold something else than the buffer's own data; two schedules in which one read
// yields different writers; writes to read-only memory; bytes outside a buffer or a page; outputs that are not
// written in full; a row that a table does not have, for some values of what decides about it; shared memory touched
// from another SM, or too much of it; operands of one op that overlap; and what the reference code refuses to run:
// operands of shapes or types that do not fit each other, parameters out of range.
package simulate
