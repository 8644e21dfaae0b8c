// Package injection is for tests that put hostile text into every string of a structure: the text, and a walk over the
// strings by reflection, so that a field that is added later is tested without anyone thinking of it.
//
// It imports the standard library only.
package injection

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marker stands at the start of a line that a hostile text tries to make. No output has a line that begins with it.
const Marker = "INJECTED"

// Texts are hostile: each one does harm in some place where it is printed as it is.
var Texts = []string{
	"\x1b]0;title\a\x1b[2J\x1b[31mred",    // a terminal's title, screen and colour
	"\x9b31mred",                          // the same with one byte of a C1 set
	"\u009b31mred",                        // and in UTF-8
	"x\n" + Marker + " #include \"evil\"", // a line of its own
	"x\r\n" + Marker,
	"x\r" + Marker,
	"x\u2028" + Marker,  // a line, for some readers
	"*/ int evil; /*",   // the end of a comment
	"x\\",               // a line that goes on
	"x??/",              // as above, as a trigraph
	"sm_90a$(shell id)", // make
	"$(info x)", "`id`", // make, shell
	"a\";evil(\"", "it's", // quotes
	"</script><script>evil", // HTML
	"a\u202eb", "\u2066x",   // text that shows in another order
	"\xff\xfe", "a\x00b", "\x7f",
	strings.Repeat("long", 5000),
}

// A Place is a string somewhere in a structure.
type Place struct {
	Path  string // Program.Buffers[].Name; of a key of a map, Config.Tiling{}
	Value string
	Set   func(string)
}

// Fill gives every exported part of *p one element, and every string a value: no part of the type is left out. Types
// that implement an interface are listed in any order.
func Fill(p any, implementations ...any) {
	fill(reflect.ValueOf(p).Elem(), implementations, 0)
}

const maxDepth = 20 // of a structure that holds itself

func fill(v reflect.Value, impl []any, depth int) {
	if depth > maxDepth {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if v.String() == "" {
			v.SetString("x")
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), impl, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), impl, depth+1)
			}
		}
	case reflect.Slice:
		fillSlice(v, impl, depth)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), impl, depth+1)
		}
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, impl, depth+1)
		fill(elem, impl, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, elem)
	}
}

// fillSlice makes one element, or of a slice of interfaces one of each implementation.
func fillSlice(v reflect.Value, impl []any, depth int) {
	elem := v.Type().Elem()
	if elem.Kind() != reflect.Interface {
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fill(v.Index(i), impl, depth+1)
		}
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, len(impl)))
	for _, one := range impl {
		if t := reflect.TypeOf(one); t.Implements(elem) {
			made := reflect.New(t).Elem()
			fill(made, impl, depth+1)
			v.Set(reflect.Append(v, made))
		}
	}
}

// Places returns every string of *p. Set on a key of a map moves its value.
func Places(p any) []Place {
	var out []Place
	v := reflect.ValueOf(p).Elem()
	walk(v, v.Type().Name(), &out)
	return out
}

func walk(v reflect.Value, path string, out *[]Place) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			*out = append(*out, Place{path, v.String(), v.SetString})
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), path, out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				walk(v.Field(i), path+"."+f.Name, out)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			walk(v.Index(i), path+"[]", out)
		}
	case reflect.Map:
		walkMap(v, path, out)
	}
}

func walkMap(v reflect.Value, path string, out *[]Place) {
	for _, key := range v.MapKeys() {
		elem := v.MapIndex(key)
		if key.Kind() == reflect.String {
			current := key
			*out = append(*out, Place{path + "{}", key.String(), func(s string) {
				v.SetMapIndex(current, reflect.Value{})
				current = reflect.ValueOf(s).Convert(key.Type())
				v.SetMapIndex(current, elem)
			}})
		}
		if elem.Kind() == reflect.String {
			*out = append(*out, Place{path + "{}=", elem.String(), func(s string) {
				v.SetMapIndex(key, reflect.ValueOf(s).Convert(elem.Type()))
			}})
		} else {
			walk(elem, path+"{}", out)
		}
	}
}

// Raw returns what of an output a terminal would act on: the first such character, quoted, or a line that a hostile
// text has made; "" if there is nothing.
func Raw(output string) string {
	for i, r := range output {
		_, size := utf8.DecodeRuneInString(output[i:])
		switch {
		case r == '\n' || r == '\t':
		case r == utf8.RuneError && size == 1, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028',
			r == '\u2029':
			return fmt.Sprintf("%q in %q", output[i:i+size], output[max(0, i-40):min(len(output), i+40)])
		}
	}
	if strings.HasPrefix(output, Marker) || strings.Contains(output, "\n"+Marker) {
		return "a line that begins with " + Marker
	}
	return ""
}
