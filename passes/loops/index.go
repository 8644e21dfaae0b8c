package loops

import (
	"fmt"
	"strings"

	"amkc/ir"
)

// An indexing is how the iterations of a loop are counted. Where the stages belong to layers and advance by a constant
// number of them, the loop counts layers; other loops count their calls from 0.
type indexing struct {
	layers      bool
	first, step int
}

func (x indexing) at(k int) int { return x.first + k*x.step }

// number chooses the indexing of a run and returns how many of its calls keep to it, from the first on.
func (r *run) number() int {
	r.index = indexing{first: 0, step: 1}
	first, step := -1, 0
	for j, st := range r.body() {
		layer, known := st.Layer.At(0)
		if !known {
			return r.count
		}
		if first < 0 || layer < first {
			first = layer
		}
		if r.count == 1 {
			step = 1
			continue
		}
		next := r.calls[1][j]
		layer2, known := next.Layer.At(0)
		if !known || next.Role != st.Role || layer2 <= layer || j > 0 && layer2-layer != step {
			return r.count
		}
		step = layer2 - layer
	}
	r.index = indexing{true, first, step}
	for k, call := range r.calls {
		for j, st := range call {
			of := r.body()[j]
			if layer, known := st.Layer.At(0); !known || st.Role != of.Role || layer != of.Layer.N+k*step {
				return k
			}
		}
	}
	return r.count
}

// rotation returns the rotation of a stage of the body, such that iteration by iteration it is that of the calls.
// There may be none, because a rotation advances with the index, and an index that advances by two gives no odd steps
// on an even number of SMs.
func (r *run) rotation(j int) (rot, step int, ok bool) {
	d := &r.body()[j].Dist
	if d.SMs < 1 {
		return d.Rot, d.Step, true
	}
	if r.count > 1 {
		if step, ok = divide(mod(r.calls[1][j].Dist.Rot-d.Rot, d.SMs), r.index.step, d.SMs); !ok {
			return 0, 0, false
		}
	}
	return mod(d.Rot-step*r.index.first, d.SMs), step, true
}

// turns reports whether every stage of the body has a rotation.
func (r *run) turns() bool {
	for j := range r.body() {
		if _, _, ok := r.rotation(j); !ok {
			return false
		}
	}
	return true
}

// divide returns the least x with x*d = n modulo m.
func divide(n, d, m int) (x int, ok bool) {
	if d%m == 1 {
		return n, true
	}
	for x := range m {
		if mod(x*d-n, m) == 0 {
			return x, true
		}
	}
	return 0, false
}

// indexed is the name that stands for `prefix<index+offset>suffix` in a loop.
func indexed(prefix string, offset int, suffix string) string {
	if offset == 0 {
		return prefix + "{i}" + suffix
	}
	return fmt.Sprintf("%s{i%+d}%s", prefix, offset, suffix)
}

// splitName takes the name of a buffer or a counter apart into the layer that it carries, -1 for none, and the rest.
// Families are named after them, and nothing else is.
func splitName(name string) (layer int, rest string) {
	l, rest := ir.InLayer(name)
	if !l.Known || l.Index {
		return -1, name
	}
	return l.N, rest
}

// stem is what a new family of names is called after: the first of them, without the layer and without the number
// that it ends in.
func stem(name string) string {
	_, role := splitName(name)
	if cut := strings.TrimRight(role, "0123456789"); cut != "" {
		return cut
	}
	return role
}

// resolved is a family's name with an index in it. The name is one that this pass has made.
func resolved(name string, i int) string {
	full, err := ir.Resolve(name, i)
	if err != nil {
		return name // an index below zero, which no family here has
	}
	return full
}
