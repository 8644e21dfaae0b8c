package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"amkc/runtime/host"
)

// What a span is about, by role. Waits are what a role has no control over.
const (
	consumer     = "consumer"
	producer     = "producer"
	exchangeWait = "exchange wait"
	compute      = "compute"
	signal       = "signal"
	slotWait     = "slot wait"
	stepWait     = "step wait"
)

// noLayer is the layer of a stage that a step has once.
const noLayer = -1

// A stageName is a label taken apart: "L03.qkv" is kind qkv of layer 3, "lm_head" is a kind of its own.
type stageName struct {
	kind  string
	layer int
}

func parseStage(name string) stageName {
	if prefix, kind, ok := strings.Cut(name, "."); ok && strings.HasPrefix(prefix, "L") {
		if layer, err := strconv.Atoi(prefix[1:]); err == nil {
			return stageName{kind, layer}
		}
	}
	return stageName{name, noLayer}
}

// hues are the stage kinds that have a colour of their own, the same on every page; others share the last.
var hues = []string{"embed", "qkv", "part", "attn", "o", "gate_up", "down", "lm_head"}

// hue is the class that gives a stage kind its colour.
func hue(kind string) string {
	i := slices.Index(hues, kind)
	if i < 0 {
		i = len(hues)
	}
	return "c" + strconv.Itoa(i)
}

// An index is a profile with its stage names taken apart.
type index struct {
	*host.Profile
	names  map[string]stageName
	kinds  []string // in the order of a layer; those of producers alone at the end
	layers int      // past the last
	begin  float64  // µs; of all spans
	end    float64
}

// indexOf needs a profile with spans.
func indexOf(p *host.Profile) *index {
	ix := &index{Profile: p, names: map[string]stageName{}, begin: math.Inf(1), end: math.Inf(-1)}
	for _, s := range p.Spans {
		n, known := ix.names[s.Stage]
		if !known {
			n = parseStage(s.Stage)
			ix.names[s.Stage] = n
		}
		ix.layers = max(ix.layers, n.layer+1)
		ix.begin, ix.end = min(ix.begin, s.Start), max(ix.end, s.End)
	}
	ix.kinds = ix.inOrder()
	return ix
}

// inOrder returns the stage kinds in the order of the schedule. An SM without work in a stage is at the next one at
// once and waits there, so that what comes first is told by the last SM to be done, the first time that a kind comes
// round.
func (ix *index) inOrder() []string {
	type turn struct {
		step, layer int
		done        float64
	}
	firsts := map[string]turn{}
	for _, s := range ix.Spans {
		n := ix.names[s.Stage]
		t := turn{s.Step, n.layer, s.End}
		if s.Role != consumer {
			t = turn{math.MaxInt, n.layer, math.Inf(1)}
		}
		old, known := firsts[n.kind]
		if order := cmp.Or(cmp.Compare(t.step, old.step), cmp.Compare(t.layer, old.layer)); !known || order < 0 ||
			order == 0 && t.done > old.done {
			firsts[n.kind] = t
		}
	}
	return slices.SortedFunc(maps.Keys(firsts),
		func(a, b string) int { return cmp.Or(cmp.Compare(firsts[a].done, firsts[b].done), cmp.Compare(a, b)) })
}

// has says whether there is a span of a role.
func (ix *index) has(role string) bool {
	return slices.ContainsFunc(ix.Spans, func(s host.Span) bool { return s.Role == role })
}

// A breakdown says where the time of an SM goes, by stage: layers are folded, and all is a mean over the SMs of the
// chip, those without work in a stage included.
type breakdown struct {
	Rows     []stageRow
	Rest     stageRow // SMs that have not begun, or are done
	Total    stageRow
	Producer bool // there are spans of the producer
}

// A stageRow is a stage kind. Bars are on one scale for all rows.
type stageRow struct {
	Class, Name, Times          string // "× 16"
	Consumer, Producer          []segment
	Wait, Compute, Signal, Each string // µs each time the stage comes round
	Token, Share                string // µs, and percent of a token
	SlotWait, StepWait          string // µs per token
}

// A segment of a bar is in percent of the scale.
type segment struct{ X, Width, Class, Title string }

// A total is µs per token by what a span is about.
type total map[string]float64

func (t total) consumer() float64 { return t[exchangeWait] + t[compute] + t[signal] }
func (t total) producer() float64 { return t[slotWait] + t[stepWait] }

func breakdownOf(ix *index) *breakdown {
	shares := float64(max(1, ix.SMs) * max(1, ix.Steps))
	totals, layers := map[string]total{}, map[string]map[int]bool{}
	for _, s := range ix.Spans {
		n := ix.names[s.Stage]
		if totals[n.kind] == nil {
			totals[n.kind], layers[n.kind] = total{}, map[int]bool{}
		}
		totals[n.kind][s.Kind] += (s.End - s.Start) / shares
		layers[n.kind][n.layer] = true
	}
	scale, sum := 0.0, 0.0
	for _, kind := range ix.kinds {
		scale = max(scale, totals[kind].consumer(), totals[kind].producer())
		sum += totals[kind].consumer()
	}
	token := (ix.end - ix.begin) / float64(max(1, ix.Steps))
	b := &breakdown{Producer: ix.has(producer)}
	for _, kind := range ix.kinds {
		b.Rows = append(b.Rows, stageRowOf(kind, totals[kind], len(layers[kind]), scale, token))
	}
	b.Rest = stageRow{Name: "SMs that began later or ended earlier", Token: fixed(max(0, token-sum), 1),
		Share: fixed(100*max(0, token-sum)/token, 1)}
	b.Total = stageRow{Name: plural(ix.Steps, "the step", "a step") +
		", from the first SM’s beginning to the last one’s end", Token: fixed(token, 1), Share: fixed(100, 1)}
	return b
}

func stageRowOf(kind string, t total, times int, scale, token float64) stageRow {
	r := stageRow{Class: hue(kind), Name: kind, Token: fixed(t.consumer(), 1), Share: fixed(100*t.consumer()/token, 1),
		SlotWait: fixed(t[slotWait], 1),
		StepWait: fixed(t[stepWait], 1)}
	if times > 1 {
		r.Times = "× " + count(times)
	}
	each := func(what string) string { return fixed(t[what]/float64(times), 2) }
	r.Wait, r.Compute, r.Signal, r.Each = each(exchangeWait), each(compute), each(signal),
		fixed(t.consumer()/float64(times), 2)
	r.Consumer = segments(kind, t, scale, exchangeWait, compute, signal)
	r.Producer = segments(kind, t, scale, slotWait, stepWait)
	return r
}

// segments stacks a bar.
func segments(kind string, t total, scale float64, parts ...string) []segment {
	var all []segment
	at := 0.0
	for _, what := range parts {
		if t[what] > 0 {
			all = append(all, segment{percent(at, scale), percent(t[what], scale), spanClass(kind, what),
				kind + ", " + what + ": " + fixed(t[what], 1) + " µs per token"})
		}
		at += t[what]
	}
	return all
}

// spanClass gives a span its look: the stage's colour for computing, pale for waiting for an exchange; what is not a
// stage's doing has a colour of its own.
func spanClass(kind, what string) string {
	switch what {
	case compute:
		return hue(kind)
	case exchangeWait:
		return hue(kind) + " pale"
	case signal:
		return "signal"
	case stepWait:
		return "step"
	}
	return "slot"
}
