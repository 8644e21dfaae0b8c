package explore

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/shape"
)

// gpuJob is the name of the job that exists if there is a recording.
const gpuJob = "gpu"

// withRecording are the jobs of a build, and that of a recording of it, if there is one.
func withRecording(jobs []Job, file string) []Job {
	if file == "" {
		return jobs
	}
	return append(jobs, Job{Name: gpuJob, Doc: "stage by stage held to what a GPU has computed from the same",
		run: (*attempt).gpu})
}

// gpu runs the steps of a recording, in which each stage gets the inputs that it had on the GPU.
func (a *attempt) gpu() error {
	a.dir = filepath.Join(a.dir, tracedDir)
	r, err := readRecording(a.recording, a.build, a.facts)
	if err != nil {
		return err
	}
	b, err := a.packed()
	if err != nil {
		return err
	}
	followers := map[int]*compiler.Follower{}
	return a.open(host.Options{}, func(s *host.Session) error {
		before := r.Cache
		if size := s.Sequences() * int(s.Info().CacheBytes); len(before) != size {
			return diag.Errorf(codeRecording, a.recording, "has a cache of %d bytes; that of the build has %d",
				len(before), size)
		}
		for i := range r.Steps {
			step := &r.Steps[i]
			rows := len(step.IDs)
			if followers[rows] == nil {
				if followers[rows], err = compiler.NewFollower(b, a.facts, shape.Pass{Rows: rows}); err != nil {
					return err
				}
			}
			if err := s.WriteCache(before); err != nil {
				return err
			}
			gpu := compiler.Traced{TracedStep: host.TracedStep{Values: floatsOf(step.Values),
				Logits: floatsOf(step.Logits), Chosen: step.Chosen}, Cache: step.Cache}
			own, err := s.TraceStep(a.ctx, step.Position, step.IDs, gpu.Values)
			if err != nil {
				return err
			}
			here := compiler.Traced{TracedStep: *own}
			if here.Cache, err = s.ReadCache(); err != nil {
				return err
			}
			name := fmt.Sprintf("%s at position %d", plural(rows, "row"), step.Position)
			a.own("stages of "+name, bitsOf(own.Values))
			a.own("cache after "+name, here.Cache)
			wrong, err := followers[rows].Compare(compiler.Beginning{Position: step.Position, IDs: step.IDs,
				Cache: before, Fragments: s.Info().Fragments}, &here, &gpu)
			if err != nil {
				return err
			}
			for _, w := range wrong {
				a.found(w.Kind, "%s", w.Text)
			}
			before = step.Cache
		}
		for _, rows := range slices.Sorted(maps.Keys(followers)) {
			a.stages = append(a.stages, followers[rows].Stages()...)
		}
		return nil
	})
}

// recordingPath is the path of a recording for a worker, which may have another working directory.
func recordingPath(file string) string {
	if abs, err := filepath.Abs(file); err == nil && file != "" {
		return abs
	}
	return file
}
