package knobs

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// The knobs, in the order of docs and of the constants in schedule.h. docs/adding.md says how to add one.
const (
	ChunkBytes      Int      = iota // tiling.ring.chunk_bytes
	InFlight        Int      = iota // pipelining_depth
	RunAhead        Int      = iota // tiling.ring.run_ahead
	Pace            Int      = iota // tiling.ring.pace
	Stock           Int      = iota // tiling.ring.stock
	InFlightStocked Int      = iota // tiling.ring.in_flight_stocked
	Flagged         Flag     = iota // tiling.exchange.flagged
	Copies          Int      = iota // tiling.exchange.copies
	FirstPoll       Int      = iota // tiling.exchange.first_poll
	SplitFrom       Int      = iota // tiling.attention.split_from
	MaxSplits       Int      = iota // tiling.attention.max_splits
	MiddleSplits    Int      = iota // tiling.attention.middle_splits
	MiddleUntil     Int      = iota // tiling.attention.middle_until
	GrainRows       Int      = iota // tiling.gemv.rows
	SplitK          Int      = iota // tiling.gemv.split_k
	Parts           Int      = iota // tiling.gemv.parts
	Roll            Flag     = iota // tiling.loop.roll
	LayerBarrier    Flag     = iota // tiling.loop.barrier
	Warps           PerStage = iota // tiling.warps
	Chains          PerStage = iota // tiling.chains
	PromptTokens    Int      = iota // tiling.prompt.tokens
	ShortRotation   Int      = iota // tiling.short.rotation
	LongRotation    Int      = iota // tiling.long.rotation
	StageRotation   PerStage = iota // tiling.rotation
	LongRunAhead    Int      = iota // tiling.long.run_ahead
	LongPace        Int      = iota // tiling.long.pace
	LongStock       Int      = iota // tiling.long.stock
	SharedBytes     Int      = iota // smem_bytes_per_block
	PageAllocation  Word     = iota // page_allocation
	assignment      int      = iota // sm_assignment
)

// Words of page_allocation.
const (
	PagesByColour = "graph_color"
	PagesByFamily = "linear"
	PagesApart    = "none"
)

// Words of sm_assignment.
const (
	Contiguous  = "contiguous"
	LoadBalance = "load_balance"
	RoundRobin  = "round_robin"
)

var onOff = Legal{OneOf: []int{0, 1}}

// table has a row for each key. The functions of a row see other knobs through their Case alone.
var table = [...]Row{
	ChunkBytes: {
		Group: "ring", Name: "chunk_bytes",
		Legal: Legal{Lo: kernel.MinChunk, Hi: kernel.MaxChunk, Multiple: kernel.ChunkStep}, Default: 16384,
		Steps: []int{4096, 8192, 12288, 16384, 20480, 24576, 32768, 49152}, Plain: 4096,
		Rule: chunkThatFits,
		RuleDoc: "16384; less where a block has no room for a ring of those, more for wide heads, up to a quarter " +
			"more where quantised matrices fill that evenly, up to three fifths more where a tile of int4 then is " +
			"one chunk, and up to an eighth more where a cache in 8 bits does. " +
			"Where no size fits, the rest of the shared memory is laid out more tightly (docs/models.md)",
		Order:    true,
		Doc:      "bytes of a ring slot and of a bulk copy",
		Constant: &Constant{"int", "kSlotBytes", "one chunk of the ring"},
	},
	InFlight: {
		Group: "ring", Name: "in_flight",
		Field: &Field{Name: "pipelining_depth",
			Int: func(c *ir.ScheduleConfig) *int { return &c.PipeliningDepth }},
		Legal: Legal{Lo: 1, Hi: 16}, Default: 3,
		Steps: []int{1, 2, 3, 4, 5, 6, 8, 10, 12, 16}, Plain: 1,
		Rule: inFlightOfLongLayers,
		RuleDoc: "3; where a layer's weights stream for 40 µs or more, by bulk copies, so many that all SMs together " +
			"have 1.5 µs of the bandwidth on its way, from 3 to 16 and at most half of the ring; as many as have " +
			"48 KiB where experts are quantised",
		Check:    checkRing,
		Doc:      "chunks in flight per SM, as far as the ring has slots; the same in all variants",
		Constant: &Constant{"unsigned", "kInFlight", "chunks in flight"},
	},
	RunAhead: {
		Group: "ring", Name: "run_ahead",
		Legal: Legal{Lo: 0, Hi: 64}, Default: 8,
		Steps: []int{0, 2, 4, 6, 8, 12, 16, 24, 32, 64}, Plain: 0,
		Doc:      "chunks requested into L2 ahead of the ring, while it is full or holds its stock",
		Constant: &Constant{"unsigned", "kRunAhead", "chunks prefetched into L2 ahead of the ring"},
	},
	Pace: {
		Group: "ring", Name: "pace",
		Legal: Legal{Lo: 0, Hi: 1 << 16}, Default: 800,
		Steps: []int{0, 200, 400, 500, 600, 700, 800, 1000, 1200, 1600, 2400, 4000}, Plain: 800,
		Rule: paceOfStock, RuleDoc: "800; 700 with a stock", Check: checkPace,
		Doc:      "clock cycles between two requests of ring.run_ahead",
		Constant: &Constant{"unsigned", "kPace", "cycles between two prefetches"},
	},
	Stock: {
		Group: "ring", Name: "stock",
		Legal: Legal{Lo: 0, Hi: 64}, Default: 0,
		Steps: []int{0, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16}, Plain: 0,
		Rule: stockOfShortLayers,
		RuleDoc: "half of the ring where the bandwidth is known and a layer's weights stream in less than 10 µs, or " +
			"60 if they are quantised, unless ring.in_flight_stocked is set or a router chooses experts; 0 otherwise",
		Check: checkStock,
		Doc:   "chunks in the ring from which fewer are in flight; 0: never fewer",
		Constant: &Constant{"unsigned", "kStock",
			"chunks in the ring from which fewer are in flight; 0: never"},
	},
	InFlightStocked: {
		Group: "ring", Name: "in_flight_stocked",
		Legal: Legal{Lo: 1, Hi: 16}, Default: 1,
		Steps: []int{1, 2, 3, 4}, Plain: 1,
		Doc: "chunks in flight while the ring holds ring.stock; setting it makes the default of ring.stock 0, so " +
			"give ring.stock alongside it",
		Constant: &Constant{"unsigned", "kInFlightStocked", "chunks in flight then"},
	},
	Flagged: {
		Group: "exchange", Name: "flagged",
		Legal: onOff, Default: 1,
		Plain: 0,
		Doc:   "1: exchanged words carry their epoch; 0: counters announce a vector",
	},
	Copies: {
		Group: "exchange", Name: "copies",
		Legal: Legal{OneOf: []int{1, 2, 4}}, Default: 2,
		Plain: 1,
		Doc: "copies of each exchanged vector, spread over the SMs; a vector has one where SMs would not poll every " +
			"word in each copy",
	},
	FirstPoll: {
		Group: "exchange", Name: "first_poll",
		Legal: Legal{Lo: 0, Hi: 4096}, Default: 0,
		Steps: []int{0, 128, 256, 400}, Plain: 0,
		Rule:    firstPollOfPairs,
		RuleDoc: "0; 256 in models with 1025 to 2048 columns where two quarters share a chain of qkv (tiling.chains)",
		Doc: "clock cycles that a warp of a step waits before it polls the vector of a product on tensor cores for " +
			"the first time: a poll that comes just too early costs a round trip",
		Constant: &Constant{"unsigned", "kFirstPoll", "cycles before the first poll of a vector"},
	},
	SplitFrom: {
		Group: "attention", Name: "split_from",
		Legal: Legal{Lo: 0, Hi: 1 << 30}, Default: 512,
		Rule: splitFromOfPasses,
		RuleDoc: "512; 0 where passes of the build take several sequences, whose positions are independent; the " +
			"number of positions, so that nothing is split, where no pass of several rows would fit from 512 on",
		Steps: []int{0, 128, 256, 512, 1024, 2048, 4096, 8192}, Plain: 512,
		Order: true,
		Doc: "first position of the variant that splits the context; there is none where a window leaves attention " +
			"fewer positions before its own",
	},
	MaxSplits: {
		Group: "attention", Name: "max_splits",
		Legal: Legal{Lo: 1, Hi: 128}, Default: 16,
		Rule: splitsOfContext,
		RuleDoc: "16; where passes take one row of one sequence, no layer has a window and the GPU has an SM for " +
			"each of them: 32 with 1 to 4 kv heads where there are 256 positions from attention.middle_until on, and " +
			"8 with 5 to 8 kv heads where there are not; where passes of the build take several sequences as many as " +
			"give each SM a split, from 1 to 16",
		Steps: []int{1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}, Plain: 1,
		Order: true,
		Doc: "splits of a kv head in that variant, as far as there are SMs for them, and chunks of rows in a window; " +
			"1: no such variant",
	},
	MiddleSplits: {
		Group: "attention", Name: "middle_splits",
		Legal: Legal{Lo: 0, Hi: 64}, Default: 0,
		Rule: splitsOfMiddle,
		RuleDoc: "16 with 1 to 4 kv heads and 8 with 5 to 8, in builds whose attention.max_splits is twice as many " +
			"by default and where there are 256 positions or more both before attention.middle_until and from there " +
			"on; 0 elsewhere",
		Steps: []int{0, 2, 4, 6, 8, 12, 16, 24, 32}, Plain: 0,
		Order: true, Rare: true, Check: checkMiddle,
		Doc: "splits of a kv head in a variant from attention.split_from up to attention.middle_until, fewer than " +
			"beyond it; 0: no such variant",
	},
	MiddleUntil: {
		Group: "attention", Name: "middle_until",
		Legal: Legal{Lo: 0, Hi: 1 << 30}, Default: 0,
		Rule: endOfMiddle,
		RuleDoc: "0 where attention.middle_splits is 0; 4096 where only the configuration sets that; otherwise the " +
			"position from which each of its splits would read more than 64 Ki elements of a layer's cache, or up to " +
			"twice as many where all heads have more than 2048 elements together: a multiple of 512, at most 4096 " +
			"with 5 to 8 kv heads, and 8192 with fewer",
		Steps: []int{0, 1024, 2048, 3072, 4096, 6144, 8192}, Plain: 0,
		Order: true, Rare: true,
		Doc: "first position beyond the variant of attention.middle_splits; 0: there is no such variant",
	},
	GrainRows: {
		Group: "gemv", Name: "rows",
		Legal: Legal{Lo: 8, Hi: 256, Multiple: 8}, Default: tileRows,
		Steps: []int{8, 16, 24, 32, 64}, Plain: 8,
		Order: true,
		Doc:   "rows that one SM gets together when tiles are distributed",
	},
	SplitK: {
		Group: "gemv", Name: "split_k",
		Legal: Legal{Lo: 1, Hi: 8}, Default: 4,
		Steps: []int{1, 2, 3, 4, 6, 8}, Plain: 1,
		Order: true,
		Doc: "parts that the columns of a product are cut into at most, where every SM has the residual that they " +
			"are added to, so that its tiles spread evenly; 1: they are not cut",
	},
	Parts: {
		Group: "gemv", Name: "parts",
		Legal: Legal{OneOf: []int{1, 2, 4, 8}}, Default: 1,
		Rule: func(c *Case, _ string) int { return max(1, c.Ranks) }, RuleDoc: "1; with --gpus N, N",
		Steps: []int{1}, Plain: 1, // more are slower
		Order: true, Rare: true, Check: checkParts,
		Doc: "equal parts of the columns of o and down, each of which is summed up on its own before sums are added " +
			"in pairs, so that GPUs which share the columns could have the same bits (docs/passes.md). A build of " +
			"several parts reads prompts one token at a time, has no passes of several tokens, and no products that " +
			"gemv.split_k cuts",
	},
	Roll: {
		Group: "loop", Name: "roll",
		Legal: onOff, Default: 1,
		Plain: 1,
		Doc:   "1: equal layers are a loop; 0: every stage and buffer stands on its own",
	},
	LayerBarrier: {
		Group: "loop", Name: "barrier",
		Legal: onOff, Default: 0,
		Plain: 1,
		Doc: "1: every layer ends at a barrier of all SMs, before which nothing of the next layer is copied: the " +
			"reference that looping without barriers is measured against",
	},
	Warps: {
		Group: "warps", Stages: []string{"qkv", "o", "gate_up", "down", "lm_head"},
		Legal: Legal{OneOf: []int{1, 2, 4, 8}}, Default: 8,
		Plain:    8,
		Rule:     warpsOfShortRows,
		RuleDoc:  "8; 4 for qkv, gate_up and lm_head of models with 512 or 1024 columns on tensor cores",
		Order:    true,
		Doc:      "consumer warps that share a tile; gate_up stands for up in a model without a gate",
		Constant: &Constant{"int", "kWarps", "warps that share a tile"},
	},
	Chains: {
		Group: "chains", Stages: []string{"qkv", "o", "gate_up", "down", "lm_head"},
		Legal: Legal{OneOf: []int{1, 2}}, Default: 2,
		Plain: 1,
		Rule:  chainsOfShortRows,
		RuleDoc: "2; 1 in models with 1024 columns or fewer, and where matrices are quantised or no tensor cores " +
			"multiply them",
		Order: true,
		Doc: "quarters of 128 columns that share a chain of mma in matrices of 16 bits: 2 reads prompts faster, and " +
			"a step exchanges activations between lanes for it; gate_up stands for up in a model without a gate",
		Constant: &Constant{"int", "kChains", "quarters of a quad that share a chain of mma"},
	},
	PromptTokens: {
		Group: "prompt", Name: "tokens",
		Legal: Legal{Lo: 0, Hi: 4096, Multiple: promptTile}, Default: 2048,
		Steps: []int{2048}, Plain: 2048, // a search times steps, which it does not change
		Rule: promptThatFits,
		RuleDoc: "2048; less where the vectors of that many tokens, by an estimate from the sizes of the model, " +
			"would take more than a 64th of the target's memory, and 64 at least",
		Check: checkPrompt,
		Doc: "tokens of a prompt that one pass takes at most, in builds that have a kernel for it (docs/passes.md); " +
			"0: no such kernel, and so no memory for the vectors of its tokens",
		Constant: &Constant{"int", "kMostPromptTokens", "tokens of a pass over a prompt"},
	},
	ShortRotation: {
		Group: "short", Name: "rotation",
		Legal: Legal{Lo: 0, Hi: ir.MaxTargetSMs - 1}, Default: 0, Steps: rotations, Rare: true,
		Check: func(c *Case) *diag.Diagnostic { return checkRotation(c, int(ShortRotation)) },
		Doc: "by how many SMs attention is rotated beyond its rotation of sm_assignment, in the variant from " +
			"position 0 on",
	},
	LongRotation: {
		Group: "long", Name: "rotation",
		Legal: Legal{Lo: 0, Hi: ir.MaxTargetSMs - 1}, Default: 0, Steps: rotations, Rare: true,
		Check: func(c *Case) *diag.Diagnostic { return checkRotation(c, int(LongRotation)) },
		Doc: "by how many SMs attention, in its splits, is rotated beyond its rotation of sm_assignment, in the " +
			"variant from attention.split_from on",
	},
	StageRotation: {
		Group: "rotation", Stages: []string{"qkv", "gate_up", "lm_head"}, // o and down keep the residual on their SMs
		Legal: Legal{Lo: 0, Hi: ir.MaxTargetSMs - 1}, Default: 0, Steps: rotations, Rare: true,
		Check: func(c *Case) *diag.Diagnostic { return checkRotation(c, int(StageRotation)) },
		Doc: "by how many SMs the stage is rotated beyond its rotation of sm_assignment; gate_up stands for up in a " +
			"model without a gate",
	},
	LongRunAhead: {
		Group: "long", Name: "run_ahead",
		Legal: Legal{Lo: 0, Hi: 64}, Steps: []int{0, 2, 4, 8, 12, 16, 32},
		Like: new(RunAhead), RuleDoc: "that of ring.run_ahead", Rare: true, Check: checkLong,
		Doc: "chunks requested into L2 ahead of the ring, while it is full or holds its stock, in the variant from " +
			"attention.split_from on, instead of ring.run_ahead",
		Constant: &Constant{"unsigned", "kLongRunAhead", "instead of kRunAhead"},
	},
	LongPace: {
		Group: "long", Name: "pace",
		Legal: Legal{Lo: 0, Hi: 1 << 16}, Steps: []int{0, 400, 500, 600, 700, 800, 1000, 1600, 2400},
		Like: new(Pace), RuleDoc: "that of ring.pace, whatever long.stock is", Rare: true,
		Doc: "clock cycles between two requests of long.run_ahead, in the variant from attention.split_from on, " +
			"instead of ring.pace",
		Constant: &Constant{"unsigned", "kLongPace", "instead of kPace"},
	},
	LongStock: {
		Group: "long", Name: "stock",
		Legal: Legal{Lo: 0, Hi: 64}, Steps: []int{0, 2, 4, 6, 8, 10, 12},
		Like: new(Stock), RuleDoc: "that of ring.stock", Rare: true,
		Doc: "chunks in the ring from which fewer are in flight, 0: never fewer, in the variant from " +
			"attention.split_from on, instead of ring.stock",
		Constant: &Constant{"unsigned", "kLongStock", "instead of kStock"},
	},
	SharedBytes: {
		Field: &Field{Name: "smem_bytes_per_block",
			Int: func(c *ir.ScheduleConfig) *int { return &c.SMemBytesPerBlock }},
		Legal: Legal{Lo: 0, Hi: 1 << 24}, Default: 0, Code: codeShared,
		Steps: []int{0, 65536, 98304, 131072, 163840, 196608}, Plain: 0,
		Rule: allShared, RuleDoc: "all that a block of the target can have", Check: checkShared,
		Doc: "bytes of shared memory that a block may use; what the scratch leaves is the ring",
	},
	PageAllocation: {
		Field: &Field{Name: "page_allocation",
			Word: func(c *ir.ScheduleConfig) *string { return &c.PageAllocation }},
		Legal: Legal{Words: []string{PagesByColour, PagesByFamily, PagesApart}}, Code: codePages,
		Plain: 2,
		Doc:   "which exchange buffers share a page: any two whose uses are ordered, those of one family, or none",
	},
	assignment: {
		Field: &Field{Name: "sm_assignment"},
		form: &form{want: "contiguous, load_balance, round_robin, or an object of rotations by stage",
			byDefault: "load_balance",
			words:     policies, plain: 0, def: 1,
			word: func(c *ir.ScheduleConfig) *string { return &c.SMAssignment.Policy },
			schema: object{"anyOf": []object{
				{"enum": append(slices.Clone(policies), "")},
				{"type": "object", "additionalProperties": object{"type": "integer", "minimum": 0}}}}},
		Doc: "how far the SMs are rotated against the work of each stage. Single tasks cannot be moved: an SM " +
			"computes its span from the rotation, and streams the weights of a span in one piece",
	},
}

// rotations are those of attention that a search tries.
var rotations = []int{0, 1, 2, 4, 8, 16, 32, 64}

// policies are the words of sm_assignment.
var policies = []string{Contiguous, LoadBalance, RoundRobin}

// form describes a row of other values than numbers and words. The pass that uses them checks them. Words are the
// values among them that a search tries, if it tries any.
type form struct {
	want, byDefault string
	schema          object
	words           []string
	plain, def      int // positions in words
	word            func(*ir.ScheduleConfig) *string
}
