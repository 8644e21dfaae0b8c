// Package compiler is the driver: it runs the passes over a checkpoint, and the steps after them.
//
// It may import every package of amkc except cmd; no package but cmd imports it.
package compiler

import (
	"time"

	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
)

// Passes is the pipeline, from checkpoint to scheduled program. A test checks the order against Pass.After.
var Passes = []passes.Pass{
	passes.Import,
	passes.Quantise,
	passes.Shard,
	passes.Lower,
	passes.Fuse,
	passes.Tile,
	passes.Assign,
	passes.Replicate,
	passes.SplitK,
	passes.Barrier,
	passes.Loop,
	passes.PageColor,
	passes.Exchange,
}

// Options are the model, the target, and the configuration of a compile.
type Options struct {
	Model       string            // model directory
	Adapters    []string          // directories of adapters that are merged into its weights, in order
	Name        string            // for names in the output
	RandomSeed  *uint64           // weights are random, and the directory needs config.json alone
	LeaveOut    bool              // random matrices are not packed: a host that loads the build makes them
	ConfigOnly  bool              // weights are not opened at all: shapes are taken from the config
	DType       *ir.DType         // nil: that of the checkpoint
	MaxSeq      int               // 0: what the model allows, at most importers.DefaultMaxSeq
	Target      *ir.Target        // nil is refused by the passes that need one
	Config      ir.ScheduleConfig // zero values take the defaults
	AssumeInert []string
	Formats     passes.WeightFormats // how matrices are stored
	Cache       *ir.DType            // of rows of K and V; nil: that of the model
	Check       bool                 // check the structure of the program after each pass
	Strict      bool                 // what would be a warning before anything is written is an error

	// Calibration is a text to round quantised matrices for: see Scheduled.Calibrate. nil: rounding depends only on the
	// weights.
	Calibration *CalibrationText

	Ranks int // GPUs that share the model; one if nothing is said

	Pass ir.Pass // what a pass takes; one token if nothing is said
	// Passes asks for a program for each of these passes besides that of one token. All programs of a build have the
	// defaults of knobs that suit its largest passes.
	Passes []ir.Pass

	// tensors are names of the model's tensors where its files are not opened: families call them in several ways.
	tensors map[string]bool

	// Edit changes the graph that has been imported, in the programs of passes too. An error ends the run.
	Edit func(g *ir.Graph) error
	// After is called when a pass is done, with its number from 1, for the program of one token alone where passes are
	// asked for besides. An error ends the run.
	After func(n int, pass *passes.Pass, s *passes.State, took time.Duration) error
}

// Scheduled is a program as the passes leave it, and where it came from. Close releases the checkpoint.
type Scheduled struct {
	Program  *ir.Program
	Passes   []*ir.Program // those of Options.Passes
	Graph    *ir.Graph
	Config   *checkpoint.Config
	Weights  *passes.Weights // nil with Options.ConfigOnly
	Consumed []string        // tensors of the checkpoint that import accounted for
	Pages    passes.PageReport
	Warnings diag.List

	options    Options
	checkpoint *checkpoint.Checkpoint
	packed     weightDigests // once they are known
}

// Close releases the files of the checkpoint.
func (l *Scheduled) Close() error {
	if l.checkpoint == nil {
		return nil
	}
	return l.checkpoint.Close()
}

// RunPasses runs the pipeline. The error, if any, is a diagnostic or a list of them.
func RunPasses(opts Options) (*Scheduled, error) {
	if err := ir.CheckName(opts.Name); err != nil && opts.Name != "" {
		return nil, diag.Errorf(ir.CodeName, "the model's name", "%v; name it otherwise with --name", err)
	}
	s, l := newState(opts), &Scheduled{options: opts}
	if err := l.open(opts, s); err != nil {
		return nil, err
	}
	for i := range Passes {
		if err := runPass(opts, i, s); err != nil {
			l.Close()
			return nil, err
		}
	}
	l.Program, l.Graph, l.Consumed, l.Pages, l.Warnings = s.Program, s.Graph, s.Consumed, s.Pages, s.Diags
	if err := opts.accept(l.Warnings); err != nil {
		l.Close()
		return nil, err
	}
	err := l.supply(opts, s)
	for _, pass := range opts.Passes {
		if err == nil && opts.Pass.NumTokens() == 1 {
			err = l.addPass(opts, pass)
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// addPass runs the pipeline once more, for passes of several tokens.
func (l *Scheduled) addPass(opts Options, pass ir.Pass) error {
	opts.Pass, opts.ConfigOnly, opts.RandomSeed, opts.After = pass, true, nil, nil
	opts.tensors = tensorsOf(l.Program)
	of, err := RunPasses(opts) // its warnings are those of one row
	if err != nil {
		return err
	}
	l.Passes = append(l.Passes, of.Program)
	return of.Close()
}

// tensorsOf are the names of the tensors that a program is packed from, those of layers as families, and of layer 0.
func tensorsOf(p *ir.Program) map[string]bool {
	names := map[string]bool{}
	for i := range p.Buffers {
		for _, piece := range p.Buffers[i].Pieces {
			names[piece.Key] = true
			if first, err := ir.ResolveKey(piece.Key, 0); err == nil {
				names[first] = true
			}
		}
	}
	return names
}

// CheckModel reports errors of a model that do not depend on the target: it opens and imports it, chooses the formats
// of its matrices, and closes it again.
func CheckModel(opts Options) error {
	s, l := newState(opts), &Scheduled{}
	if err := l.open(opts, s); err != nil {
		return err
	}
	defer l.Close()
	if err := passes.Import.Run(s); err != nil {
		return err
	}
	return passes.Quantise.Run(s)
}

func newState(opts Options) *passes.State {
	return &passes.State{Target: opts.Target, Config: opts.Config, Formats: opts.Formats, Cache: opts.Cache,
		Pass: opts.Pass, Ranks: opts.Ranks, Most: opts.Pass.Most(opts.Passes...),
		Source: importers.Source{Name: opts.Name, DType: opts.DType, AssumeInert: opts.AssumeInert,
			MaxSeq: opts.MaxSeq, Tensors: opts.tensors}}
}

func (l *Scheduled) open(opts Options, s *passes.State) error {
	var err error
	if opts.ConfigOnly || opts.RandomSeed != nil {
		l.Config, err = checkpoint.OpenConfig(opts.Model, opts.Adapters...)
	} else if l.checkpoint, err = checkpoint.Open(opts.Model, opts.Adapters...); err == nil {
		l.Config = l.checkpoint.Config
	}
	s.Source.Config, s.Source.Weights = l.Config, l.checkpoint
	return err
}

// accept returns the diagnostics as an error where there is one among them, or may be no warning.
func (o *Options) accept(diags diag.List) error {
	if o.Strict {
		diags = diags.Strict()
	}
	return diags.Err()
}

// supply opens the weights of the program: those of the checkpoint, or random ones of the shapes that the graph needs.
func (l *Scheduled) supply(opts Options, s *passes.State) error {
	if opts.RandomSeed != nil {
		dtype := map[ir.DType]checkpoint.DType{ir.F32: checkpoint.F32, ir.F16: checkpoint.F16,
			ir.BF16: checkpoint.BF16}[l.Graph.Model.Weights]
		random, err := checkpoint.NewRandom(l.Config, *opts.RandomSeed, importers.RequiredTensors(l.Graph, dtype),
			importers.UnitOffsets(l.Graph))
		if err != nil {
			return err
		}
		l.checkpoint = random
	}
	if l.checkpoint != nil {
		l.Weights = passes.NewWeights(l.checkpoint, l.Graph, s.Matrices)
	}
	return nil
}

func runPass(opts Options, i int, s *passes.State) error {
	start := time.Now()
	pass := &Passes[i]
	if err := pass.Run(s); err != nil {
		return err
	}
	if pass == &Passes[0] && opts.Edit != nil {
		if err := opts.Edit(s.Graph); err != nil {
			return err
		}
	}
	took := time.Since(start)
	if opts.Check && s.Program != nil {
		diags := ir.Check(s.Program)
		for _, d := range diags {
			d.With("after pass " + pass.Name + ": this is a mistake in amkc, please report it")
		}
		if err := diags.Err(); err != nil {
			return err
		}
	}
	if opts.After == nil {
		return nil
	}
	return opts.After(i+1, pass, s, took)
}
