package passes

import (
	"amkc/importers"
	"amkc/importers/quantised"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/loops"
)

// A Pass is one step from checkpoint to scheduled program. After names the passes that must run before it. A test
// checks the list against it.
type Pass struct {
	Name  string
	Doc   string // one line, as `amkc passes` prints it
	After []string
	Run   func(*State) error
}

// State is what passes read and write. Import reads Source, and quantise Formats and Cache; lower resolves Config and
// Target into Program, and passes after lower look at Program only.
type State struct {
	Source  importers.Source
	Formats WeightFormats // how matrices are stored; nil: as the weights of the model are
	Cache   *ir.DType     // of rows of K and V; nil: that of the model
	Target  *ir.Target
	Config  ir.ScheduleConfig // as the user gave it; Program.Config states every knob
	Pass    ir.Pass           // what a pass of the program takes
	Ranks   int               // GPUs that share the model; 0 means one
	Most    ir.Pass           // what passes of the build take at most, by which some knobs have their defaults

	Graph    *ir.Graph
	Consumed []string                     // tensors of the checkpoint that import accounted for, sorted
	Matrices map[string]*quantised.Matrix // the quantised ones of the checkpoint, by key
	Program  *ir.Program
	Loops    loops.Report
	Pages    PageReport
	Diags    diag.List // warnings; an error ends the run and is returned
}
