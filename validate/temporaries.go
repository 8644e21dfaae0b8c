package validate

// temporaries are the values of one task, by name. Few tasks have more than three, so that a list is searched; a map
// takes over where a task has many.
type temporaries struct {
	names []string
	views []view
	index map[string]int // nil up to manyTemporaries
}

const manyTemporaries = 16

func (t *temporaries) reset() { t.names, t.views, t.index = t.names[:0], t.views[:0], nil }

func (t *temporaries) set(name string, v view) {
	if i := t.find(name); i >= 0 {
		t.views[i] = v
		return
	}
	t.names, t.views = append(t.names, name), append(t.views, v)
	switch n := len(t.names); {
	case t.index != nil:
		t.index[name] = n - 1
	case n > manyTemporaries:
		t.index = make(map[string]int, 2*n)
		for i, s := range t.names {
			t.index[s] = i
		}
	}
}

// get returns the view of a temporary, unknown if no op before has written it.
func (t *temporaries) get(name string) view {
	if i := t.find(name); i >= 0 {
		return t.views[i]
	}
	return view{}
}

func (t *temporaries) find(name string) int {
	if t.index != nil {
		if i, ok := t.index[name]; ok {
			return i
		}
		return -1
	}
	for i, s := range t.names {
		if s == name {
			return i
		}
	}
	return -1
}
