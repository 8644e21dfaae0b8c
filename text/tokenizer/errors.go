package tokenizer

import "fmt"

// An UnsupportedError reports a component of tokenizer.json that this package does not support.
type UnsupportedError struct {
	Where    string // path inside tokenizer.json, such as "pre_tokenizer.pretokenizers[0].pattern"
	Got      string
	Accepted string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("tokenizer.json: %s: %s is not supported; accepted: %s", e.Where, e.Got, e.Accepted)
}

// A FormatError reports that tokenizer.json is malformed or inconsistent.
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

// A LimitError reports that a text has too many tokens. Their number is unknown, because the text was not encoded to
// its end.
type LimitError struct{ Most int }

func (e *LimitError) Error() string {
	return fmt.Sprintf("tokenizer: the text has more than %d tokens", e.Most)
}

// atMost is err with the limit that the caller has set.
func atMost(err error, most int) error {
	if _, ok := err.(*LimitError); ok {
		return &LimitError{most}
	}
	return err
}

func malformed(where, format string, args ...any) error {
	return &FormatError{Where: where, Msg: fmt.Sprintf(format, args...)}
}
