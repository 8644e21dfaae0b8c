package diag

import (
	"fmt"
	"slices"
	"strings"
)

// A Code is a stable diagnostic code with the text that `amkc explain` prints. The first digit says who reports it: 1
// import, 2 passes and configuration, 3 validation (36: the cost model, 37: simulation), 4 code generation, 5 toolchain
// and environment. Codes are never reused.
type Code struct {
	ID    string // "AMK1001"
	Title string // one line
	Doc   string // what it means, an example, and what to do
}

var registry = map[string]*Code{}

// retired are the codes of earlier releases that nothing reports any more.
var retired = strings.Fields("AMK2003 AMK2006 AMK3114 AMK3115 AMK3162 AMK3907 AMK3908 AMK3909 AMK3910 AMK3911 " +
	"AMK6009 AMK6010 AMK6013 AMK6014 AMK6015 AMK6108")

// New registers a code. It panics when the code is malformed, taken or retired: mistakes in amkc's own source, found
// by any test that loads the package.
func New(id, title, doc string) *Code {
	if len(id) != 7 || !strings.HasPrefix(id, "AMK") || slices.Contains(retired, id) {
		panic(fmt.Sprintf("diag: malformed or retired code %q", id))
	}
	if _, taken := registry[id]; taken {
		panic(fmt.Sprintf("diag: code %s registered twice", id))
	}
	c := &Code{ID: id, Title: title, Doc: strings.TrimSpace(doc)}
	registry[id] = c
	return c
}

// Lookup returns the registered code, or nil.
func Lookup(id string) *Code { return registry[id] }

// Codes returns every registered code, sorted by ID.
func Codes() []*Code {
	out := make([]*Code, 0, len(registry))
	for _, c := range registry {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Code) int { return strings.Compare(a.ID, b.ID) })
	return out
}
