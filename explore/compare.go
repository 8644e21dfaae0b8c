package explore

import "fmt"

// known are results that others are compared with.
type known map[string]*knownValue

// A knownValue is the first of its name.
type knownValue struct {
	digest string
	job    string // whose it is
	under  string // which schedule
	steps  uint64 // of a job: those of its first run, and its choices
	made   uint64
	names  []string
}

// lengths are how many steps the machine made in the first run of a job, and how many choices; 0: there was none.
func (k known) lengths(job string) (steps, choices uint64) {
	if v := k["job "+job]; v != nil {
		return v.steps, v.made
	}
	return 0, 0
}

// differences compares the values of a run with what is known, and keeps what is not if it may. The first difference is
// the one that counts: what comes after it mostly follows from it.
func (k known) differences(j *Job, o *order, outcome *Outcome, keep bool) []Finding {
	first := k["job "+j.Name]
	if first == nil && keep {
		first = &knownValue{steps: outcome.Steps, made: outcome.Choices}
		for _, v := range outcome.Values {
			first.names = append(first.names, v.Name)
		}
		k["job "+j.Name] = first
	}
	different, number := "", 0
	for _, v := range outcome.Values {
		name := "own " + j.Name + " " + v.Name
		if v.Shared {
			name = "shared " + v.Name
		}
		have := k[name]
		switch {
		case have == nil && keep:
			k[name] = &knownValue{digest: v.Digest, job: j.Name, under: o.Schedule.String()}
		case have == nil || have.digest == v.Digest:
		default:
			if number++; number == 1 {
				different = fmt.Sprintf("%s: other bits than in job %s (schedule: %s)", v.Name, have.job, have.under)
			}
		}
	}
	switch {
	case number > 1:
		different += fmt.Sprintf(", and %s more", plural(number-1, "value"))
	case number == 0 && first != nil && !j.Aborts && len(first.names) != len(outcome.Values):
		different = fmt.Sprintf("the job has %s, and %d under the first schedule",
			plural(len(outcome.Values), "result"), len(first.names))
	}
	if different == "" {
		return nil
	}
	return []Finding{{Kind: "difference", Message: different, Of: j.Name}}
}
