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
	names := ir.NamesOf(p)
	buffers, counters, stages := sort{what: "buffer"}, sort{what: "counter"}, sort{what: "stage"}
	runs := map[string]string{} // a family of several sizes is declared in runs, which have one name
	for _, b := range p.Buffers {
		runs[b.Name] += fmt.Sprint(b.First, b.Count, b.Step) + " "
	}
	for _, b := range p.Buffers {
		buffers.add(b.Name, runs[b.Name])
	}
	for i := range p.Variants {
		for _, c := range p.Variants[i].Counters {
			counters.add(c.Name, fmt.Sprint(c.First, c.Count, c.Step))
		}
		p.Variants[i].Each(func(s *ir.Stage, l *ir.Loop) { stages.add(s.Name, fmt.Sprint(l == nil)) })
	}
	for s, lists := range map[*sort][][]string{&buffers: {names.Buffers},
		&counters: each(names, func(v ir.VariantNames) []string { return v.Counters }),
		&stages:   each(names, func(v ir.VariantNames) []string { return v.Stages })} {
		s.rename(to)
		for _, list := range lists {
			for k := range list {
				list[k] = s.now[list[k]]
			}
		}
	}
	for _, list := range each(names, func(v ir.VariantNames) []string { return v.Loops }) {
		for k := range list {
			list[k] = fmt.Sprintf("again%d", k)
		}
	}
	q, err := ir.Rename(p, names)
	require.NoError(t, err)
	return q
}

func each(n ir.Names, of func(ir.VariantNames) []string) (out [][]string) {
	for _, v := range n.Variants {
		out = append(out, of(v))
	}
	return out
}
