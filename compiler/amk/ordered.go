package amk

import "iter"

// indexAbove is the size from which an OrderedMap keeps an index. Parameter maps, of which a program has one per task,
// stay below it.
const indexAbove = 12

// An OrderedMap is a map that keeps insertion order; setting a key again changes its value and not its place, as in a
// Python dict. The zero OrderedMap is empty and ready to use. Copies share storage.
type OrderedMap[K comparable, V any] struct {
	entries []entry[K, V]
	index   map[K]int // nil up to indexAbove entries
}

type entry[K comparable, V any] struct {
	key K
	val V
}

// Len returns the number of entries.
func (m *OrderedMap[K, V]) Len() int { return len(m.entries) }

// Get returns the value of key, and whether there is one.
func (m *OrderedMap[K, V]) Get(key K) (V, bool) {
	if i := m.find(key); i >= 0 {
		return m.entries[i].val, true
	}
	var zero V
	return zero, false
}

// Set sets the value of key and reports whether the key is new.
func (m *OrderedMap[K, V]) Set(key K, val V) bool {
	if i := m.find(key); i >= 0 {
		m.entries[i].val = val
		return false
	}
	m.entries = append(m.entries, entry[K, V]{key, val})
	switch n := len(m.entries); {
	case m.index != nil:
		m.index[key] = n - 1
	case n > indexAbove:
		m.index = make(map[K]int, 2*n)
		for i, e := range m.entries {
			m.index[e.key] = i
		}
	}
	return true
}

// All yields the entries in insertion order.
func (m *OrderedMap[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, e := range m.entries {
			if !yield(e.key, e.val) {
				return
			}
		}
	}
}

func (m *OrderedMap[K, V]) find(key K) int {
	if m.index != nil {
		if i, ok := m.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range m.entries {
		if m.entries[i].key == key {
			return i
		}
	}
	return -1
}
