package search

import (
	"bytes"
	"encoding/json"
	"slices"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
)

// VerdictSchema is the version of Verdict in JSON.
const VerdictSchema = "amkc.verdict/3"

var earlierVerdicts = []string{"amkc.verdict/1", "amkc.verdict/2"}

// A Class is the outcome of an evaluation.
type Class string

// The classes.
const (
	Pass      Class = "PASS"      // all that was asked holds, and what it computes was checked
	Unchecked Class = "PREDICTED" // all that was asked holds, by the proof and the cost model: nothing was computed
	Fail      Class = "FAIL"      // it computes something else than it should
	Rejected  Class = "REJECTED"  // refused, or not proved: nothing was run
	Timeout   Class = "TIMEOUT"   // it took too long, and was ended
	Crash     Class = "CRASH"     // a tool or a process failed, and nothing is known of the configuration
)

// Classes lists them.
var Classes = []Class{Pass, Unchecked, Fail, Rejected, Timeout, Crash}

// Holds reports whether the configuration passed all tests. Only verdicts of such classes have times.
func (c Class) Holds() bool { return c == Pass || c == Unchecked }

// A Rung is the extent of the tests of a configuration. Each has more than the one before.
type Rung string

// The rungs.
const (
	Screen Rung = "screen" // proof, and a first look at all positions
	Final  Rung = "final"  // the check of what it computes, and times with their noise; only here is anything kept
)

// Rungs lists them in their order.
var Rungs = []Rung{Screen, Final}

// A Decision is the result of applying the rules to a verdict.
type Decision string

// The decisions. What a prediction is in favour of is shortlisted, never kept.
const (
	Keep      Decision = "keep"      // measured, at the last rung, and faster beyond the noise
	Shortlist Decision = "shortlist" // predicted to be faster, at the last rung
	Promising Decision = "promising" // seems to be faster, at a first look
	Revert    Decision = "revert"
)

// Better reports whether a verdict favours its candidate.
func (v *Verdict) Better() bool { return v.Decision == Keep || v.Decision == Shortlist }

// Confirms reports whether a verdict that favours its candidate shows a gain in its whole interval. The interval of a
// prediction is that of its error, so few predictions do.
func (v *Verdict) Confirms() bool { return v.Better() && v.Ratio.High < 1 }

// Devices that times come from.
const (
	DeviceCost = "cost" // the cost model: predictions
	DeviceCUDA = "cuda" // a GPU of this machine
)

// A Verdict is the result of one evaluation. The process that made it signs it (see Key).
type Verdict struct {
	Schema  string `json:"schema"`
	Subject        // what was judged
	Rung    Rung   `json:"rung"`
	Class   Class  `json:"class"`
	// Why it does not hold: the first of the errors.
	Reason *diag.Diagnostic `json:"reason,omitempty"`
	Proof  *Proof           `json:"proof,omitempty"` // absent: it did not come to a proof
	Build  string           `json:"build,omitempty"` // SHA-256 of the generated files, names included
	// of each kernel, where nvcc was asked
	Registers   []Registers  `json:"registers,omitempty"`
	Correctness *Correctness `json:"correctness,omitempty"`
	*Timing                  // of a class that holds
	Decision    Decision     `json:"decision"`
	Why         string       `json:"why"`     // of the decision, in words
	Seconds     float64      `json:"seconds"` // that the evaluation took
	// GPUSeconds is the part of Seconds in which it used the GPU: opening, checking and measuring builds.
	GPUSeconds float64 `json:"gpu_seconds,omitempty"`
	// Signature is the public key of what made it, and the signature of everything else, in hexadecimal digits with a
	// colon between them.
	Signature string `json:"signature,omitempty"`
}

// Subject is the subject of a verdict. Two verdicts with the same subject are interchangeable.
type Subject struct {
	ID         string         `json:"id"`       // of Settings
	Settings   knobs.Settings `json:"settings"` // of the candidate: what differs from the defaults
	BaselineID string         `json:"baseline_id"`
	Baseline   knobs.Settings `json:"baseline"`
	Model      string         `json:"model"`  // its name
	Source     string         `json:"source"` // digest of config.json and of what changes what is compiled
	Target     string         `json:"target"`
	Device     string         `json:"device"`
	Positions  []int          `json:"positions"`
	// SameBits: an order of additions different from the baseline's was refused.
	SameBits bool `json:"same_bits,omitempty"`
}

// Proof is the result of the validator for a program.
type Proof struct {
	OK       bool      `json:"ok"`
	Findings diag.List `json:"findings"` // each with its code, its place and, where there is one, its fix
}

// Registers are the registers and spills of a kernel, as ptxas reports them.
type Registers struct {
	Kernel      string `json:"kernel"`
	Registers   int    `json:"registers"`
	SpillStores int    `json:"spill_stores_bytes"`
	SpillLoads  int    `json:"spill_loads_bytes"`
}

// Correctness is the comparison of results with those of an oracle.
type Correctness struct {
	Oracle string `json:"oracle"` // the plain kernels, or the reference VM
	Passed bool   `json:"passed"`
	Spans  []Span `json:"spans"`
}

// Span has the errors relative to the reference's logits over consecutive positions, both ends included.
type Span struct {
	First         int     `json:"first"`
	Last          int     `json:"last"`
	RMS           float64 `json:"rms"`
	Max           float64 `json:"max"`
	Deterministic *bool   `json:"deterministic,omitempty"` // of kernels: two runs gave the same bits
	Identical     *bool   `json:"identical,omitempty"`     // of the reference VM: the bits of the oracle
}

// Timing are the times of a verdict, in microseconds per token.
type Timing struct {
	At    []At     `json:"at"`    // by position
	Ratio Interval `json:"ratio"` // candidate over baseline, geometric mean over positions
	// Band is the largest distance from 1 of the interval of the baseline's identical twin over the baseline, which a
	// significant difference must exceed. For predictions it is 0.
	Band float64 `json:"band"`
	// Spread is the largest difference between the baseline and its twin in one opening.
	Spread    float64 `json:"spread,omitempty"`
	Threshold float64 `json:"threshold"` // the larger of Band and the least gain that counts
	Machine   string  `json:"machine"`
}

// At has the times at a position.
type At struct {
	Position  int      `json:"position"`
	Candidate Times    `json:"candidate_us"`
	Baseline  Times    `json:"baseline_us"`
	Ratio     Interval `json:"ratio"`
	Ceiling   float64  `json:"ceiling_us"` // the candidate's own
	// ReadGBs is the plain read bandwidth of the machine, in 10^9 bytes per second; for a prediction, that of the
	// target.
	ReadGBs float64 `json:"read_gbs"`
	Bytes   float64 `json:"bytes_per_token"`
	// Predicted is the prediction of the cost model; absent if it does not know the target.
	Predicted *Predicted `json:"predicted,omitempty"`
}

// Predicted are predictions in microseconds per token.
type Predicted struct {
	Candidate float64 `json:"candidate_us"`
	Baseline  float64 `json:"baseline_us"`
}

// Times are quantiles over launches, in microseconds per token. Those of a prediction are equal.
type Times struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
}

// ParseVerdict parses a verdict. Unknown fields are refused, so that a verdict has no unsigned parts.
func ParseVerdict(text []byte, file string) (*Verdict, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var v Verdict
	if schema := schemaOf(text); slices.Contains(earlierVerdicts, schema) {
		return nil, earlier(file, schema, VerdictSchema)
	}
	if err := d.Decode(&v); err != nil {
		return nil, diag.Errorf(codeNoVerdict, file, "is not a verdict: %s; want what amkc search eval --json "+
			"prints", infile.InJSON(text, err))
	}
	if d.More() {
		return nil, diag.Errorf(codeNoVerdict, file, "has more than one object; want one verdict")
	}
	return &v, v.check(file)
}

// check holds a verdict to what every one of them is: times belong to what has passed, and settings to their ids.
func (v *Verdict) check(file string) error {
	switch {
	case v.Schema != VerdictSchema:
		return diag.Errorf(codeNoVerdict, file, "has the schema %.30q; want %s", v.Schema, VerdictSchema)
	case v.ID != IDOf(v.Settings) || v.BaselineID != IDOf(v.Baseline):
		return diag.Errorf(codeNoVerdict, file, "names its settings %.20s and %.20s, and they are %s and %s", v.ID,
			v.BaselineID, IDOf(v.Settings), IDOf(v.Baseline))
	case !slices.Contains(Classes, v.Class):
		return diag.Errorf(codeNoVerdict, file, "is of the class %.20q; want one of %v", v.Class, Classes)
	case v.Class.Holds() != (v.Timing != nil):
		return diag.Errorf(codeNoVerdict, file, "is %s, and times belong to what is PASS or PREDICTED and to nothing "+
			"else", v.Class)
	case !v.Class.Holds() && (v.Decision != Revert || v.Reason == nil):
		return diag.Errorf(codeNoVerdict, file, "is %s, which is reverted, for a reason", v.Class)
	case v.Class.Holds() && (v.Proof == nil || !v.Proof.OK):
		return diag.Errorf(codeNoVerdict, file, "is %s, and has no proof", v.Class)
	case v.Class == Pass && (v.Correctness == nil || !v.Correctness.Passed):
		return diag.Errorf(codeNoVerdict, file, "is PASS, and has no correctness that passed; what only the cost "+
			"model has seen is PREDICTED")
	case v.Class == Unchecked && (v.Correctness != nil || v.Device != DeviceCost):
		return diag.Errorf(codeNoVerdict, file, "is PREDICTED, which is of the device cost, without correctness")
	case v.Class.Holds() && len(v.At) == 0:
		return diag.Errorf(codeNoVerdict, file, "has times of no position")
	}
	return nil
}

// earlier refuses what has the form of an earlier amkc.
func earlier(file, schema, want string) error {
	return diag.Errorf(codeEarlier, file, "has the schema %s, of an earlier amkc; want %s", schema, want)
}
