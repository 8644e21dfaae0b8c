package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// An Error says which part of a schema is not supported.
type Error struct {
	At   string // in the schema, "#/properties/name"
	What string
}

func (e *Error) Error() string { return e.At + " " + e.What }

// Object returns the grammar of all objects in JSON.
func Object(v *Vocabulary) *Grammar {
	c := newCompiler(nil)
	g, _ := c.grammar(v, ruleObject) // it cannot fail: the rules are those that all grammars have
	return g
}

// Schema returns the grammar of the values that a JSON schema describes. Errors are *Error.
func Schema(v *Vocabulary, text []byte) (*Grammar, error) {
	if len(text) > maxSchema {
		return nil, &Error{"#", fmt.Sprintf("has %d bytes; want at most %d", len(text), maxSchema)}
	}
	d, err := read(text)
	if err != nil {
		return nil, &Error{"#", "cannot be read: " + err.Error()}
	}
	c := newCompiler(d)
	rule, err := c.schema(d, "#")
	if err != nil {
		return nil, err
	}
	return c.grammar(v, rule)
}

// maxSchema is the size of a schema, in bytes.
const maxSchema = 64 << 10

// A compiler makes rules of schemas.
type compiler struct {
	builder
	whole document
	refs  map[string]int32 // rules of $ref, by what they refer to
	depth int
}

func newCompiler(whole document) *compiler {
	p := &program{places: slices.Clone(commonProgram.places), rules: slices.Clone(commonProgram.rules)}
	return &compiler{builder: builder{p: p}, whole: whole, refs: map[string]int32{}}
}

// grammar ends the program: a text is what a rule describes, perhaps after a space.
func (c *compiler) grammar(v *Vocabulary, rule int32) (*Grammar, error) {
	root := c.rule()
	c.end(c.call(c.call(c.begin(root), ruleBlank), rule))
	if err := c.finish(root); err != nil {
		return nil, &Error{"#", err.Error()}
	}
	return &Grammar{v: v, p: c.p, root: root, locals: map[int32]*local{}}, nil
}

// notes say something about values and allow no others.
var notes = []string{"$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description",
	"example", "examples", "readOnly", "title", "writeOnly"}

// keywords are those that are known, by what they are about.
var (
	objectWords = []string{"properties", "required", "additionalProperties"}
	arrayWords  = []string{"items", "minItems", "maxItems"}
	words       = slices.Concat([]string{"$ref", "anyOf", "const", "enum", "type"}, objectWords, arrayWords)
)

// schema returns the rule of a schema.
func (c *compiler) schema(d document, at string) (int32, error) {
	if c.depth++; c.depth > 2*maxDepth {
		return 0, &Error{at, "is nested too deep"}
	}
	defer func() { c.depth-- }()
	rule, err := c.described(d, at)
	if err == nil && c.full {
		err = &Error{at, errFull.Error()}
	}
	return rule, err
}

// described is schema without a look at depth and size.
func (c *compiler) described(d document, at string) (int32, error) {
	if d == true {
		return ruleValue, nil
	}
	s, isObject := d.(*object)
	switch {
	case d == false:
		return 0, &Error{at, "is false, and no value is valid"}
	case !isObject:
		return 0, &Error{at, "is not a schema; want an object, or true"}
	}
	var said []string
	for _, key := range s.keys {
		switch {
		case slices.Contains(words, key):
			said = append(said, key)
		case !slices.Contains(notes, key):
			return 0, &Error{at, fmt.Sprintf("has the keyword %q, which is not supported; known are %s", short(key),
				strings.Join(words, ", "))}
		}
	}
	for _, alone := range []string{"$ref", "anyOf", "const", "enum"} {
		others := slices.DeleteFunc(slices.Clone(said), func(key string) bool {
			return key == alone || key == "type" && (alone == "enum" || alone == "const")
		})
		if v, there := s.values[alone]; there {
			if len(others) > 0 {
				return 0, &Error{at, fmt.Sprintf("has %s alongside %s, which is not supported; want one of them", alone,
					strings.Join(others, ", "))}
			}
			return c.alone(alone, v, s, at)
		}
	}
	types, err := c.types(s, at)
	if err != nil || types == nil && len(said) == 0 {
		return ruleValue, err
	}
	if types == nil { // keywords say what the author has in mind, though other values would be valid
		for _, of := range []struct {
			kind  string
			words []string
		}{{"object", objectWords}, {"array", arrayWords}} {
			if slices.ContainsFunc(said, func(key string) bool { return slices.Contains(of.words, key) }) {
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
		}
		return simple[kind], nil
	})
}

// simple are the rules of types that have no keywords.
var simple = map[string]int32{"string": ruleString, "number": ruleNumber, "integer": ruleInteger,
	"boolean": ruleBoolean, "null": ruleNull}

// alone is a schema that consists of one keyword.
func (c *compiler) alone(keyword string, v document, s *object, at string) (int32, error) {
	at += "/" + keyword
	list, isList := v.([]document)
	switch keyword {
	case "$ref":
		return c.ref(v, at)
	case "const":
		return c.values([]document{v}, s, at)
	case "enum":
		if !isList || len(list) == 0 {
			return 0, &Error{at, "is not a list of values"}
		}
		return c.values(list, s, at)
	}
	if !isList || len(list) == 0 {
		return 0, &Error{at, "is not a list of schemas"}
	}
	if len(list) > maxAlternatives {
		return 0, &Error{at, fmt.Sprintf("has %d schemas; want at most %d", len(list), maxAlternatives)}
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
		return 0, &Error{at, "has no value of the type next to it"}
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
		if _, known := simple[name]; !known && name != "object" && name != "array" {
			return nil, &Error{at + "/type", "is not string, number, integer, boolean, null, object and array, " +
				"nor a list of them"}
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return nil, &Error{at + "/type", "is an empty list"}
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
		return 0, &Error{at, err.Error()}
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

// find looks up a reference: the whole schema, or one of its definitions.
func (c *compiler) find(ref string) (document, error) {
	wrong := errors.New("refers to something that is not there; want #, or #/$defs/NAME")
	if ref == "#" {
		return c.whole, nil
	}
	path, isPointer := strings.CutPrefix(ref, "#/")
	parts := strings.Split(path, "/")
	if !isPointer || len(parts) != 2 || parts[0] != "$defs" && parts[0] != "definitions" {
		return nil, wrong
	}
	name, err := url.PathUnescape(parts[1])
	if err != nil {
		return nil, wrong
	}
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	whole, _ := c.whole.(*object)
	if whole == nil {
		return nil, wrong
	}
	defs, _ := whole.values[parts[0]].(*object)
	if defs == nil {
		return nil, wrong
	}
	d, there := defs.values[name]
	if !there {
		return nil, wrong
	}
	return d, nil
}

// count reads a keyword that is a number of items; -1 if there is none.
func count(s *object, keyword, at string) (int, error) {
	v, there := s.values[keyword]
	if !there {
		return -1, nil
	}
	number, _ := v.(json.Number)
	n, err := number.Int64()
	if err != nil || n < 0 || n > maxItems {
		return 0, &Error{at + "/" + keyword, fmt.Sprintf("is not a whole number from 0 to %d", maxItems)}
	}
	return int(n), nil
}

// maxAlternatives bounds the properties of an object, any of which may come next, and the schemas of an anyOf.
const maxAlternatives = 500

// maxItems bounds how many items of an array are counted.
const maxItems = 1000

// array is a rule for arrays.
func (c *compiler) array(s *object, at string) (int32, error) {
	least, err := count(s, "minItems", at)
	if err != nil {
		return 0, err
	}
	most, err := count(s, "maxItems", at)
	if err != nil {
		return 0, err
	}
	item := ruleValue
	if items, there := s.values["items"]; there && items != false {
		if item, err = c.schema(items, at+"/items"); err != nil {
			return 0, err
		}
	} else if there {
		most = 0
	}
	if least = max(least, 0); most >= 0 && least > most {
		return 0, &Error{at, fmt.Sprintf("wants at least %d items, and at most %d", least, most)}
	}
	r := c.rule()
	first := c.call(c.literal(c.begin(r), "["), ruleSpace)
	closed, end := c.place(), c.place()
	c.end(closed)
	c.callTo(end, ruleSpace, c.closing("]", closed))
	if least == 0 {
		c.join(first, "]", closed)
	}
	if most == 0 {
		return r, nil
	}
	at1 := first // in front of an item
	for n := 1; ; n++ {
		after := c.call(at1, item)
		if n >= least {
			c.skip(after, end)
		}
		if n == most {
			return r, nil
		}
		next := c.call(c.literal(after, ","), ruleSpace)
		if most < 0 && n >= least {
			again := c.call(next, item)
			c.skip(again, end)
			c.callTo(c.literal(again, ","), ruleSpace, next)
			return r, nil
		}
		at1 = next
	}
}

// closing is a place in front of a bracket.
func (c *compiler) closing(bracket string, to int32) int32 {
	at := c.place()
	c.join(at, bracket, to)
	return at
}
