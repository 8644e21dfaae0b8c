package op

var GEMV = declare(Spec{
	Code: 5,
	Name: "GEMV_TILE",
	Doc: "x·Wᵀ + bias. With qdtype, the elements of W are (q − zero) · scale; element k of a row takes entry " +
		"k/group of its row of scales and of zeros. With parts, a power of two, the columns are as many equal parts. " +
		"The sum of each is that of a product with its columns alone, and sums are added in pairs, then sums of " +
		"pairs, and so on; then the bias.",
	Params: []Param{qdtype, group, parts},
	Kernel: true,
	Forms:  products("[K]", "[n]", oneRow),
})

// oneRow reports an x that is more than one row.
func oneRow(c *Call) {
	if c.In[0].N() != c.In[1].Last {
		c.Fail("x has %d elements, K is %d; GEMV_TILE takes one row, GEMM_TILE several", c.In[0].N(), c.In[1].Last)
	}
}
