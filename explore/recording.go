package explore

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"path/filepath"
	"slices"

	"amkc/compiler/objects"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// A Recording has the values that a GPU published in some steps of a build, stage by stage, and appended to the cache.
// It is a JSON object; numbers are the bytes of little-endian floats, in base64.
type Recording struct {
	Format string         `json:"format"`
	Build  string         `json:"build"` // SHA-256 of what its kernels are compiled from, and of the weights
	Device string         `json:"device"`
	Cache  []byte         `json:"cache"` // before the first step
	Steps  []RecordedStep `json:"steps"`
}

// A RecordedStep is one of them, by the kernel of as many rows as there are ids.
type RecordedStep struct {
	Position int    `json:"position"`
	IDs      []int  `json:"ids"`
	Values   []byte `json:"values"` // of host.TracedStep
	Logits   []byte `json:"logits"`
	Chosen   []int  `json:"chosen"`
	Cache    []byte `json:"cache"` // after it; the next step begins with that
}

// recordingFormat is the version of the schema.
const recordingFormat = "amkc.trace/1"

// recordedSteps are the steps that are recorded: the first two and the last two of each variant one by one, and the
// first and the last that a kernel of several rows has. They begin with a cache that is made up.
func recordedSteps(facts *host.Facts) (steps []RecordedStep) {
	rows := []int{1}
	for _, p := range facts.Passes {
		if p.NumSequences() == 1 {
			rows = append(rows, p.NumRows())
		}
	}
	for _, v := range facts.Variants {
		for _, n := range rows {
			last := v.Hi + 1 - n
			at := []int{v.Lo, last}
			if n == 1 {
				at = []int{v.Lo, v.Lo + 1, last - 1, last}
			}
			slices.Sort(at)
			for _, position := range slices.Compact(at) {
				if v.Lo <= position && position <= last {
					steps = append(steps, RecordedStep{Position: position,
						IDs: host.CheckIDs(position, n, facts.Model.Vocab)})
				}
			}
		}
	}
	return steps
}

// Record decodes the steps of a recording on the GPU of a session. dir is the build.
func Record(ctx context.Context, dir string, s *host.Session) (*Recording, error) {
	facts := s.Facts()
	r := &Recording{Format: recordingFormat, Device: s.Device().Name, Steps: recordedSteps(&facts)}
	var err error
	if r.Build, err = digestOfSources(dir, &facts); err != nil {
		return nil, err
	}
	// So that nobody reads the caches of a large model and is told at the end: each step has a copy.
	size := (len(r.Steps) + 1) * base64.StdEncoding.EncodedLen(s.Sequences()*int(s.Info().CacheBytes))
	if err := r.fits(dir, size); err != nil {
		return nil, err
	}
	if err := s.FillCache(); err != nil {
		return nil, err
	}
	if r.Cache, err = s.ReadCache(); err != nil {
		return nil, err
	}
	for i := range r.Steps {
		step := &r.Steps[i]
		t, err := s.TraceStep(ctx, step.Position, step.IDs, nil)
		if err != nil {
			return nil, err
		}
		step.Values, step.Logits, step.Chosen = bitsOf(t.Values), bitsOf(t.Logits), t.Chosen
		if step.Cache, err = s.ReadCache(); err != nil {
			return nil, err
		}
		size += base64.StdEncoding.EncodedLen(len(step.Values) + len(step.Logits))
		if err := r.fits(dir, size); err != nil {
			return nil, err
		}
	}
	s.Reset()
	return r, nil
}

// fits refuses a recording that readRecording would not read.
func (r *Recording) fits(build string, size int) error {
	const rest = 1 << 20 // all but bytes in base64
	if most := infile.Trace.Max - rest; int64(size) > most {
		return diag.Errorf(codeRecording, build, "a trace of %d steps has more than %d MiB; want a build with fewer "+
			"positions (--max-seq)", len(r.Steps), most>>20)
	}
	return nil
}

// digestOfSources is that of what the results of a build's kernels depend on, on any device.
func digestOfSources(dir string, facts *host.Facts) (string, error) {
	files, err := sourcesOf(dir, facts)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, host.WeightsFile)
	_, weights, err := infile.Digest(path, nil)
	if err != nil {
		return "", &host.BuildError{Path: path, What: "it cannot be read", Err: err}
	}
	return objects.Digest(files, weights), nil
}

// Write writes the recording to a file.
func (r *Recording) Write(file string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return outfile.Write(file, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// readRecording reads the recording of a build, and refuses what none has.
func readRecording(file, build string, facts *host.Facts) (*Recording, error) {
	text, err := infile.Read(file, infile.Trace)
	if err != nil {
		return nil, diag.Errorf(codeRecording, file, "cannot be read: %s", infile.Reason(err))
	}
	var r Recording
	if err := infile.Unmarshal(text, &r); err != nil {
		return nil, diag.Errorf(codeRecording, file, "is not a trace: %s; want a file that amkc check --trace wrote",
			infile.Reason(err))
	}
	digest, err := digestOfSources(build, facts)
	switch {
	case err != nil:
		return nil, err
	case r.Format != recordingFormat:
		return nil, diag.Errorf(codeRecording, file, "has format %q; want %q", r.Format, recordingFormat)
	case r.Build != digest:
		return nil, diag.Errorf(codeRecording, file, "is of another build than %s: sources of kernels or weights "+
			"differ; want a trace of this build", build)
	case len(r.Steps) == 0:
		return nil, diag.Errorf(codeRecording, file, "has no steps; want at least one")
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if len(s.Values)%4 != 0 || len(s.Logits)%4 != 0 || len(s.Chosen) != len(s.IDs) || len(s.IDs) == 0 ||
			len(s.Cache) != len(r.Cache) {
			return nil, diag.Errorf(codeRecording, file, "has a step %d that is cut; want all values of a step", i+1)
		}
		rows := len(s.IDs)
		if rows != 1 && !slices.ContainsFunc(facts.Passes, func(p host.PassFacts) bool {
			return p.NumSequences() == 1 && p.NumRows() == rows
		}) {
			return nil, diag.Errorf(codeRecording, file, "has a step %d of %d rows, for which %s has no kernel", i+1,
				rows, build)
		}
		if s.Position < 0 || s.Position > facts.Model.MaxSeq-rows || slices.Min(s.IDs) < 0 ||
			slices.Max(s.IDs) >= facts.Model.Vocab {
			return nil, diag.Errorf(codeRecording, file, "has a step %d at position %d with ids up to %d; want %d "+
				"positions and ids below %d", i+1, s.Position, slices.Max(s.IDs), facts.Model.MaxSeq, facts.Model.Vocab)
		}
	}
	return &r, nil
}

// floatsOf are the floats of bytes.
func floatsOf(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}
