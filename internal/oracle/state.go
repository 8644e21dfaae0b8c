package oracle

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// state is a machine in the middle of a schedule.
type state struct {
	m *machine
	// by task: 0 before it has started, 1 + the op it is at, 1 + its ops before its signal, then 2 + its ops
	pc    []int32
	got   []bool  // which words of its op at hand a task has polled, from m.polls[t] on
	ready []int32 // tasks that may start
	going []int32 // tasks that have started and are not done
	left  int     // tasks that are not done

	blocked []int32 // by task: what it still needs to start
	count   []int32 // by counter
	known   sets    // by task: the tasks it knows of
	arrived sets    // by counter: those of which a waiter knows that sees it now

	sent    []sending // by message
	pending []int32   // messages on their way, in order of issue
	memory  []int32   // by cell of words: the message that it holds, -1 for none

	writer  []int32 // by plain cell: task, -1 for none
	through []*string
	readers sets

	hazard *Hazard
	seen   map[look]int32 // which message each poll found, over all schedules
}

// look is one poll: a task, which of its ops, which word.
type look struct{ task, op, cell int32 }

type sending uint8

const (
	unsent sending = iota
	onItsWay
	landed
)

// set is a set of tasks, and sets is many of them.
type set []uint64

type sets struct {
	bits  []uint64
	words int // of one
}

func newSets(n, words int) sets { return sets{make([]uint64, n*words), words} }

func (s sets) of(i int) set { return s.bits[i*s.words : (i+1)*s.words] }

func (s sets) clone() sets { return sets{slices.Clone(s.bits), s.words} }

func (s set) has(t int) bool { return s[t/64]>>(t%64)&1 == 1 }
func (s set) add(t int)      { s[t/64] |= 1 << (t % 64) }
func (s set) join(o set) {
	for i := range s {
		s[i] |= o[i]
	}
}
func (s set) firstOutside(o set, except int) int {
	for i := range s {
		for w := s[i] &^ o[i]; w != 0; w &= w - 1 {
			t := i*64 + bits.TrailingZeros64(w)
			if t != except {
				return t
			}
		}
	}
	return -1
}

func start(m *machine) *state {
	n := len(m.tasks)
	s := &state{m: m, left: n, pc: make([]int32, n), got: make([]bool, m.polled), blocked: make([]int32, n),
		known: newSets(n, m.words),
		count: make([]int32, len(m.counters)), arrived: newSets(len(m.counters), m.words),
		sent: make([]sending, len(m.messages)), memory: make([]int32, len(m.cells)),
		writer: make([]int32, len(m.cells)), through: make([]*string, len(m.cells)),
		readers: newSets(len(m.cells), m.words), seen: map[look]int32{}}
	for c := range m.cells {
		s.memory[c], s.writer[c] = -1, -1
	}
	for c := range m.counters {
		s.count[c] = int32(m.counters[c].init)
	}
	for t := range m.tasks {
		if m.tasks[t].after >= 0 {
			s.blocked[t]++
		}
		for _, w := range m.tasks[t].waits {
			if int(s.count[w.counter]) < w.threshold {
				s.blocked[t]++
			}
		}
		if s.blocked[t] == 0 {
			s.ready = append(s.ready, int32(t))
		}
	}
	return s
}

// fork copies a state; what polls have found is common to all schedules.
func (s *state) fork() *state {
	c := *s
	c.pc, c.ready, c.going, c.blocked = slices.Clone(s.pc), slices.Clone(s.ready), slices.Clone(s.going),
		slices.Clone(s.blocked)
	c.count, c.sent, c.pending, c.memory = slices.Clone(s.count), slices.Clone(s.sent), slices.Clone(s.pending),
		slices.Clone(s.memory)
	c.writer, c.through = slices.Clone(s.writer), slices.Clone(s.through)
	c.known, c.arrived, c.readers, c.got = s.known.clone(), s.arrived.clone(), s.readers.clone(), slices.Clone(s.got)
	return &c
}

// polls returns which words of its op at hand a task has polled.
func (s *state) polls(t int32) []bool {
	at := int(s.pc[t]) - 1
	if at < 0 || at >= len(s.m.tasks[t].ops) {
		return nil
	}
	return s.got[s.m.polls[t]:][:len(s.m.tasks[t].ops[at].polls)]
}

// key is all of a state that decides what may still happen. Plain cells are left out: as long as nothing has gone
// wrong, they are a function of where the tasks are.
func (s *state) key(dst []byte) []byte {
	for _, pc := range s.pc {
		dst = binary.AppendUvarint(dst, uint64(pc))
	}
	for _, g := range s.got {
		if g {
			dst = append(dst, 1)
		} else {
			dst = append(dst, 0)
		}
	}
	for _, m := range s.sent {
		dst = append(dst, byte(m))
	}
	for c := range s.m.cells {
		if s.m.places[s.m.cells[c].place].words {
			dst = binary.AppendVarint(dst, int64(s.memory[c]))
		}
	}
	if s.m.partial { // what tasks know depends on the schedule
		for _, list := range []sets{s.known, s.arrived} {
			for _, w := range list.bits {
				dst = binary.LittleEndian.AppendUint64(dst, w)
			}
		}
	}
	return dst
}

// fail notes the first hazard.
func (s *state) fail(kind Kind, t int, format string, args ...any) {
	if s.hazard == nil {
		s.hazard = &Hazard{Kind: kind, Task: s.m.tasks[t].name, Detail: fmt.Sprintf(format, args...)}
	}
}
