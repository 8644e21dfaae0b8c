package op

// SamplingWords is the number of elements of a sequence's settings: the temperature and the seed, two words each.
const SamplingWords = 4

var SAMPLE = declare(Spec{
	Code: 28,
	Name: "SAMPLE",
	Doc: "The number of the element that is chosen per row of x, by the settings of the row's sequence: a " +
		"temperature, a float64 in words 0 and 1, and a seed in words 2 and 3, the low one first. With a temperature " +
		"of 0 it is that of SAMPLE_ARGMAX. With another it is that of the largest sum of the element over the " +
		"temperature and of noise, which depends on the seed, on the position after pos and on the number " +
		"(docs/sampling.md), so that each is chosen with the probability that softmax gives it. With partial=1, the " +
		"element that is chosen among those of x and its number, counted from first; −Inf and 2147483647, which is " +
		"not an index, if no element can be chosen. Of values and indices, the index that is chosen among them. " +
		"Ties go to the lowest index; 0 where there is none.",
	Params: []Param{
		{Key: "partial", Lo: 0, Hi: 1, Doc: "1: the operand is a part of the values"},
		first,
		need(ownPos),
	},
	Kernel: true,
	Forms: []Form{{
		When: "with partial=1",
		If:   func(_ int, args Args) bool { return args.Int("partial", 0) != 0 },
		In:   []Operand{{Name: "x", Shape: "[B,n*]"}, samplingSettings},
		Out: []Operand{{Name: "value", Shape: "[B]"},
			{Name: "index", Shape: "[B]", Elem: Index}},
		Shape: func(c *Call) (n, last int) {
			settingsFit(c, &c.In[1])
			c.numbered(c.In[0].Last)
			return c.In[0].Rows, c.In[0].Rows
		},
	}, {
		When: "with three operands",
		If:   func(inputs int, _ Args) bool { return inputs == 3 },
		In: []Operand{{Name: "values", Shape: "[B,m]"},
			{Name: "indices", Shape: "[B,m]", Role: Number, Elem: Index}, samplingSettings},
		Out: []Operand{{Name: "index", Shape: "[B]", Elem: Index, Most: 4}},
		Shape: func(c *Call) (n, last int) {
			if !anyValue(c) {
				return 0, 0
			}
			asManyIndices(c)
			settingsFit(c, &c.In[2])
			return c.In[0].Rows, c.In[0].Rows
		},
	}, {
		When: "with two operands",
		In:   []Operand{{Name: "x", Shape: "[B,n]"}, samplingSettings},
		Out:  []Operand{{Name: "index", Shape: "[B]", Elem: Index, Most: 4}},
		Shape: func(c *Call) (n, last int) {
			if !anyValue(c) {
				return 0, 0
			}
			settingsFit(c, &c.In[1])
			c.numbered(c.In[0].Last)
			return c.In[0].Rows, c.In[0].Rows
		},
	}},
})

// samplingSettings are those of S sequences, each of which has as many of the B rows.
var samplingSettings = Operand{Name: "settings", Shape: "[S,4]", Role: Number, Elem: Index}

func settingsFit(c *Call, settings *View) {
	if settings.Last != SamplingWords || settings.Rows < 1 || c.In[0].Rows%settings.Rows != 0 {
		c.Fail("has settings of %d rows of %d elements for %d rows; want %d elements for each sequence, which has as "+
			"many rows as the others", settings.Rows, settings.Last, c.In[0].Rows, SamplingWords)
	}
}
