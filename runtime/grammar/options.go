package grammar

import (
	"fmt"
	"slices"
)

// An Option is a text, and behind it a value that a schema, in JSON, describes.
type Option struct {
	Before string
	Schema []byte
	At     string // what errors call the schema
}

// Options returns the grammar of any of some options. Nothing stands in front of them. Errors are *Error.
func Options(v *Vocabulary, options []Option) (*Grammar, error) {
	if len(options) == 0 || len(options) > maxAlternatives {
		return nil, &Error{"#", fmt.Sprintf("is one of %d; want 1 to %d", len(options), maxAlternatives)}
	}
	c := newCompiler(nil)
	root := c.rule()
	to := c.place()
	c.end(to)
	rules := make([]int32, len(options))
	for i, o := range options {
		if len(o.Schema) > maxSchema {
			return nil, &Error{o.At, fmt.Sprintf("has %d bytes; want at most %d", len(o.Schema), maxSchema)}
		}
		d, err := read(o.Schema)
		if err != nil {
			return nil, &Error{o.At, "cannot be read: " + err.Error()}
		}
		c.whole, c.refs = d, map[string]int32{}
		rule, err := c.schema(d, o.At)
		if err != nil {
			return nil, err
		}
		rules[i] = c.rule()
		at := c.begin(rules[i])
		if o.Before != "" {
			at = c.literal(at, o.Before)
		}
		c.end(c.call(at, rule))
		c.callTo(c.begin(root), rules[i], to)
	}
	if err := c.finish(root); err != nil {
		return nil, &Error{options[0].At, err.Error()}
	}
	left := c.p.places[c.begin(root)].calls
	for i, rule := range rules { // which finish takes out if nothing goes through them
		if !slices.ContainsFunc(left, func(way call) bool { return way.rule == rule }) {
			return nil, &Error{options[i].At, errNone.Error()}
		}
	}
	return &Grammar{v: v, p: c.p, root: root, locals: map[int32]*local{}}, nil
}
