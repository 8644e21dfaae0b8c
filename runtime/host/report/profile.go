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

// A stageName is an IR name taken apart: "L03.qkv" is kind qkv of layer 3, "lm_head" is a kind of its own.
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
