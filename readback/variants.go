package readback

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
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
		r.fail(r.enum.at, "enumeration %s with %d names; want StageNumber with one for each of the %d descriptors",
			r.enum.name, len(r.enum.names), len(b.stages))
		return
	}
	for i, d := range b.stages {
		if want := "kStage" + d.scope.name; r.enum.names[i] != want {
			r.fail(r.enum.at, "enumerator %d is %s; want %s, in the order of the descriptors", i, r.enum.names[i], want)
		}
		numbers[r.enum.names[i]] = d
	}
	if !b.countStages() {
		return
	}
	used := map[*descriptor]bool{}
	for _, c := range r.order {
		prefix, isList := listOf(c)
		if !isList {
			continue
		}
		r.taken[c.name] = true
		v := variantList{name: snake(prefix[1:]), at: c.at, end: b.config.positive(b.config.scope, prefix+"End")}
		for _, e := range c.value.list {
			d := numbers[e.name]
			if e.kind != name || d == nil {
				r.fail(e.at, "no number of a stage; want an enumerator of StageNumber")
				continue
			}
			used[d] = true
			v.stages = append(v.stages, d)
		}
		if most := maxStages * b.times() * b.numKinds(); len(v.stages) > most {
			r.fail(c.at, "%s lists %d stages; want at most the %d that a step is made of", c.name, len(v.stages), most)
			return
		}
		b.variants = append(b.variants, v)
	}
	switch {
	case b.longFrom == 0:
	case len(b.variants) < 2:
		r.wrong(r.scope, longFrom, "%d; want none where there is one variant", b.longFrom)
	default:
		r.same(r.scope, longFrom, b.longFrom, b.variants[0].end, "the end of the first variant")
	}
	for _, d := range b.stages {
		if !used[d] {
			r.fail(d.at, "struct %s is in no variant", d.scope.name)
		}
		if d.body.Streams == kernel.CacheRows && d.Splits > 1 {
			b.facts.Splits = max(b.facts.Splits, d.Splits)
		}
	}
}

// variantEnds names the constants past the last positions of the variants.
func (b *builder) variantEnds() {
	for _, c := range b.schedule.order {
		if prefix, isList := listOf(c); isList {
			b.ends = append(b.ends, prefix+"End")
		}
	}
	if len(b.ends) == 0 || len(b.ends) > maxVariants {
		b.schedule.fail(pos{1, 1}, "%d variants; want 1 to %d", len(b.ends), maxVariants)
	}
}

// listOf reports whether a constant lists the stages of a variant, and returns what it begins with.
func listOf(c *constant) (prefix string, isList bool) {
	prefix, isList = strings.CutSuffix(c.name, "Stages")
	return prefix, isList && c.typ == "StageNumber" && c.array && len(prefix) >= 2
}

// countStages bounds the descriptors and their tasks, and says whether the layers are in a loop or have descriptors
// of their own.
func (b *builder) countStages() bool {
	r := &b.schedule
	tasks, single, looped := 0, (*descriptor)(nil), (*descriptor)(nil)
	for _, d := range b.stages {
		dist := b.dist(d)
		tasks += dist.NumTasks()
		switch {
		case !d.inLayer():
		case d.single:
			single = d
			if d.layer >= b.facts.layers {
				r.fail(d.at, "struct %s is of layer %d; want at most %d, as kLayers is %d", d.scope.name, d.layer,
					b.facts.layers-1, b.facts.layers)
			}
		default:
			looped = d
		}
	}
	b.unrolled = single != nil
	most := maxVariants * maxStages * b.numKinds()
	if b.unrolled {
		most = maxDescriptors
	}
	switch {
	case len(b.stages) > most:
		r.fail(r.enum.at, "there are %d descriptors; want at most %d", len(b.stages), most)
	case tasks > ir.MaxTasks:
		r.fail(r.enum.at, "the descriptors have up to %d tasks; want at most %d", tasks, ir.MaxTasks)
	case b.unrolled && b.facts.layers > len(b.stages):
		r.wrong(b.config.scope, "kLayers", "%d, and there are %d descriptors; want one for each stage of a layer",
			b.facts.layers, len(b.stages))
		r.fail(r.enum.at, "there are %d descriptors for %d layers", len(b.stages), b.facts.layers)
	case single != nil && looped != nil:
		r.fail(single.at, "struct %s is of one layer, and struct %s of all; want the layers in a loop or each "+
			"separately", single.scope.name, looped.scope.name)
	default:
		return b.diags.Err() == nil
	}
	return false
}

// otherLoops refuses a kernel whose loops are not rebuilt.
func (b *builder) otherLoops() {
	if c := b.schedule.byName["kLoops"]; c != nil {
		b.diags.Add(diag.Errorf(codeLoops, b.schedule.spell(c.at),
			"the kernel has other loops than one over all layers, one by one; their program is not rebuilt"))
	}
}

// times is how often a step has the stages of a layer, each with a descriptor of its own.
func (b *builder) times() int {
	if b.unrolled {
		return b.facts.layers
	}
	return 1
}

// numKinds is how many kinds the layers are of.
func (b *builder) numKinds() int {
	return max(1, len(slices.Compact(slices.Sorted(slices.Values(b.kinds)))))
}

// maxDescriptors bounds the stages of a schedule whose layers are in no loop, in all variants together.
const maxDescriptors = 1 << 12

// maxStages bounds the stages of a step whose layers are one.
const maxStages = 16

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
	for i, d := range l.stages {
		s := b.stage(d, threshold)
		if b.barriers && l.endsLayer(i) {
			for _, half := range b.barrier(d) {
				s = append(s, half)
			}
		}
		switch {
		case !d.inLayer() || d.single:
			v.Body = append(v.Body, s...)
		case loop == nil:
			loop = &ir.Loop{Name: "layers", Count: b.facts.layers, Kinds: b.kinds}
			v.Body = append(v.Body, loop)
			fallthrough
		default:
			if v.Body[len(v.Body)-1] != ir.Node(loop) {
				b.schedule.fail(l.at, "%s comes after a stage that is in no layer; want the stages of a "+
					"layer side by side", d.scope.name)
			}
			for _, st := range s {
				loop.Body = append(loop.Body, st.(*ir.Stage))
			}
		}
	}
	v.Counters = b.counters(l)
	b.p.Variants = append(b.p.Variants, v)
}

// handed is the counter of the vector that a descriptor's stage publishes: a family, unless the layers are in no loop.
func (b *builder) handed(d *descriptor) string {
	if b.unrolled {
		return b.outside(d, d.Out)
	}
	return strings.Replace(d.Out, "{i+1}", "{i}", 1)
}

// awaited is the counter of a vector that it reads.
func (b *builder) awaited(d *descriptor, vector string) string {
	if b.unrolled {
		return b.outside(d, vector)
	}
	return vector
}

// thresholds returns how many tasks hand each vector over, by the constants that the kernel counts with.
func (b *builder) thresholds(l *variantList) map[published]int {
	tasks := map[published]int{}
	for _, d := range l.stages {
		if !d.handsOver() {
			continue
		}
		vector := b.handed(d)
		for _, kind := range []int{d.kind, 0} { // a stage of all kinds waits for one number too
			before, seen := tasks[published{vector, kind}]
			readByAll := slices.ContainsFunc(l.stages, func(s *descriptor) bool {
				return s.kind == 0 && s.In != "" && slices.ContainsFunc(s.vectorsRead(), func(in string) bool {
					return b.awaited(s, in) == vector
				})
			})
			if seen && before != d.Tasks && (kind == d.kind || readByAll) {
				b.schedule.wrong(d.scope, "kTasks", "%d, and another stage hands %s over in %d tasks; want the same, "+
					"for its readers wait for one number", d.Tasks, vector, before)
			}
			tasks[published{vector, kind}] = d.Tasks
		}
	}
	return tasks
}

// A published vector is one that stages of a kind of layers publish.
type published struct {
	vector string
	kind   int
}

// awaitedTasks is how many tasks of a vector a stage waits for.
func (b *builder) awaitedTasks(d *descriptor, vector string, thresholds map[published]int) int {
	counter := b.awaited(d, vector)
	if n, own := thresholds[published{counter, d.kind}]; own {
		return n
	}
	return thresholds[published{counter, 0}]
}

// counters lists the counters of a variant in the order of their first signal. The words of best are flagged whatever
// kFlagged says; what ends the step is always counted.
func (b *builder) counters(l *variantList) []ir.Counter {
	how := ir.ByCounter
	if b.flagged {
		how = ir.Flagged
	}
	var out []ir.Counter
	seen := map[string]bool{}
	for _, d := range l.stages {
		if !d.handsOver() {
			continue
		}
		c := ir.Counter{Name: b.handed(d), Count: b.facts.layers, How: how, Scope: b.scope(b.handed(d))}
		switch {
		case c.Name == "best":
			c.Count, c.How = 0, ir.Flagged
		case b.unrolled:
			c.Count = 0
		case c.Name == "L{i}.x":
			c.Count++
		}
		if !seen[c.Name] {
			seen[c.Name] = true
			out = append(out, c)
		}
	}
	step := ir.Counter{Name: stepCounter, How: ir.ByCounter}
	if b.facts.NumRanks() > 1 { // a step ends on all of them
		step.Scope = ir.ScopeSystem
	}
	return append(append(out, b.joinCounters()...), step)
}

const stepCounter = "step"
