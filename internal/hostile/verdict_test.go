package hostile

import (
	"errors"

	"amkc/interchange"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// verdict takes a file through everything that amkc does to judge one: it reads it in whatever form it is, checks it
// and proves it for a backend. The proof does not rely on the check: it is made whatever the check says. The list is
// empty if the program is proved.
func verdict(data []byte, backend validate.Backend) diag.List {
	p, err := ir.Parse(data, "f")
	if errors.Is(err, ir.ErrProfile) {
		return profileVerdict(data, backend)
	}
	var diags diag.List
	if errors.As(err, &diags) {
		return diags
	}
	return append(ir.Check(p).Errors(), validate.ProgramFor(backend, p).Diags.Errors()...)
}

// profileVerdict is verdict for a program of the AMK profile.
func profileVerdict(data []byte, backend validate.Backend) diag.List {
	p, diags := interchange.Parse(data, "f")
	if p == nil {
		return diags
	}
	flat, diags := p.Flatten()
	if flat == nil {
		return diags
	}
	return validate.FlatFor(backend, flat).Diags.Errors()
}
