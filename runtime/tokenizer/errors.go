package tokenizer

import "fmt"

// An UnsupportedError says that tokenizer.json asks for something this package does not model.
type UnsupportedError struct {
	Where    string // path inside tokenizer.json, such as "pre_tokenizer.pretokenizers[0].pattern"
	Got      string
	Accepted string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("tokenizer.json: %s: %s is not supported; accepted: %s", e.Where, e.Got, e.Accepted)
}

// A FormatError says that tokenizer.json is malformed or contradicts itself.
type FormatError struct {
	Where string
	Msg   string
}

func (e *FormatError) Error() string {
	if e.Where == "" {
		return "tokenizer.json: " + e.Msg
	}
	return fmt.Sprintf("tokenizer.json: %s: %s", e.Where, e.Msg)
}

func malformed(where, format string, args ...any) error {
	return &FormatError{Where: where, Msg: fmt.Sprintf(format, args...)}
}
