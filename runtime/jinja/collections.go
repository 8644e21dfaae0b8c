package jinja

// The methods of lists and dictionaries.

var listMethods = map[string]func(in *interp, l *List, a *args) Value{
	"copy": func(in *interp, l *List, a *args) Value {
		in.alloc(16 * len(l.items))
		return &List{append([]Value{}, l.items...), l.kind, false}
	},
	"count": func(in *interp, l *List, a *args) Value {
		v, n := a.plain(in, "count", 1, 1).at(0), int64(0)
		for _, item := range l.items {
			n += int64(b2i(in.equal(item, v)))
		}
		return n
	},
	"index": func(in *interp, l *List, a *args) Value {
		v := a.plain(in, "index", 1, 1).at(0)
		for i, item := range l.items {
			if in.equal(item, v) {
				return int64(i)
			}
		}
		in.fail("the list does not have the value that index looks for")
		return nil
	},
}

var dictMethods = map[string]func(in *interp, d *Dict, a *args) Value{
	"get": func(in *interp, d *Dict, a *args) Value {
		p := a.plain(in, "dict.get", 1, 2)
		if v, ok := d.get(in.key(p.at(0))); ok {
			return v
		}
		return p.or(1, nil)
	},
	"keys":   view("keys", seqKeys, (*Dict).keys, 16),
	"values": view("values", seqValues, (*Dict).values, 16),
	"items":  view("items", seqItems, (*Dict).items, entrySize),
	"copy": func(in *interp, d *Dict, a *args) Value {
		a.plain(in, "dict.copy", 0, 0)
		return d
	},
	"fromkeys": func(in *interp, _ *Dict, a *args) Value { return fromKeys(in, a) },
}

func view(name string, kind seqKind, of func(*Dict) []Value, size int) func(*interp, *Dict, *args) Value {
	return func(in *interp, d *Dict, a *args) Value {
		a.plain(in, "dict."+name, 0, 0)
		in.alloc(size * len(d.entries))
		return &List{of(d), kind, false}
	}
}

func fromKeys(in *interp, a *args) Value {
	p := a.plain(in, "dict.fromkeys", 1, 2)
	d := &Dict{}
	in.each(p.at(0), func(k Value) bool {
		in.alloc(entrySize)
		d.set(in.key(k), k, p.or(1, nil))
		return true
	})
	return d
}
