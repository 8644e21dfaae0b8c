package knobs

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// Bounds of ParseSettings, in bytes: of the text, and of a path or a value.
const (
	mostText   = 64 << 10
	mostStated = 256
)

// ParseSettings reads what a configuration in JSON states, by path, whether a schedule can have it or not: a knob that
// does not exist, and a value that is not an integer, are settings that Config refuses. It reports false for a text
// that is not a JSON object, states a path twice, is larger than 64 KiB, or has a path or a value of more than 256
// bytes.
func ParseSettings(text []byte) (s Settings, is bool) {
	s = Settings{}
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') || len(text) > mostText || !s.object(d, "") {
		return nil, false
	}
	_, err := d.Token()
	return s, err == io.EOF
}

// object adds the fields of an object, whose opening brace is read, below a path.
func (s Settings) object(d *json.Decoder, prefix string) bool {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false
		}
		path := prefix + key.(string) // an object's keys are strings
		var value json.RawMessage
		if d.Decode(&value) != nil || len(path) > mostStated {
			return false
		}
		if value[0] == '{' {
			within := json.NewDecoder(bytes.NewReader(value))
			if _, err := within.Token(); err != nil || !s.object(within, path+".") {
				return false
			}
			continue
		}
		if _, twice := s[path]; twice || !s.add(path, value) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}

// add adds a value that is not an object: the text of a string, and the JSON of anything else.
func (s Settings) add(path string, value json.RawMessage) bool {
	text := string(value)
	var compact bytes.Buffer
	switch {
	case value[0] == '"' && json.Unmarshal(value, &text) != nil:
		return false
	case value[0] == '[':
		if json.Compact(&compact, value) != nil {
			return false
		}
		text = compact.String()
	}
	s[path] = Value(strings.ToValidUTF8(text, "\ufffd"))
	return len(text) <= mostStated
}
