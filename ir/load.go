package ir

import "amkc/ir/diag"

// Load is how a program enters amkc from a file: it parses either native form, as Parse does, and checks that the
// program is well-formed. The error is a diag.List, or ErrProfile. Parse alone is for tests of malformed programs.
func Load(data []byte, file string) (*Program, error) {
	p, err := Parse(data, file)
	if err != nil {
		return nil, err
	}
	if err := Check(p).Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// LoadJSON is Load for a file that must be native JSON.
func LoadJSON(data []byte, file string) (*Program, diag.List) {
	p, diags := ParseJSON(data, file)
	if diags.Err() != nil {
		return nil, diags
	}
	if diags.Add(Check(p)...); diags.Err() != nil {
		return nil, diags
	}
	return p, diags
}
