package explore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"amkc/compiler"
	"amkc/runtime/host"
)

// A Value is one result of a run, kept as a digest of its bits.
type Value struct {
	Name   string `json:"name"` // "logits at position 3"
	Digest string `json:"digest"`
	// Shared: the value is the same in every job and every schedule that has it. Other values are the same in every
	// schedule of one job.
	Shared bool `json:"shared,omitempty"`
}

// An attempt is a job under one schedule, in the process that runs kernels. It opens sessions, and notes results.
type attempt struct {
	ctx       context.Context
	dir       string // that layOut has made
	build     string
	recording string // file
	facts     *host.Facts
	schedule  *Schedule
	program   *compiler.PackedBuild // as soon as a job needs it

	values   []Value
	stages   []compiler.StageReport
	findings []Finding
	bodies   []*compiler.BodyReport // of the reference VM's comparison

	machine *control
	garbage int // number of findings of the machine that are of launches that compute garbage
}

// shared notes a value that does not depend on the job.
func (a *attempt) shared(name string, bytes []byte) { a.add(Value{Name: name, Shared: true}, bytes) }

// own notes a value of this job.
func (a *attempt) own(name string, bytes []byte) { a.add(Value{Name: name}, bytes) }

func (a *attempt) add(v Value, bytes []byte) {
	sum := sha256.Sum256(bytes)
	v.Digest = hex.EncodeToString(sum[:16])
	a.values = append(a.values, v)
}

// found notes what is wrong with results themselves.
func (a *attempt) found(kind, format string, args ...any) {
	a.findings = append(a.findings, Finding{Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// garbageUntilNow says that launches until now were aborted, or decoded without weights. What such a launch computes is
// garbage, which nobody looks at, and so is what it reads for that. What the machine finds again in later launches it
// reports once more (control.h).
func (a *attempt) garbageUntilNow() error {
	run, err := a.machine.result()
	if err == nil {
		a.garbage = len(run.Findings)
	}
	return err
}

// ofGarbage are the kinds of findings that such a launch may have: one that was aborted waits for nothing any more. It
// must reach no other memory than before, and end.
var ofGarbage = []string{"race", "proxy", "unwritten", "constant"}

// withoutGarbage leaves out what does not count of a run's findings.
func (a *attempt) withoutGarbage(all []Finding) []Finding {
	var left []Finding
	for i, f := range all {
		if i >= a.garbage || !slices.Contains(ofGarbage, f.Kind) || ofWord(f.Message) {
			left = append(left, f)
		}
	}
	return left
}

// ofWord reports whether a race is of a plain access and one that orders or communicates: that is wrong whatever the
// word says, so that it is not garbage. It is the machine that calls them so (explore/cpu/machine/faults.cc).
func ofWord(race string) bool {
	return strings.Contains(race, "plain access") &&
		(strings.Contains(race, "word ") || strings.Contains(race, "atomic "))
}

// open opens the build on the machine, calls f and closes it.
func (a *attempt) open(o host.Options, f func(s *host.Session) error) error {
	s, err := host.Open(a.ctx, a.dir, o)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

// ids are the tokens of the text that jobs decode, the same at each position.
func (a *attempt) ids(from, to int) []int { return host.CheckIDs(from, to-from, a.facts.Model.Vocab) }

// sharedLogits notes the logits of a position of the text of so called.
func (a *attempt) sharedLogits(text string) func(position int, logits []float32) error {
	return func(position int, logits []float32) error {
		a.shared(fmt.Sprintf("logits at position %d%s", position, text), bitsOf(logits))
		return nil
	}
}

// outputs notes the logits and the last hidden states of the positions of a text.
func (a *attempt) outputs() host.Outputs {
	return host.Outputs{Logits: a.sharedLogits(""), Hidden: func(position int, hidden []float32) error {
		a.shared(fmt.Sprintf("hidden state at position %d", position), bitsOf(hidden))
		return nil
	}}
}

// sharedTokens notes the tokens that have been chosen after a text.
func (a *attempt) sharedTokens(after string, ids []int) {
	for i, id := range ids {
		a.shared(fmt.Sprintf("token %d after %s", i, after), fmt.Append(nil, id))
	}
}

// cache notes the bytes of the cache, after what is said.
func (a *attempt) cache(s *host.Session, after string) error {
	bytes, err := s.ReadCache()
	if err == nil {
		a.own("cache after "+after, bytes)
	}
	return err
}

// bitsOf are the bits of numbers.
func bitsOf(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// packed is the program of the build with its weights, for the reference VM.
func (a *attempt) packed() (_ *compiler.PackedBuild, err error) {
	if a.program == nil {
		a.program, err = compiler.OpenBuild(a.build)
	}
	return a.program, err
}
