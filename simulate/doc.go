// Package simulate tests scheduled programs by running them on shadow memory, in adversarial orders. It is the engine
// of amkc simulate, and the oracle that the validator is tested against. Its verdict is unsafe if it has found an order
// of tasks in which something goes wrong; the verdict then has that order, reduced to few tasks.
//
// It shares only package ir, and the packages below that, with validate. It takes the accesses of a task from a
// recorded run of the reference code (refvm, one task at a time, on the parts of buffers that its views span), and not
// from the views that the task declares. It must not import any package of amkc but ir, those below ir, and refvm.
//
// # The machine
//
// Memory is shadow memory: a cell for every byte, which records its last writer. Bytes that all tasks access together
// share a cell; with Options.Bytes each has its own. A program is one decode step, or two consecutive ones with given
// variants and positions.
//
// A task starts when the previous task of its SM is done and its counters have reached their thresholds. Its ops run in
// order. It then adds one to its counter. Tasks of different SMs, and tasks without an SM, are interleaved in every
// possible order.
//
// Plain memory, which is everything but exchange words, is ordered by synchronisation alone. A task is ordered after
// the previous tasks of its SM, after the tasks whose arrival it has observed in a counter that is realised by
// counting, and after all tasks that these are ordered after. Two conflicting accesses without such an order are a
// race, whichever of them happened first. What counts is the arrivals that a task has observed, and not the declared
// ones: a wait that is satisfied early orders the task only after those that had arrived by then.
//
// Exchange words are relaxed. A store waits in the queue of its SM and reaches memory at any later time, in any order
// with stores to other words, and at the latest when the SM signals a counter that is realised by counting, which is a
// release. A task that waits on a flagged counter polls: its read of a word that a producer of the counter writes
// completes when memory holds such a value, and not before. (Loads at gpu scope are served by memory: an SM does not
// see its own stores earlier than other SMs do.) Each word is polled separately, and once by a task. A poll does not
// order plain memory: the task is not ordered after the writer of the word. In a layout with copies each copy is
// separate memory: a store is one store per copy, which complete separately, and a task reads the copy whose number is
// that of its SM modulo their number.
//
// Nothing else orders accesses: the steps of an SM are consecutive, and if counter step is realised by counting, no
// task of a step starts before all tasks of the previous step have arrived there.
//
// # What goes wrong
//
// A race; a task that waits forever, for a counter or for a word that has been overwritten; a read of bytes that were
// never written, or that contain data of another buffer; two schedules in which one read has different writers; writes
// to read-only memory; accesses outside a buffer or a page; outputs that are not completely written; a row that a table
// does not have, for some values of the elements that select it; shared memory that another SM accesses, or too much of
// it; operands of one op that overlap; and programs that the reference code refuses to run, because operands do not
// match in shape or type or a parameter is out of range.
package simulate
