package ir

import (
	"fmt"
)

// Version is the version of the native forms, text and JSON. A reader refuses another major version. Version 2 has
// chains of declared transforms between a tensor and the rows of a buffer.
const Version = "2.0"

// Program is the native scheduled program of one pass: of one decode step, or of one of several tokens.
//
// Names of buffers, counters and stages may hold `{i}` (also `{i+1}`, `{i-1}`): the index of a layer or of an
// iteration, printed with at least two digits when it is resolved, so that `L{i}.qkv` stands for L00.qkv, L01.qkv and
// so on. A name identifies an entity, and does not state its purpose: see Role.
type Program struct {
	Model    Model
	Target   *Target // nil: any
	Pass     Pass
	Ranks    int // GPUs that run the program together, each on data of its own; 0 means 1
	Config   ScheduleConfig
	Buffers  []Buffer
	Groups   []Group
	Pages    []Page
	Variants []Variant
}

// Model has the facts of the compiled model, which codegen prints into model_config.h.
type Model struct {
	Name         string `json:"name"`         // base name of the model directory, or --name
	Architecture string `json:"architecture"` // LlamaForCausalLM
	DTypes       `json:"dtype"`
	Layers       int `json:"layers"`
	Hidden       int `json:"hidden"`
	Intermediate int `json:"intermediate"`
	Experts      int `json:"experts,omitempty"`
	PerToken     int `json:"per_token,omitempty"`
	Shared       int `json:"shared,omitempty"`
	SharedGates  int `json:"shared_gates,omitempty"`
	Mixer
	Heads   int     `json:"heads"`
	KVHeads int     `json:"kv_heads"`
	HeadDim int     `json:"head_dim"`
	Vocab   int     `json:"vocab"`
	MaxSeq  int     `json:"max_seq"` // positions 0 to MaxSeq-1 can be decoded
	Tied    bool    `json:"tied"`    // lm_head shares the embedding
	Eps     float64 `json:"eps"`

	// Where layers differ in sizes: the facts of each kind of layers, and the kind of each layer from 0 on, as a list
	// that repeats. The sizes above are then those of the first layer.
	Kinds      []LayerFacts `json:"kinds,omitempty"`
	LayerKinds []int        `json:"layer_kinds,omitempty"`
}

// Buffer is a named tensor, or a family of them: with Count > 0 the name holds {i}, and the family has Count members
// with the indices First, First+Step, First+2*Step and so on.
type Buffer struct {
	Name   string
	First  int
	Count  int
	Step   int    // between indices; 0 means 1
	Role   string // of an input or output: RoleToken and so on, or "" for none
	Kind   BufferKind
	DType  DType
	Shape  []int // logical; rank 1 to MaxRank
	Space  Space
	Layout Layout
	Pieces []Piece  // where a WEIGHT or CONST comes from, in row order
	Pages  []string // activations after page colouring; member i is on Pages[i/Step % len], from offset 0
}

// Numel returns the number of logical elements.
func (b *Buffer) Numel() int {
	n := 1
	for _, d := range b.Shape {
		n = satMul(n, d)
	}
	return n
}

// Group is a ragged group: buffers of any names that the iterations of a loop use one after another. The name holds
// {i}; with index First+k*Step in it, it is another name of the buffer Members[k].
type Group struct {
	Name    string
	First   int
	Step    int      // between indices; 0 means 1
	Members []string // resolved names of buffers; one may occur several times, also in several groups
}

// Page is a physical scratch slot. All buffers on a page have one layout kind and one number of copies.
type Page struct {
	Name   string
	Space  Space
	Layout Layout
	Bytes  int // one copy
}

// Variant is the program for an interval of positions, both ends included: of the first row of a sequence. Of several
// sequences it is that of the largest position.
type Variant struct {
	Name     string
	Lo, Hi   int
	Counters []Counter
	Body     []Node
}

// Realisation is how a counter is implemented on the device.
type Realisation int

const (
	Undecided Realisation = iota // before pass exchange
	ByCounter                    // store, release-add; acquire poll
	Flagged                      // every word of the exchange carries its epoch; orders those words and nothing else
)

var realisationNames = [...]string{"undecided", "counter", "flagged"}

func (r Realisation) String() string { return enumName(realisationNames[:], int(r)) }

// ParseRealisation returns the realisation with the given name.
func ParseRealisation(s string) (Realisation, error) {
	i, err := enumCode(realisationNames[:], s, "realisation")
	return Realisation(i), err
}

// Scope is the set of threads a counter synchronises.
type Scope int

const (
	ScopeGPU Scope = iota
	ScopeSM
	ScopeSystem
)

var scopeNames = [...]string{"gpu", "sm", "system"}

func (s Scope) String() string { return enumName(scopeNames[:], int(s)) }

// ParseScope returns the scope with the given name.
func ParseScope(s string) (Scope, error) {
	i, err := enumCode(scopeNames[:], s, "scope")
	return Scope(i), err
}

// Counter is a monotonic arrival count, or a family of them like Buffer. It starts a step at Init.
type Counter struct {
	Name  string
	First int
	Count int
	Step  int    // between indices; 0 means 1
	Role  string // RoleStep, or "" for none
	Init  int
	How   Realisation
	Scope Scope
}

// Wait is a precondition: the counter has reached the threshold.
type Wait struct {
	Counter   string
	Threshold int
}

// Node is an element of a body: *Stage or *Loop.
type Node interface{ node() }

func (*Stage) node() {}
func (*Loop) node()  {}

// Loop repeats its body Count times; {i} in names counts First, First+Step, First+2*Step and so on. Bodies hold
// stages only.
//
// Iterations may be of several kinds. Kinds are those of the first ones, from 1 on, and repeat: 1 1 2 is every third
// iteration of kind 2. A stage of a kind runs in the iterations of that kind alone.
type Loop struct {
	Name  string
	First int
	Count int
	Step  int   // between indices; 0 means 1
	Kinds []int // empty: all iterations are alike
	Body  []*Stage
}

// Kind returns the kind of iteration k, counted from 0; 0 if all are of one kind.
func (l *Loop) Kind(k int) int {
	if len(l.Kinds) == 0 {
		return 0
	}
	return l.Kinds[k%len(l.Kinds)]
}

// Runs reports whether a stage of the body runs in iteration k, counted from 0.
func (l *Loop) Runs(s *Stage, k int) bool { return s.Kind == 0 || s.Kind == l.Kind(k) }

// NumIterations returns the number of iterations that a stage of the body runs in.
func (l *Loop) NumIterations(s *Stage) int {
	if s.Kind == 0 || len(l.Kinds) == 0 {
		return max(0, l.Count)
	}
	inList, inRest := 0, 0
	for k, kind := range l.Kinds {
		if kind == s.Kind {
			inList++
			if k < l.Count%len(l.Kinds) {
				inRest++
			}
		}
	}
	return l.Count/len(l.Kinds)*inList + inRest
}

// Iterations returns the numbers of the iterations that a stage of the body runs in, counted from 0.
func (l *Loop) Iterations(s *Stage) []int {
	out := make([]int, 0, max(0, l.Count))
	for k := range l.Count {
		if l.Runs(s, k) {
			out = append(out, k)
		}
	}
	return out
}

// Stage is all tasks of one fused operation in one layer. Its tasks run the same ops on different spans [a, b) of the
// stage's axis. A task is named STAGE.sNNN after its SM, or STAGE.uNNN after its unit when the distribution is ByUnit.
//
// The role is its name in knobs per stage, rotations and reports, such as qkv or lm_head; nothing depends on it that
// the ops show. Stages may share one.
type Stage struct {
	Name   string
	Role   string // "" for none
	Layer  Layer
	Kind   int // in a loop: of the iterations that it runs in; 0: of all
	Dist   Dist
	Waits  []Wait
	Ops    []Op
	Signal string // the counter that each task adds 1 to
}

// DistKind is how the tasks of a stage are distributed to the SMs.
type DistKind int

const (
	Whole    DistKind = iota // one task for the whole axis, no SM yet
	Tiled                    // one task per grain, no SM yet
	Spread                   // contiguous spans of grains, one task per SM
	ByUnit                   // one task per grain, units spread over the SMs
	Explicit                 // listed
)

var distNames = [...]string{"whole", "tiled", "spread", "units", "explicit"}

func (k DistKind) String() string { return enumName(distNames[:], int(k)) }

// ParseDistKind returns the distribution with the given name.
func ParseDistKind(s string) (DistKind, error) {
	i, err := enumCode(distNames[:], s, "distribution")
	return DistKind(i), err
}

// Dist distributes an axis of Extent elements in grains of Grain over SMs. In iteration i, slot (sm + Rot + Step*i) mod
// SMs of Spread runs grains [T*slot/SMs, T*(slot+1)/SMs) of the T grains; ByUnit gives unit u to the SM whose slot is
// u*SMs/U. For ByUnit the span of unit u is [u, u+1) and Grain is 1.
type Dist struct {
	Kind   DistKind
	Extent int
	Grain  int
	SMs    int
	Rot    int
	Step   int
	Empty  bool       // Spread: SMs with an empty span have a task too
	Spans  []TaskSpan // Explicit
}

// TaskSpan is one task of an explicit distribution; SM -1 means unassigned.
type TaskSpan struct{ SM, A, B int }

// insane says why Tasks cannot be called on the distribution, or nothing.
func (d *Dist) insane() string {
	if d.Kind == Explicit {
		for _, t := range d.Spans {
			if t.SM < -1 || t.SM >= MaxSMs || t.A < 0 || t.B < t.A {
				return fmt.Sprintf("task on SM %d with the span [%d, %d), want an SM below %d or -1, and a "+
					"span from 0 on", t.SM, t.A, t.B, MaxSMs)
			}
		}
		return ""
	}
	if d.Extent < 0 || d.Extent > maxExtent || d.Grain < 0 || d.SMs < 0 || d.SMs > MaxSMs {
		return fmt.Sprintf("distribution with extent %d, grain %d, %d SMs, want none negative, an extent of at most "+
			"%d and at most %d SMs",
			d.Extent, d.Grain, d.SMs, maxExtent, MaxSMs)
	}
	return ""
}

// NumTasks returns the number of tasks, the same in every iteration (Spread: at most; it leaves empty spans out).
func (d *Dist) NumTasks() int {
	switch d.Kind {
	case Explicit:
		return len(d.Spans)
	case Whole:
		return 1
	case Tiled:
		return (d.Extent + max(1, d.Grain) - 1) / max(1, d.Grain)
	case ByUnit:
		return d.Extent
	default:
		return max(1, d.SMs)
	}
}

// Tasks returns the tasks of the distribution in iteration i, ordered by span.
func (d *Dist) Tasks(i int) []TaskSpan {
	grain := max(1, d.Grain)
	grains := (d.Extent + grain - 1) / grain
	switch d.Kind {
	case Explicit:
		return d.Spans
	case Whole:
		return []TaskSpan{{-1, 0, d.Extent}}
	case Tiled:
		out := make([]TaskSpan, grains)
		for t := range out {
			out[t] = TaskSpan{-1, t * grain, min(d.Extent, (t+1)*grain)}
		}
		return out
	}
	sms := max(1, d.SMs)
	sm := func(slot int) int { return ((slot-d.Rot-d.Step*i)%sms + sms) % sms }
	if d.Kind == ByUnit {
		out := make([]TaskSpan, 0, max(0, d.Extent))
		for u := range d.Extent {
			out = append(out, TaskSpan{sm(u * sms / d.Extent), u, u + 1})
		}
		return out
	}
	out := make([]TaskSpan, 0, sms)
	for slot := range sms {
		a, b := grains*slot/sms*grain, grains*(slot+1)/sms*grain
		a, b = min(a, d.Extent), min(b, d.Extent)
		if a < b || d.Empty {
			out = append(out, TaskSpan{sm(slot), a, b})
		}
	}
	return out
}

// ScheduleConfig is the point of the search space that produced a program. Its fields are among those of the AMK IR;
// most knobs live under Tiling. It has the contents of a file: package knobs has the table of knobs, and resolves their
// values.
type ScheduleConfig struct {
	Tiling       map[string]map[string]int `json:"tiling"`
	SMAssignment Assignment                `json:"sm_assignment"`
	// fields that hold a knob of their own; 0 and the empty string are the default, as which a file does not state a
	// pipelining_depth of 0
	PipeliningDepth   int    `json:"pipelining_depth"`
	PageAllocation    string `json:"page_allocation"`
	SMemBytesPerBlock int    `json:"smem_bytes_per_block"`
}

// Assignment is a policy by name, or a rotation for each named stage: the number of SMs by which its spans are shifted.
// Single tasks cannot be assigned. The kernel computes an SM's span from the rotation, and the weights of a span are
// contiguous.
type Assignment struct {
	Policy    string         // contiguous, load_balance or round_robin; empty when Rotations is set
	Rotations map[string]int // stage name without its layer -> rotation
}
