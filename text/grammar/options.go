package grammar

import (
	"fmt"
	"slices"
)

// An Option is a text followed by a value that a JSON schema describes.
type Option struct {
	Before string
	Schema []byte
	After  string // brackets that close what the text has opened; of texts with calls alone
	At     string // what errors call the schema
}

// maxBefore is the size of what is in front of a value, in bytes: a name, and how it is written.
const maxBefore = 4 << 10

// document reads the schema of an option.
func (o *Option) document() (document, error) {
	if len(o.Before) > maxBefore {
		return nil, &Error{o.At, TooLarge, fmt.Sprintf("stand after a name that takes %d bytes; want at most %d",
			len(o.Before), maxBefore)}
	}
	if len(o.Schema) > maxSchema {
		return nil, &Error{o.At, TooLarge, fmt.Sprintf("has %d bytes; want at most %d", len(o.Schema), maxSchema)}
	}
	d, err := read(o.Schema)
	if err != nil {
		return nil, &Error{o.At, Invalid, "cannot be read: " + err.Error()}
	}
	return d, nil
}

// Options returns the grammar of texts that are one of some options. Errors are *Error.
func Options(v *Vocabulary, options []Option) (*Grammar, error) {
	if len(options) == 0 || len(options) > maxAlternatives {
		return nil, &Error{"#", Invalid, fmt.Sprintf("is one of %d; want 1 to %d", len(options), maxAlternatives)}
	}
	c := newCompiler()
	root := c.rule()
	to := c.place()
	c.end(to)
	rules := make([]int32, len(options))
	for i, o := range options {
		d, err := o.document()
		if err != nil {
			return nil, err
		}
		c.refer(d)
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
		return nil, finished(options[0].At, err)
	}
	left := c.p.places[c.begin(root)].calls
	for i, rule := range rules { // which finish takes out if nothing goes through them
		if !slices.ContainsFunc(left, func(way call) bool { return way.rule == rule }) {
			return nil, &Error{options[i].At, Empty, errNone.Error()}
		}
	}
	return &Grammar{v: v, p: c.p, root: root, locals: map[point]*local{}}, nil
}
