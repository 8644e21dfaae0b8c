package passes

import (
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/checkpoint"
	"amkc/passes/quantised"
)

// A Pass is one step from checkpoint to scheduled program. After names the passes that must have run before it; those
// are the reasons for its place in the list, and a test holds the list to them.
type Pass struct {
	Name  string
	Doc   string // one line, as `amkc passes` prints it
	After []string
	Run   func(*State) error
}

// State is what passes read and write. Source and MaxSeq are read by import; lower resolves Config, Target and
// MaxSeq into Program, and passes after lower look at Program only.
type State struct {
	Source Source
	Target *ir.Target
	Config ir.ScheduleConfig // as the user gave it; Program.Config states every knob
	MaxSeq int               // positions to compile for; 0: what the model allows, at most DefaultMaxSeq
	Pass   ir.Pass           // what a pass of the program takes
	Most   ir.Pass           // what passes of the build take at most, by which some knobs have their defaults

	Graph    *ir.Graph
	Consumed []string                     // tensors of the checkpoint that import accounted for, sorted
	Matrices map[string]*quantised.Matrix // the quantised ones of the checkpoint, by key
	Program  *ir.Program
	Loops    LoopReport
	Pages    PageReport
	Diags    diag.List // warnings; an error ends the run and is returned
}

// Source is the model to import.
type Source struct {
	Name        string // for Model.Name
	Config      *checkpoint.Config
	Weights     *checkpoint.Checkpoint // nil: shapes are taken from the config alone
	Tensors     map[string]bool        // without Weights: names of tensors that the files have, as far as known; or nil
	DType       *ir.DType              // of the compiled model; nil: that of the checkpoint
	AssumeInert []string               // config fields that the user vouches for
	Formats     WeightFormats          // how matrices are stored; nil: as the weights of the model are
	Cache       *ir.DType              // of rows of K and V; nil: that of the model
}

// DefaultMaxSeq bounds the positions compiled for when the user names no number: the KV cache is allocated in full, and
// that of a model with 131072 positions is larger than its weights.
const DefaultMaxSeq = 4096

// MostPositions is the most positions that a model can be compiled for.
const MostPositions = 1 << 24
