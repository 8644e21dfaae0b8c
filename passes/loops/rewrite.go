package loops

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// coalesce gives the buffers of chains that are updated in place one name, and keeps the first of them.
func (r *roller) coalesce() {
	var variants [][]*ir.Stage
	for i := range r.variants {
		variants = append(variants, r.variants[i].stages)
	}
	names := inPlace(r.p, variants, r.taken)
	r.keepWhole(names)
	for _, stages := range variants {
		rename(stages, func(name string) string {
			if to, ok := names[name]; ok {
				return to
			}
			return name
		})
	}
	kept := map[string]bool{}
	r.p.Buffers = slices.DeleteFunc(r.p.Buffers, func(b ir.Buffer) bool {
		to, ok := names[b.Name]
		gone := ok && kept[to]
		kept[to] = kept[to] || ok
		return gone
	})
	for i := range r.p.Buffers {
		b := &r.p.Buffers[i]
		if to, ok := names[b.Name]; ok {
			delete(r.taken, b.Name)
			b.Name = to
			r.taken[to] = true
		}
	}
}

// keepWhole leaves those chains as they are that a run hands on from call to call in part alone, from or to a buffer
// that is not in the chain: as one buffer they would be no operand of every call.
func (r *roller) keepWhole(names map[string]string) {
	broken := map[string]bool{}
	for i := range r.variants {
		for _, run := range r.variants[i].runs {
			for _, p := range run.params {
				first := names[p.args[0]]
				if p.usage.has(UsedLocal) && slices.ContainsFunc(p.args,
					func(a string) bool { return names[a] != first }) {
					for _, a := range p.args {
						broken[names[a]] = true
					}
				}
			}
		}
	}
	maps.DeleteFunc(names, func(_, to string) bool { return broken[to] })
}

// rename changes the names of buffers in stages.
func rename(stages []*ir.Stage, to func(string) string) {
	for _, pl := range places(stages) {
		o := pl.in(stages)
		o.Buf = to(o.Buf)
	}
}

// rewrite makes the runs loops, and what they name families and groups.
func (r *roller) rewrite() {
	n := newNamer()
	for i := range r.variants {
		g := &r.variants[i]
		counters := newNamer()
		for _, run := range g.runs {
			run.findParams()
			run.nameBuffers(n)
			run.nameCounters(counters)
		}
		taken := map[string]bool{}
		for name := range g.counterAt {
			taken[name] = true
		}
		g.counters = counters.families(func(*series) bool { return true }, taken)
	}
	buffers := rewrite.NewBuffers(r.p)
	r.buffers = n.families(func(s *series) bool { _, ok := bufferFamily(s, buffers); return ok }, r.taken)
	for i := range r.variants {
		r.variants[i].rewrite(r)
	}
	r.rollBuffers(buffers)
	for i := range r.variants {
		r.variants[i].rollCounters()
	}
}

func (r *run) nameBuffers(n *namer) {
	for _, p := range r.params {
		if !p.constant() {
			n.args(p.args, r.index)
		}
	}
}

func (r *run) nameCounters(n *namer) {
	r.turningCounters(func(args []string) { n.args(args, r.index) })
}

// rewrite replaces the runs of a variant by loops, and renames what has another name now.
func (g *rolling) rewrite(r *roller) {
	inRun := map[*ir.Stage]bool{}
	taken := map[string]bool{}
	for _, run := range g.runs {
		for _, call := range run.calls {
			for _, st := range call {
				inRun[st] = true
			}
		}
	}
	for _, st := range g.stages {
		if !inRun[st] {
			taken[st.Name] = true
		}
	}
	loops := map[string]int{}
	var body []ir.Node
	at := 0
	flat := func(stages []*ir.Stage) {
		for _, st := range stages {
			rename([]*ir.Stage{st}, r.buffers.now)
			for w := range st.Waits {
				st.Waits[w].Counter = g.counters.now(st.Waits[w].Counter)
			}
			st.Signal = g.counters.now(st.Signal)
			body = append(body, st)
		}
	}
	for _, run := range g.runs {
		flat(g.stages[at:run.start])
		flat(run.before)
		body = append(body, g.loop(r, run, taken, loops))
		flat(run.after)
		at = run.end()
	}
	flat(g.stages[at:])
	g.v.Body = body
}

// loop makes a run a loop. taken holds the names of stages, loops how often each name of a loop was given.
func (g *rolling) loop(r *roller, run *run, taken map[string]bool, loops map[string]int) *ir.Loop {
	l := &ir.Loop{Name: "calls", First: run.index.first, Count: run.count, Step: run.index.step}
	if run.index.layers {
		l.Name = "layers"
	}
	if n := loops[l.Name]; n > 0 {
		loops[l.Name]++
		l.Name = fmt.Sprintf("%s.%d", l.Name, n)
	} else {
		loops[l.Name] = 1
	}
	if l.Step == 1 {
		l.Step = 0
	}
	indices := make([]int, run.count)
	for k := range indices {
		indices[k] = run.index.at(k)
	}
	for j, st := range run.body() {
		st = rewrite.CloneStage(st)
		st.Role, st.Layer = run.role(j)
		if rest, ok := run.inLayers(j); ok {
			st.Name = ir.NameIn(st.Layer, rest)
		} else {
			own := run.each(func(call []*ir.Stage) string { return call[j].Name })
			st.Name = fresh(stem(st.Name), own, indices, taken)
		}
		st.Dist.Rot, st.Dist.Step, _ = run.rotation(j)
		for w := range st.Waits {
			st.Waits[w].Counter = g.counterRef(run,
				run.each(func(call []*ir.Stage) string { return call[j].Waits[w].Counter }))
		}
		st.Signal = g.counterRef(run, run.each(func(call []*ir.Stage) string { return call[j].Signal }))
		l.Body = append(l.Body, st)
	}
	for i, pl := range places(run.body()) {
		pl.in(l.Body).Buf = r.ref(run, run.of[i])
	}
	return l
}

// role returns the role and the layer of a stage of the body: what it has in all calls.
func (r *run) role(j int) (string, ir.Layer) {
	role, layer := r.body()[j].Role, r.body()[j].Layer
	for _, call := range r.calls {
		if call[j].Role != role {
			role = ""
		}
		if call[j].Layer != layer && !r.index.layers {
			layer = ir.Layer{}
		}
	}
	if r.index.layers {
		layer = ir.Layer{Known: true, Index: true, N: layer.N - r.index.first}
	}
	return role, layer
}

// inLayers returns what a stage of the body is called in its layer, if it is called the same in all calls.
func (r *run) inLayers(j int) (name string, ok bool) {
	_, name = ir.InLayer(r.body()[j].Name)
	differs := func(call []*ir.Stage) bool { return call[j].Name != ir.NameIn(call[j].Layer, name) }
	return name, r.index.layers && !slices.ContainsFunc(r.calls, differs)
}

// counterRef is what the body calls the counters that the calls name one after another.
func (g *rolling) counterRef(run *run, args []string) string {
	if p := (&param{args: args}); p.constant() {
		return g.counters.now(args[0])
	}
	return g.counters.relative(args[0], run.index.first)
}

// ref is what the body calls a parameter: a name that stands for every call, a member of a family, or one of a ragged
// group.
func (r *roller) ref(run *run, p *param) string {
	switch {
	case p.constant():
		return r.buffers.now(p.args[0])
	case r.buffers.family[p.args[0]] != nil:
		return r.buffers.relative(p.args[0], run.index.first)
	}
	g := ir.Group{First: run.index.first, Step: run.index.step}
	var at []int
	for k, a := range p.args {
		g.Members = append(g.Members, r.buffers.now(a))
		at = append(at, run.index.at(k))
	}
	if g.Step == 1 {
		g.Step = 0
	}
	key := fmt.Sprint(g.First, g.Step, strings.Join(g.Members, "\x00"))
	if r.groups[key] == "" {
		g.Name = fresh(stem(p.args[0]), nil, at, r.taken)
		r.groups[key] = g.Name
		r.p.Groups = append(r.p.Groups, g)
	}
	return r.groups[key]
}

// rollBuffers puts each family instead of its first member.
func (r *roller) rollBuffers(buffers rewrite.Buffers) {
	var out []ir.Buffer
	done := map[*series]bool{}
	for _, b := range r.p.Buffers {
		s := r.buffers.family[b.Name]
		if s == nil {
			out = append(out, b)
			continue
		}
		if !done[s] {
			done[s] = true
			f, _ := bufferFamily(s, buffers)
			out = append(out, f)
		}
	}
	r.p.Buffers = out
}

// rollCounters does the same for counters.
func (g *rolling) rollCounters() {
	var out []ir.Counter
	done := map[*series]bool{}
	for _, c := range g.v.Counters {
		s := g.counters.family[c.Name]
		if s == nil {
			out = append(out, c)
			continue
		}
		if !done[s] {
			done[s] = true
			c.Name, c.First, c.Count = s.name, s.at[0], len(s.at)
			if c.Step = s.step(); c.Step == 1 {
				c.Step = 0
			}
			out = append(out, c)
		}
	}
	g.v.Counters = out
}
