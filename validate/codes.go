package validate

import "amkc/ir/diag"

// Codes of structure and of single tasks. ir.CodeOperands, ir.CodeShape, ir.CodePage and ir.CodeVariants are used as
// they are in package ir.
var (
	CodeStructure = diag.New("AMK3101", "index, name or interval out of range", `
Every buffer, counter and SM that an unrolled program mentions exists, names are unique among their kind, positions
are a non-empty interval from 0 on, and only pos is left as a symbol.

    task L00.o.s003: runs on SM 132, want 0 to 131, or -1 for none

Compile for the target that has that many SMs, or move the task.`)
	CodeParameter = diag.New("AMK3102", "parameter out of range", `
Parameters that size or divide something (head_dim, n_heads, n_kv_heads, group, splits, block, parts) are constants
from 1 on, part is not negative, order and partial are 0 or 1; eps is finite and not negative, scale is finite, theta
is positive. Only row and pos may depend on the position, and are never negative.

    %n = RMSNORM(L00.x[0:64], L00.norm.weight[0:64]) eps=-1e-05      # refused: the root of a negative number

Write a value that the message accepts.`)
	CodeBounds = diag.New("AMK3103", "view outside its buffer", `
A view lies inside its buffer at every position of the variant's interval, the last one included.

    buffer L{i}.kv for 0..1 KV_CACHE BF16 [2,64,2,8] HBM kvfrag16
    variant long pos 32..64
      L{i}.kv[a,pos,0,0:8] = KV_APPEND(%k)          # at pos 64 this is row 64 of 64

Shorten the interval, or make the buffer larger: the message names the position, the range and the extent.`)
	CodeShapes = diag.New("AMK3104", "operands of an op do not agree", `
The shapes of an op's views agree with each other and with its parameters: K of GEMV_TILE is the length of x and the
width of W, and the result has as many elements as W has rows.

    %y = GEMV_TILE(L{i}.attn[0:64], L{i}.o.weight[a:b,0:128])     # x has 64 elements, K is 128

Change the view that is wrong. docs/ir.md has the shapes of every opcode. A length may depend on pos only where the
opcode takes any number of rows (k and v of ATTENTION_TILE), or none (KV_APPEND).`)
	CodeDType = diag.New("AMK3105", "operand of the wrong type", `
Token ids, positions, settings and the results of SAMPLE and SAMPLE_ARGMAX are I32; other operands are F32, F16 or
BF16. Quantised weights need a qdtype.

    buffer best.index ACTIVATION F32 [4] GLOBAL_SCRATCH word64
      best.value[sm], best.index[sm] = SAMPLE_ARGMAX(logits[a:b]) partial=1 first=a      # the index is I32

Change the dtype of the buffer.`)
	CodeLayout = diag.New("AMK3106", "dtype, layout, kind and space of a buffer do not fit together", `
Exchange words hold one 16-bit (word32) or 32-bit (word64) value of an ACTIVATION in GLOBAL_SCRATCH; tile8x32 is for
weight matrices of F32, F16 or BF16, tile8x128 with scales for quantised ones, the kv layouts for caches [heads, rows,
2, head_dim]; buffers in SMEM are row-major activations. Types of less than a byte cannot be written. A cache of I8 in
a kv layout has a scale for each row of K and of V of a head: ATTENTION_TILE and KV_APPEND alone touch such rows, whole.

    buffer L{i}.h for 0..1 ACTIVATION F32 [64] GLOBAL_SCRATCH word32      # word32 holds 16-bit values

Use word64, or a 16-bit type.`)
	CodeReadOnly = diag.New("AMK3107", "write to something read-only", `
WEIGHT, CONST and IO_INPUT are never written by a task: the kernel reads them ahead of every wait, which is only safe
because of that.

    L00.norm.weight[a:b] = MUL(L00.norm.weight[a:b]) scale=0.5

Write to an ACTIVATION.`)
	CodeSymbolic = diag.New("AMK3108", "exchanged or on-chip memory touched depending on pos", `
Only plain memory that no other buffer shares, such as a KV cache, may have views that depend on pos. Which exchange
words a task polls, and what shared memory it owns, is the same at every position: otherwise the edges of the program
would change from step to step.

    y[0:8] = COPY(L00.x[pos%8*8:pos%8*8+8])      # L00.x is exchange words

Use constant bounds.`)
	CodeSequence = diag.New("AMK3164", "cache by the position of another sequence", `
In a pass of several sequences each has a cache and a position of its own. What is in a cache is known by the position
of its sequence: rows below it have been appended. The position of another one says nothing of it. So a view of a cache
that goes by a position goes by that of its sequence, and an attention looks at rows of one sequence, at its positions.

    kv[1,0,pos:pos+1,0,0:64] = KV_APPEND(k[1,0:64])      # pos is the position of sequence 0

Write the position of the sequence whose cache it is: pos[1].`)
	CodeAlias = diag.New("AMK3109", "operands of one op overlap", `
The threads of an op read and write in no order, so what it writes is apart from what it reads and from its other
outputs. An element-wise op may write exactly the view that it reads.

    residual[a:b] = ADD(residual[a:b], %y)       # fine
    residual[0:8] = ADD(residual[4:12], %y)      # refused

Write to another buffer, or to the same elements.`)
)

// Codes of what runs the program.
var (
	CodeBackend = diag.New("AMK3118", "opcode, counter, poll or form of a buffer that the backend does not implement", `
A program is proved for what is to run it. The reference VM (backend ref) implements every opcode but FUSED, the
kernel those that the device runtime has stage bodies for. FUSED is a recipe of the AMK profile, and no backend runs
it: reading a program of the profile lists the steps of a recipe as ops of the task.

    stage norm whole extent=1 grain=1 sms=0 rot=0 step=0
      y[0:64] = SOFTMAX(x[0:64])        # fine for ref, refused for kernel

The kernel also realises all exchanges of a program alike, counts from 0, and waits for one exchange per task. It polls
flagged words for the epoch of the exchange that their reader waits for, so a task reads words of no other exchange,
also where queue order or a barrier has ordered them. What it always realises in one way is declared in that way: the
best values of the SMs are flagged words, barriers and the end of a step are counted. And it has each buffer in one
form, dtype and layout, which docs/validator.md lists.

Use the opcodes that the message lists, or prove the program for the reference VM: amkc validate --backend ref.`)
)

// Codes of counters and of the order of execution.
var (
	CodeRealisation = diag.New("AMK3110", "counter without a realisation", `
The realisation of a counter decides what it orders, so it must be decided before anything can be proved: counter or
flagged. A flagged counter has no count and starts at 0.

    counter L{i}.x for 0..1 undecided gpu

Run pass exchange, or write the realisation.`)
	CodeUnreachable = diag.New("AMK3111", "threshold that is never reached", `
A counter ends at its initial value plus one for each task that signals it. A wait for more never returns.

    task L00.qkv.s000: waits for L00.x >= 5, but it reaches 4 (init 0 + 4 producers); the threshold is 4

Use the threshold that the message names, or add the producers that are missing.`)
	CodePartialWait = diag.New("AMK3112", "wait that passes before every producer is done", `
A counter says how many tasks have arrived, not which. With a threshold below init + producers, the wait can pass while
the one task is missing whose data is read next; an initial value that counts for a producer has the same effect.

    task L00.qkv.s000: waits for L00.x >= 3 of 4 (init 0 + 4 producers)

Use the threshold that the message names, or give the producers that matter a counter of their own.`)
	CodeNoProducer = diag.New("AMK3113", "wait on a counter that nobody signals", `
No task of the variant signals the counter, so that the wait never returns, or orders nothing.

    counter idle counter gpu
    stage use whole extent=1 grain=1 sms=0 rot=0 step=0
      wait idle >= 1

Drop the wait, or add the signal that is missing.`)
	CodeScope = diag.New("AMK3116", "counter seen beyond its scope", `
A counter of scope sm is visible inside one SM only. Its producers and waiters must all run there.

    counter x counter sm
    stage make spread extent=64 grain=32 sms=2 rot=0 step=0
      signal x

Give it scope gpu, or run the tasks on one SM.`)
	CodeIdleWait = diag.New("AMK3117", "flagged wait that polls nothing", `
The task waits on a flagged counter but reads none of the words of its producers, and a flagged wait is nothing but the
polling of those words. It orders nothing.

    stage use explicit
      wait L00.x >= 4
      y[0:8] = COPY(w[0:8])      # no word of L00.x

Drop it, or realise the counter by counting.`)
	CodeDeadlock = diag.New("AMK3120", "deadlock", `
Tasks need each other in a cycle of queue order (a task runs after the one before it on its SM) and counters. The notes
print the cycle, one edge per line:

    task L00.o.s001: can never start: it needs itself, over 2 edges
        L00.o.s001 waits for L00.attn, which is signalled by L00.attn.u001
        L00.attn.u001 is queued on sm 1 after L00.o.s001

Break one edge: reorder the queue so that producers come first, or drop the wait that is not needed.`)
)

// Codes of memory.
var (
	CodeReadRace = diag.New("AMK3130", "read not ordered after its write", `
A task reads what another one writes, and no edge makes it wait: queue order of one SM, a counting counter, or, for
exchange words, a flagged counter that the reader itself waits on.

    task use.s000: reads x[32:64] (bytes 128 to 255), written by make.s001 (sm 1), `+
		`and nothing orders the two; missing: wait x >= 2

The message names the wait that is missing.`)
	CodeOverwriteRace = diag.New("AMK3131", "memory overwritten that may still be read", `
A task writes memory that an earlier reader may not be done with. For buffers on one page this means that they are live
at the same time.

    task best.s001: reads x[0:64] (bytes 0 to 255) on page one, where y.s000 (sm 0) writes y, and nothing orders the two

Give one of them another page (pass pagecolor does), or wait for the reader.`)
	CodeWriteRace = diag.New("AMK3132", "two writes in no order", `
Two tasks write the same elements, and nothing decides which comes last.

    stage make explicit
      task sm=0 a=0 b=33
      task sm=1 a=32 b=64
      x[a:b] = COPY(w[a:b])      # both write x[32]

Make their spans disjoint, or order them.`)
	CodeFlaggedPlain = diag.New("AMK3133", "flagged counter used to order plain memory", `
A flagged counter is a relaxed poll of words that carry their epoch: it orders those words and nothing else. Plain
memory written by the same task may still be old when the words arrive.

    logits[0:64], x[0:64] = COPY(w[0:64])      # x is words and announced by a flagged counter, logits is plain

Realise the counter by counting, or publish the data in exchange words.`)
	CodeTwice = diag.New("AMK3134", "flagged words written twice in one exchange", `
A waiter on a flagged counter knows the words of that exchange by their epoch. If producers of one counter write a word
twice, what is polled is the first or the second value, at random.

    x[0:8] = COPY(w[0:8])
    x[0:8] = COPY(v[0:8])
    signal x

Give the second write a counter of its own, or another buffer. The same words may be written again in another
exchange.`)
	CodeUnread = diag.New("AMK3135", "exchange words overwritten that nobody has read", `
Relaxed stores to one word by two SMs may become visible in either order. What puts the second last is that somebody has
seen the first; words that nobody reads have no such witness. The task that wrote them does not count, because it
has them and does not poll.

    stage use explicit
      wait L00.x >= 4
      y[0:60] = COPY(L00.x[0:60])      # nobody reads words 60 to 63, and the next exchange overwrites them

Where a layout has copies (word32x2), each is memory of its own: a task stores to every copy, and an SM polls the copy
of its number modulo their number. So a word needs a reader for each copy that some task of the variant polls on that
page.

Do not publish such words, read them, keep one copy, or order the two tasks by a counting counter.`)
	CodePollOrder = diag.New("AMK3136", "words polled after the task has published", `
Publishing words tells others that this task is done with what it read before: they may overwrite it. A task therefore
polls every word it reads, then passes a barrier, then publishes.

    L00.attn[0:32] = COPY(q[0:32])                       # publishes
    L00.kv[0,pos,0,0:8] = KV_APPEND(L00.qkv[16:24])      # polls words that no earlier op has polled

List the op that polls before the op that publishes; words that an earlier op of the task has polled are at hand and
may be used again.`)
	CodeStale = diag.New("AMK3138", "words polled for an exchange that a later one has overwritten", `
A wait on a flagged counter polls the words that its producers wrote until they carry its epoch. If another exchange
has used the same buffer since, they carry another one, and the poll may never end, even where the newer words are
before the task by queue order.

    wait L00.x >= 4                  # on sm 2, after L00.down.s002 has written x[0:8] for exchange L01.x
    %t = COPY(x[0:32])

Give each exchange a buffer of its own (they may share a page), or drop the wait that is not meant.`)
	CodePeers = diag.New("AMK3139", "ranks that are not alike", `
All ranks of a program do the same: a task is on the same SM of each, and has the same views of what its rank writes and
of what ranks push to it. So what is proved of one rank holds on all. The symbol rank may say where a task pushes, and
what it takes of weights, constants and inputs.

    L{i}.sums[rank,a:b] = GEMV_TILE(L{i}.x[0:64], L{i}.o.weight[a:b,0:64])
    %sum = ALLREDUCE_SHARD(L{i}.sums[rank,a:b], L{i}.sums[1,a:b]) pairs=1      # refused: each reads another row

Read the rows of all ranks.`)
	CodeEpochs = diag.New("AMK3137", "more exchanges in a step than epochs", `
Exchange words carry the epoch of their exchange in 16 bits, 1 to 65535 and around. A reader that polls for an epoch
takes any word with it, so that a step has fewer flagged counters than there are epochs.

    counter L{i}.x for 0..69999 flagged gpu        # 70000 exchanges

Realise some of the counters by counting.`)
	CodeUndefined = diag.New("AMK3140", "read of undefined memory", `
Every element that a task reads has been written by a task ordered before it, or is initial state: weights, constants,
inputs, and cache rows below pos.

    task use.s000: reads x[60:64] (bytes 240 to 255), which is undefined: no task writes it earlier in the step

Order the writer first, or read the elements that are written.`)
	CodeOutputGap = diag.New("AMK3141", "output not written in full", `
Every element of every IO_OUTPUT is written in every step.

    buffer logits: logits[56:64] (bytes 224 to 255) is never written, and every element of an output must be

The message names the first gap: extend the spans of the stage that writes the output.`)
	CodeClobbered = diag.New("AMK3142", "buffer overwritten through another one on its page", `
Two buffers on one page are in use at the same time: one was written into the other before its last reader.

    x[0:64] = COPY(w[0:64])
    y[0:64] = COPY(v[0:64])      # on the page of x
    z[0:64] = ADD(x[0:64], y[0:64])

Put them on different pages, or let pass pagecolor do it.`)
	CodeIndex = diag.New("AMK3143", "index that its table may not have", `
EMBED takes rows of its table, and SELECTED_TILE matrices of a family, by indices that the step computes. However the
values turn out, each is a row of the table: SAMPLE and SAMPLE_ARGMAX over n values, and TOPK of n, yield 0 to n-1; with
partial=1 and first=f the former yield f to f+n-1 or no index, with indices as the second operand one of those; COPY
hands an index on; an input is the host's, which gives rows of the table. Nothing bounds what weights, constants and
caches hold. What a step leaves in its output of role next is the next one's token, so that it is a row of the token's
table, too.

    buffer table WEIGHT F32 [8,4] HBM rowmajor
      idx[0] = SAMPLE_ARGMAX(w[0:64])             # 0 to 63
      row[0:4] = EMBED(idx[0], table[0:8,0:4])    # has rows 0 to 7

Give the table as many rows as there are values to choose among, or choose among fewer.`)
	CodeOwner = diag.New("AMK3150", "on-chip memory touched from elsewhere", `
An element of a buffer in SMEM lives in the shared memory of one SM, and no other SM can touch it; one in REGISTER
belongs to one task.

    stage embed spread extent=64 grain=32 sms=2 rot=0 step=0
      residual[a:b] = COPY(w[a:b])
    stage o spread extent=64 grain=32 sms=2 rot=1 step=0
      x[a:b] = ADD(residual[a:b], w[a:b])      # rows of the other SM

Give the stages that share it (embed, o and down share the residual) the same distribution.`)
	CodeCapacity = diag.New("AMK3151", "on-chip memory exceeded", `
The rows of SMEM buffers that one SM owns must fit the shared memory that a block of the target can have.

    buffer residual ACTIVATION F32 [131072] SMEM rowmajor      # 512 KB, and the stages that write it run on one SM

Spread them over more SMs.`)
)

// Codes of steps and budgets.
var (
	CodeStepJoin = diag.New("AMK3160", "step that can end before its tasks do", `
A step ends when its counter of role step is complete, and every SM waits for that before it begins the next one. So
the counter is realised by counting (polled words order nothing but themselves), its scope is not sm, which others than
its own SM do not see, and every task is at or before one of its producers, by queue order and counting; otherwise the
next step could write what this one still reads.

    task emit.s000: no producer of counter step is after it by queue order and counting, `+
		`so the step can end while it runs

Let the last task of every queue signal step.`)
	CodeNext = diag.New("AMK3161", "step that publishes no token", `
A task of the step writes the I32 output of role next, which the next step takes as its token.

    buffer next IO_OUTPUT I32 [1] HBM rowmajor
      next[0] = COPY(next.sm[0])

Let a stage after the one that chooses the token write it.`)
	CodeAppend = diag.New("AMK3163", "cache row that its step does not write", `
Rows of a KV cache below pos are what the steps before appended. So the step at position p writes row p of every cache
that has such a row, in every head and dimension that a later step reads; else that step would read what nobody wrote.
A pass of several rows writes as many, from row p on, of the cache of each sequence. A cache with fewer rows than
positions may use its rows in turn once all are written: kv[0,pos%32,0,0:16] in one of 32 rows.

    variant short pos 0..31
      L{i}.kv[a,pos,0,0:8] = KV_APPEND(%k)          # and nothing appends the values, L{i}.kv[a,pos,1,0:8]

Let a task append what the message names. A program of the AMK profile is one step, and brings its cache along.`)
	CodeState = diag.New("AMK3165", "state that not one task of each step takes and leaves", `
A STATE is what the steps before have made of it: each step takes it as the one before has left it, and leaves it for
the next. So each element is read and written by one task of a step, in place, as what an op keeps; by every step,
whatever its position; and by no other op.

    %o, st[0,0:8,0:4], left[0,0:1,0:14] = RECURRENCE(%q, %k, %v, %d, %b, st[0,0:8,0:4], left[0,0:1,0:14]) pos=pos

Let one task have the state that the message names, or, if none has, drop the buffer.`)
	CodeBudget = diag.New("AMK3190", "proof larger than the stated budget", `
The proof is exact and not cut short: a program that needs more than a stated budget (3*2^19 contiguous pieces of
views, 2^25 clock components, 2^21 pairs of views that depend on pos, 2^25 segments visited, 2^18 single evaluations
of pos) is refused.

    y[0:8] = ATTENTION_TILE(q[0:8], kv[0,0:min(pos,pos/2*3),0,0:8], ...)`+
		`      # tried at every one of 2^20 positions, by 32 tasks

Make the program smaller, bounds affine in pos, or queues out of tasks that have no SM.`)
)
