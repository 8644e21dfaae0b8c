package report

import (
	"cmp"
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
	kinds  []string // in the order in which consumers first come to them; those of producers alone at the end
	layers int      // past the last
	begin  float64  // µs; of all spans
	end    float64
}

// indexOf needs a profile with spans.
func indexOf(p *host.Profile) *index {
	ix := &index{Profile: p, names: map[string]stageName{}, begin: math.Inf(1), end: math.Inf(-1)}
	first := map[string]float64{}
	for _, s := range p.Spans {
		n, known := ix.names[s.Stage]
		if !known {
			n = parseStage(s.Stage)
			ix.names[s.Stage] = n
		}
		ix.layers = max(ix.layers, n.layer+1)
		ix.begin, ix.end = min(ix.begin, s.Start), max(ix.end, s.End)
		at := s.Start
		if s.Role != consumer {
			at = math.MaxFloat64
		}
		if old, known := first[n.kind]; !known || at < old {
			first[n.kind] = at
		}
	}
	for kind := range first {
		ix.kinds = append(ix.kinds, kind)
	}
	slices.SortFunc(ix.kinds, func(a, b string) int { return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a, b)) })
	return ix
}

// has says whether there is a span of a role.
func (ix *index) has(role string) bool {
	return slices.ContainsFunc(ix.Spans, func(s host.Span) bool { return s.Role == role })
}
