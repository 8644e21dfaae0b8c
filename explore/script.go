package explore

import (
	"encoding/json"
	"io"
	"slices"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// scriptFormat is the version of the schema of scripts.
const scriptFormat = 1

// A Script repeats a schedule with a fault.
type Script struct {
	Format   int      `json:"format"`
	Build    string   `json:"build"`   // digest of the sources, the manifest and the weights
	Machine  string   `json:"machine"` // digest of the machine and its compiler
	Job      string   `json:"job"`
	Schedule Schedule `json:"schedule"`
	Finding  Finding  `json:"finding"`
}

// ReadScript reads a script and refuses invalid ones. The explorer checks whether it is of a build.
func ReadScript(file string) (*Script, error) {
	text, err := infile.Read(file, infile.Script)
	if err != nil {
		return nil, diag.Errorf(codeScript, file, "cannot be read: %s", infile.Reason(err))
	}
	return parseScript(file, text)
}

func parseScript(file string, text []byte) (*Script, error) {
	var s Script
	if err := infile.Unmarshal(text, &s); err != nil {
		return nil, diag.Errorf(codeScript, file, "is not a script: %s; want a file that amkc explore has written",
			infile.Reason(err))
	}
	switch {
	case s.Format != scriptFormat:
		return nil, diag.Errorf(codeScript, file, "has format %d; want %d", s.Format, scriptFormat)
	case !slices.Contains([]Strategy{Replay, Random, PCT}, s.Schedule.Strategy):
		return nil, diag.Errorf(codeScript, file, "has strategy %q; want %s, %s or %s", s.Schedule.Strategy, Replay,
			Random, PCT)
	case s.Schedule.Strategy != Replay && len(s.Schedule.Deviations) > 0:
		return nil, diag.Errorf(codeScript, file, "lists deviations; want strategy %s with them, and not %s", Replay,
			s.Schedule.Strategy)
	}
	for _, h := range s.Schedule.HostStores {
		if h.PointerAt != abortPointer {
			return nil, diag.Errorf(codeScript, file, "stores to a word that is not the abort word of a launch")
		}
	}
	for i, d := range s.Schedule.Deviations {
		if d[1] == 0 || i > 0 && d[0] <= s.Schedule.Deviations[i-1][0] {
			return nil, diag.Errorf(codeScript, file, "has deviation %v as its number %d; want choices in ascending "+
				"order, each with another value than 0", d, i+1)
		}
	}
	return &s, nil
}

// Write writes the script to a file.
func (s *Script) Write(file string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return outfile.Write(file, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// fits refuses a script of another build, or for another machine.
func (s *Script) fits(file string, e *explorer) error {
	switch {
	case s.Build != e.build:
		return diag.Errorf(codeScript, file, "is of another build than %s: its sources, manifest or weights differ; "+
			"want the build that it was written for", e.o.Build)
	case s.Machine != e.objects.Machine:
		return diag.Errorf(codeScript, file, "was written by another amkc, or with another C++ compiler; its schedule "+
			"may be another one here; explore the build again")
	}
	if _, ok := jobNamed(e.jobs, s.Job); !ok {
		return diag.Errorf(codeScript, file, "is of job %q, which this build does not have", s.Job)
	}
	return nil
}
