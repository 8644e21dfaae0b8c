package interchange

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// Budgets of a file. They are far above what a lowering writes: Llama-3.1-8B in 15,000 tasks has 350,000 values.
const (
	maxValues   = 3 << 19 // JSON values
	maxDepth    = 128     // of arrays and objects, and with it of the indentation of what Marshal writes
	maxErrors   = 50      // reported
	maxWarnings = 100     // reported
)

// Parse reads a program. The file name is for positions: `file:line:col` of malformed JSON, else `file: tasks[3].op`.
//
// The list holds warnings (keys that were dropped) and errors; with an error the program is nil. Parse checks types,
// names and versions, and nothing that would need two entities at once: ids may dangle or repeat. Its memory is linear
// in the size of data.
func Parse(data []byte, file string) (*Program, diag.List) {
	r := &reader{file: file}
	p := &Program{}
	if r.isJSON(data) && r.sameVersion(data) {
		r.record(data, "", p)
	}
	if r.diags.Err() != nil {
		return nil, r.diags
	}
	r.sameGPU(p)
	return p, r.diags
}

// A reader fills in structures by the tags of their fields, and collects what is wrong with a file: no more than a
// reader can use, as every value of a hostile file can be worth an error.
type reader struct {
	file             string
	diags            diag.List
	errors, warnings int
}

// full reports whether there is no room for another error, so that the reading may stop.
func (r *reader) full() bool { return r.errors >= maxErrors }

// at is the position of a value, given its path from the top.
func (r *reader) at(path string) string {
	if path == "" {
		return r.file
	}
	return r.file + ": " + path
}

func (r *reader) errorf(code *diag.Code, path, format string, args ...any) {
	if !r.full() {
		r.errors++
		r.diags.Add(diag.Errorf(code, r.at(path), format, args...))
	}
}

func (r *reader) warnf(code *diag.Code, path, format string, args ...any) {
	switch r.warnings++; {
	case r.warnings == maxWarnings+1:
		r.diags.Add(diag.Warningf(code, r.at(path), "more than %d warnings; further ones are not listed", maxWarnings))
	case r.warnings <= maxWarnings:
		r.diags.Add(diag.Warningf(code, r.at(path), format, args...))
	}
}

// isJSON reports whether the text is JSON within the budgets. What encoding/json would mend in silence is refused.
func (r *reader) isJSON(data []byte) bool {
	err := infile.InJSON(data, json.Unmarshal(data, new(json.RawMessage)))
	var syntax *infile.JSONError
	switch {
	case errors.As(err, &syntax):
		r.diags.Add(diag.Errorf(codeSyntax, fmt.Sprintf("%s:%d:%d", r.file, syntax.Line, syntax.Column), "%s",
			syntax.What))
		return false
	case !utf8.Valid(data):
		r.errorf(codeSyntax, "", "holds bytes that are not UTF-8; UTF-8 text is accepted")
		return false
	}
	values, depth, deepest := 1, 0, 0
	inString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case inString:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
			values++ // the first of the list, and one more for each comma
		case c == ']' || c == '}':
			depth--
		case c == ',':
			values++
		}
	}
	if values > maxValues {
		r.errorf(codeSize, "", "holds more than %d values; up to that many are accepted", maxValues)
	}
	if deepest > maxDepth {
		r.errorf(codeDepth, "", "is nested %d levels deep; up to %d are accepted", deepest, maxDepth)
	}
	return r.errors == 0
}

// sameVersion refuses a major version other than ours: what follows would be read by rules that are not its own.
func (r *reader) sameVersion(data []byte) bool {
	head := fieldsOf(data)
	for name, ours := range map[string]string{"ir_version": IRVersion, "abi_version": ABIVersion} {
		theirs := ours
		if head[name] != nil && json.Unmarshal(head[name], &theirs) != nil {
			continue // of the wrong type, which record says
		}
		got, _, _ := strings.Cut(theirs, ".")
		if want, _, _ := strings.Cut(ours, "."); got != want {
			r.errorf(codeVersion, name, "%.60q has a foreign major version; %s.x is accepted", theirs, want)
		}
	}
	return r.errors == 0
}

// sameGPU warns where meta names another GPU than the target.
func (r *reader) sameGPU(p *Program) {
	gpu := fieldsOf(p.Meta)["gpu"]
	var name string
	if p.Target == nil || gpu == nil || string(gpu) == "null" ||
		json.Unmarshal(gpu, &name) == nil && name == p.Target.Name {
		return
	}
	r.warnf(codeGPU, "meta.gpu", "is %s, and target.name %q, which counts; want the same name, or none", describe(gpu),
		p.Target.Name)
}

// fieldsOf returns the fields of a JSON object by their exact names; none of any other value. The last of equal names
// counts, as in Python.
func fieldsOf(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// describe prints a value for a message. It may be absent.
func describe(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0:
		return "null"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return fmt.Sprintf("%.40q", text)
	}
	return fmt.Sprintf("%.40s", raw)
}

// record reads an object into a structure, by the names of its fields.
func (r *reader) record(raw json.RawMessage, path string, into any) {
	fields := fieldsOf(raw)
	if fields == nil {
		r.errorf(codeType, path, "is %s; want an object", describe(raw))
		return
	}
	if path != "" {
		path += "."
	}
	v := reflect.ValueOf(into).Elem()
	var known []string
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name := tag.Get("json")
		value, there := fields[name]
		absent, optional := tag.Lookup("default")
		switch {
		case there:
		case optional:
			value = json.RawMessage(absent)
		default:
			r.errorf(codeMissing, strings.TrimSuffix(path, "."), "required field %q is missing", name)
			continue
		}
		r.field(value, path+name, v.Field(i), tag)
		known = append(known, name)
		delete(fields, name)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		r.warnf(codeUnknownKey, strings.TrimSuffix(path, "."), "unknown key %.60q is dropped; known are %s", name,
			strings.Join(known, ", "))
	}
}

// field reads the value of a field.
func (r *reader) field(raw json.RawMessage, path string, v reflect.Value, tag reflect.StructTag) {
	t := v.Type()
	isStruct := t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
	switch {
	case tag.Get("default") == "null" && string(raw) == "null":
		if t == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes(raw)
		}
	case t == reflect.TypeFor[json.RawMessage]():
		if v.SetBytes(raw); raw[0] != '{' {
			r.errorf(codeType, path, "is %s; want an object", describe(raw))
		}
	case isStruct && raw[0] == '{' && len(fieldsOf(raw)) == 0: // AutoMegaKernel takes {} for null
	case isStruct:
		v.Set(reflect.New(t.Elem()))
		r.record(raw, path, v.Interface())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		r.list(raw, path, v)
	default:
		r.scalar(raw, path, v)
		if name := reflect.Indirect(v); tag.Get("name") != "" && name.String() != "" {
			if err := ir.CheckName(name.String()); err != nil {
				r.errorf(codeName, path, "%v", err)
			}
		}
	}
}

// list reads an array of objects.
func (r *reader) list(raw json.RawMessage, path string, v reflect.Value) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		r.errorf(codeType, path, "is %s; want an array of objects", describe(raw))
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, min(len(items), 1<<12))) // more than that grows: a hostile file has many
	for i := range items {
		if r.full() {
			return
		}
		item := reflect.New(v.Type().Elem())
		r.record(items[i], fmt.Sprintf("%s[%d]", path, i), item.Interface())
		v.Set(reflect.Append(v, item.Elem()))
	}
}

// scalar reads text, a number, a name of a set, or a list of numbers. A null among them, which encoding/json passes
// over, is refused.
func (r *reader) scalar(raw json.RawMessage, path string, v reflect.Value) {
	into := v.Addr().Interface()
	_, isName := into.(encoding.TextUnmarshaler)
	_, isNumber := into.(*json.Number)
	composite := v.Kind() == reflect.Slice || v.Kind() == reflect.Map
	err := json.Unmarshal(raw, into)
	var wrong *infile.JSONError
	switch {
	case isName && raw[0] != '"':
		r.errorf(codeType, path, "is %s; want a name", describe(raw))
	case isNumber && (err != nil || raw[0] == '"'):
		r.errorf(codeType, path, "is %s; want a number", describe(raw))
	case string(raw) == "null" || composite && bytes.Contains(raw, []byte("null")):
		r.errorf(codeType, path, "is or holds null; want a value")
	case errors.As(infile.InJSON(raw, err), &wrong):
		r.errorf(codeType, path, "is or holds %s", wrong.What)
	case err != nil:
		r.errorf(codeEnum, path, "%v", err)
	case isName && v.Type() == reflect.TypeFor[ir.Opcode]() && v.Int() > int64(ir.FUSED):
		r.errorf(codeEnum, path, "%s is not an opcode of the profile; its opcodes end with %v", raw, ir.FUSED)
	}
}
