package simulate

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// state is a machine in the middle of a schedule.
type state struct {
	m *machine
	// by task: 0 before it has started, 1 + the op it is at, 1 + its ops before its signal, then 2 + its ops
	pc    []int32
	got   []bool  // which words of its current op a task has polled, from m.polls[t] on
	ready []int32 // tasks that may start
	going []int32 // tasks that have started and are not done
	left  int     // tasks that are not done

	blocked []int32 // by task: what it still needs to start
	count   []int32 // by counter
	known   sets    // by task: the tasks it knows of
	arrived sets    // by counter: those of which a waiter knows that sees it now

	sent     []sending // by message
	pending  []int32   // messages on their way
	slot     []int32   // by message: where it is in pending, while it is
	inFlight []int32   // by queue: its messages on their way
	memory   []int32   // by cell of words: the message that it holds, -1 for none

	writer  []int32   // by plain cell: task, -1 for none
	through []*string // and the name of the buffer that it wrote
	readers []*reader // since it wrote

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

func start(m *machine) *state {
	n, cells := len(m.tasks), len(m.cells)
	s := &state{m: m, left: n, pc: make([]int32, n), got: make([]bool, m.polled), blocked: make([]int32, n),
		known: m.newSets(n), count: make([]int32, len(m.counters)), arrived: m.newSets(len(m.counters)),
		sent: make([]sending, len(m.messages)), slot: make([]int32, len(m.messages)),
		inFlight: make([]int32, m.sources), memory: make([]int32, cells), writer: make([]int32, cells),
		through: make([]*string, cells), readers: make([]*reader, cells), seen: map[look]int32{}}
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

// stateBytes is about what a state takes.
func (m *machine) stateBytes() int {
	n, c, msgs := len(m.tasks), len(m.cells), len(m.messages)
	return 256 + 24*n + m.polled + (n+len(m.counters))*(8*m.words+4*m.queues) + 24*c + 13*msgs
}

// fork copies a state; what polls have found is common to all schedules.
func (s *state) fork() *state {
	c := *s
	c.pc, c.ready, c.going, c.blocked = slices.Clone(s.pc), slices.Clone(s.ready), slices.Clone(s.going),
		slices.Clone(s.blocked)
	c.count, c.sent, c.pending, c.memory = slices.Clone(s.count), slices.Clone(s.sent), slices.Clone(s.pending),
		slices.Clone(s.memory)
	c.slot, c.inFlight = slices.Clone(s.slot), slices.Clone(s.inFlight)
	c.writer, c.through, c.readers = slices.Clone(s.writer), slices.Clone(s.through), slices.Clone(s.readers)
	c.known, c.arrived, c.got = s.known.clone(), s.arrived.clone(), slices.Clone(s.got)
	return &c
}

// polls returns which words of its current op a task has polled.
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
			for _, n := range list.last {
				dst = binary.AppendUvarint(dst, uint64(n))
			}
		}
	}
	return dst
}

// fail notes the first hazard: of a task, and of one that it conflicts with, or -1.
func (s *state) fail(kind Kind, t, other int32, format string, args ...any) {
	if s.hazard == nil {
		s.hazard = &Hazard{Kind: kind, Where: "task " + s.m.tasks[t].name, Detail: fmt.Sprintf(format, args...),
			task: t, other: other, late: -1}
	}
}

// found returns the hazard with the events that have led to it.
func (s *state) found(path []event) *Hazard {
	h := s.hazard
	h.m, h.path = s.m, path
	return h
}
