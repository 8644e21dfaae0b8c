package host

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// stallSize is sizeof(amk::Stall), one record per SM.
const stallSize = 32

// A Stall is where one SM gave up waiting (amk/launch.cuh).
type Stall struct {
	On       string // "GPU 1", where several run the build
	SM       int
	Followed bool   // it gave up because another SM or the host did
	Stage    string // label, layer included: "L03.down"
	Step     int    // of the launch
	Wait     string // what it waited for, in words
	Index    int    // first element, tile or chunk that was missing
	Expected uint32 // epoch or phase it waited for
	Warp     int
}

// waits are the kinds of amk::Wait.
var waits = map[uint32]string{
	0: "the other SMs at the barrier after it",
	1: "an element of the vector it reads",
	2: "a weight chunk to arrive in the ring",
	3: "a free slot in the ring",
	4: "the cache rows of the step before",
	5: "its own SM to pass a barrier",
	6: "its own SM to choose experts",
}

// A StallError says that a launch was aborted: SMs waited longer than the spin limit.
type StallError struct {
	Position int // of the launch's first step
	Stalls   []Stall
}

// Error names the SMs that gave up on their own, alike ones together.
func (e *StallError) Error() string {
	return fmt.Sprintf("the kernel stalled in the launch at position %d, and was aborted; the cache up to there is "+
		"intact\n    %s",
		e.Position, strings.Join(e.Dump(), "\n    "))
}

// Dump describes every SM that gave up, a line for each group of SMs that stood at the same place, causes first.
func (e *StallError) Dump() []string {
	type place struct {
		on          string
		followed    bool
		stage, wait string
		step        int
	}
	groups := map[place][]Stall{}
	for _, s := range e.Stalls {
		p := place{s.On, s.Followed, s.Stage, s.Wait, s.Step}
		groups[p] = append(groups[p], s)
	}
	var lines []string
	for _, followed := range []bool{false, true} {
		var some []string
		for p, stalls := range groups {
			if p.followed != followed {
				continue
			}
			slices.SortFunc(stalls, func(a, b Stall) int { return cmp.Compare(a.SM, b.SM) })
			first := stalls[0]
			verb := "waited in vain"
			if followed {
				verb = "followed while waiting"
			}
			on := p.on
			if on != "" {
				on += ", "
			}
			some = append(some, fmt.Sprintf("%s (step %d): %sSM %s %s for %s; SM %d: warp %d, index %d, epoch or "+
				"phase %d",
				p.stage, p.step, on, ranges(stalls), verb, p.wait, first.SM, first.Warp, first.Index, first.Expected))
		}
		slices.Sort(some)
		lines = append(lines, some...)
	}
	return lines
}

// ranges writes the SMs of sorted records: "0-3, 7".
func ranges(stalls []Stall) string {
	var parts []string
	for i := 0; i < len(stalls); {
		j := i
		for j+1 < len(stalls) && stalls[j+1].SM == stalls[j].SM+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(stalls[i].SM))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", stalls[i].SM, stalls[j].SM))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// decodeStalls reads the records of all SMs; those that did not give up are left out. stages are the labels in the
// order of schedule.h.
func decodeStalls(raw []byte, stages []string) []Stall {
	var out []Stall
	for sm := range len(raw) / stallSize {
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(raw[sm*stallSize+4*i:]) }
		if word(0) == 0 {
			continue
		}
		wait := waits[word(4)]
		if wait == "" {
			wait = fmt.Sprintf("wait %d, which this program does not know", word(4))
		}
		out = append(out, Stall{
			SM: sm, Followed: word(0) == 2, Stage: stageName(stages, word(1), word(2)), Step: int(word(3)), Wait: wait,
			Index: int(word(5)), Expected: word(6), Warp: int(word(7)),
		})
	}
	return out
}

// stageName resolves a stage's number and layer to its label.
func stageName(stages []string, stage, layer uint32) string {
	if int64(stage) >= int64(len(stages)) {
		return fmt.Sprintf("stage %d of layer %d", stage, layer)
	}
	return inLayer(stages[stage], int(layer))
}

// inLayer fills a layer into a label: "L{i}.qkv" becomes "L03.qkv", and "L{i+1}.qkv", of a loop over pairs of
// layers, L04.qkv.
func inLayer(name string, layer int) string {
	head, rest, ok := strings.Cut(name, "{i")
	offset, tail, closed := strings.Cut(rest, "}")
	n := 0
	if offset != "" {
		var err error
		if n, err = strconv.Atoi(offset); err != nil {
			closed = false
		}
	}
	if !ok || !closed {
		return name
	}
	return fmt.Sprintf("%s%02d%s", head, layer+n, inLayer(tail, layer))
}
