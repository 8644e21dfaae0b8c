package validate

// lists is a list of numbers for each key, packed. It is made in two passes over the same items in the same order:
// begin, count each, turn, put each.
type lists struct {
	start []int32
	items []int32
	next  []int32
}

func (l *lists) of(key int) []int32 { return l.items[l.start[key]:l.start[key+1]] }

func (l *lists) begin(keys int) { l.start = sized(l.start, keys+1) }

func (l *lists) count(key int) { l.start[key+1]++ }

func (l *lists) turn() {
	keys := len(l.start) - 1
	for k := range keys {
		l.start[k+1] += l.start[k]
	}
	l.items = sized(l.items, int(l.start[keys]))
	l.next = append(l.next[:0], l.start[:keys]...)
}

func (l *lists) put(key, item int) {
	l.items[l.next[key]] = int32(item)
	l.next[key]++
}
