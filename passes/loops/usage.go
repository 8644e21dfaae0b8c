package loops

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// Usage is how the calls of a run use a parameter: a set of properties. docs/kernel-looping.md has the lattice of these
// sets, and says why some of them are its top.
type Usage uint8

const (
	UsedConst Usage = 1 << iota // one argument in all calls
	UsedIn                      // read
	// chained: written by one call and read by the next, in whole and by nothing else in the run
	UsedLocal
	UsedLive // what a call stores there is read after the run; of a chain its end does not count
	UsedOut  // written
)

var usageNames = []string{"Const", "In", "Local", "Live", "Out"}

func (u Usage) String() string {
	var names []string
	for i, name := range usageNames {
		if u&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func (u Usage) has(all Usage) bool { return u&all == all }

// A context is what the usage of parameters depends on outside the body: the buffers, and where in the variant each
// is read last.
type context struct {
	buffers  rewrite.Buffers
	lastRead map[string]int // stage
}

func newContext(p *ir.Program, stages []*ir.Stage) *context {
	c := &context{buffers: rewrite.NewBuffers(p), lastRead: map[string]int{}}
	for i, st := range stages {
		for _, op := range st.Ops {
			for _, o := range op.In {
				c.lastRead[o.Buf] = i
			}
		}
	}
	return c
}

// liveAfter reports whether what is stored in a buffer is wanted after stage end-1: by a later stage, by the caller,
// or by the next step.
func (c *context) liveAfter(name string, end int) bool {
	if b := c.buffers.Find(name, 0); b != nil && (b.Kind == ir.Output || b.Kind.OfSequences()) {
		return true
	}
	last, read := c.lastRead[name]
	return read && last >= end
}

// touch is that a call names a buffer through a parameter.
type touch struct {
	p    *param
	call int
}

// analyse finds the usage of every parameter of the run. It returns why some set is contradictory, or nothing.
func (r *run) analyse(c *context) string {
	touches := map[string][]touch{}
	for _, p := range r.params {
		for k, a := range p.args {
			touches[a] = append(touches[a], touch{p, k})
		}
	}
	for _, p := range r.params {
		p.usage = 0
		if len(r.calls) > 1 && p.constant() {
			p.usage |= UsedConst
		}
		if len(p.reads) > 0 {
			p.usage |= UsedIn
		}
		if len(p.writes) > 0 {
			p.usage |= UsedOut
		}
	}
	for _, p := range r.params {
		r.chain(p, touches)
	}
	for _, p := range r.params {
		stored := p.args
		if p.usage.has(UsedLocal) {
			stored = stored[:len(stored)-1]
		}
		if len(p.writes) > 0 && slices.ContainsFunc(stored, func(a string) bool { return c.liveAfter(a, r.end()) }) {
			p.usage |= UsedLive
		}
	}
	for _, p := range r.params {
		if why := p.contradiction(touches); why != "" {
			return why
		}
	}
	return ""
}

// chain finds the parameter that writes what this one reads in the next call. The reading half is chained if there is
// one, the writing half if in addition nothing else in the run touches what is published, and all that is read was
// written.
func (r *run) chain(in *param, touches map[string][]touch) {
	n := len(in.args)
	if n < 2 || len(in.reads) == 0 {
		return
	}
	for _, t := range touches[in.args[1]] {
		out := t.p
		if t.call != 0 || len(out.writes) == 0 || out == in || !slices.Equal(out.args[:n-1], in.args[1:]) {
			continue
		}
		in.usage |= UsedLocal
		in.partner = out
		alone := len(out.reads) == 0 && len(in.writes) == 0
		for _, a := range in.args[1:] {
			alone = alone && len(touches[a]) == 2
		}
		if alone && r.covers(out.writes, in.reads) {
			out.usage |= UsedLocal
			out.partner = in
		}
		return
	}
}

// contradiction says why the parameter's set is the top of the lattice, or nothing.
func (p *param) contradiction(touches map[string][]touch) string {
	written := func(t touch) bool { return t.p != p && len(t.p.writes) > 0 }
	switch u := p.usage; {
	case u.has(UsedConst | UsedOut):
		return fmt.Sprintf("%s is written by every call", p.args[0])
	case u.has(UsedConst) && slices.ContainsFunc(touches[p.args[0]], written):
		return fmt.Sprintf("%s is the argument of every call, and one writes it under another name", p.args[0])
	case u.has(UsedIn | UsedLocal | UsedOut):
		return fmt.Sprintf("%s is handed from call to call and changed where it is read", p.args[0])
	case u.has(UsedLocal) && !p.partner.usage.has(UsedLocal):
		return fmt.Sprintf("%s is passed on, but not to one reader in whole", p.args[1])
	}
	return ""
}
