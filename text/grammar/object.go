package grammar

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// object is a rule for objects, whose properties come in the order of the schema, and then others.
func (c *compiler) object(s *object, at string) (int32, error) {
	properties, _ := s.values["properties"].(*object)
	if _, there := s.values["properties"]; there && properties == nil {
		return 0, &Error{at + "/properties", Invalid, "is not an object of schemas"}
	}
	if properties == nil {
		properties = &object{values: map[string]document{}}
	}
	required, err := names(s, at)
	if err != nil {
		return 0, err
	}
	additional, others := document(true), true
	if v, there := s.values["additionalProperties"]; there {
		additional, others = v, v != false
	}
	limited := !others
	keys, values := slices.Clone(properties.keys), maps.Clone(properties.values)
	named, err := c.keyNames(s, at)
	if err != nil {
		return 0, err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return !named.has(key) })
	further := at + "/additionalProperties"
	if v, there := s.values["patternProperties"]; there {
		if further, additional, err = c.patternProperties(v, s, named, at); err != nil {
			return 0, err
		}
		others = true
	}
	if others && named.all != nil { // which are then properties like others
		for _, name := range named.all {
			if _, there := values[name]; !there {
				keys, values[name] = append(keys, name), additional
			}
		}
		others = false
	}
	needed := map[string]bool{}
	for _, name := range required {
		needed[name] = true
		if slices.Contains(keys, name) {
			continue
		}
		if _, patterns := s.values["patternProperties"]; patterns && !limited && !named.has(name) {
			return 0, &Error{at + "/required", Unsupported, fmt.Sprintf("has %q, which patternProperties does not "+
				"match; want it in properties", short(name))}
		}
		if !others || !named.has(name) {
			return 0, &Error{at + "/required", Empty, fmt.Sprintf(
				"has %q, which is not a property, and others are not allowed", short(name))}
		}
		keys, values[name] = append(keys, name), additional
	}
	if len(keys) > maxAlternatives {
		return 0, &Error{at, TooLarge, fmt.Sprintf("has %d properties; want at most %d", len(keys), maxAlternatives)}
	}
	var rules []int32
	for _, key := range keys {
		place := further
		if _, own := properties.values[key]; own {
			place = pointer(at+"/properties", key)
		}
		value, err := c.schema(values[key], place)
		if err != nil {
			return 0, err
		}
		pair := c.rule()
		c.end(c.call(c.call(c.literal(c.begin(pair), quoted(key)+":"), ruleBlank), value))
		rules = append(rules, pair)
	}
	more := int32(-1)
	if others {
		value, err := c.schema(additional, further)
		if err != nil {
			return 0, err
		}
		key, err := c.furtherKey(named, keys, at)
		if err != nil {
			return 0, err
		}
		if key >= 0 {
			more = c.rule()
			colon := c.literal(c.call(c.begin(more), key), ":")
			c.end(c.call(c.call(colon, ruleBlank), value))
		}
	}
	return c.members(keys, needed, rules, more), nil
}

// members is the rule of an object with pairs in their order, and then any number of others, if there is a rule.
func (c *compiler) members(keys []string, required map[string]bool, pairs []int32, more int32) int32 {
	r := c.rule()
	closed := c.place()
	c.end(closed)
	open := c.call(c.literal(c.begin(r), "{"), ruleSpace)
	// Two ways lead through the properties. On the one nothing is written yet; the other begins after a comma.
	none, comma := open, c.place()
	last := -1 // that has to be there
	for i, key := range keys {
		if required[key] {
			last = i
		}
	}
	for i, pair := range pairs {
		written, nextNone, nextComma := c.place(), c.place(), c.place()
		c.callTo(none, pair, written)
		c.callTo(comma, pair, written)
		if !required[keys[i]] {
			c.skip(none, nextNone)
			c.skip(comma, nextComma)
		}
		if i+1 < len(pairs) || more >= 0 {
			c.callTo(c.literal(written, ","), ruleSpace, nextComma)
		}
		if i >= last {
			c.callTo(written, ruleSpace, c.closing("}", closed))
		}
		none, comma = nextNone, nextComma
	}
	c.join(none, "}", closed)
	if more >= 0 {
		written := c.place()
		c.callTo(none, more, written)
		c.callTo(comma, more, written)
		c.callTo(c.literal(written, ","), ruleSpace, comma)
		c.callTo(written, ruleSpace, c.closing("}", closed))
	}
	return r
}

// keyNames are the names that properties may have.
type keyNames struct {
	all  []string     // where not nil, these
	text *stringRange // where not nil, strings that are such
	read *automaton   // which reads them
}

// keyNames reads the keyword propertyNames.
func (c *compiler) keyNames(s *object, at string) (*keyNames, error) {
	named := &keyNames{}
	v, said := s.values["propertyNames"]
	if at = pointer(at, "propertyNames"); !said || v == true {
		return named, nil
	}
	meant := c.resolved(v)
	if meant == nil && v != nil {
		return nil, &Error{at, Unsupported, "refers to no schema that can be found; want enum or const, or " +
			strings.Join(stringWords, ", ")}
	}
	schema, words, err := keywords(meant, at)
	if err != nil {
		return nil, err
	}
	types, err := c.types(schema, at)
	if err != nil {
		return nil, err
	}
	if types != nil && !slices.Contains(types, "string") {
		return nil, &Error{at, Empty, "allows no strings, and names are strings"}
	}
	if list, has := listed(schema); has {
		named.all = []string{}
		for _, d := range list {
			if name, isText := d.(string); isText && !slices.Contains(named.all, name) {
				named.all = append(named.all, name)
			}
		}
	}
	r := &stringRange{most: -1}
	for _, key := range words {
		if key != "type" && (named.all == nil || key != "enum" && key != "const") &&
			(named.all != nil || !slices.Contains(stringWords, key)) {
			return nil, &Error{at, Unsupported, fmt.Sprintf("has %s; want enum or const, or %s", key,
				strings.Join(stringWords, ", "))}
		}
	}
	if err := r.narrow(schema, at); err != nil || named.all != nil || r.isAny() {
		return named, err
	}
	if _, err := c.text(r, at); err != nil {
		return nil, err
	}
	named.text = r
	of, err := r.expressions()
	if err == nil {
		named.read, err = c.automaton(of, nil, 0)
	}
	return named, err
}

// patternProperties reads this keyword, of one pattern, and sets the names that further properties have. Without
// additionalProperties others would be valid; they are left out. It returns the place of their schema, and that.
func (c *compiler) patternProperties(v document, s *object, named *keyNames, at string) (string, document, error) {
	place := pointer(at, "patternProperties")
	all, isObject := v.(*object)
	others, said := s.values["additionalProperties"]
	_, names := s.values["propertyNames"]
	switch {
	case !isObject:
		return "", nil, &Error{place, Invalid, "is not an object of schemas"}
	case len(all.keys) != 1 || said && others != false || names:
		return "", nil, &Error{place, Unsupported, "is not supported here; want one pattern, without propertyNames, " +
			"and without additionalProperties or with false"}
	}
	pattern := all.keys[0]
	place = pointer(place, pattern)
	e, err := parsePattern(pattern)
	if err != nil {
		return "", nil, &Error{place, Unsupported, err.Error() + patternsKnown}
	}
	named.text = &stringRange{patterns: []string{pattern}, most: -1}
	if named.read, err = c.automaton([]*expression{e}, nil, 0); err != nil {
		return "", nil, &Error{place, TooLarge, err.Error()}
	}
	if properties, _ := s.values["properties"].(*object); properties != nil {
		for _, key := range properties.keys {
			if named.has(key) {
				return "", nil, &Error{place, Unsupported, fmt.Sprintf("matches the property %q, which would "+
					"follow two schemas; want another pattern", short(key))}
			}
		}
	}
	return place, all.values[pattern], nil
}

// has reports whether a property may have a name.
func (n *keyNames) has(name string) bool {
	switch {
	case n.all != nil:
		return slices.Contains(n.all, name)
	case n.text == nil:
		return true
	}
	length := int32(utf8.RuneCountInString(name))
	return length >= n.text.least && (n.text.most < 0 || length <= n.text.most) && n.read.reads(name)
}

// furtherKey is the rule of a key that is not one of some; -1: there is no such key.
func (c *compiler) furtherKey(named *keyNames, keys []string, at string) (int32, error) {
	if named.text == nil {
		return c.otherKey(keys), nil
	}
	others := *named.text
	others.without = keys
	rule, err := c.text(&others, at+"/propertyNames")
	var refused *Error
	if errors.As(err, &refused) && refused.Kind == Empty {
		return -1, nil
	}
	return rule, err
}

// names reads the keyword required.
func names(s *object, at string) ([]string, error) {
	v, there := s.values["required"]
	if !there {
		return nil, nil
	}
	list, isList := v.([]document)
	var all []string
	for _, d := range list {
		name, isString := d.(string)
		isList = isList && isString
		all = append(all, name)
	}
	if !isList {
		return nil, &Error{at + "/required", Invalid, "is not a list of names"}
	}
	return all, nil
}

// characters lists, for how far a character has come, what bytes may follow and what they lead to. At 0 another one
// begins.
var characters = [][]struct {
	lo, hi byte
	to     int
}{
	{{0x20, '"' - 1, 0}, {'"' + 1, '\\' - 1, 0}, {'\\' + 1, 0x7F, 0}, {0xC2, 0xDF, 1}, {0xE0, 0xE0, 4}, {0xE1, 0xEC, 2},
		{0xED, 0xED, 5}, {0xEE, 0xEF, 2}, {0xF0, 0xF0, 6}, {0xF1, 0xF3, 3}, {0xF4, 0xF4, 7}},
	{{0x80, 0xBF, 0}}, {{0x80, 0xBF, 1}}, {{0x80, 0xBF, 2}},
	{{0xA0, 0xBF, 1}}, {{0x80, 0x9F, 1}}, {{0x90, 0xBF, 2}}, {{0x80, 0x8F, 2}},
}

// otherKey matches any key except the given ones. It is written without escapes: with them there are many ways to
// write each of those.
func (c *compiler) otherKey(keys []string) int32 {
	r := c.rule()
	after := c.place()
	c.end(after)
	var lead func(at int32, state int, left []string)
	lead = func(at int32, state int, left []string) { // left is what is missing of keys that may still come
		if state == 0 {
			c.p.places[at].like = keyBody[0]
			if !slices.Contains(left, "") {
				c.join(at, `"`, after)
			}
		}
		for _, way := range characters[state] {
			lo := int(way.lo)
			for b := lo; b <= int(way.hi); b++ {
				var rest []string
				for _, key := range left {
					if key != "" && key[0] == byte(b) {
						rest = append(rest, key[1:])
					}
				}
				if rest == nil {
					continue
				}
				if lo < b {
					c.span(at, byte(lo), byte(b-1), keyBody[way.to])
				}
				next := c.place()
				c.span(at, byte(b), byte(b), next)
				lead(next, way.to, rest)
				lo = b + 1
			}
			if lo <= int(way.hi) {
				c.span(at, byte(lo), way.hi, keyBody[way.to])
			}
		}
	}
	lead(c.literal(c.begin(r), `"`), 0, keys)
	return r
}
