// Package kernel declares the stage bodies of the device runtime, one each in one place: the constants of its
// descriptor, the arguments of its call, what its SM streams for it, where its tasks run, and the ops that it computes
// for given constants and facts of the model. That pattern is the only definition of a body's semantics.
//
// The package is data for other packages, as ir/op is. Codegen finds the body of a stage, takes the constants from its
// ops, prints them, and refuses the stage if its ops differ from the pattern. Package readback reads the constants and
// the call out of emitted text and takes the ops from the pattern. The two share declarations and no code.
package kernel

import (
	"maps"
	"slices"
	"strings"

	"amkc/ir"
)

// Facts are the inputs of a pattern besides the stage: facts of the model, of the stage's layer, of the GPU, and of the
// pass.
type Facts struct {
	Hidden, Vocab, SMs int
	ir.LayerFacts
	HeadsDiffer bool // between layers

	Pass        ir.Pass
	Ranks       int  // GPUs that run the kernel at once; 0 is 1
	Splits      int  // of a kv head, where the context is split
	CacheBlocks int  // of 16 rows of a head, keys and values, that fit a slot of the ring
	Positions   int  // rows of their table; 0: none
	OwnGains    bool // heads that attention normalises have weights of their own
	Names
}

// Names are the program's names of buffers that the kernel accesses without an argument.
type Names struct {
	Embeddings, LastHidden, Sampling, Next, StopIDs, StopLast string
}

func (f *Facts) qkvRows() int { return f.QueryRows() + 2*f.KeyRows() }

// A Stage is the values of a stage that its body uses.
type Stage struct {
	// Of its distribution and its exchange.
	Rows, Grain, Units, Rotation, Step, Tasks int
	Empty                                     bool
	Signal                                    string // "" for none

	// Of a product: its columns, and how many parts they are cut into, of which each is a vector of sums, or is added
	// up with the others. Of what reads a vector: as which of the exchanges that are kept it keeps the last one, which
	// one it reads, and whether it reads the residual of its SM instead.
	Columns, SplitK, Added int
	Holds, ReadsHeld       int
	Resident               bool

	// Of a product with matrices of experts that a router has chosen: of how many its rows are, one after another, and
	// how many a row is the sum of products with. Of a router: how many it chooses, of how many, and how they are
	// weighed.
	Selected, Summed       int
	Experts, Chosen        int
	Groups, TopGroups      int // of experts, and how many of them are chosen from
	OfChosen, Renormalised bool
	Sigmoid, Biased, Gated bool    // of scores; for the choice alone; of the expert that every token has
	Extra, Least           float64 // of the sum of the weights

	// Of attention and what combines its splits.
	Splits, ShareRows, Window, Width              int
	Scale, ScoreCap                               float64 // Scale is of embed and of a router, too
	Normed, WholeNorm, OwnGains, Shifted, Rotates bool
	NormsValues                                   bool
	AngleTable                                    int
	Taps                                          int // of a convolution, whose units have Width channels
	KeyHeads, Keys, Values                        int // of states
	FirstGate                                     int // of what attention makes
	Angles                                        Angles

	// The heads of its layer, where layers differ in them.
	OwnHeads                bool
	Heads, KVHeads, HeadDim int

	// Of norms.
	Eps                 float64
	UnitOffset, Centred bool
	NormWeights         int // one to multiply by, and one to add
	Parts               int // of the branch that is normalised

	// Of embed.
	Scaled, Placed            bool // rows are multiplied by Scale; a row of a table of positions is added
	Positions, PositionOffset int

	// What its buffers are called: arguments of its call, and what it keeps on chip.
	In, Out, BestValue, BestIndex                             string
	Matrix, Bias, Curve, Norm, Shift, Table, PositionTable    string
	Factor                                                    string // of the sum that a layer ends in
	QNorm, KNorm, QShift, KShift, Sinks                       string
	Token, Residual, Rounded, Branch, Cache, NextOnSM, StopSM string
	Ids, Shares, Gate, Choosing                               string   // of what a router chooses
	Inputs, TapsOf, TapsBias                                  string   // rows of a convolution, and its weights
	Memory, Pending, Before                                   string   // of states, what they keep
	DecayLog, DecayBias, StateTaps, StateNorm                 string   // of states, their weights
	Gates                                                     string   // of what attention makes
	Temps                                                     []string // in the order in which they are made
}

// Angles are a table of cos and sin.
type Angles struct {
	Frequencies string     // the buffer that it is made of
	Pairs       int        // of a head that rotate, the first ones
	Scale       []ir.Param // what multiplies cos and sin; may be none
}

// A Place says on which SMs the tasks of a body run.
type Place int

const (
	Spread  Place = iota // rows in grains, as its descriptor says
	ByUnit               // units, as its descriptor says
	EverySM              // one task on each
	FirstSM              // one task on the first, which hands results to the host
)

// Streams are what the ring of an SM brings for a stage.
type Streams int

const (
	Nothing   Streams = iota
	Tiles             // of its matrix
	CacheRows         // rows of the cache below the position
)

// Keeps are values that an SM keeps in shared memory from one stage to others. There is one place for each.
type Keeps int

const (
	OwnRows       Keeps = 1 << iota // of the residual, those that its SM owns
	WholeResidual                   // all of the residual, and its rounding
	BranchRows                      // of the norm of a branch, those that are added to OwnRows
	Choice                          // of the router: which experts, and their weights
)

// A Body is the device code of a stage: a function of the runtime, or for a product one of stages.h.
type Body struct {
	Name string
	// Header is the file of the device runtime, without .cuh, that only kernels with such a stage include; "": one that
	// all include.
	Header string
	// Codes are the sequences of ops that a stage of the body may have, without sums of parts, which come first. If
	// several bodies have the same sequence, Is distinguishes them.
	Codes    []string
	Is       func(ops []ir.Op) bool
	Place    Place
	Streams  Streams
	Begins   bool  // it looks up the token that a step begins with
	Emitted  bool  // its function is one of stages.h, which is made for each stage
	Unlisted bool  // it has no descriptor and no number: it ends a step or a layer
	Local    bool  // it publishes nothing
	NoPrompt bool  // the kernel for prompts has no such function
	ReadsTwo bool  // it reads what was published last, and its second argument is a vector that was kept
	Asked    bool  // it runs in launches that ask for it alone, and what others need does not change with it
	Keeps    Keeps // what its SM has of it for later stages
	Brief    bool  // of stop and join_step: a few instructions after a choice, which the cost model counts with it
	// Polls is the bytes that a task fetches for each element of its first operand, with all that other operands say of
	// it; 0: the words of each operand.
	Polls float64
	// ReadsResidual reports that its vector may be the residual of its SM instead of a published vector.
	ReadsResidual bool

	Fields []Field
	Args   []Arg
	// Reader is the type that is constructed from the first arguments; nil for a body without one.
	Reader func(s *Stage) string
	// Read takes the constants from the ops of a stage. Missing names are "", missing numbers 0.
	Read func(s *Stage, ops []ir.Op)
	// Derive computes constants that are not in the ops from the facts and from other constants; nil: there are none.
	Derive func(f *Facts, s *Stage)
	// Temps are the names of its temporaries in text, in the order of Stage.Temps; nil for a body without any.
	Temps func(s *Stage) []string
	// Ops is the pattern. That of a product has the ops of its function instead (product.go).
	Ops func(f *Facts, s *Stage) []ir.Op

	Buffers []Buffer          // what is called in one way whichever body uses it is declared with one of them
	Vectors []Vector          // the same of what is published
	Norms   map[string]string // what the norms of its stages are called, by the roles of these
}

func (b *Body) String() string { return b.Name }

// Matrix is the matrix, possibly quantised, whose tiles the body streams or whose rows it reads; nil if there is none.
func (b *Body) Matrix(s *Stage) *string {
	switch {
	case b.Streams == Tiles:
		return &s.Matrix
	case b.Begins:
		return &s.Table
	}
	return nil
}

// Holds reports whether a stage of the body may keep an exchange for later stages, and ReadsLate whether one may read
// one that was kept.
func (b *Body) Holds() bool     { return b.has(holds) }
func (b *Body) ReadsLate() bool { return b.has(readsHeld) }

func (b *Body) has(want Field) bool {
	return slices.ContainsFunc(b.Fields, func(f Field) bool { return f.Name == want.Name })
}

// Replicated reports whether the body is for a residual of which every SM has a copy.
func (b *Body) Replicated() bool { return b.Keeps&WholeResidual != 0 }

// EndsStep reports whether the body is one of Endings.
func (b *Body) EndsStep() bool { return slices.Contains(Endings, b) }

// Bodies, Buffers, Vectors and Norms are all that are declared.
var (
	Bodies  []*Body
	Buffers []Buffer
	Vectors []Vector
	Norms   = map[string]string{}
)

func declare(b *Body) *Body {
	Bodies, Buffers, Vectors = append(Bodies, b), append(Buffers, b.Buffers...), append(Vectors, b.Vectors...)
	maps.Copy(Norms, b.Norms)
	return b
}

// Find returns the body whose function has a name, or nil.
func Find(name string) *Body {
	for _, b := range Bodies {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// An Arg is an argument of the call of a body: the address of a weight, or the page of a vector.
type Arg struct {
	Weight   bool
	Inside   bool // of the braces of Reader
	Optional bool // the call alone says whether it is there; it comes after those that must be
	At       func(s *Stage) *string
	If       func(s *Stage) bool // nil: always there
}

func page(at func(s *Stage) *string) Arg    { return Arg{At: at} }
func address(at func(s *Stage) *string) Arg { return Arg{Weight: true, At: at} }

func (a Arg) when(is func(s *Stage) bool) Arg {
	a.If = is
	return a
}

// optional is for an argument that a call has only if its buffer has a name.
func (a Arg) optional() Arg {
	a.Optional, a.If = true, func(s *Stage) bool { return *a.At(s) != "" }
	return a
}

func (a Arg) inside() Arg {
	a.Inside = true
	return a
}

// ArgsOf are the arguments of the call of a stage.
func (b *Body) ArgsOf(s *Stage) []Arg {
	return slices.DeleteFunc(slices.Clone(b.Args), func(a Arg) bool { return a.If != nil && !a.If(s) })
}

func input(s *Stage) *string  { return &s.In }
func output(s *Stage) *string { return &s.Out }
func norm(s *Stage) *string   { return &s.Norm }
func shift(s *Stage) *string  { return &s.Shift }

// Dist is the distribution of a stage.
func (b *Body) Dist(f *Facts, s *Stage) ir.Dist {
	d := ir.Dist{Kind: ir.Spread, SMs: f.SMs, Extent: s.Rows, Grain: s.Grain, Rot: s.Rotation, Step: s.Step,
		Empty: s.Empty}
	switch b.Place {
	case ByUnit:
		d.Kind, d.Extent, d.Grain = ir.ByUnit, s.Units, 1
	case EverySM:
		d = ir.Dist{Kind: ir.Spread, Extent: f.SMs, Grain: 1, SMs: f.SMs}
	case FirstSM:
		d = ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: 0, A: 0, B: 1}}}
	}
	return d
}

// Of finds the body of a stage by its ops alone. It does not look at counters, so it takes the join of a step for an
// arrival at a barrier. It returns nil if no body has such ops.
func Of(s *ir.Stage) *Body {
	if isProduct(s.Ops) {
		return Product
	}
	codes := CodesOf(s.Ops)
	i := slices.IndexFunc(Bodies, func(b *Body) bool {
		return slices.Contains(b.Codes, codes) && (b.Is == nil || b.Is(s.Ops))
	})
	switch {
	case i < 0:
		return nil
	case Bodies[i] == Arrive && len(s.Waits) > 0:
		return Join
	}
	return Bodies[i]
}

// CodesOf returns the opcodes of ops in the form of Codes.
func CodesOf(ops []ir.Op) string {
	var codes []string
	for _, o := range ops[sums(ops):] {
		codes = append(codes, o.Code.String())
	}
	return strings.Join(codes, " ")
}

// find returns the first op of a code, or one without operands.
func find(ops []ir.Op, code ir.Opcode) *ir.Op {
	for i := range ops {
		if ops[i].Code == code {
			return &ops[i]
		}
	}
	return &ir.Op{Code: code}
}

// ProductOf is the op that multiplies by the matrix of a stage, or by matrices that are selected; one without operands
// where there is none.
func ProductOf(ops []ir.Op) *ir.Op {
	if selected := find(ops, ir.SELECTED); len(selected.In) > 0 {
		return selected
	}
	return find(ops, ir.GEMV)
}

// name is what the k-th operand is called.
func name(operands []ir.Operand, k int) string {
	if k < len(operands) {
		return operands[k].Buf
	}
	return ""
}

// Ranges that patterns are made of.
var (
	spanA, spanB = ir.Symbol(ir.SpanA), ir.Symbol(ir.SpanB)
	position     = ir.Symbol(ir.Pos)
	ownSM        = ir.Index(ir.Symbol(ir.OnSM))
	firstOnly    = ir.Index(ir.Int(0))

	// TaskRows is the span of a task's rows, and TaskPairs the span after every two rows have become one.
	TaskRows  = ir.Span(spanA, spanB)
	TaskPairs = ir.Span(spanA.Div(2), spanB.Div(2))
)

func upTo(n int) ir.Range { return ir.Span(ir.Int(0), ir.Int(n)) }

// block is the e-th block of n elements, counted from offset.
func block(e ir.Expr, n, offset int) ir.Range {
	lo, hi := e.Mul(n), e.Add(ir.Int(1)).Mul(n)
	if offset != 0 {
		lo, hi = ir.Int(offset).Add(lo), ir.Int(offset).Add(hi)
	}
	return ir.Span(lo, hi)
}

func view(name string, dims ...ir.Range) ir.Operand { return ir.Operand{Buf: name, Dims: dims} }

func views(v ...ir.Operand) []ir.Operand { return v }

func op(code ir.Opcode, out, in []ir.Operand, params ...ir.Param) ir.Op {
	return ir.Op{Code: code, Out: out, In: in, Params: params}
}
