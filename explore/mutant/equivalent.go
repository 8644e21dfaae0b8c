package mutant

import (
	_ "embed"
	"strings"
)

// Equivalent has the reasons why mutants cannot cause a fault, by id: equivalent.txt. A test fails for an entry whose
// mutant is killed, or which no build has.
var Equivalent = reasons(equivalent)

//go:embed equivalent.txt
var equivalent string

// Unjudged has the mutants that nobody has run yet, by id, and what they are waiting for: unjudged.txt. A test counts
// them, and fails for an entry that has a verdict, or which no build has.
var Unjudged = reasons(unjudged)

//go:embed unjudged.txt
var unjudged string

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

// Reason returns why a mutant cannot cause a fault, or "". Code for a pass of several tokens has the reasons of the
// code for one token.
func Reason(id string) string {
	if reason := Equivalent[id]; reason != "" || strings.HasPrefix(id, "amk/") {
		return reason
	}
	_, of, _ := strings.Cut(id, "/")
	return Equivalent[of]
}
