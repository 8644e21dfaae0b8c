package grammar

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// An Error says which part of a schema is not supported.
type Error struct {
	At   string // in the schema, "#/properties/name"
	Kind Kind
	What string
}

// A Kind of errors is a code that stays the same.
type Kind string

const (
	Invalid     Kind = "invalid_schema"     // it is not a schema
	Unsupported Kind = "unsupported_schema" // it has something that cannot constrain an answer
	TooLarge    Kind = "schema_too_large"
	Empty       Kind = "schema_without_values" // that could be written
)

func (e *Error) Error() string { return e.At + " " + e.What }

// Object returns the grammar of all objects in JSON.
func Object(v *Vocabulary) *Grammar {
	c := newCompiler()
	g, _ := c.grammar(v, ruleObject) // it cannot fail: the rules are those that all grammars have
	return g
}

// Schema returns the grammar of the values that a JSON schema describes. Errors are *Error.
func Schema(v *Vocabulary, text []byte) (*Grammar, error) {
	if len(text) > maxSchema {
		return nil, &Error{"#", TooLarge, fmt.Sprintf("has %d bytes; want at most %d", len(text), maxSchema)}
	}
	d, err := read(text)
	if err != nil {
		return nil, &Error{"#", Invalid, "cannot be read: " + err.Error()}
	}
	c := newCompiler()
	c.refer(d)
	rule, err := c.schema(d, "#")
	if err != nil {
		return nil, err
	}
	return c.grammar(v, rule)
}

// finished is the error of a program that cannot be ended.
func finished(at string, err error) *Error {
	kind := Empty
	if errors.Is(err, errFull) {
		kind = TooLarge
	}
	return &Error{at, kind, err.Error()}
}

// maxSchema is the size of a schema, in bytes.
const maxSchema = 64 << 10

// A compiler makes rules of schemas.
type compiler struct {
	builder
	whole document         // what $ref refers into
	inner string           // the place of a $id below its root; "": there is none
	refs  map[string]int32 // rules of $ref, by what they refer to
	made  map[string]int32 // rules of strings and numbers, by what they are of
	fuel  int              // what may still be spent on these
	depth int

	stands map[*object]document // what resolved has found
	told   map[*object]*traits  // and what traits has
}

func newCompiler() *compiler {
	p := &program{places: slices.Clone(commonProgram.places), rules: slices.Clone(commonProgram.rules)}
	return &compiler{builder: builder{p: p}, refs: map[string]int32{}, made: map[string]int32{}, fuel: maxFuel,
		stands: map[*object]document{}, told: map[*object]*traits{}}
}

// refer sets the schema that references refer into.
func (c *compiler) refer(whole document) {
	c.whole, c.refs, c.inner = whole, map[string]int32{}, innerID(whole, "#")
}

// grammar ends the program: a text is what a rule describes, perhaps after a space.
func (c *compiler) grammar(v *Vocabulary, rule int32) (*Grammar, error) {
	root := c.rule()
	c.end(c.call(c.call(c.begin(root), ruleBlank), rule))
	if err := c.finish(root); err != nil {
		return nil, finished("#", err)
	}
	return &Grammar{v: v, p: c.p, root: root, locals: map[point]*local{}}, nil
}

// notes say something about values and allow no others. What discriminator says, oneOf says too.
var notes = []string{"$comment", "$defs", "$id", "$schema", "contentEncoding", "contentMediaType", "default",
	"definitions", "deprecated", "description", "discriminator", "example", "examples", "readOnly", "title",
	"writeOnly"}

// keywords are those that are known, by what they are about.
var (
	objectWords = []string{"properties", "required", "additionalProperties", "propertyNames", "patternProperties"}
	arrayWords  = []string{"items", "prefixItems", "additionalItems", "minItems", "maxItems"}
	aloneWords  = []string{"$ref", "anyOf", "oneOf", "allOf", "const", "enum"}
	words       = slices.Concat(aloneWords, []string{"type"}, objectWords, arrayWords, stringWords, numberWords)
)

// schema returns the rule of a schema.
func (c *compiler) schema(d document, at string) (int32, error) {
	if c.depth++; c.depth > 2*maxDepth {
		return 0, &Error{at, TooLarge, "is nested too deep"}
	}
	defer func() { c.depth-- }()
	rule, err := c.described(d, at)
	if err == nil && c.full {
		err = &Error{at, TooLarge, errFull.Error()}
	}
	return rule, err
}

// described is schema without a look at depth and size.
func (c *compiler) described(d document, at string) (int32, error) {
	if d == true {
		return ruleValue, nil
	}
	s, said, err := keywords(d, at)
	if err != nil {
		return 0, err
	}
	if all, there := s.values["allOf"]; there {
		return c.allOf(all, s, said, at)
	}
	for _, alone := range aloneWords {
		others := slices.DeleteFunc(slices.Clone(said), func(key string) bool {
			return key == alone || key == "type" && (alone == "enum" || alone == "const")
		})
		if v, there := s.values[alone]; there {
			if len(others) > 0 {
				return 0, &Error{at, Unsupported, fmt.Sprintf("has %s alongside %s, which is not supported; want one "+
					"of them", alone, strings.Join(others, ", "))}
			}
			return c.alone(alone, v, s, at)
		}
	}
	types, err := c.types(s, at)
	if err != nil || types == nil && len(said) == 0 {
		return ruleValue, err
	}
	if err := checkFormat(s, types, at); err != nil {
		return 0, err
	}
	if types == nil { // keywords say what the author has in mind, though other values would be valid
		for _, of := range []struct {
			kind  string
			words []string
		}{{"object", objectWords}, {"array", arrayWords}, {"string", stringWords}, {"number", numberWords}} {
			if slices.ContainsFunc(said, func(key string) bool {
				if name, _ := s.values["format"].(string); key == "format" && isNumberFormat(name) {
					return of.kind == "number"
				}
				return slices.Contains(of.words, key)
			}) {
				types = append(types, of.kind)
			}
		}
	}
	return union(c, types, func(kind string) (int32, error) {
		switch kind {
		case "object":
			return c.object(s, at)
		case "array":
			return c.array(s, at)
		case "string":
			r := stringRange{most: -1}
			if err := r.narrow(s, at); err != nil {
				return 0, err
			}
			if slices.Contains(types, "number") || slices.Contains(types, "integer") { // whose format it may be
				r.formats = slices.DeleteFunc(r.formats, isNumberFormat)
			}
			return c.text(&r, at)
		case "number", "integer":
			return c.number(s, kind == "integer", at)
		}
		return simple[kind], nil
	})
}

// keywords are those of a schema that is an object and that say something about values.
func keywords(d document, at string) (s *object, said []string, err error) {
	s, isObject := d.(*object)
	switch {
	case d == false:
		return nil, nil, &Error{at, Empty, "is false, and no value is valid"}
	case !isObject:
		return nil, nil, &Error{at, Invalid, "is not a schema; want an object, or true"}
	}
	for _, key := range s.keys {
		switch {
		case slices.Contains(words, key):
			said = append(said, key)
		case slices.Contains(notes, key), strings.HasPrefix(key, "x-"):
		case key == "uniqueItems" && s.values[key] == false:
		default:
			return nil, nil, &Error{at, Unsupported, fmt.Sprintf("has the keyword %q, which is not supported; known "+
				"are %s", short(key), strings.Join(words, ", "))}
		}
	}
	return s, said, nil
}

// pointer is the place of a member of a schema, as a JSON pointer after a #.
func pointer(at, member string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(short(member))
}

// simple are the rules of types that have no keywords.
var simple = map[string]int32{"boolean": ruleBoolean, "null": ruleNull}

// typeNames are all types.
var typeNames = []string{"string", "number", "integer", "boolean", "null", "object", "array"}

// alone is a schema that consists of one keyword.
func (c *compiler) alone(keyword string, v document, s *object, at string) (int32, error) {
	at = pointer(at, keyword)
	list, isList := v.([]document)
	switch keyword {
	case "$ref":
		return c.ref(v, at)
	case "const":
		return c.values([]document{v}, s, at)
	case "enum":
		if !isList || len(list) == 0 {
			return 0, &Error{at, Invalid, "is not a list of values"}
		}
		return c.values(list, s, at)
	}
	if !isList || len(list) == 0 {
		return 0, &Error{at, Invalid, "is not a list of schemas"}
	}
	if len(list) > maxAlternatives {
		return 0, &Error{at, TooLarge, fmt.Sprintf("has %d schemas; want at most %d", len(list), maxAlternatives)}
	}
	if keyword == "oneOf" {
		if err := c.exclusive(list, at); err != nil {
			return 0, err
		}
	}
	i := -1
	return union(c, list, func(d document) (int32, error) {
		i++
		return c.schema(d, fmt.Sprintf("%s/%d", at, i))
	})
}

// union is a rule for any of what several rules describe.
func union[T any](c *compiler, of []T, rule func(T) (int32, error)) (int32, error) {
	var rules []int32
	for _, each := range of {
		r, err := rule(each)
		if err != nil {
			return 0, err
		}
		if !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	if len(rules) == 1 {
		return rules[0], nil
	}
	any := c.rule()
	to := c.place()
	for _, r := range rules {
		c.callTo(c.begin(any), r, to)
	}
	c.end(to)
	return any, nil
}

// values is a rule for some values as they are written without spaces. Those of another type than the schema's are
// left out.
func (c *compiler) values(all []document, s *object, at string) (int32, error) {
	types, err := c.types(s, strings.TrimSuffix(strings.TrimSuffix(at, "/enum"), "/const"))
	if err != nil {
		return 0, err
	}
	var texts []string
	for _, v := range all {
		of := kind(v)
		if types == nil || slices.Contains(types, of) || of == "integer" && slices.Contains(types, "number") {
			texts = append(texts, write(v))
		}
	}
	if len(texts) == 0 {
		return 0, &Error{at, Empty, "has no value of the type next to it"}
	}
	slices.Sort(texts)
	r := c.rule()
	to := c.place()
	c.oneOf(c.begin(r), slices.Compact(texts), to)
	c.end(to)
	return r, nil
}

// types reads the keyword, nil if there is none.
func (c *compiler) types(s *object, at string) ([]string, error) {
	v, there := s.values["type"]
	if !there {
		return nil, nil
	}
	list, isList := v.([]document)
	if !isList {
		list = []document{v}
	}
	var all []string
	for _, d := range list {
		name, _ := d.(string)
		if !slices.Contains(typeNames, name) {
			return nil, &Error{at + "/type", Invalid, "is not string, number, integer, boolean, null, object and " +
				"array, nor a list of them"}
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return nil, &Error{at + "/type", Invalid, "is an empty list"}
	}
	if slices.Contains(all, "number") { // an integer is a number
		all = slices.DeleteFunc(all, func(name string) bool { return name == "integer" })
	}
	return all, nil
}

// ref is the rule of what a reference leads to.
func (c *compiler) ref(v document, at string) (int32, error) {
	name, _ := v.(string)
	if r, there := c.refs[name]; there {
		return r, nil
	}
	d, err := c.find(name)
	if err != nil {
		return 0, &Error{at, Unsupported, err.Error()}
	}
	r := c.rule()
	c.refs[name] = r
	of, err := c.schema(d, name)
	if err != nil {
		return 0, err
	}
	c.end(c.call(c.begin(r), of))
	return r, nil
}

// find looks up a reference: a JSON pointer into the whole schema after a #.
func (c *compiler) find(ref string) (document, error) {
	wrong := errors.New("refers to something that is not there; want #, #/$defs/NAME, or another place in the schema")
	pointed, isPointer := strings.CutPrefix(ref, "#")
	pointed, err := url.PathUnescape(pointed)
	if !isPointer || err != nil || pointed != "" && pointed[0] != '/' {
		return nil, wrong
	}
	if c.inner != "" {
		return nil, fmt.Errorf("cannot be followed alongside %s, which changes what references refer to; want $id at "+
			"the root alone", c.inner)
	}
	d := c.whole
	for _, token := range strings.Split(pointed, "/")[1:] {
		there := false
		switch of := d.(type) {
		case *object:
			d, there = of.values[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
		case []document:
			n, err := strconv.Atoi(token)
			if there = err == nil && n >= 0 && n < len(of); there {
				d = of[n]
			}
		}
		if !there {
			return nil, wrong
		}
	}
	return d, nil
}

// innerID is the place of a $id below the root of a schema.
func innerID(d document, at string) string {
	var parts []document
	var places []string
	switch v := d.(type) {
	case []document:
		for i, item := range v {
			parts, places = append(parts, item), append(places, fmt.Sprintf("%s/%d", at, i))
		}
	case *object:
		if _, there := v.values["$id"]; there && at != "#" {
			return pointer(at, "$id")
		}
		for _, key := range v.keys {
			if slices.Contains(dataWords, key) || strings.HasPrefix(key, "x-") {
				continue
			}
			place, part := pointer(at, key), v.values[key]
			if named, is := part.(*object); is && slices.Contains(namedWords, key) { // whose keys are no keywords
				for _, name := range named.keys {
					parts, places = append(parts, named.values[name]), append(places, pointer(place, name))
				}
				continue
			}
			parts, places = append(parts, part), append(places, place)
		}
	}
	for i, part := range parts {
		if found := innerID(part, places[i]); found != "" {
			return found
		}
	}
	return ""
}

// Keywords whose values are data, and those whose values are schemas by name.
var (
	dataWords  = []string{"const", "enum", "default", "example", "examples", "discriminator"}
	namedWords = []string{"properties", "patternProperties", "$defs", "definitions"}
)

// maxAlternatives bounds the properties of an object, any of which may come next, and the schemas of an anyOf.
const maxAlternatives = 500
