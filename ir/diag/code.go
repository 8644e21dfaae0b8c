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

// New registers a code. It panics when the code is malformed or taken: both are mistakes in amkc's own source, found
// by any test that loads the package.
func New(id, title, doc string) *Code {
	if len(id) != 7 || !strings.HasPrefix(id, "AMK") {
		panic(fmt.Sprintf("diag: malformed code %q", id))
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
