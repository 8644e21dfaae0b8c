package evaluate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/progress"
	"amkc/search"
)

// A Request is one evaluation. Functions that are nil default to those of package compiler and of the GPU.
type Request struct {
	Options   compiler.Options // what is compiled; Config is not looked at
	Candidate knobs.Settings
	Baseline  knobs.Settings
	Device    string // search.DeviceCost or search.DeviceCUDA
	Positions []int  // at least one
	Rung      search.Rung
	Rules     search.Rules
	SameBits  bool // refuse a candidate that adds up in another order than its baseline
	Registers bool // ask nvcc what ptxas gives the kernels, at the last rung; a report, and no reason to refuse
	GPU       int
	Progress  progress.Func
	// BuildLimit is the time for nvcc to build the candidate; 0: no limit. A build that certainly takes longer is
	// refused before nvcc is started, unless it is in the cache. Only the context stops a running build. Registers are
	// omitted if nvcc takes longer for them.
	BuildLimit time.Duration
	// Turn waits for the GPU if several evaluations share it, and returns a function that releases it. nil: the GPU is
	// not shared.
	Turn func(ctx context.Context) (done func(), err error)
	// Left returns the remaining time of the evaluation; nil: no limit. Additional measurements that would take longer
	// are not started.
	Left func() time.Duration

	Lower   func(compiler.Options) (*compiler.Scheduled, error) // of the candidate
	Build   Builder
	Measure Measurer
}

// evaluation is a running request.
type evaluation struct {
	*Request
	v         *search.Verdict
	plain     *compiler.Scheduled // with every knob at its default
	candidate *compiler.Scheduled
	emission  *compiler.Emission // of the candidate
	baseline  *compiler.Scheduled
}

// A fault is what is wrong with a candidate.
type fault struct {
	class  search.Class
	reason *diag.Diagnostic
}

func (f *fault) Error() string { return f.reason.Error() }

// rejected is a fault of a candidate that is refused, for the first of its errors.
func rejected(err error) error { return &fault{search.Rejected, firstError(err)} }

// Evaluate judges a configuration. Faults of the candidate are in the verdict, which is not signed yet. The error is
// for all other faults: of the model, the target, the baseline, the machine; or the cause of a cancelled context,
// unless that is its deadline, which results in a verdict.
func Evaluate(ctx context.Context, r Request) (*search.Verdict, error) {
	return conclude(ctx, &r, (*evaluation).judge)
}

// Build proves both configurations and builds them into the cache of builds, for Evaluate on another machine or at a
// later time. The verdict is nil if that succeeds, and otherwise that of Evaluate. Errors are those of Evaluate.
func Build(ctx context.Context, r Request) (*search.Verdict, error) {
	return conclude(ctx, &r, func(e *evaluation, ctx context.Context) error {
		if err := e.prove(); err != nil {
			return err
		}
		_, _, err := e.build(ctx)
		return err
	})
}

// conclude runs a request and makes a verdict of its outcome: none if all went well and nothing was
// timed.
func conclude(ctx context.Context, r *Request, how func(*evaluation, context.Context) error) (*search.Verdict, error) {
	began := time.Now()
	e := &evaluation{Request: r}
	if e.Lower == nil {
		e.Lower = compiler.RunPasses
	}
	if e.Build == nil {
		e.Build = cached
	}
	if e.Measure == nil {
		e.Measure = measured
	}
	defer e.close()
	if err := e.prepare(); err != nil {
		return nil, err
	}
	err := how(e, ctx)
	var wrong *fault
	switch {
	case err == nil && e.v.Timing == nil:
		return nil, nil
	case err == nil && e.v.Correctness != nil: // a check that fails is a fault
		e.v.Class = search.Pass
	case err == nil && e.Device == search.DeviceCost:
		e.v.Class = search.Unchecked
	case err == nil:
		return nil, diag.Errorf(codeMeasure, "candidate", "was timed and not checked")
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		e.fail(&fault{search.Timeout, diag.Errorf(codeLate, "eval", "took longer than it may; want a configuration "+
			"that ends, or more time")})
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &wrong):
		e.fail(wrong)
	default:
		return nil, err
	}
	e.v.Seconds = time.Since(began).Seconds()
	r.Rules.Decide(e.v)
	return e.v, nil
}

// fail makes the verdict one that does not hold.
func (e *evaluation) fail(f *fault) {
	e.v.Class, e.v.Reason, e.v.Timing = f.class, f.reason, nil
}

// prepare lowers what the candidate is compared with, and names the subject.
func (e *evaluation) prepare() error {
	var err error
	if e.plain, err = e.lower(nil, compiler.RunPasses); err != nil {
		return err
	}
	if e.baseline, err = e.lower(e.Baseline, compiler.RunPasses); err != nil {
		return err
	}
	proof := compiler.Prove(e.baseline.Program)
	if !proof.OK {
		return proof.Diags.Err()
	}
	for _, pos := range e.Positions {
		if last := e.plain.Program.Model.MaxSeq - 1; pos > last {
			return diag.Errorf(codePosition, "position", "%d; want 0 to %d, for which the model is compiled", pos, last)
		}
	}
	e.v = &search.Verdict{Schema: search.VerdictSchema, Rung: e.Rung, Subject: search.Subject{
		ID: search.IDOf(e.Candidate), Settings: stated(e.Candidate), BaselineID: search.IDOf(e.Baseline),
		Baseline: stated(e.Baseline), Model: e.Options.Name, Source: sourceOf(e.plain.Program),
		Target: e.Options.Target.Name, Device: e.Device, Positions: e.Positions,
		SameBits: e.SameBits}}
	return nil
}

// stated are settings that JSON has as an object, be there any or not.
func stated(s knobs.Settings) knobs.Settings {
	if s == nil {
		return knobs.Settings{}
	}
	return s
}

// Source returns a digest of the program of a model with every knob at its default. It depends on the shape of the
// model, its formats, the positions, the target, and the version of the passes. positions is the number of positions.
func Source(o compiler.Options) (source string, positions int, err error) {
	o.Config, o.ConfigOnly = ir.ScheduleConfig{}, true
	l, err := compiler.RunPasses(o)
	if err != nil {
		return "", 0, err
	}
	defer l.Close()
	return sourceOf(l.Program), l.Program.Model.MaxSeq, nil
}

func sourceOf(p *ir.Program) string {
	sum := sha256.Sum256(ir.Print(p))
	return hex.EncodeToString(sum[:])
}

func (e *evaluation) lower(s knobs.Settings, how func(compiler.Options) (*compiler.Scheduled, error)) (
	*compiler.Scheduled, error) {
	o := e.Options
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	o.Config = config
	// Weights are opened where something is run.
	o.ConfigOnly = o.ConfigOnly || e.Rung != search.Final && e.Device == search.DeviceCost
	return how(o)
}

func (e *evaluation) close() {
	for _, l := range []*compiler.Scheduled{e.plain, e.candidate, e.baseline} {
		if l != nil {
			l.Close()
		}
	}
}

// prove lowers the candidate, proves it, refuses it where nothing follows from its settings and, where that is asked
// for, emits it. The error is a fault of the candidate, or of something else.
func (e *evaluation) prove() error {
	var err error
	if e.candidate, err = e.lower(e.Candidate, e.Lower); err != nil {
		return rejected(err)
	}
	proof := compiler.Prove(e.candidate.Program)
	e.v.Proof = &search.Proof{OK: proof.OK, Findings: append(diag.List{}, proof.Diags...)}
	if !proof.OK {
		return rejected(proof.Diags.Err())
	}
	if err := room(e.candidate.Program, e.Options.Target); err != nil {
		return rejected(err)
	}
	if e.SameBits {
		if knob := knobs.OtherOrder(&e.baseline.Program.Config, &e.candidate.Program.Config); knob != "" {
			return rejected(diag.Errorf(codeOrder, knob, "is another one than in the baseline, set or by what "+
				"it follows, and so sums are added up in another order; want it as it is there, or no --same-bits"))
		}
	}
	if err := e.effect(); err != nil {
		return err
	}
	if e.Rung != search.Screen || e.Device == search.DeviceCUDA {
		if e.emission, err = compiler.Emit(e.candidate, e.Options); err != nil {
			return rejected(err)
		}
		e.v.Build = e.emission.Digest()
	}
	return nil
}

// judge takes the candidate through everything that its rung asks. The error is a fault of the candidate, or of
// something else.
func (e *evaluation) judge(ctx context.Context) error {
	if err := e.prove(); err != nil {
		return err
	}
	if e.Device == search.DeviceCUDA {
		if err := e.countRegisters(ctx); err != nil {
			return err
		}
		return e.time(ctx)
	}
	if e.Rung == search.Final {
		if err := e.compare(ctx); err != nil {
			return err
		}
	}
	if err := e.predict(); err != nil {
		return err
	}
	return e.countRegisters(ctx) // what takes longest comes last
}

// countRegisters asks nvcc, if it is to. It is here, or the request is at fault.
func (e *evaluation) countRegisters(ctx context.Context) error {
	if !e.Registers || e.Rung != search.Final {
		return nil
	}
	if !compiler.CanCompileCUDA() {
		return diag.Errorf(codeTools, "ptxas", "there is no nvcc here to ask for registers; want it on PATH or in "+
			"CUDA_HOME")
	}
	kernels, err := compiler.CountRegisters(ctx, e.candidate, e.emission, e.BuildLimit)
	if err != nil && firstError(err).Code == compiler.CodeTooSlow {
		return nil
	}
	if err != nil {
		reason := firstError(err)
		if e.Device == search.DeviceCost {
			reason = reason.With("--registers=false predicts without nvcc")
		}
		return &fault{search.Crash, reason}
	}
	for _, k := range kernels {
		e.v.Registers = append(e.v.Registers, search.Registers(k))
	}
	return nil
}
