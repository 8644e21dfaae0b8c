package mutant

// A Kind is what a mutant does to a place in the code.
type Kind string

// The kinds.
const (
	LeftOut    Kind = "left out"
	Weaker     Kind = "weaker"
	Earlier    Kind = "one statement earlier"
	Later      Kind = "one statement later"
	WrongProxy Kind = "wrong proxy"
	Epoch      Kind = "epoch off by one"
	Phase      Kind = "phase off by one"
	Count      Kind = "count off by one"
	EarlySlot  Kind = "slot given back early"
	ShortCopy  Kind = "copy too short"
	StageOrder Kind = "stages in another order"
	Historical Kind = "historical fault"
)

// Kinds are all kinds, in the order of tables.
var Kinds = []Kind{LeftOut, Weaker, Earlier, Later, WrongProxy, Epoch, Phase, Count, EarlySlot, ShortCopy, StageOrder,
	Historical}

// A change is what takes the place of a call. In the text $0 to $9 are its arguments, $< is its template argument, $t
// the same in brackets, $. what stands before a call of a member, with the point, and $call the call itself. A change
// that names an argument that a call does not have does not apply to that call.
type change struct {
	kind Kind
	what string // tells it from others of the same kind at one place
	text string
}

// A primitive is a function that orders accesses, lets threads communicate, or counts what they wait for. Those of the
// hardware come first, then those of the runtime that are made of them: each call of either is a place for mutants.
type primitive struct {
	name    string
	without string // what stands for the call that is left out; "" is nothing at all, for a call without a result
	changes []change
	fixed   bool   // it is not moved, and not left out: it is a number
	in      string // the one file that has it, where other functions have the same name
}

// plainLoad and plainStore are weaker than any load and store with an order.
func plainLoad(as string) change { return change{Weaker, "plain", "*(" + as + ")($0)"} }

var plainStore = change{Weaker, "plain", "(void)(*($0) = ($1))"}

// byOne changes an argument by one, in both directions.
func byOne(kind Kind, argument, call string) []change { return by(kind, argument, "1", call) }

func by(kind Kind, argument, step, call string) []change {
	replaced := func(sign string) string { return replaceOnce(call, argument, "("+argument+") "+sign+" "+step) }
	return []change{{kind, "more", replaced("+")}, {kind, "less", replaced("-")}}
}

const none = "decltype($call){}" // 0, for a call with a result

var primitives = []primitive{
	// ---- hw/thread.cuh
	{name: "block_sync", changes: []change{{Weaker, "warp", "warp_sync()"}}},
	{name: "warp_sync"},
	{name: "named_barrier_sync", changes: []change{
		{Weaker, "warp", "warp_sync()"},
		{Count, "less", "named_barrier_sync<1, kConsumers - 32>()"},
		{Count, "more", "named_barrier_sync<1, kConsumers + 32>()"}}},
	{name: "named_barrier_arrive"},
	{name: "warp_any", without: "($0)"},
	{name: "warp_all", without: "($0)"},

	// ---- hw/memory.cuh
	{name: "load_relaxed_16", without: none, changes: []change{plainLoad("const uint4*")}},
	{name: "load_relaxed_2x8", without: none, changes: []change{plainLoad("const ulonglong2*")}},
	{name: "load_relaxed", without: none, changes: []change{{Weaker, "plain", "*($0)"}}},
	{name: "store_relaxed", changes: []change{plainStore}},
	{name: "load_system", without: none, changes: []change{
		{Weaker, "gpu", "load_relaxed($0)"}, {Weaker, "plain", "*($0)"}}},
	{name: "store_system", changes: []change{{Weaker, "gpu", "store_relaxed($0, $1)"}, plainStore}},
	{name: "add_release", changes: append([]change{{Weaker, "relaxed", "add_relaxed($0, $1)"}},
		byOne(Count, "$1", "add_release($0, $1)")...)},
	{name: "load_acquire", without: none, changes: []change{{Weaker, "relaxed", "load_relaxed($0)"}}},
	{name: "load_relaxed_ranks", without: none, changes: []change{{Weaker, "plain", "*($0)"}}},
	{name: "store_relaxed_ranks", changes: []change{plainStore}},
	{name: "add_release_ranks", changes: append([]change{{Weaker, "relaxed", "add_relaxed($0, $1)"}},
		byOne(Count, "$1", "add_release_ranks($0, $1)")...)},
	{name: "load_acquire_ranks", without: none, changes: []change{{Weaker, "relaxed", "load_relaxed($0)"}}},
	{name: "add_relaxed", changes: []change{{Weaker, "plain", "(void)(*($0) += ($1))"}}},
	{name: "max_relaxed", changes: []change{{Weaker, "plain", "(void)(*($0) = max(*($0), ($1)))"}}},
	{name: "fence_block"},
	{name: "fence_proxy_async", changes: []change{
		{Weaker, "shared memory alone", "fence_proxy_async_shared()"}, {WrongProxy, "generic", "fence_block()"}}},
	{name: "fence_proxy_async_shared", changes: []change{{WrongProxy, "generic", "fence_block()"}}},
	{name: "load_shared_acquire", without: none, changes: []change{
		{Weaker, "relaxed", "load_shared_relaxed($0)"}, {Weaker, "plain", "*($0)"}}},
	{name: "store_shared_release", changes: []change{
		{Weaker, "relaxed", "store_shared_relaxed($0, $1)"}, plainStore}},
	{name: "load_shared_relaxed", without: none, changes: []change{{Weaker, "plain", "*($0)"}}},
	{name: "store_shared_relaxed", changes: []change{plainStore}},
	{name: "load_shared_volatile", without: none, changes: []change{{Weaker, "plain", "*($0)"}}},
	{name: "add_shared_relaxed", changes: []change{{Weaker, "plain", "(void)(*($0) += ($1))"}}},
	{name: "exchange_shared_relaxed", without: none, changes: []change{
		{Weaker, "plain", "[&] { const u32 old = *($0); *($0) = ($1); return old; }()"}}},

	// ---- hw/copy.cuh
	{name: "barrier_init", changes: byOne(Count, "$1", "barrier_init($0, $1)")},
	{name: "fence_barrier_init"},
	{name: "barrier_try_wait", without: "true", changes: append(
		[]change{{Phase, "other", "barrier_try_wait($0, ($1) ^ 1, $2)"}},
		byOne(Count, "$2", "barrier_try_wait($0, $1, $2)")...)},
	{name: "barrier_test_wait", without: "true", changes: append(
		[]change{{Phase, "other", "barrier_test_wait($0, ($1) ^ 1, $2)"}},
		byOne(Count, "$2", "barrier_test_wait($0, $1, $2)")...)},
	{name: "barrier_arrive", changes: byOne(Count, "$1", "barrier_arrive($0, $1)")},
	{name: "barrier_arrive_expect", changes: append(
		[]change{{Weaker, "no bytes", "barrier_arrive($0, 1)"}},
		by(Count, "$1", "16", "barrier_arrive_expect($0, $1)")...)},
	{name: "copy_bulk", changes: []change{{ShortCopy, "", "copy_bulk($0, $1, ($2) - 16, $3)"}}},
	{name: "copy_tensor"},
	{name: "copy_async_16", changes: []change{
		{Weaker, "plain", "(void)(*(uint4*)($0) = *(const uint4*)($1))"}}},
	{name: "commit_copies"},
	{name: "wait_copies", changes: []change{{Count, "more", "wait_copies<($<) + 1>()"}}},

	// ---- hw/mma.cuh
	{name: "wgmma_begin"},
	{name: "wgmma_commit"},
	{name: "wgmma_wait", changes: []change{{Count, "more", "wgmma_wait<($<) + 1>()"}}},

	// ---- barriers of the runtime
	{name: "consumer_barrier", changes: []change{{Weaker, "warp", "warp_sync()"}}},
	{name: "init_scratch"},
	{name: "init_barriers"},
	{name: "barriers_ready"},
	{name: "all_lanes", without: "($0)"},
	{name: "any_lane", without: "($0)"},

	// ---- the ring
	{name: "release", changes: append([]change{
		{EarlySlot, "the next one", "release($0, (($1) + 1) % kRingSlots, $2)"}},
		byOne(Count, "$2", "release($0, $1, $2)")...)},
	{name: "give_back"},
	{name: "leave"},
	{name: "wait_full", changes: []change{
		{Phase, "other", "wait_full($0, $1, ($2) ^ 1)"},
		{EarlySlot, "waits for the next one", "wait_full($0, (($1) + 1) % kRingSlots, $2)"}}},
	{name: "wait_full_long", changes: []change{{Phase, "other", "wait_full_long($0, $1, $2, $3, ($4) ^ 1)"}}},
	{name: "advance_slot", changes: byOne(Count, "$2", "advance_slot($0, $1, $2)")},
	{name: "slot_is_empty", without: "true", changes: []change{{Phase, "other", "slot_is_empty($0, $1, ($2) ^ 1)"}}},
	{name: "slot_looks_empty", without: "true"},
	{name: "wait_empty_long", without: "true", changes: []change{
		{Phase, "other", "wait_empty_long($0, ($1) ^ 1)"}}},
	{name: "wait_empty"},
	{name: "wait_landed"},
	{name: "publish_all_but", changes: []change{{Count, "more", "publish_all_but(($0) + 1)"}}},
	{name: "load_and_store", changes: []change{{ShortCopy, "", "load_and_store$t($0, $1, ($2) - 16, $3)"}}},
	{name: "fill", in: "amk/ring.cuh", changes: []change{{ShortCopy, "", "fill($0, ($1) - 16, $2)"}}},
	{name: "let_prefetch"},
	{name: "flush"},
	{name: "drain"},

	// ---- the exchange
	{name: "publish"},
	{name: "publish_four"},
	{name: "publish_dims"},
	{name: "publish_row"},
	{name: "poll_all"},
	{name: "poll_both"},
	{name: "is_fresh", without: "true"},
	{name: "four_stale", without: "0u"},
	{name: "signal", changes: byOne(Count, "$1", "signal($0, $1)")},
	{name: "await"},
	{name: "end_stage"},
	{name: "begin_reading"},
	{name: "end_reading"},
	{name: "hold"},
	{name: "swap_held"},
	{name: "advance", changes: byOne(Count, "$0", "$.advance($0)")},
	{name: "next_epoch", fixed: true, changes: []change{{Epoch, "more", "$call + 1"}, {Epoch, "less", "$call - 1"}}},

	// ---- steps, layers, rounds, prompts
	{name: "join_step"},
	{name: "wait_joined"},
	{name: "wait_step", changes: byOne(Count, "$0", "$.wait_step($0)")},
	{name: "step_acquired", without: "true"},
	{name: "wait_choice", changes: byOne(Count, "$0", "$.wait_choice($0)")},
	{name: "choice_made", without: "true"},
	{name: "await_readers"},
	{name: "done", in: "amk/prompt_ring.cuh"},
	{name: "arrive"},
	{name: "join"},
	{name: "joined", without: "true"},
	{name: "joins_until", fixed: true, changes: []change{{Count, "more", "$call + 1"}, {Count, "less", "$call - 1"}}},
	{name: "await_join"},
	{name: "join_round"},
	{name: "stop"},
	{name: "tell_host"},
}

// A variable is a number that decides what is waited for. Each place that sets it is a place for mutants.
type variable struct {
	name string
	kind Kind
}

var variables = []variable{
	{"epoch", Epoch}, {"exchanges", Epoch}, {"both", Epoch},
	{"phase", Phase}, {"landed_phase", Phase}, {"flush", Phase}, {"norms", Phase},
	{"target", Count}, {"producers", Count}, {"issued", Count},
	{"landed", Count}, {"acquired", Count}, {"ordinal", Count},
}

// inert are functions that neither order nor move anything: a statement is moved over their calls as well. They note
// the time and the stage, for records.
var inert = []string{"lap", "enter", "wait_ends", "test_ends", "static_assert"}
