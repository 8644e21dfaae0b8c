package quantised

import (
	"encoding/json"
	"slices"
	"strconv"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

// settings reads typed values out of a JSON object, and keeps what was first found wrong with them.
type settings struct {
	pos    string
	object *checkpoint.Object
	bad    **diag.Diagnostic // shared with those of the objects within, as is
	exprs  *int              // how many expressions there are
}

func newSettings(pos string, object *checkpoint.Object) *settings {
	return &settings{pos: pos, object: object, bad: new(*diag.Diagnostic), exprs: new(int)}
}

func (s *settings) err() *diag.Diagnostic { return *s.bad }

func (s *settings) fail(code *diag.Code, field, format string, args ...any) {
	if *s.bad == nil {
		*s.bad = diag.Errorf(code, s.pos+"."+field, format, args...)
	}
}

// value returns a field that is there and not null.
func (s *settings) value(field string) (any, bool) {
	v, ok := s.object.Get(field)
	return v, ok && v != nil
}

func (s *settings) has(field string) bool {
	_, ok := s.value(field)
	return ok
}

func (s *settings) text(field, absent string) string {
	v, ok := s.value(field)
	if !ok {
		return absent
	}
	text, ok := v.(string)
	if !ok {
		s.fail(codeSetting, field, "is %s; want a string", checkpoint.Spell(v))
		return absent
	}
	return text
}

func (s *settings) truth(field string, absent bool) bool {
	v, ok := s.value(field)
	if !ok {
		return absent
	}
	truth, ok := v.(bool)
	if !ok {
		s.fail(codeSetting, field, "is %s; want true or false", checkpoint.Spell(v))
		return absent
	}
	return truth
}

// integer reads an integer from lo on; one that is absent is a fault if absent is below lo.
func (s *settings) integer(field string, absent, lo int) int {
	v, ok := s.value(field)
	if !ok {
		if absent < lo {
			s.fail(codeSetting, field, "is missing; want an integer from %d on", lo)
		}
		return absent
	}
	if n, ok := asInteger(v); ok && n >= lo {
		return n
	}
	s.fail(codeSetting, field, "is %s; want an integer from %d on", checkpoint.Spell(v), lo)
	return max(absent, lo)
}

// integers reads an array of positive integers, nil if there is none.
func (s *settings) integers(field string, count int) []int {
	v, ok := s.value(field)
	if !ok {
		return nil
	}
	array, _ := v.([]any)
	var out []int
	for _, e := range array {
		if n, ok := asInteger(e); ok && n > 0 {
			out = append(out, n)
		}
	}
	if len(out) != count || len(array) != count {
		s.fail(codeSetting, field, "is %s; want %d positive integers", checkpoint.Spell(v), count)
		return nil
	}
	return out
}

// names reads an array of strings, or a single one.
func (s *settings) names(field string) []string {
	v, ok := s.value(field)
	if !ok {
		return nil
	}
	if text, ok := v.(string); ok {
		return []string{text}
	}
	array, ok := v.([]any)
	var out []string
	for _, e := range array {
		if text, isText := e.(string); isText {
			out = append(out, text)
		}
	}
	if !ok || len(out) != len(array) {
		s.fail(codeSetting, field, "is %s; want an array of strings", checkpoint.Spell(v))
	}
	return out
}

// within reads an object, nil if there is none.
func (s *settings) within(field string) *settings {
	v, ok := s.value(field)
	if !ok {
		return nil
	}
	object, ok := v.(*checkpoint.Object)
	if !ok {
		s.fail(codeSetting, field, "is %s; want an object", checkpoint.Spell(v))
		return nil
	}
	return &settings{pos: s.pos + "." + field, object: object, bad: s.bad, exprs: s.exprs}
}

// only refuses fields that are not among those which are known. Fields that are null or false ask for nothing.
func (s *settings) only(known ...string) {
	for _, field := range s.object.Keys() {
		v, _ := s.object.Get(field)
		if v != nil && v != false && !slices.Contains(known, field) {
			s.fail(codeUnknownSetting, field, "is not a setting that amkc knows, so it may change what the stored "+
				"weights mean; if it does not, remove it")
		}
	}
}

func asInteger(v any) (int, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(number.String())
	return n, err == nil
}

// spelt is a field as messages have it.
func (s *settings) spelt(field string) string {
	v, _ := s.object.Get(field)
	return checkpoint.Spell(v)
}
