package mutant

import "strings"

// Reasons that several mutants share.
const (
	ofTheThread = "what changes places with it is a number of the thread alone, which it does not use"
	hint        = "it is a hint of when bytes are asked into L2, from where nobody reads them; it orders nothing"
	besideHint  = "what changes places with it is a hint for the prefetcher, which orders nothing"
	endsStream  = "it ends the stream: on the strength of it nothing is read"
	sooner      = "chunks are seen as full sooner than they have to be, and not one less"
	notWaiting  = "it reads and writes what the thread alone has, or what lies behind another barrier"
	parity      = "two buffers take turns, and it does not matter which is the first"
	bulkAlone   = "with bulk copies, where alone it is called, one lane decides for itself"
)

// Reason says why nothing can go wrong with a mutant, or "". What is emitted for a pass of several tokens has the reasons
// of what is emitted for one.
func Reason(id string) string {
	if reason := Equivalent[id]; reason != "" || strings.HasPrefix(id, "amk/") {
		return reason
	}
	_, of, _ := strings.Cut(id, "/")
	return Equivalent[of]
}

// Equivalent has the reasons by the ids of mutants. One that is killed, or that no build has, is listed wrongly, and a
// test says so.
var Equivalent = map[string]string{
	"amk/context.cuh Context flush 1: phase off by one, other": parity,
	"amk/context.cuh Context norms 1: phase off by one, other": parity,

	"amk/attention_mma.cuh attend_token advance_slot 3: one statement earlier":   ofTheThread,
	"amk/attention_mma.cuh attend_token advance_slot 3: one statement later":     ofTheThread,
	"amk/gemv_mma.cuh gemv_mma advance_slot 4: one statement earlier":            ofTheThread,
	"amk/gemv_mma.cuh gemv_mma advance_slot 4: one statement later":              ofTheThread,
	"amk/ring.cuh Producer::fill wait_landed 1: one statement later":             ofTheThread,
	"amk/ring.cuh Producer::wait_landed advance_slot 1: one statement earlier":   ofTheThread,
	"amk/ring.cuh Producer::wait_landed barrier_try_wait 1: one statement later": ofTheThread,
	"amk/stage.cuh flush_tiles consumer_barrier 1: one statement later":          ofTheThread,
	"megakernel.cu run init_scratch 1: one statement later":                      "the context that is made before it holds addresses of the scratch, and reads nothing there",

	"amk/ending.cuh each_best load_relaxed 1: one statement later":     "both words are polled until both carry the epoch, whichever is read first",
	"amk/ending.cuh publish_best store_relaxed 1: one statement later": "two relaxed stores to two words are seen in either order anyway",
	"amk/ending.cuh sample consumer_barrier 4: one statement earlier":  "it lies between two uses of best_value as before: the polls beside it use no shared memory",
	"amk/step.cuh init_scratch barrier_init 1: one statement later":    "two barriers are initialised by one thread, before a fence that follows both",

	"amk/heads_mma.cuh HeadGroup::take warp_any 1: left out": "a lane whose largest score does not rise multiplies by 1 in the branch that it leaves out",

	"amk/gemv_mma.cuh gemv_mma warp_sync 1: left out":              "it has lanes converge behind the polls; what these have read is in registers",
	"amk/gemv_mma.cuh gemv_mma warp_sync 1: one statement earlier": "it has lanes converge behind the polls; what these have read is in registers",
	"amk/gemv_mma.cuh gemv_mma warp_sync 1: one statement later":   "it has lanes converge behind the polls; what these have read is in registers",

	"amk/ring.cuh release fence_proxy_async_shared 1: one statement later":     "behind warp_sync the fence of the lane that arrives lies between the reads of all lanes and the arrival",
	"amk/ring.cuh Producer::fill barrier_arrive_expect 1: one statement later": "the phase lacks this arrival until the bytes are announced; bytes that land before count below zero, which an mbarrier can",
	"amk/ring.cuh wait_full barrier_try_wait 1: one statement later":           "the long wait is for the same phase of the same barrier",
	"amk/ring.cuh Producer::slot_looks_empty all_lanes 1: left out":            bulkAlone,

	"amk/ring.cuh Producer::fill store_shared_relaxed 1: left out":                  hint,
	"amk/ring.cuh Producer::fill store_shared_relaxed 1: one statement earlier":     hint,
	"amk/ring.cuh Producer::let_prefetch store_shared_relaxed 1: left out":          hint,
	"amk/ring.cuh Producer::wait_empty let_prefetch 1: left out":                    hint,
	"amk/ring.cuh Producer::wait_empty let_prefetch 1: one statement later":         hint,
	"amk/ring.cuh Producer::wait_empty let_prefetch 2: left out":                    hint,
	"amk/ring.cuh Producer::wait_step let_prefetch 1: left out":                     hint,
	"amk/ring.cuh Producer::wait_step let_prefetch 1: one statement later":          hint,
	"amk/ring.cuh Producer::wait_step let_prefetch 2: left out":                     hint,
	"amk/ring.cuh Producer::wait_step let_prefetch 2: one statement later":          hint,
	"amk/prefetch.cuh Prefetcher::ask issued 1: count off by one, less":             hint,
	"amk/prefetch.cuh Prefetcher::ask issued 1: count off by one, more":             hint,
	"amk/prefetch.cuh Prefetcher::ask load_shared_relaxed 1: left out":              hint,
	"amk/prefetch.cuh Prefetcher::ask load_shared_relaxed 2: left out":              hint,
	"amk/prefetch.cuh Prefetcher::ask load_shared_relaxed 2: one statement later":   hint,
	"amk/prefetch.cuh Prefetcher::ask load_shared_relaxed 2: one statement earlier": hint,
	"amk/ring.cuh Producer::wait_empty flush 1: one statement later":                besideHint,
	"amk/ring.cuh Producer::wait_empty wait_empty_long 1: one statement later":      besideHint,
	"amk/ring.cuh Producer::wait_step flush 1: one statement later":                 besideHint,
	"amk/ring.cuh Producer::wait_step step_acquired 1: one statement later":         besideHint,
	"amk/ring.cuh Producer::wait_step step_acquired 1: one statement earlier":       "what changes places with it notes the time, for records",
	"amk/stream.cuh Turns::copy wait_step 1: one statement earlier":                 "what changes places with it says what is copied, for records",
	"amk/ring.cuh Producer::wait_empty slot_looks_empty 1: one statement later":     sooner,
	"amk/ring.cuh Producer::wait_step flush 1: one statement earlier":               sooner,
	"amk/ring.cuh Producer::wait_step acquired 1: count off by one, less":           "it waits once more for a step that has ended",

	"amk/ring.cuh step_acquired load_shared_acquire 2: weaker, relaxed": endsStream,
	"amk/ring.cuh step_acquired load_shared_acquire 3: weaker, relaxed": endsStream,
	"amk/ring.cuh step_acquired load_shared_acquire 4: weaker, relaxed": endsStream,
	"amk/ending.cuh stop store_shared_release 1: weaker, relaxed":       endsStream,
	"amk/ring.cuh step_acquired load_shared_acquire 3: weaker, plain":   "the loop before it has acquired the store that it sees, and the next one comes behind chunks that are copied after it",

	"amk/step.cuh embed_and_add wait_joined 1: one statement earlier":                         "in between an SM reads constants and writes its own rows of the residual",
	"megakernel.cu consume stage rotate_setup 1: stages in another order, the next one first": "the angles are read behind the block barriers of the first product",
	"megakernel.cu consume stage stop 1: stages in another order, the next one first":         "both read what sample has left, and write different words",
	"stages.h o_stage publish_row 1: one statement earlier":                                   notWaiting,
	"stages.h down_stage publish_row 1: one statement earlier":                                notWaiting,
}
