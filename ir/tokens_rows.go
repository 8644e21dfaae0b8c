package ir

import "slices"

// A task of attention has all rows of a pass, or some of them: then each kv head, or each split of one, has a task for
// every group of rows. Groups of one head have neighbouring numbers. Each task reads what a task with all rows reads;
// it computes the results of its own rows, and appends these.

// GroupRows changes an op of a task with all rows of a pass to that of a task with a group of rows. The pass is of one
// sequence, and each group has n rows.
func GroupRows(o *Op, pass Pass, groups int) {
	rows := pass.NumRows() / groups
	r := rowsOfResult(o)
	eachExpr(o, func(e Expr) Expr { return e.With(SpanA, Symbol(SpanA).Div(groups)) })
	first := Symbol(SpanA).Mod(groups).Mul(rows)
	if r == nil {
		return
	}
	r.Lo = r.Lo.Add(first)
	r.Hi = r.Lo.Add(Int(rows))
	o.Params = append(slices.Clone(o.Params), IntParam("first_row", first), IntParam("rows", Int(rows)))
}

// ungroupRows is the other way round.
func ungroupRows(o *Op, pass Pass, groups int) {
	if r := rowsOfResult(o); r != nil {
		if r.Lo = Int(0); o.Code == KVAppend {
			r.Lo = Symbol(Pos)
		}
		r.Hi = r.Lo.Add(Int(pass.NumRows()))
	}
	o.Params = slices.DeleteFunc(o.Params, func(q Param) bool { return q.Key == "first_row" || q.Key == "rows" })
	eachExpr(o, func(e Expr) Expr { return e.replace(Symbol(SpanA).Div(groups), Symbol(SpanA)) })
}

// rowsOfResult returns the dimension of rows of what attention or an append writes; nil of another op, or if there is
// none. Partial results are [rows, heads, elements] for each unit, and others [rows, elements].
func rowsOfResult(o *Op) *Range {
	from := 0
	switch {
	case o.Code == KVAppend, o.Code == ATTENTION && o.IntAt("flags", 0, 0)&2 != 0:
		from = 3
	case o.Code == ATTENTION:
		from = 2
	}
	if from == 0 || len(o.Out) == 0 || len(o.Out[0].Dims) < from {
		return nil
	}
	return &o.Out[0].Dims[len(o.Out[0].Dims)-from]
}

// rowGroups returns how many groups the rows of a pass are cut into in a stage: as many as it has tasks for each split
// of each kv head. 1 if it is not attention, or nothing that GroupRows makes.
func (t tokens) rowGroups(kvHeads int, s *Stage) int {
	if t.NumSequences() > 1 {
		return 1
	}
	for k := range s.Ops {
		if o := &s.Ops[k]; o.Code == ATTENTION {
			units := kvHeads * max(1, o.IntAt("parts", 0, 1))
			if groups := s.Dist.Extent / units; groups > 1 && t.NumRows()%groups == 0 {
				return groups
			}
		}
	}
	return 1
}
