package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// A Script shows how something goes wrong: the steps of an order of tasks, as few tasks as still show it, and where
// tasks wait forever, who waits for what.
type Script struct {
	Before int    `json:"before,omitempty"` // steps before these, left out because there are too many
	Steps  []Step `json:"steps,omitempty"`
	Waits  []Step `json:"waits,omitempty"`
}

// maxSteps is how many steps of an order a script lists: the last ones. An order that could not be shortened may have
// millions.
const maxSteps = 1 << 16

// A Step is what a task does without another one in between, or what it waits for.
type Step struct {
	Task string `json:"task"`
	SM   int    `json:"sm"` // -1: on none
	Does string `json:"does"`
}

// Tasks returns the number of different tasks in a script.
func (s *Script) Tasks() int {
	names := map[string]bool{}
	for _, step := range slices.Concat(s.Steps, s.Waits) {
		names[step.Task] = true
	}
	return len(names)
}

// Script describes the order in which a hazard was found, or to which Shrink has reduced it. It is empty if no order
// matters.
func (h *Hazard) Script() Script {
	var out Script
	if h.m == nil {
		return out
	}
	for _, r := range h.why {
		out.Waits = append(out.Waits, h.m.step(r.task, r.text))
	}
	if h.always {
		return out
	}
	out.Steps, out.Before = h.m.steps(h.path, maxSteps)
	if h.late >= 0 {
		out.Steps = append(out.Steps, h.m.step(h.late, "comes too late"))
	}
	return out
}

func (m *machine) step(t int32, does string) Step {
	return Step{m.tasks[t].name, m.tasks[t].flat.SM, does}
}

// steps describes a list of events, those of a task in a row as one step. It returns the last steps, most of them, and
// how many come before.
func (m *machine) steps(path []event, most int) (out []Step, before int) {
	end := func(lo int) int {
		hi := lo + 1
		for hi < len(path) && m.of(path[hi]) == m.of(path[lo]) {
			hi++
		}
		return hi
	}
	before = -most
	for lo := 0; lo < len(path); lo = end(lo) {
		before++
	}
	before = max(0, before)
	at := map[int32]int{} // by task: the op that is next
	for n, lo := 0, 0; lo < len(path); n++ {
		t, hi := m.of(path[lo]), end(lo)
		if n < before {
			for _, e := range path[lo:hi] {
				if e.what == works {
					at[t]++
				}
			}
			lo = hi
			continue
		}
		does := ""
		if does, at[t] = m.doings(t, at[t], path[lo:hi]); does == "" {
			does = m.landings(path[lo:hi])
		}
		out = append(out, m.step(t, does))
		lo = hi
	}
	return out, before
}

// of returns the task of an event; of a store that lands the one that has issued it.
func (m *machine) of(e event) int32 {
	if e.what == lands {
		return m.messages[e.n].task
	}
	return e.n
}

// landings tells that stores reach memory.
func (m *machine) landings(path []event) string {
	var names []string
	for _, e := range path {
		msg := &m.messages[e.n]
		names = append(names, m.where(int(msg.cell), msg.buf))
	}
	if len(names) == 1 {
		return "its store to " + names[0] + " reaches memory"
	}
	return "its stores to " + some(names) + " reach memory"
}

// doings tells what a task does from an op on, and returns the op that is next. That its stores reach memory at once is
// not worth a word.
func (m *machine) doings(t int32, at int, path []event) (string, int) {
	var parts, ops, words []string
	task := &m.tasks[t]
	for _, e := range path {
		switch e.what {
		case begins:
			parts = append(parts, "starts")
		case polls:
			p := &task.ops[at].polls[e.poll]
			words = append(words, m.where(int(p.cell), p.buf))
		case works:
			ops = append(ops, task.flat.Ops[at].Code.String())
			at, words = at+1, nil // which are the words that this op has taken
		}
	}
	if len(ops) > 0 {
		parts = append(parts, "runs "+some(ops))
	}
	if len(words) > 0 {
		parts = append(parts, "polls "+some(words))
	}
	if slices.ContainsFunc(path, func(e event) bool { return e.what == signals }) {
		done := "is done"
		if task.signal >= 0 {
			done += " and adds to " + m.counters[task.signal].name
		}
		parts = append(parts, done)
	}
	return strings.Join(parts, ", "), at
}

// some lists the first few of a list.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
