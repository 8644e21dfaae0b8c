package ir

import (
	"fmt"

	"amkc/ir/diag"
)

// A Directory resolves names: it has every member of a program's declarations, and buffers also by their names in
// groups. It is the only place that resolves families and groups.
//
// Members are numbered in the order of their declarations, family by family. The unrolled form has them in the same
// order, so that a member's number is its index there.
type Directory struct {
	what         string // that it holds, for messages
	declarations int    // so far
	members      []Member
	numbers      map[string]int // by resolved name
}

// A Member is what one name stands for once {i} is replaced: a plain buffer or counter, or a member of a family.
type Member struct {
	Name     string // its own, resolved, whichever name it was found by
	Number   int    // among all members
	Declared int    // index into Program.Buffers or Variant.Counters
	K        int    // which member of the family, from 0
}

// BufferDirectory lists the buffers of a program, except those that Check refuses.
func BufferDirectory(p *Program) *Directory {
	d := bufferDirectory(p)
	for n := range p.Buffers {
		d.Add(&p.Buffers[n])
	}
	d.groups(p.Buffers, p.Groups, ignore)
	return d
}

// CounterDirectory lists the counters of a variant, except those that Check refuses.
func CounterDirectory(v *Variant) *Directory {
	d := counterDirectory(v)
	for n := range v.Counters {
		d.AddCounter(&v.Counters[n])
	}
	return d
}

// bufferDirectory and counterDirectory have room for what is to be declared.
func bufferDirectory(p *Program) *Directory {
	n := len(p.Groups)
	for i := range p.Buffers {
		n = satAdd(n, max(1, p.Buffers[i].Count))
	}
	return newDirectory("buffer", n)
}

func counterDirectory(v *Variant) *Directory {
	n := 0
	for i := range v.Counters {
		n = satAdd(n, max(1, v.Counters[i].Count))
	}
	return newDirectory("counter", n)
}

// newDirectory makes one for n members, a number that a file chooses.
func newDirectory(what string, members int) *Directory {
	members = min(members, 1<<12)
	return &Directory{what: what, members: make([]Member, 0, members), numbers: make(map[string]int, members)}
}

// Add appends a buffer, which the program has after those in the directory.
func (d *Directory) Add(b *Buffer) { d.declare(b.indices(), ignore, nil) }

// AddCounter appends a counter, which the variant has after those in the directory.
func (d *Directory) AddCounter(c *Counter) { d.declare(c.indices(), ignore, nil) }

// Members returns all members by their numbers. Callers do not change them.
func (d *Directory) Members() []Member { return d.members }

// At returns what a name stands for in the iteration of index i.
func (d *Directory) At(name string, i int) (Member, error) {
	full, err := Resolve(name, i)
	if err != nil {
		return Member{}, err
	}
	if n, ok := d.numbers[full]; ok {
		return d.members[n], nil
	}
	return Member{}, fmt.Errorf("%s %s is not defined", d.what, full)
}

// Find is At for names that need not exist.
func (d *Directory) Find(name string, i int) (Member, bool) {
	full, err := Resolve(name, i)
	if err != nil {
		return Member{}, false
	}
	n, ok := d.numbers[full]
	if !ok {
		return Member{}, false
	}
	return d.members[n], true
}

// In returns what a name stands for in a loop: one member for each iteration, or a single one for a name without an
// index or outside of loops, where l is nil.
func (d *Directory) In(name string, l *Loop) ([]Member, error) {
	n := 1
	if l != nil && IsFamily(name) {
		n = l.Count
	}
	out := make([]Member, 0, n)
	for k := range n {
		i := 0
		if l != nil {
			i = l.Index(k)
		}
		m, err := d.At(name, i)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// A refusal takes what is wrong with a declaration, and says whether to look for more.
type refusal func(code *diag.Code, pos, format string, args ...any) (more bool)

func ignore(*diag.Code, string, string, ...any) bool { return true }

// indices are the name of a declaration and the indices that stand for {i} in it.
type indices struct {
	name               string
	first, count, step int
}

func (b *Buffer) indices() indices  { return indices{b.Name, b.First, b.Count, b.Step} }
func (c *Counter) indices() indices { return indices{c.Name, c.First, c.Count, c.Step} }

// declare lists the members of the next declaration, and calls each, if given, for all that are new.
func (d *Directory) declare(of indices, refuse refusal, each func(Member)) {
	declared := d.declarations
	d.declarations++
	add := func(name string, k int) bool {
		if _, taken := d.numbers[name]; taken {
			return refuse(CodeName, d.what+" "+name, "is defined twice")
		}
		m := Member{Name: name, Number: len(d.members), Declared: declared, K: k}
		d.numbers[name] = m.Number
		d.members = append(d.members, m)
		if each != nil {
			each(m)
		}
		return true
	}
	switch pos := d.what + " " + of.name; {
	case IsFamily(of.name) && of.count < 1:
		refuse(CodeSize, pos, "family of %d members, want 1 or more", of.count)
	case IsFamily(of.name):
		of.each(pos, refuse, add)
	case of.count != 0:
		refuse(CodeName, pos, "has a count but no {i} in its name")
	case of.step != 0:
		refuse(CodeName, pos, "has a step but no {i} in its name")
	default:
		add(of.name, 0)
	}
}

// each calls f for each index with the name resolved and the index's number, until f says no.
func (of indices) each(pos string, refuse refusal, f func(name string, k int) bool) {
	if of.step < 0 {
		refuse(CodeShape, pos, "has the step %d, want 1 or more", of.step)
		return
	}
	if last := indexOf(of.first, of.step, of.count-1); last > maxInt {
		refuse(CodeSize, pos, "runs to index %d, want at most 2^53", last)
		return
	}
	for k := range of.count {
		full, err := Resolve(of.name, indexOf(of.first, of.step, k))
		if err != nil {
			refuse(CodeName, pos, "%v", err)
			return
		}
		if !f(full, k) {
			return
		}
	}
}

// groups gives the members of groups the names that these have for them. A member is a buffer, never a name of another
// group: what a name stands for is then found in one place.
func (d *Directory) groups(buffers []Buffer, groups []Group, refuse refusal) {
	for n := range groups {
		g := &groups[n]
		pos := "group " + g.Name
		if !IsFamily(g.Name) {
			refuse(CodeName, pos, "has no {i} in its name")
			continue
		}
		if len(g.Members) == 0 {
			refuse(CodeSize, pos, "has no members, want 1 or more")
			continue
		}
		var first *Member
		indices{g.Name, g.First, len(g.Members), g.Step}.each(pos, refuse, func(name string, k int) bool {
			number, ok := d.numbers[g.Members[k]]
			if !ok || d.members[number].Name != g.Members[k] {
				return refuse(CodeName, pos, "buffer %s is not defined", g.Members[k])
			}
			if _, taken := d.numbers[name]; taken {
				return refuse(CodeName, pos, "%s is defined twice", name)
			}
			d.numbers[name] = number
			m := &d.members[number]
			if first == nil {
				first = m
			}
			x, y := &buffers[first.Declared], &buffers[m.Declared]
			if len(x.Shape) != len(y.Shape) || x.DType != y.DType {
				return refuse(CodeShape, pos, "member %s is %v with %d dimensions, member %s %v with %d: want "+
					"the same of all", first.Name, x.DType, len(x.Shape), m.Name, y.DType, len(y.Shape))
			}
			return true
		})
	}
}
