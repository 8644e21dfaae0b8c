package ir

import (
	"bytes"
	"errors"
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
