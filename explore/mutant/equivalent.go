package mutant

import (
	_ "embed"
	"strings"
)

// Equivalent says why nothing can go wrong with mutants, by their ids: equivalent.txt. One that is killed, or that no
// build has, is listed wrongly, and a test says so.
var Equivalent = reasons(equivalent)

//go:embed equivalent.txt
var equivalent string

// reasons reads groups of lines: ids, and then, each after a tab, the lines of the reason that these ids share.
func reasons(text string) map[string]string {
	all := map[string]string{}
	var ids []string
	done := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		reason, isReason := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isReason:
			for _, id := range ids {
				all[id] = strings.TrimSpace(all[id] + " " + reason)
			}
			done = true
		default:
			if done {
				ids, done = nil, false
			}
			ids = append(ids, line)
			all[line] = ""
		}
	}
	return all
}

// Reason says why nothing can go wrong with a mutant, or "". What is emitted for a pass of several tokens has the
// reasons of what is emitted for one.
func Reason(id string) string {
	if reason := Equivalent[id]; reason != "" || strings.HasPrefix(id, "amk/") {
		return reason
	}
	_, of, _ := strings.Cut(id, "/")
	return Equivalent[of]
}
