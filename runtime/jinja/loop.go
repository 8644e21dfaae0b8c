package jinja

// A loop is the variable loop inside a for.
type loop struct {
	in      *interp
	from    *iterator
	again   func(over Value) string // renders the loop for other values, of a recursive one
	index0  int
	depth0  int
	size    int // how many values there are, -1: not known yet
	before  Value
	current Value
	ahead   []Value // values that were looked at and not looped over yet
	changed Value
}

// next goes on to the next value.
func (l *loop) next() bool {
	v, ok := l.peek()
	if !ok {
		return false
	}
	l.in.work(1)
	l.ahead = l.ahead[1:]
	l.index0++
	l.before, l.current = l.current, v
	return true
}

func (l *loop) peek() (Value, bool) {
	if len(l.ahead) == 0 {
		v, ok := l.from.next()
		if !ok {
			return nil, false
		}
		l.ahead = append(l.ahead, v)
	}
	return l.ahead[0], true
}

// length is how many values there are. Those of a generator are made for it.
func (l *loop) length() int {
	if l.size < 0 {
		for {
			v, ok := l.from.next()
			if !ok {
				break
			}
			l.in.alloc(16)
			l.ahead = append(l.ahead, v)
		}
		l.size = l.index0 + 1 + len(l.ahead)
	}
	return l.size
}

// forLoop runs a loop over a value. A recursive one is inside depth others.
func (in *interp) forLoop(f *forLoop, over Value, s *scope, depth int) jump {
	in.line = f.line
	from := in.iter(over)
	l := &loop{in: in, from: from, index0: -1, depth0: depth, size: from.size, changed: &undefined{}}
	if f.cond != nil {
		l.size = -1
		l.from = &iterator{kind: "generator", size: -1, next: func() (Value, bool) {
			for {
				v, ok := from.next()
				if !ok {
					return nil, false
				}
				in.work(1)
				inner := s.inner()
				in.assign(&f.to, v, inner)
				if truth(in.eval(f.cond, inner)) {
					return v, true
				}
			}
		}}
	}
	if f.recursive {
		l.again = func(over Value) (out string) {
			in.deeper(func() { out = in.capture(func() { in.forLoop(f, over, s, depth+1) }) })
			return out
		}
	}
	for l.next() {
		inner := s.inner()
		inner.vars["loop"] = l
		in.assign(&f.to, l.current, inner)
		if in.block(f.body, inner) == breakLoop {
			break
		}
	}
	if l.index0 < 0 && f.not != nil {
		return in.block(f.not, s.inner())
	}
	return goOn
}

func (l *loop) recurse(a *args) Value {
	p := a.plain(l.in, "loop", 1, 1)
	if l.again == nil {
		l.in.fail("the loop is called, and is not recursive; want {%% for ... recursive %%}")
	}
	return l.again(p.at(0))
}

// attribute returns what loop.name is.
func (l *loop) attribute(name string) (Value, bool) {
	switch name {
	case "index":
		return int64(l.index0 + 1), true
	case "index0":
		return int64(l.index0), true
	case "revindex":
		return int64(l.length() - l.index0), true
	case "revindex0":
		return int64(l.length() - l.index0 - 1), true
	case "first":
		return l.index0 == 0, true
	case "last":
		_, more := l.peek()
		return !more, true
	case "length":
		return int64(l.length()), true
	case "depth":
		return int64(l.depth0 + 1), true
	case "depth0":
		return int64(l.depth0), true
	case "previtem":
		if l.index0 == 0 {
			return &undefined{"there is no previous item"}, true
		}
		return l.before, true
	case "nextitem":
		if v, more := l.peek(); more {
			return v, true
		}
		return &undefined{"there is no next item"}, true
	case "cycle":
		return &function{"loop.cycle", func(in *interp, a *args) Value {
			if len(a.pos) == 0 || len(a.names) > 0 {
				in.fail("loop.cycle takes one value or more")
			}
			return a.pos[l.index0%len(a.pos)]
		}}, true
	case "changed":
		return &function{"loop.changed", func(in *interp, a *args) Value {
			now := tuple(a.pos...)
			if in.equal(l.changed, now) {
				return false
			}
			l.changed = now
			return true
		}}, true
	}
	return nil, false
}
