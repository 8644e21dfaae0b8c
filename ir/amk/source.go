package amk

import (
	"bytes"
	"fmt"
	"sort"
)

// maxDepth bounds the nesting of a file, and with it the stack of the reader and the indentation of the writer.
const maxDepth = 128

// A source is a file being read. Positions are byte offsets until one is printed.
type source struct {
	file  string
	text  []byte
	lines []int // offset of each line's first byte, filled by the first pos
}

// pos returns the `file:line:col` of an offset; both count from 1, and columns count bytes.
func (s *source) pos(off int) string {
	if s.lines == nil {
		s.lines = append(make([]int, 0, bytes.Count(s.text, []byte{'\n'})+1), 0)
		for i, c := range s.text {
			if c == '\n' {
				s.lines = append(s.lines, i+1)
			}
		}
	}
	line := sort.SearchInts(s.lines, off+1)
	return fmt.Sprintf("%s:%d:%d", s.file, line, off-s.lines[line-1]+1)
}

// A kind is the JSON type of a node, in the words of the diagnostics.
type kind string

const (
	nullNode   kind = "null"
	boolNode   kind = "a boolean"
	intNode    kind = "an integer"
	floatNode  kind = "a float"
	stringNode kind = "a string"
	arrayNode  kind = "an array"
	objectNode kind = "an object"
)

// A node is a JSON value with its place in the file.
type node struct {
	off    int
	kind   kind
	text   string // "true" or "false"; a Number; the characters of a string
	items  []node
	fields []field
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
	return len(n.items)+len(n.fields) > 0
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
		list := make(Array, len(n.items))
		for i := range n.items {
			list[i] = n.items[i].value()
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
	for i := range n.fields {
		o.Set(n.fields[i].name, n.fields[i].val.value())
	}
	return o
}
