package names

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// A naming gives an entity another name: it is the n-th of those that may swap theirs, whose names are all.
type naming func(n int, sort string, family bool, all []string) string

// invented names follow no convention.
func invented(n int, sort string, family bool, _ []string) string {
	if family {
		return fmt.Sprintf("%s%dof{i}", sort, n)
	}
	return fmt.Sprintf("%s%dz", sort, n)
}

// swapped gives each entity the name of the next one, so that code that goes by names finds the wrong entity.
func swapped(n int, _ string, _ bool, all []string) string { return all[(n+1)%len(all)] }

// A sort is the names of the buffers, the counters or the stages of a program, those of all variants together: what two
// variants call alike is called alike afterwards.
type sort struct {
	what  string
	alike map[string][]string // names that may be swapped, by what they have in common
	now   map[string]string
}

// add notes a name, and what entities have in common that may swap theirs with it.
func (s *sort) add(name, common string) {
	if s.alike == nil {
		s.alike = map[string][]string{}
	}
	if !slices.Contains(s.alike[common], name) {
		s.alike[common] = append(s.alike[common], name)
	}
}

// rename chooses the new names.
func (s *sort) rename(to naming) {
	s.now = map[string]string{}
	for common, names := range s.alike {
		for n, name := range names {
			s.now[name] = to(n, s.what+strings.ReplaceAll(common, " ", "_")+"_", ir.IsFamily(name), names)
		}
	}
}

// renamed is a program with other names for every buffer, counter, stage and loop. The program has no groups.
func renamed(t *testing.T, p *ir.Program, to naming) *ir.Program {
	t.Helper()
	text, err := p.MarshalJSON()
	require.NoError(t, err)
	q, diags := ir.ParseJSON(text, "program.json")
	require.NoError(t, diags.Err())
	require.Empty(t, q.Groups)
	buffers, counters, stages := sort{what: "buffer"}, sort{what: "counter"}, sort{what: "stage"}
	for _, b := range p.Buffers {
		buffers.add(b.Name, fmt.Sprint(b.First, b.Count, b.Step))
	}
	for i := range p.Variants {
		for _, c := range p.Variants[i].Counters {
			counters.add(c.Name, fmt.Sprint(c.First, c.Count, c.Step))
		}
		eachStage(&p.Variants[i], func(s *ir.Stage, l *ir.Loop) { stages.add(s.Name, fmt.Sprint(l == nil)) })
	}
	buffers.rename(to)
	counters.rename(to)
	stages.rename(to)
	directory := ir.BufferDirectory(p)
	for i := range q.Buffers {
		q.Buffers[i].Name = buffers.now[q.Buffers[i].Name]
	}
	for i := range q.Variants {
		v, counted := &q.Variants[i], ir.CounterDirectory(&p.Variants[i])
		for k := range v.Counters {
			v.Counters[k].Name = counters.now[v.Counters[k].Name]
		}
		eachStage(v, func(s *ir.Stage, l *ir.Loop) {
			counter := func(name string) string {
				return use(t, counted, name, l, func(m ir.Member) (string, int) {
					c := &p.Variants[i].Counters[m.Declared]
					return counters.now[c.Name], c.Index(m.K)
				})
			}
			if s.Name = stages.now[s.Name]; s.Signal != "" {
				s.Signal = counter(s.Signal)
			}
			for k := range s.Waits {
				s.Waits[k].Counter = counter(s.Waits[k].Counter)
			}
			for _, op := range s.Ops {
				for _, o := range slices.Concat(pointers(op.Out), pointers(op.In)) {
					if !o.IsTemp() {
						o.Buf = use(t, directory, o.Buf, l, func(m ir.Member) (string, int) {
							b := &p.Buffers[m.Declared]
							return buffers.now[b.Name], b.Index(m.K)
						})
					}
				}
			}
			if l != nil {
				l.Name = "again"
			}
		})
	}
	return q
}

func pointers(ops []ir.Operand) []*ir.Operand {
	out := make([]*ir.Operand, len(ops))
	for k := range ops {
		out[k] = &ops[k]
	}
	return out
}

// use is what a stage in a loop, or in none, calls something that it called by the given name: find says what that is
// called now, and its index.
func use(t *testing.T, d *ir.Directory, name string, l *ir.Loop, find func(ir.Member) (string, int)) string {
	first := 0
	if l != nil {
		first = l.First
	}
	m, err := d.At(name, first)
	require.NoError(t, err)
	now, index := find(m)
	switch offset := index - first; {
	case !ir.IsFamily(now):
		return now
	case !ir.IsFamily(name):
		now, err = ir.Resolve(now, index)
		require.NoError(t, err)
		return now
	case offset == 0:
		return now
	default:
		return strings.Replace(now, "{i}", fmt.Sprintf("{i%+d}", offset), 1)
	}
}

func eachStage(v *ir.Variant, f func(s *ir.Stage, l *ir.Loop)) {
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			f(n, nil)
		case *ir.Loop:
			for _, s := range n.Body {
				f(s, n)
			}
		}
	}
}
