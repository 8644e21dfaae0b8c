package op

var TOPK = declare(Spec{
	Code: 29,
	Name: "TOPK",
	Doc: "The k largest elements of each row of x, the largest first, and their numbers, which are distinct. The " +
		"order is total: −0 is 0, of equal elements the one with the lower number comes first, and those that are " +
		"not numbers come after all others, by their numbers too. With a bias, x + bias decides, and the value is x. " +
		"With groups, a row is that many groups of as many elements, and those of top_groups of them are chosen " +
		"from: of the groups whose two largest elements, as they decide, have the largest sum, in the same order. " +
		"With jitter, the value of element i is not x[i] but 1 / Σ exp(x[j] − x[i]) over those elements j of the row " +
		"that were not chosen before it and are near it: all but those of which (x[i] − x[j]) / max(|x[j]|, x[i]) is " +
		"above twice jitter (the weights of SparseMixer).",
	Params: []Param{need(Param{Key: "k", Lo: 1, Hi: MaxInt, Doc: "the number of elements of a row that are chosen"}),
		{Key: "groups", Lo: 1, Hi: MaxInt, Doc: "how many groups the elements of a row are; needs top_groups"},
		{Key: "top_groups", Lo: 1, Hi: MaxInt, Doc: "how many of the groups are chosen from; needs groups"},
		{Key: "jitter", Real: true, Sign: NotNegative, Doc: "half of how far below a chosen element others are near " +
			"it, as a part of the larger one"}},
	Kernel: true,
	Forms: []Form{{
		In: []Operand{{Name: "x", Shape: "[B,n]"}, {Name: "bias", Shape: "[n]", Role: Gain, Optional: true}},
		Out: []Operand{{Name: "value", Shape: "[B,k]"},
			{Name: "index", Shape: "[B,k]", Elem: Index}},
		Shape: topKShape,
	}},
})

func topKShape(c *Call) (n, last int) {
	k, all := c.positive("k"), c.In[0].Last
	if len(c.In) > 1 && c.In[1].N() != all {
		c.Fail("has a bias of %d elements for rows of %d, want as many", c.In[1].N(), all)
	}
	among := all
	switch {
	case c.Has("groups") != c.Has("top_groups"):
		c.Fail("has one of groups and top_groups, want both or none")
	case c.Has("groups"):
		groups, top := c.positive("groups"), c.positive("top_groups")
		if all%groups != 0 || all/groups < 2 || top > groups {
			c.Fail("chooses from %d of %d groups of rows of %d elements, want groups of as many elements, at least "+
				"two, and at most all of them", top, groups, all)
		}
		among = all / groups * min(top, groups)
	}
	if k > among {
		c.Fail("chooses %d of rows of %d elements, want at most as many", k, among)
	}
	c.numbered(all)
	return c.product(c.In[0].Rows, k), k
}
