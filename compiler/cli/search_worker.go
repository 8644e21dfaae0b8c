package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/search"
)

// buildPart is which part of the time of an evaluation a build may take in a round on one machine. The round waits for
// all of its trials, and the GPU would be idle meanwhile. Where nobody asks for registers, nvcc may take as much for
// those of a prediction.
const buildPart = 4

// worker judges the jobs of a campaign, each in a process of its own: amkc eval. A build may take n seconds. done
// removes what it needs for that.
func (f *judgeFlags) worker(campaign *search.Campaign, key search.Key, build int) (w *search.Worker, done func(),
	err error) {
	if err := campaign.Signs(key.Public()); err != nil {
		return nil, nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, diag.Errorf(codeFailed, "amkc", "does not know where it is: %s", infile.Reason(err))
	}
	scratch, err := os.MkdirTemp("", "amkc-search-")
	if err != nil {
		return nil, nil, diag.Errorf(codeOutput, "search", "there is no temporary directory: %s", infile.Reason(err))
	}
	shared := filepath.Join(scratch, "turn") // by the evaluations of this search
	if f.turn != "" {
		if shared, err = filepath.Abs(f.turn); err != nil {
			return nil, nil, diag.Errorf(codeInput, "turn", "%s: %s", f.turn, infile.Reason(err))
		}
	}
	command := func(job *search.Job, stage search.Stage) ([]string, func(), error) {
		own, err := os.MkdirTemp(scratch, "") // several jobs may be judged at once
		if err != nil {
			return nil, nil, diag.Errorf(codeOutput, scratch, "cannot be written to: %s", infile.Reason(err))
		}
		turn, seconds := shared, f.timeout
		if stage == search.StageBuild {
			turn, seconds = "", build
		}
		args, err := f.evalCommand(campaign, job, exe, own, turn, seconds)
		if stage == search.StageBuild {
			args = append(args, "--build-only")
		} else if f.decided {
			args = append(args, fmt.Sprintf("--registers=%t", f.registers))
		}
		return args, func() { os.RemoveAll(own) }, err
	}
	w = &search.Worker{Campaign: campaign, Key: key, Limit: time.Duration(f.timeout) * time.Second,
		Builds: time.Duration(build) * time.Second, Command: command}
	if campaign.Device == search.DeviceCUDA {
		w.Waits = w.Limit // for the one that has the GPU before
	}
	return w, func() { os.RemoveAll(scratch) }, nil
}

// evalCommand is the process that judges a job.
func (f *judgeFlags) evalCommand(campaign *search.Campaign, job *search.Job, exe, scratch, turn string, seconds int) (
	[]string, error) {
	args := append([]string{exe, "eval"}, campaign.Command...)
	for _, one := range []struct {
		flag string
		set  knobs.Settings
	}{{"config", job.Settings}, {"baseline", job.Against}} {
		text, err := configText(one.set)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(scratch, one.flag+".json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, diag.Errorf(codeOutput, path, "cannot write: %s", infile.Reason(err))
		}
		args = append(args, "--"+one.flag+"="+path)
	}
	args = append(args, "--device="+campaign.Device, "--position="+joined(campaign.PositionsOf(job)),
		"--rung="+string(job.Rung), fmt.Sprintf("--timeout=%d", seconds), "--key="+f.key, "--json")
	if stage := campaign.StageOf(job); stage != "" {
		args = append(args, "--stage="+stage)
	}
	if campaign.SameBits {
		args = append(args, "--same-bits")
	}
	if campaign.Device == search.DeviceCUDA && turn != "" {
		args = append(args, "--turn="+turn)
	}
	if f.gpu != 0 {
		args = append(args, fmt.Sprintf("--gpu=%d", f.gpu))
	}
	return args, nil
}
