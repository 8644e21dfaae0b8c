package grammar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// allOf is a schema with this keyword: of one schema, which is then all that it says, or of strings, whose keywords are
// taken together.
func (c *compiler) allOf(v document, s *object, said []string, at string) (int32, error) {
	list, isList := v.([]document)
	if !isList || len(list) == 0 {
		return 0, &Error{pointer(at, "allOf"), Invalid, "is not a list of schemas"}
	}
	types, err := c.types(s, at)
	if err != nil {
		return 0, err
	}
	others := slices.DeleteFunc(slices.Clone(said), func(key string) bool { return key == "allOf" || key == "type" })
	if len(list) == 1 && len(others) == 0 && (types == nil || c.within(list[0], types)) {
		return c.schema(list[0], pointer(at, "allOf")+"/0")
	}
	r := stringRange{most: -1}
	for i, d := range append([]document{s}, list...) {
		place := at
		if i > 0 {
			place = fmt.Sprintf("%s/%d", pointer(at, "allOf"), i-1)
		}
		part, words, err := keywords(d, place)
		if err != nil {
			return 0, err
		}
		for _, key := range words {
			if key == "allOf" && i == 0 || key == "type" && part.values[key] == "string" ||
				slices.Contains(stringWords, key) {
				continue
			}
			return 0, &Error{pointer(at, "allOf"), Unsupported, fmt.Sprintf("has %d schemas, alongside %s; want one "+
				"and nothing alongside it, or schemas of strings with %s", len(list), orNothing(others),
				strings.Join(stringWords, ", "))}
		}
		if err := r.narrow(part, place); err != nil {
			return 0, err
		}
	}
	return c.text(&r, at)
}

func orNothing(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// within reports whether a schema says that its values are of some types.
func (c *compiler) within(d document, types []string) bool {
	s, _ := c.resolved(d).(*object)
	if s == nil {
		return false
	}
	own, err := c.types(s, "")
	return err == nil && own != nil && !slices.ContainsFunc(own, func(name string) bool {
		return !slices.Contains(types, name)
	})
}

// resolved is what a schema that is but a reference, or an allOf of one, stands for. It is found once for each schema:
// how often one is asked for is not bounded by the size of the whole.
func (c *compiler) resolved(d document) document {
	s, isObject := d.(*object)
	if !isObject {
		return d
	}
	to, there := c.stands[s]
	if !there {
		to = c.follow(s)
		c.stands[s] = to
	}
	return to
}

func (c *compiler) follow(d document) document {
	for range maxDepth {
		s, isObject := d.(*object)
		if !isObject {
			return d
		}
		if ref, there := s.values["$ref"]; there {
			name, _ := ref.(string)
			c.fuel -= 1 + len(name)
			to, err := c.find(name)
			if err != nil {
				return nil
			}
			d = to
			continue
		}
		all, _ := s.values["allOf"].([]document)
		if len(all) != 1 {
			return d
		}
		d = all[0]
	}
	return nil
}

// exclusive checks that no value is valid by two of the schemas of a oneOf, as far as can be seen: only then is any of
// them as good as one of them.
func (c *compiler) exclusive(list []document, at string) error {
	for i, d := range list {
		if s, isObject := d.(*object); isObject && c.resolved(d) == nil { // of which the reason is the reference
			name, isRef := s.values["$ref"].(string)
			if _, err := c.find(name); isRef && err != nil {
				return &Error{fmt.Sprintf("%s/%d/$ref", at, i), Unsupported, err.Error()}
			}
		}
		for k := range i {
			apart := c.apart(list[k], list[i], 0)
			switch {
			case c.fuel < 0:
				return &Error{at, TooLarge, "has schemas that take too long to tell apart; want fewer, or anyOf"}
			case !apart:
				return &Error{at, Unsupported, fmt.Sprintf("has the schemas %d and %d, which one value might both be "+
					"valid by; want schemas of different types, or of objects with a required property whose const or "+
					"enum differs, or anyOf", k, i)}
			}
		}
	}
	return nil
}

// apart reports whether it can be seen that no value is valid by both of two schemas.
func (c *compiler) apart(a, b document, depth int) bool {
	const deep = 8
	if c.fuel -= 16; c.fuel < 0 || depth > deep {
		return false
	}
	a, b = c.resolved(a), c.resolved(b)
	if a == false || b == false {
		return true
	}
	one, isOne := a.(*object)
	other, isOther := b.(*object)
	if !isOne || !isOther {
		return false
	}
	for _, s := range []*object{one, other} {
		for _, keyword := range []string{"anyOf", "oneOf"} {
			list, is := s.values[keyword].([]document)
			if !is {
				continue
			}
			rest := b
			if s == other {
				rest = a
			}
			return !slices.ContainsFunc(list, func(d document) bool { return !c.apart(d, rest, depth+1) })
		}
	}
	these, those := c.traits(one), c.traits(other)
	var common []string
	for _, kind := range these.kinds {
		if slices.Contains(those.kinds, kind) {
			common = append(common, kind)
		}
	}
	switch {
	case len(common) == 0:
		return true
	case these.values != nil && those.values != nil:
		fewer, more := these, those
		if fewer.size > more.size {
			fewer, more = more, fewer
		}
		if c.fuel -= fewer.size; c.fuel < 0 {
			return false
		}
		for value := range fewer.values {
			if more.values[value] {
				return false
			}
		}
		return true
	case len(common) == 1 && common[0] == "object":
		return c.objectsApart(one, other, depth) || c.objectsApart(other, one, depth)
	}
	return false
}

// objectsApart reports whether an object that is valid by one schema has to have a property that is not by another.
func (c *compiler) objectsApart(one, other *object, depth int) bool {
	properties, _ := one.values["properties"].(*object)
	others, _ := other.values["properties"].(*object)
	for _, name := range c.traits(one).required {
		if c.fuel -= 1 + len(name)/16; c.fuel < 0 {
			return false
		}
		var value, otherValue document
		said, otherSaid := false, false
		if properties != nil {
			value, said = properties.values[name]
		}
		if others != nil {
			otherValue, otherSaid = others.values[name]
		}
		_, patterns := other.values["patternProperties"]
		if !otherSaid && !patterns && other.values["additionalProperties"] == false ||
			said && otherSaid && c.apart(value, otherValue, depth+1) {
			return true
		}
	}
	return false
}

// kinds are the types that values of a schema may have; an integer is a number.
func (c *compiler) kinds(s *object) (all []string) {
	types, err := c.types(s, "")
	if err != nil || types == nil {
		types = typeNames
	}
	for _, name := range types {
		if name == "integer" {
			name = "number"
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if list, has := listed(s); has {
		all = slices.DeleteFunc(all, func(name string) bool {
			return !slices.ContainsFunc(list, func(d document) bool {
				of := kind(d)
				return of == name || of == "integer" && name == "number"
			})
		})
	}
	return all
}

// listed are the values of a schema that says all of them.
func listed(s *object) ([]document, bool) {
	if v, there := s.values["const"]; there {
		return []document{v}, true
	}
	list, there := s.values["enum"].([]document)
	return list, there
}

// traits are what is asked of a schema again and again, to tell it apart from others.
type traits struct {
	kinds    []string
	required []string
	values   map[string]bool // in a form in which equal ones are equal; nil where it does not say all of them
	size     int             // of the values: what looking all of them up costs
}

// traits finds them, once for each schema.
func (c *compiler) traits(s *object) *traits {
	if t := c.told[s]; t != nil {
		return t
	}
	t := &traits{kinds: c.kinds(s)}
	t.required, _ = names(s, "") // what is wrong with it is reported where the schema is compiled
	if list, has := listed(s); has {
		t.values = map[string]bool{}
		for _, d := range list {
			value := canonical(d)
			t.values[value] = true
			t.size += 1 + len(value)/16
		}
	}
	c.told[s] = t
	return t
}

func canonical(d document) string {
	switch v := d.(type) {
	case json.Number:
		n, ok := readDecimal(v)
		if !ok {
			return v.String()
		}
		return fmt.Sprint(n.minus, n.whole, ".", n.part)
	case []document:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = canonical(item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *object:
		keys := slices.Sorted(slices.Values(v.keys))
		for i, key := range keys {
			keys[i] = quoted(key) + ":" + canonical(v.values[key])
		}
		return "{" + strings.Join(keys, ",") + "}"
	}
	return write(d)
}
