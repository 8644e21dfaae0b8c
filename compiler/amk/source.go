package amk

import (
	"fmt"
	"sort"
	"strings"
)

// maxDepth bounds the nesting of a file, and with it the stack of the reader and the indentation of the writer.
const maxDepth = 128

// A source is a file being read. Positions are byte offsets until one is printed.
type source struct {
	file  string
	text  string
	lines []int // offset of each line's first byte, filled by the first pos
}

// pos returns the `file:line:col` of an offset; both count from 1, and columns count bytes.
func (s *source) pos(off int) string {
	if s.lines == nil {
		s.lines = append(make([]int, 0, strings.Count(s.text, "\n")+1), 0)
		for i := range len(s.text) {
			if s.text[i] == '\n' {
				s.lines = append(s.lines, i+1)
			}
		}
	}
	line := sort.SearchInts(s.lines, off+1)
	return fmt.Sprintf("%s:%d:%d", s.file, line, off-s.lines[line-1]+1)
}

// A kind is the JSON type of a node.
type kind uint8

const (
	nullNode kind = iota
	boolNode
	intNode
	floatNode
	stringNode
	arrayNode
	objectNode
)

// String is the kind in the words of the diagnostics.
func (k kind) String() string {
	return [...]string{"null", "a boolean", "an integer", "a float", "a string", "an array", "an object"}[k]
}

// A node is a JSON value with its place in the file. A file has millions of them, so that they are small.
type node struct {
	off  int
	kind kind
	text string // "true" or "false"; a Number; the characters of a string
	kids *kids  // of an array or object that is not empty
}

// kids are what an array or an object holds.
type kids struct {
	items  []node
	fields []field
}

func (n *node) items() []node {
	if n.kids == nil {
		return nil
	}
	return n.kids.items
}

func (n *node) fields() []field {
	if n.kids == nil {
		return nil
	}
	return n.kids.fields
}

type field struct {
	name string
	off  int
	val  node
}

// truthy is Python's truth value of what the node loads as.
func (n *node) truthy() bool {
	switch n.kind {
	case nullNode:
		return false
	case boolNode:
		return n.text == "true"
	case intNode, floatNode:
		return Number(n.text).Float64() != 0
	case stringNode:
		return n.text != ""
	}
	return n.kids != nil
}

// value returns the node as a Value.
func (n *node) value() Value {
	switch n.kind {
	case boolNode:
		return Bool(n.text == "true")
	case intNode, floatNode:
		return Number(n.text)
	case stringNode:
		return String(n.text)
	case arrayNode:
		items := n.items()
		list := make(Array, len(items))
		for i := range items {
			list[i] = items[i].value()
		}
		return list
	case objectNode:
		o := n.object()
		return &o
	}
	return nil
}

func (n *node) object() Object {
	var o Object
	fields := n.fields()
	for i := range fields {
		o.Set(fields[i].name, fields[i].val.value())
	}
	return o
}
