package grammar

import "fmt"

// maxItems bounds how many items of an array are counted.
const maxItems = 1000

// array is a rule for arrays.
func (c *compiler) array(s *object, at string) (int32, error) {
	least, err := count(s, "minItems", at, maxItems)
	if err != nil {
		return 0, err
	}
	most, err := count(s, "maxItems", at, maxItems)
	if err != nil {
		return 0, err
	}
	first, rest, err := c.items(s, at)
	if err != nil {
		return 0, err
	}
	_, bounded := s.values["maxItems"]
	switch {
	case rest == noItem && (most < 0 || most > len(first)), rest == anyItem && len(first) > 0 && !bounded:
		most = len(first)
		if rest == anyItem && least > most {
			return 0, &Error{at, Unsupported, fmt.Sprintf("wants at least %d items and says what the first %d are; "+
				"want items or maxItems too, without which no others are written", least, most)}
		}
	}
	if rest == anyItem {
		rest = ruleValue
	}
	if least < 0 {
		if least = len(first); most >= 0 {
			least = min(least, most)
		}
	}
	if most >= 0 && least > most {
		return 0, &Error{at, Empty, fmt.Sprintf("wants at least %d items, and at most %d", least, most)}
	}
	r := c.rule()
	open := c.call(c.literal(c.begin(r), "["), ruleSpace)
	closed, end := c.place(), c.place()
	c.end(closed)
	c.callTo(end, ruleSpace, c.closing("]", closed))
	if least == 0 {
		c.join(open, "]", closed)
	}
	if most == 0 {
		return r, nil
	}
	before := open // an item
	for n := 1; ; n++ {
		item := rest
		if n <= len(first) {
			item = first[n-1]
		}
		after := c.call(before, item)
		if n >= least {
			c.skip(after, end)
		}
		if n == most {
			return r, nil
		}
		next := c.call(c.literal(after, ","), ruleSpace)
		if most < 0 && n >= least && n >= len(first) {
			again := c.call(next, rest)
			c.skip(again, end)
			c.callTo(c.literal(again, ","), ruleSpace, next)
			return r, nil
		}
		before = next
	}
}

// Rules of items after the first ones, where there are none, or nothing says what they are.
const (
	noItem  int32 = -1
	anyItem int32 = -2
)

// items are the rules of the first items, which have schemas of their own, and of the others. Before draft 2020-12 a
// list in items was what prefixItems is now, and additionalItems what items is.
func (c *compiler) items(s *object, at string) (first []int32, rest int32, err error) {
	list, others := "prefixItems", "items"
	if _, isList := s.values["items"].([]document); isList {
		list, others = "items", "additionalItems"
		if _, both := s.values["prefixItems"]; both {
			return nil, 0, &Error{at, Unsupported, "has prefixItems alongside a list in items, which is what " +
				"prefixItems was before draft 2020-12; want one of them"}
		}
	}
	if v, said := s.values[list]; said {
		all, isList := v.([]document)
		switch {
		case !isList:
			return nil, 0, &Error{pointer(at, list), Invalid, "is not a list of schemas"}
		case len(all) > maxItems:
			return nil, 0, &Error{pointer(at, list), TooLarge, fmt.Sprintf("has %d schemas; want at most %d", len(all),
				maxItems)}
		}
		for i, d := range all {
			rule, err := c.schema(d, fmt.Sprintf("%s/%d", pointer(at, list), i))
			if err != nil {
				return nil, 0, err
			}
			first = append(first, rule)
		}
	}
	switch v, said := s.values[others]; {
	case !said:
		return first, anyItem, nil
	case v == false:
		return first, noItem, nil
	default:
		rest, err = c.schema(v, pointer(at, others))
		return first, rest, err
	}
}

// closing is a place in front of a bracket.
func (c *compiler) closing(bracket string, to int32) int32 {
	at := c.place()
	c.join(at, bracket, to)
	return at
}
