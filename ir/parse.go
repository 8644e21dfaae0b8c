package ir

import (
	"bytes"
	"errors"

	"amkc/ir/diag"
)

// ErrProfile is what Parse returns for a program of the AMK profile, which package interchange reads.
var ErrProfile = errors.New("this is a program of the AMK profile, not one in native form")

// Parse reads a program in either native form: JSON when the first character is {, else text. The error is a
// diag.List, or ErrProfile for a JSON object that has an abi_version.
func Parse(data []byte, file string) (*Program, error) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		if hasTopLevel(trimmed, "abi_version") {
			return nil, ErrProfile
		}
		p, diags := ParseJSON(data, file)
		return p, diags.Err()
	}
	p, diags := ParseText(data, file)
	return p, diags.Err()
}

// hasTopLevel reports whether the object in data has the field. It looks no further than it must, and not into values.
func hasTopLevel(data []byte, field string) bool {
	r := newJSONReader(string(data), 0, func(int) string { return "" })
	found := false
	r.object("", nil, func(key string) bool {
		found = found || key == field
		r.stopped = r.stopped || found
		r.skip()
		return true
	})
	return found
}

// Load reads a program from a file: it parses either native form, as Parse does, and checks that the program is
// well-formed. The error is a diag.List, or ErrProfile. Parse alone is for tests of malformed programs.
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
