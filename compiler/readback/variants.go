package readback

import (
	"strings"

	"amkc/ir"
)

// A variantList is what schedule.h says of a variant.
type variantList struct {
	name   string
	at     pos
	end    int // position past its last
	stages []*descriptor
}

// variantLists reads the numbers of the stages, and the ends and stages of the variants.
func (b *builder) variantLists() {
	r := &b.schedule
	numbers := map[string]*descriptor{}
	if r.enum.name != "StageNumber" || len(r.enum.names) != len(b.stages) {
		r.fail(r.enum.at, "enumeration %s with %d names; want StageNumber with one for each of the %d descriptors", r.enum.name, len(r.enum.names), len(b.stages))
		return
	}
	for i, d := range b.stages {
		if want := "kStage" + d.scope.name; r.enum.names[i] != want {
			r.fail(r.enum.at, "enumerator %d is %s; want %s, in the order of the descriptors", i, r.enum.names[i], want)
		}
		numbers[r.enum.names[i]] = d
	}
	if len(b.stages) > maxVariants*len(roles) {
		r.fail(r.enum.at, "there are %d descriptors; want at most the %d of %d variants", len(b.stages), maxVariants*len(roles), maxVariants)
		return
	}
	used := map[*descriptor]bool{}
	for _, c := range r.order {
		prefix, isList := strings.CutSuffix(c.name, "Stages")
		if !isList || c.typ != "StageNumber" || !c.array || len(prefix) < 2 {
			continue
		}
		r.taken[c.name] = true
		v := variantList{name: snake(prefix[1:]), at: c.at, end: r.positive(r.scope, prefix+"End")}
		for _, e := range c.value.list {
			d := numbers[e.name]
			if e.kind != name || d == nil {
				r.fail(e.at, "no number of a stage; want an enumerator of StageNumber")
				continue
			}
			used[d] = true
			v.stages = append(v.stages, d)
		}
		if len(v.stages) > len(roles) {
			r.fail(c.at, "%s lists %d stages; want at most the %d that a step is made of", c.name, len(v.stages), len(roles))
			return
		}
		b.variants = append(b.variants, v)
	}
	for _, d := range b.stages {
		if !used[d] {
			r.fail(d.at, "struct %s is in no variant", d.scope.name)
		}
		if d.body == attendBody && d.splits > 1 {
			b.splits = max(b.splits, d.splits)
		}
	}
	if len(b.variants) == 0 || len(b.variants) > maxVariants {
		r.fail(pos{1, 1}, "%d variants; want 1 to %d", len(b.variants), maxVariants)
	}
}

// maxVariants is kMaxVariants of info.cuh.
const maxVariants = 8

// variant rebuilds a variant: its stages in order, those of the layers in a loop, and the counters that they signal.
func (b *builder) variant(l *variantList) {
	lo := 0
	if n := len(b.p.Variants); n > 0 {
		lo = b.p.Variants[n-1].Hi + 1
	}
	v := ir.Variant{Name: l.name, Lo: lo, Hi: l.end - 1}
	threshold := b.thresholds(l)
	var loop *ir.Loop
	for _, d := range l.stages {
		s := b.stage(d, threshold)
		switch {
		case !d.inLayer():
			v.Body = append(v.Body, s...)
		case loop == nil:
			loop = &ir.Loop{Name: "layers", Count: b.facts.layers}
			v.Body = append(v.Body, loop)
			fallthrough
		default:
			if v.Body[len(v.Body)-1] != ir.Node(loop) {
				b.schedule.fail(l.at, "%s comes after a stage that is in no layer; want the stages of a layer side by side", d.scope.name)
			}
			loop.Body = append(loop.Body, s[0].(*ir.Stage))
		}
	}
	v.Counters = b.counters(l)
	b.p.Variants = append(b.p.Variants, v)
}

// thresholds returns how many tasks hand each vector over, by the constants that the kernel counts with.
func (b *builder) thresholds(l *variantList) map[string]int {
	tasks := map[string]int{}
	for _, d := range l.stages {
		vector := strings.Replace(d.out, "{i+1}", "{i}", 1)
		if before, seen := tasks[vector]; seen && before != d.tasks {
			b.schedule.wrong(d.scope, "kTasks", "%d, and another stage hands %s over in %d tasks; want the same, for its readers wait for one number", d.tasks, vector, before)
		}
		tasks[vector] = d.tasks
	}
	return tasks
}

// counters lists the counters of a variant in the order of their first signal. The words of best are flagged whatever kFlagged
// says; what ends the step is always counted.
func (b *builder) counters(l *variantList) []ir.Counter {
	how := ir.ByCounter
	if b.flagged {
		how = ir.Flagged
	}
	var out []ir.Counter
	seen := map[string]bool{}
	for _, d := range l.stages {
		c := ir.Counter{Name: strings.Replace(d.out, "{i+1}", "{i}", 1), Count: b.facts.layers, How: how}
		switch c.Name {
		case "L{i}.x":
			c.Count++
		case "best":
			c.Count, c.How = 0, ir.Flagged
		}
		if !seen[c.Name] {
			seen[c.Name] = true
			out = append(out, c)
		}
	}
	return append(out, ir.Counter{Name: stepCounter, How: ir.ByCounter})
}

const stepCounter = "step"
