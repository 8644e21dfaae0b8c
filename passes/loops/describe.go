package loops

import (
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// A Use is how the iterations of a loop use a buffer or counter.
type Use struct {
	Variant string
	Loop    *ir.Loop
	Params  []ParamUse
}

// A ParamUse is a parameter of a loop's body.
type ParamUse struct {
	Name  string // as the body has it
	Usage Usage
	Place string // where its arguments are
}

// Describe finds the parameters of every loop of a well-formed program and how they are used. A buffer that
// every iteration reads and then updates in place stands for a chain, and is described as one.
func Describe(p *ir.Program) ([]Use, error) {
	var out []Use
	for i := range p.Variants {
		v := &p.Variants[i]
		flat, diags := ir.UnrollRanks(p, v, 1)
		if err := diags.Err(); err != nil {
			return nil, err
		}
		d := &describer{p: p, buffers: ir.BufferDirectory(p), groups: map[string]bool{}}
		for k := range p.Groups {
			d.groups[p.Groups[k].Name] = true
		}
		windows := d.unroll(v)
		c := newContext(&ir.Program{Buffers: flat.Buffers}, d.stages)
		for n, w := range windows {
			out = append(out, Use{v.Name, d.loops[n], d.describe(c, d.loops[n], w)})
		}
	}
	return out, nil
}

// A describer holds the stages of a variant one by one, with the names that the indices give.
type describer struct {
	p       *ir.Program
	buffers *ir.Directory
	groups  map[string]bool
	stages  []*ir.Stage
	loops   []*ir.Loop
}

func (d *describer) unroll(v *ir.Variant) []window {
	var windows []window
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			d.stage(n, 0)
		case *ir.Loop:
			windows = append(windows, window{len(d.stages), len(n.Body), n.Count})
			d.loops = append(d.loops, n)
			for k := range n.Count {
				for _, st := range n.Body {
					d.stage(st, n.Index(k))
				}
			}
		}
	}
	return windows
}

func (d *describer) stage(st *ir.Stage, i int) {
	one := []*ir.Stage{rewrite.CloneStage(st)}
	rename(one, func(name string) string {
		m, _ := d.buffers.At(name, i) // there is one: the program has been unrolled
		return m.Name
	})
	d.stages = append(d.stages, one[0])
}

func (d *describer) describe(c *context, l *ir.Loop, w window) []ParamUse {
	r := newRun(d.stages, w)
	r.analyse(c) // a loop that stands may use what the pass would not have rolled
	names := map[*param]string{}
	for k, pl := range places(l.Body) {
		if names[r.of[k]] == "" {
			names[r.of[k]] = pl.in(l.Body).Buf
		}
	}
	for _, p := range r.params {
		if p.partner != nil { // what a call stores besides, it reads itself
			p.partner.usage |= UsedLocal
		}
	}
	var out []ParamUse
	for _, p := range r.params {
		use := ParamUse{Name: names[p], Usage: p.usage}
		use.Place = d.place(c, &use, p)
		out = append(out, use)
	}
	return out
}

// place says where the arguments of a parameter are.
func (d *describer) place(c *context, use *ParamUse, p *param) string {
	b := c.buffers.Find(p.args[0], 0)
	var pages []string
	if m, ok := d.buffers.Find(p.args[0], 0); ok && d.p.Buffers[m.Declared].Count > 0 {
		pages = d.p.Buffers[m.Declared].Pages
	}
	switch {
	case !ir.IsFamily(use.Name) && p.usage.has(UsedIn|UsedOut) && b != nil && b.Kind == ir.Activation:
		use.Usage = UsedIn | UsedLocal | UsedOut | p.usage&UsedLive
		return "carried in place, " + b.Space.String()
	case !ir.IsFamily(use.Name):
		return "const"
	case d.groups[use.Name]:
		return "ragged group"
	case len(pages) == 0:
		return "strided"
	case len(pages) == 1:
		return "one page, " + pages[0]
	case len(pages) == 2:
		return "two alternating pages, " + strings.Join(pages, " ")
	}
	return fmt.Sprintf("%d alternating pages", len(pages))
}
