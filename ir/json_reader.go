package ir

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"amkc/ir/diag"
)

// A jsonReader pulls values out of JSON text in the order that a schema asks for them. It differs from encoding/json
// in what a schedule that is edited by hand needs: every complaint has a line and a column, unknown and repeated
// fields are errors, the order of an object's fields is seen, and a value of the wrong type does not end the reading.
type jsonReader struct {
	s       string
	i       int
	pos     func(off int) string
	diags   diag.List
	stopped bool   // by a syntax error, or by too many others
	advice  string // what to say of the field that visit did not know
}

// filePos returns positions FILE:LINE:COLUMN in s.
func filePos(file, s string) func(int) string {
	return func(off int) string {
		off = min(off, len(s))
		return fmt.Sprintf("%s:%d:%d", file, strings.Count(s[:off], "\n")+1, off-strings.LastIndexByte(s[:off], '\n'))
	}
}

func newJSONReader(s string, off int, pos func(int) string) *jsonReader {
	r := &jsonReader{s: s, i: off, pos: pos}
	if !utf8.ValidString(s) {
		r.syntax(off, "not valid UTF-8")
	}
	return r
}

// errorf reports an error after which the reading goes on.
func (r *jsonReader) errorf(off int, format string, args ...any) {
	if r.stopped {
		return
	}
	r.diags.Add(diag.Errorf(CodeJSON, r.pos(off), format, args...))
	if len(r.diags) >= maxReadErrors {
		r.syntax(off, "too many errors")
	}
}

// syntax reports an error after which nothing more can be read.
func (r *jsonReader) syntax(off int, format string, args ...any) {
	if !r.stopped {
		r.diags.Add(diag.Errorf(CodeJSON, r.pos(off), format, args...))
	}
	r.stopped = true
}

// peek returns the next byte after blanks, or 0 at the end and after the reading stopped.
func (r *jsonReader) peek() byte {
	for r.i < len(r.s) && (r.s[r.i] == ' ' || r.s[r.i] == '\n' || r.s[r.i] == '\t' || r.s[r.i] == '\r') {
		r.i++
	}
	if r.stopped || r.i == len(r.s) {
		return 0
	}
	return r.s[r.i]
}

func (r *jsonReader) found() string {
	if r.peek(); r.i >= len(r.s) {
		return "the end of the file"
	}
	rest, _, _ := strings.Cut(r.s[r.i:min(len(r.s), r.i+60)], "\n")
	return clip(rest)
}

func (r *jsonReader) expect(b byte) {
	if r.peek() != b {
		r.syntax(r.i, "want %q, found %s", b, r.found())
		return
	}
	r.i++
}

// end demands that nothing is left.
func (r *jsonReader) end() {
	if r.peek() != 0 {
		r.syntax(r.i, "unexpected %s after the value", r.found())
	}
}

// wrong reports a value that is not what the schema wants, and skips it.
func (r *jsonReader) wrong(what, want string) {
	r.errorf(r.i, "%s: want %s, found %s", what, want, r.found())
	r.skip()
}

// object reads an object. It calls visit for every field with the reader at the field's value; visit returns false,
// having read nothing, for a field that it does not know. The fields of need must be there.
func (r *jsonReader) object(what string, need []string, visit func(key string) bool) {
	if r.peek() != '{' {
		r.wrong(what, "an object")
		return
	}
	start := r.i
	r.i++
	var keys []string
	var many map[string]bool // instead of keys, once there are more than a schema has
	for first := true; r.peek() != '}' && !r.stopped; first = false {
		if !first {
			r.expect(',')
		}
		r.peek()
		at := r.i
		key := r.quoted("a field")
		r.expect(':')
		if r.peek(); r.stopped {
			return
		}
		if slices.Contains(keys, key) || many[key] {
			r.errorf(at, "%s: field %s is given twice", what, clip(key))
			r.skip()
			continue
		}
		if len(keys) < 16 {
			keys = append(keys, key)
		} else {
			if many == nil {
				many = map[string]bool{}
			}
			if len(many) == maxFields {
				r.syntax(at, "%s: more than %d fields", what, maxFields)
				return
			}
			many[key] = true
		}
		if !visit(key) {
			r.errorf(at, "%s: unknown field %s%s", what, clip(key), r.advice)
			r.advice = ""
			r.skip()
		}
	}
	r.expect('}')
	for _, k := range need {
		if !slices.Contains(keys, k) && !many[k] {
			r.errorf(start, "%s: field %q is missing", what, k)
		}
	}
}

// array reads an array, calling visit with the reader at each element.
func (r *jsonReader) array(what string, visit func()) { r.arrayOf(what, math.MaxInt, visit) }

// arrayOf is array with a limit on the number of elements.
func (r *jsonReader) arrayOf(what string, limit int, visit func()) {
	if r.peek() != '[' {
		r.wrong(what, "an array")
		return
	}
	r.i++
	for n := 0; r.peek() != ']' && !r.stopped; n++ {
		if n > 0 {
			r.expect(',')
		}
		if n == limit {
			r.syntax(r.i, "%s: more than %d elements", what, limit)
			return
		}
		visit()
	}
	r.expect(']')
}

// quoted reads a string token.
func (r *jsonReader) quoted(what string) string {
	if r.peek() != '"' {
		r.syntax(r.i, "want %s in quotes, found %s", what, r.found())
		return ""
	}
	start, escaped := r.i, false
	for i := start + 1; i < len(r.s); i++ {
		switch c := r.s[i]; {
		case c == '\\':
			escaped = true
			i++
		case c < 0x20:
			r.syntax(i, "control character in a string")
			return ""
		case c == '"':
			r.i = i + 1
			if !escaped {
				return r.s[start+1 : i]
			}
			var s string
			if err := json.Unmarshal([]byte(r.s[start:r.i]), &s); err != nil {
				r.syntax(start, "bad escape in the string %s", clip(r.s[start:r.i]))
			}
			return s
		}
	}
	r.syntax(start, "a string does not end")
	return ""
}

// str reads a string value.
func (r *jsonReader) str(what string) string {
	if r.peek() != '"' {
		r.wrong(what, "a string")
		return ""
	}
	return r.quoted(what)
}

// name reads a string that names something.
func (r *jsonReader) name(what string) string {
	r.peek()
	at := r.i
	name := r.str(what)
	r.checkName(at, what, name)
	return name
}

// checkName reports a string that cannot name anything. What may be empty is for CheckNames to say.
func (r *jsonReader) checkName(off int, what, name string) {
	if err := CheckName(name); err != nil && name != "" {
		r.errorf(off, "%s %v", what, err)
	}
}

// bare returns the number or literal that comes next, without consuming it.
func (r *jsonReader) bare() string {
	r.peek()
	end := r.i
	for end < len(r.s) && strings.IndexByte(" \t\r\n,:[]{}\"", r.s[end]) < 0 {
		end++
	}
	return r.s[r.i:end]
}

// validNumber reports whether JSON allows the number; strconv reads more than that.
func validNumber(tok string) bool {
	digits := func(s string) string { return strings.TrimLeft(s, "0123456789") }
	rest := strings.TrimPrefix(tok, "-")
	whole := rest[:len(rest)-len(digits(rest))]
	if whole == "" || whole[0] == '0' && len(whole) > 1 {
		return false
	}
	rest = rest[len(whole):]
	if strings.HasPrefix(rest, ".") {
		frac := digits(rest[1:])
		if len(frac) == len(rest)-1 {
			return false
		}
		rest = frac
	}
	if rest != "" && rest[0]|0x20 == 'e' {
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		return rest != "" && digits(rest) == ""
	}
	return rest == ""
}

func (r *jsonReader) int(what string) int {
	tok := r.bare()
	n, err := strconv.Atoi(tok)
	if err != nil || !validNumber(tok) || n > maxInt || n < -maxInt {
		r.wrong(what, "an integer of at most 2^53 in magnitude")
		return 0
	}
	r.i += len(tok)
	return n
}

func (r *jsonReader) float(what string) float64 {
	tok := r.bare()
	v, err := strconv.ParseFloat(tok, 64)
	if err != nil || !validNumber(tok) || math.IsInf(v, 0) {
		r.wrong(what, "a finite number")
		return 0
	}
	r.i += len(tok)
	return v
}

func (r *jsonReader) bool(what string) bool {
	tok := r.bare()
	if tok != "true" && tok != "false" {
		r.wrong(what, "true or false")
		return false
	}
	r.i += len(tok)
	return tok == "true"
}

// skip passes over one value. Inside it only quotes and brackets are looked at.
func (r *jsonReader) skip() {
	depth := 0
	for {
		switch c := r.peek(); c {
		case 0:
			r.syntax(r.i, "the file ends inside a value")
			return
		case '"':
			r.quoted("a value")
		case '{', '[':
			depth++
			r.i++
		case '}', ']':
			depth--
			r.i++
		case ',', ':':
			r.i++
		default:
			tok := r.bare()
			if !validNumber(tok) && tok != "true" && tok != "false" && tok != "null" {
				r.syntax(r.i, "want a value, found %s", r.found())
				return
			}
			r.i += len(tok)
		}
		if depth < 0 {
			r.syntax(r.i-1, "want a value, found %q", r.s[r.i-1])
		}
		if depth <= 0 || r.stopped {
			return
		}
	}
}

// enumJSON reads a string with the parser of its type.
func enumJSON[T any](r *jsonReader, what string, parse func(string) (T, error)) T {
	r.peek()
	at := r.i
	s := r.str(what)
	v, err := parse(s)
	if err != nil {
		r.errorf(at, "%s: %v", what, err)
	}
	return v
}

// field reads a field of a table; it reports whether there is one of that key.
func (r *jsonReader) field(fields []field, key string) bool {
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
	if i < 0 {
		return false
	}
	switch p := fields[i].ptr.(type) {
	case *int:
		*p = r.int(key)
	case *bool:
		*p = r.bool(key)
	case *float64:
		*p = r.float(key)
	case *DType:
		*p = enumJSON(r, key, ParseDType)
	case *string:
		*p = r.name(key)
	}
	return true
}
