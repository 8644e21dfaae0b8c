package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Names are other names for what a program declares: of each buffer, and of the counters, stages and loops of each
// variant, in their order.
type Names struct {
	Buffers  []string
	Variants []VariantNames
}

// VariantNames are the names of a variant. Stages are numbered through its body, including those in loops.
type VariantNames struct {
	Counters, Stages, Loops []string
}

// NamesOf returns the names of a program.
func NamesOf(p *Program) Names {
	var n Names
	for i := range p.Buffers {
		n.Buffers = append(n.Buffers, p.Buffers[i].Name)
	}
	for i := range p.Variants {
		var v VariantNames
		for _, c := range p.Variants[i].Counters {
			v.Counters = append(v.Counters, c.Name)
		}
		p.Variants[i].Each(func(s *Stage, l *Loop) {
			v.Stages = append(v.Stages, s.Name)
		})
		for _, node := range p.Variants[i].Body {
			if l, ok := node.(*Loop); ok {
				v.Loops = append(v.Loops, l.Name)
			}
		}
		n.Variants = append(n.Variants, v)
	}
	return n
}

// Each calls f for every stage of the body, with the loop that it is in; nil for none.
func (v *Variant) Each(f func(s *Stage, l *Loop)) {
	for _, n := range v.Body {
		switch n := n.(type) {
		case *Stage:
			f(n, nil)
		case *Loop:
			for _, s := range n.Body {
				f(s, n)
			}
		}
	}
}

// Rename returns the program with other names and the same meaning. The program must not have groups, whose members
// need not be of one family. A plain name must stay plain, and that of a family must stay one of a family.
func Rename(p *Program, to Names) (*Program, error) {
	if len(p.Groups) > 0 {
		return nil, fmt.Errorf("the program has the group %s, want none: members of groups have names of their own",
			clip(p.Groups[0].Name))
	}
	q := *p
	q.Buffers = slices.Clone(p.Buffers)
	for i := range q.Buffers {
		if err := q.Buffers[i].rename(to.Buffers[i]); err != nil {
			return nil, err
		}
	}
	buffers := renaming{BufferDirectory(p), func(m Member) (string, int) {
		return q.Buffers[m.Declared].Name, q.Buffers[m.Declared].Index(m.K)
	}}
	q.Variants = slices.Clone(p.Variants)
	for i := range q.Variants {
		v, names := &q.Variants[i], to.Variants[i]
		v.Counters = slices.Clone(v.Counters)
		for k := range v.Counters {
			if IsFamily(v.Counters[k].Name) != IsFamily(names.Counters[k]) {
				return nil, unlike(v.Counters[k].Name, names.Counters[k])
			}
			v.Counters[k].Name = names.Counters[k]
		}
		counters := renaming{CounterDirectory(&p.Variants[i]), func(m Member) (string, int) {
			return v.Counters[m.Declared].Name, v.Counters[m.Declared].Index(m.K)
		}}
		v.Body = slices.Clone(v.Body)
		for k, n := range v.Body {
			var err error
			switch n := n.(type) {
			case *Stage:
				v.Body[k], err = n.renamed(names.Stages[0], nil, buffers, counters)
				names.Stages = names.Stages[1:]
			case *Loop:
				l := *n
				l.Name, names.Loops = names.Loops[0], names.Loops[1:]
				l.Body = slices.Clone(l.Body)
				for j, s := range l.Body {
					if l.Body[j], err = s.renamed(names.Stages[0], n, buffers, counters); err != nil {
						break
					}
					names.Stages = names.Stages[1:]
				}
				v.Body[k] = &l
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return &q, nil
}

func (b *Buffer) rename(to string) error {
	if IsFamily(b.Name) != IsFamily(to) {
		return unlike(b.Name, to)
	}
	b.Name = to
	return nil
}

func unlike(name, to string) error {
	return fmt.Errorf("%s cannot be called %s: want a family for a family", clip(name), clip(to))
}

// A renaming finds what a name stands for, and what that is called now, with its index.
type renaming struct {
	names *Directory
	now   func(Member) (name string, index int)
}

// of is what a stage calls now what it called by a name, by the first iteration of its loop that it runs in.
func (r renaming) of(name string, first int) (string, error) {
	m, err := r.names.At(name, first)
	if err != nil {
		return "", err
	}
	now, index := r.now(m)
	switch offset := index - first; {
	case !IsFamily(now):
		return now, nil
	case !IsFamily(name):
		return Resolve(now, index)
	case offset == 0:
		return now, nil
	default:
		return strings.Replace(now, "{i}", fmt.Sprintf("{i%+d}", offset), 1), nil
	}
}

// renamed is the stage with another name, and other names in all that it does.
func (s *Stage) renamed(name string, l *Loop, buffers, counters renaming) (*Stage, error) {
	t, first := *s, FirstIndex(s, l)
	t.Name = name
	var err error
	if t.Signal != "" {
		if t.Signal, err = counters.of(s.Signal, first); err != nil {
			return nil, err
		}
	}
	t.Waits = slices.Clone(s.Waits)
	for k := range t.Waits {
		if t.Waits[k].Counter, err = counters.of(t.Waits[k].Counter, first); err != nil {
			return nil, err
		}
	}
	t.Ops = slices.Clone(s.Ops)
	for k := range t.Ops {
		o := &t.Ops[k]
		o.Out, o.In = slices.Clone(o.Out), slices.Clone(o.In)
		for _, operands := range [][]Operand{o.Out, o.In} {
			for j := range operands {
				if operands[j].IsTemp() {
					continue
				}
				if operands[j].Buf, err = buffers.of(operands[j].Buf, first); err != nil {
					return nil, err
				}
			}
		}
	}
	return &t, nil
}
