package passes

import "amkc/ir"

// columns of a product of tensor cores, each of which is a query head of a row
const productColumns = 8

// groupRows cuts the rows of a pass into groups, with a unit of attention each, where SMs would have none otherwise:
// as many as give a unit one product's columns, or fewer. Each reads all that a unit with all rows reads of the cache.
func groupRows(p *ir.Program, st *ir.Stage, facts *ir.LayerFacts) {
	if p.Pass.NumSequences() > 1 || attention(st) == nil {
		return
	}
	groups := rowGroups(p.Pass.NumRows(), facts.Group(), p.Target.SMs/st.Dist.Extent)
	if groups == 1 {
		return
	}
	st.Dist.Extent *= groups
	for k := range st.Ops {
		ir.GroupRows(&st.Ops[k], p.Pass, groups)
	}
}

// rowGroups is into how many groups, most at most, rows are cut, given the query heads per kv head.
func rowGroups(rows, heads, most int) int {
	groups := 1
	for n := 2; n <= min(rows, most); n++ {
		if rows%n == 0 && rows/groups*heads > productColumns {
			groups = n
		}
	}
	return groups
}
