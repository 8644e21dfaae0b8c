package jinja

import "slices"

// The filters that group, choose and cut sequences.

func filterGroupby(in *interp, a *args) Value {
	p := a.bind(in, "groupby", 2, "value", "attribute", "default", "case_sensitive")
	key := in.getter(p.at(1), p.or(2, nil), !p.is(3))
	shown := in.getter(p.at(1), p.or(2, nil), false)
	groups := &List{}
	var last Value
	for i, v := range in.sorted(in.list(p.at(0)), key, false) {
		k := key(v)
		if i == 0 || !in.equal(k, last) {
			in.alloc(128)
			groups.items = append(groups.items, &List{[]Value{shown(v), &List{}}, seqTuple, true})
			last = k
		}
		members := groups.items[len(groups.items)-1].(*List).items[1].(*List)
		members.items = append(members.items, v)
	}
	return groups
}

func filterUnique(in *interp, a *args) Value {
	p := a.bind(in, "unique", 1, "value", "case_sensitive", "attribute")
	return in.lazily(p.at(0), func() func() (Value, bool) {
		key := in.getter(p.or(2, nil), nil, !p.is(1))
		from, seen := in.iter(p.at(0)), map[hash]bool{}
		return func() (Value, bool) {
			for {
				v, ok := from.next()
				if !ok {
					return nil, false
				}
				in.alloc(64)
				if h := in.key(key(v)); !seen[h] {
					seen[h] = true
					return v, true
				}
			}
		}
	})
}

func extreme(name string, sign int) filterFunc {
	return func(in *interp, a *args) Value {
		p := a.bind(in, name, 1, "value", "case_sensitive", "attribute")
		key := in.getter(p.or(2, nil), nil, !p.is(1))
		var best, bestKey Value
		found := false
		in.each(p.at(0), func(v Value) bool {
			if k := key(v); !found || in.order(k, bestKey) == sign {
				best, bestKey = v, k
			}
			found = true
			return true
		})
		if !found {
			return &undefined{"No aggregated item, sequence was empty."}
		}
		return best
	}
}

func filterSum(in *interp, a *args) Value {
	p := a.bind(in, "sum", 1, "iterable", "attribute", "start")
	total := p.or(2, int64(0))
	if _, ok := str(total); ok {
		in.fail("sum of texts; join joins them")
	}
	get := in.getter(p.or(1, nil), nil, false)
	in.each(p.at(0), func(v Value) bool {
		total = in.operate("+", total, get(v))
		return true
	})
	return total
}

func filterBatch(in *interp, a *args) Value {
	p := a.bind(in, "batch", 2, "value", "linecount", "fill_with")
	n := p.integer(1, 0)
	return in.lazily(p.at(0), func() func() (Value, bool) {
		from := in.iter(p.at(0))
		v, more := from.next()
		return func() (Value, bool) {
			if !more {
				return nil, false
			}
			row := &List{}
			for more && (len(row.items) == 0 || len(row.items) != n) {
				in.alloc(16)
				row.items = append(row.items, v)
				v, more = from.next()
			}
			for fill := p.or(2, nil); fill != nil && len(row.items) < n; {
				in.alloc(16)
				row.items = append(row.items, fill)
			}
			return row, true
		}
	})
}

func filterSlice(in *interp, a *args) Value {
	p := a.bind(in, "slice", 2, "value", "slices", "fill_with")
	n := p.integer(1, 0)
	return in.lazily(p.at(0), func() func() (Value, bool) {
		items := in.list(p.at(0))
		if n == 0 {
			in.fail("slice into 0 slices")
		}
		i, longer := 0, len(items)%n // so many slices have one more
		return func() (Value, bool) {
			if i >= n {
				return nil, false
			}
			size := len(items) / (n - i)
			if i < longer {
				size++
			}
			in.alloc(16 * (size + 1))
			row := &List{items: slices.Clone(items[:size])}
			if fill := p.or(2, nil); fill != nil && i >= longer {
				row.items = append(row.items, fill)
			}
			items = items[size:]
			i++
			return row, true
		}
	})
}
