package tokenizer

import (
	"encoding/json"
	"strings"

	"amkc/runtime/infile"
)

// A reader walks through JSON text without keeping values: vocabularies have hundreds of thousands of entries. Its
// methods report false if the text is not as expected. What is wrong there is for encoding/json to say (see problem),
// which reads the text again.
type reader struct{ *json.Decoder }

func newReader(text string) reader {
	r := reader{json.NewDecoder(strings.NewReader(text))}
	r.UseNumber()
	return r
}

// list reads a whole text of entries between two brackets: item reads one of them.
func (r reader) list(open json.Delim, item func() bool) bool {
	if t, err := r.Token(); err != nil || t != open {
		return false
	}
	for r.More() {
		if !item() {
			return false
		}
	}
	_, err := r.Token()
	return err == nil
}

func (r reader) str() (string, bool) {
	t, _ := r.Token()
	s, ok := t.(string)
	return s, ok
}

// problem is why text cannot be read into a value of the given kind, as encoding/json puts it. What encoding/json would
// take are halves of surrogate pairs, numbers of 19 digits, and null for a list.
func problem(text []byte, where string, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return malformed(where, "%v", infile.InJSON(text, err))
	}
	return malformed(where, "has a \\u escape that is half a character, a number of more than 18 digits, or null; want "+
		"whole characters, shorter integers and lists")
}
