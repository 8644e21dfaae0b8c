package simulate

import "slices"

// Knowledge is a set of tasks: those that are done before something for certain. Who knows of a task knows of all
// before it in its queue, so that of a queue of several tasks a number says it: how many of them from its beginning on.
// Of a task that is alone in its queue a bit does. A program on the SMs of a GPU has few queues and many tasks, one of
// the AMK profile a queue for each task.

// home is where a task is noted.
type home struct {
	queue int32 // -1: it is alone, and has a bit
	n     int32 // the number of its bit, or of the task in its queue, from 1 on
}

// knowledge is one such set, and sets is many of them.
type knowledge struct {
	bits []uint64
	last []int32 // by queue: how many tasks of it are known
}

type sets struct {
	bits          []uint64
	last          []int32
	words, queues int // of one
}

func (m *machine) newSets(n int) sets {
	return sets{make([]uint64, n*m.words), make([]int32, n*m.queues), m.words, m.queues}
}

func (s *sets) of(i int) knowledge {
	return knowledge{s.bits[i*s.words : (i+1)*s.words], s.last[i*s.queues : (i+1)*s.queues]}
}

func (s *sets) clone() sets {
	return sets{slices.Clone(s.bits), slices.Clone(s.last), s.words, s.queues}
}

func (k knowledge) has(h home) bool {
	if h.queue < 0 {
		return k.bits[h.n/64]>>(h.n%64)&1 == 1
	}
	return k.last[h.queue] >= h.n
}

func (k knowledge) add(h home) {
	if h.queue < 0 {
		k.bits[h.n/64] |= 1 << (h.n % 64)
		return
	}
	k.last[h.queue] = max(k.last[h.queue], h.n)
}

func (k knowledge) join(o knowledge) {
	for i := range k.bits {
		k.bits[i] |= o.bits[i]
	}
	for i := range k.last {
		k.last[i] = max(k.last[i], o.last[i])
	}
}

// settle numbers the queues without gaps, and gives every task its home.
func (m *machine) settle() {
	number, length := map[int]int{}, []int32{}
	for t := range m.tasks {
		q, ok := number[m.tasks[t].queue]
		if !ok {
			q = len(length)
			number[m.tasks[t].queue] = q
			length = append(length, 0)
		}
		m.tasks[t].queue = q
		length[q]++
	}
	long, at := make([]int32, len(length)), make([]int32, len(length))
	alone := int32(0)
	for q := range long {
		if length[q] > 1 {
			long[q] = int32(m.queues)
			m.queues++
		}
	}
	m.homes = make([]home, len(m.tasks))
	for t := range m.tasks {
		q := m.tasks[t].queue
		if length[q] == 1 {
			m.homes[t] = home{-1, alone}
			alone++
			continue
		}
		at[q]++
		m.homes[t] = home{long[q], at[q]}
	}
	m.words, m.sources = int(alone+63)/64, len(length)
}

// reader is a list of the tasks that have read a cell since it was last written, the latest first. Lists are never
// changed, so that states may share them.
type reader struct {
	task int32
	next *reader
}
