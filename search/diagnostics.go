package search

import (
	"errors"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// asDiagnostic is an error as one diagnostic: the first of several.
func asDiagnostic(err error) *diag.Diagnostic {
	var list diag.List
	var one *diag.Diagnostic
	switch {
	case errors.As(err, &list) && len(list.Errors()) > 0:
		return list.Errors()[0]
	case errors.As(err, &one):
		return one
	}
	return diag.Errorf(codeProposal, "proposer", "%s", infile.Reason(err))
}
