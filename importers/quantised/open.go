package quantised

import (
	"slices"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

const (
	i8   checkpoint.DType = "I8"
	u8   checkpoint.DType = "U8"
	i32  checkpoint.DType = "I32"
	i64  checkpoint.DType = "I64"
	e4m3 checkpoint.DType = "F8_E4M3"
)

// mostColumns is more rows or columns than any matrix has; products of a few such numbers fit an int.
const mostColumns = 1 << 28

// An opener collects the tensors of one matrix.
type opener struct {
	c      *checkpoint.Checkpoint
	module string
	m      Matrix
}

// Open finds the tensors of a module's matrix, and returns nil if it is not quantised. It checks them against each
// other and against the scheme. Their values are checked when they are read. Errors: AMK1108, AMK1122, AMK1124.
func (s *Scheme) Open(c *checkpoint.Checkpoint, module string) (*Matrix, *diag.Diagnostic) {
	o := &opener{c: c, module: module, m: Matrix{Name: module + ".weight"}}
	r := s.of(module)
	open := map[string]func(*recipe) *diag.Diagnostic{"compressed-tensors": o.openCompressed, "gptq": o.openGPTQ,
		"awq": o.openAWQ, "fp8": o.openFP8, "gguf": o.openGGUF,
		"mxfp4": o.openMXFP4, "modelopt": o.openModelOpt}[s.Method]
	if d := open(r); d != nil {
		return nil, d
	}
	if o.m.blocks != nil {
		o.m.recipe = r
		return &o.m, nil
	}
	if o.m.codes == nil {
		return nil, nil
	}
	if s.OfExperts {
		r = &mxfp4Recipe
	}
	o.m.recipe, o.m.Type, o.m.Scale = r, r.element(), o.m.scales.dtype
	return &o.m, nil
}

// tensor returns a tensor of the module, as one of those that its matrix is stored in.
func (o *opener) tensor(part string) (checkpoint.Tensor, bool) {
	t, ok := o.c.Tensor(o.module + "." + part)
	if ok && !slices.Contains(o.m.Parts, t.Name) {
		o.m.Parts = append(o.m.Parts, t.Name)
	}
	return t, ok
}

// packedWords takes the qweight of a module, as GPTQ and AWQ have it, if it is there.
func (o *opener) packedWords(r *recipe) (t checkpoint.Tensor, there bool, bad *diag.Diagnostic) {
	t, there = o.tensor("qweight")
	switch {
	case !there:
	case r == nil:
		bad = o.unsaid()
	case t.DType != i32 || len(t.Shape) != 2:
		bad = o.bad("qweight is %s %v; want I32 of two dimensions", t.DType, t.Shape)
	}
	return t, there, bad
}

// packedZeros takes the qzeros of a module: n words for the zero points of each group of columns.
func (o *opener) packedZeros(words int) (checkpoint.Tensor, *diag.Diagnostic) {
	t, there := o.tensor("qzeros")
	if !there {
		return t, o.bad("qzeros is missing")
	}
	return t, o.want(t, "qzeros", i32, o.m.scales.cols, words)
}

// takeIfThere takes tensors that say how inputs are quantised, which amkc does not do.
func (o *opener) takeIfThere(parts ...string) {
	for _, part := range parts {
		o.tensor(part)
	}
}

func (o *opener) bad(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(codeParts, "tensor "+o.m.Name, format, args...)
}

func (o *opener) unsaid() *diag.Diagnostic {
	return o.bad("is stored quantised, and quantization_config says that it is not")
}

// want checks the type and the shape of a part.
func (o *opener) want(t checkpoint.Tensor, part string, dtype checkpoint.DType, shape ...int) *diag.Diagnostic {
	if t.DType != dtype || !slices.Equal(t.Shape, shape) {
		return o.bad("%s is %s %v; want %s %v", part, t.DType, t.Shape, dtype, shape)
	}
	return nil
}

// scales finds the scales of a matrix that has its rows as rows.
func (o *opener) scales(r *recipe, part string) *diag.Diagnostic {
	m := &o.m
	t, ok := o.tensor(part)
	if !ok {
		return o.bad("%s is missing", part)
	}
	g := grid{t: t, rowsEach: r.rows, rows: 1, cols: 1}
	if r.rows > 0 {
		g.rows = (m.rows + r.rows - 1) / r.rows
	}
	if d := o.grouped(&g, r); d != nil {
		return d
	}
	if !g.sameShape(t.Shape) {
		return o.bad("%s has shape %v; want [%d %d]", part, t.Shape, g.rows, g.cols)
	}
	return nil
}

// columnScales finds the scales of a matrix that has its rows as columns.
func (o *opener) columnScales(r *recipe) *diag.Diagnostic {
	m := &o.m
	t, ok := o.tensor("scales")
	if !ok {
		return o.bad("scales is missing")
	}
	g := grid{t: t, rowsEach: 1, rows: m.rows, cols: 1, transposed: true}
	if d := o.grouped(&g, r); d != nil {
		return d
	}
	if !slices.Equal(t.Shape, []int{g.cols, g.rows}) {
		return o.bad("scales has shape %v; want [%d %d]", t.Shape, g.cols, g.rows)
	}
	return nil
}

// grouped says how many groups the rows of the matrix have, as they are stored and as they are streamed.
func (o *opener) grouped(g *grid, r *recipe) *diag.Diagnostic {
	m := &o.m
	if m.rows < 1 || m.cols < 1 || m.rows > mostColumns || m.cols > mostColumns {
		return o.bad("has shape [%d %d]; want 1 to %d rows and columns", m.rows, m.cols, mostColumns)
	}
	if g.dtype == "" {
		g.dtype = g.t.DType
	}
	if r.form != mxfp4 && !slices.Contains([]checkpoint.DType{checkpoint.F16, checkpoint.BF16, checkpoint.F32},
		g.dtype) {
		return diag.Errorf(NotRead, "tensor "+g.t.Name, "scales of type %s are not read; accepted: F16, BF16, F32",
			g.dtype)
	}
	g.colsEach = m.cols
	if r.group > 0 && r.group < m.cols {
		g.colsEach = r.group
		g.cols = (m.cols + r.group - 1) / r.group
	}
	var read bool
	if m.Group, read = r.streamed(m.cols); !read {
		return diag.Errorf(NotRead, "tensor "+m.Name, "has groups of %d columns, which are not read; accepted: 32, "+
			"64, a multiple of %d, or all columns of a row", g.colsEach, wholeGroup)
	}
	m.scales = *g
	return nil
}

// columnOrder demands that a tensor that says which group a column belongs to says what is so without it. Some writers
// leave -1 in one that was never set.
func (o *opener) columnOrder(part string) *diag.Diagnostic {
	t, ok := o.tensor(part)
	if !ok {
		return nil
	}
	m := &o.m
	if d := o.want(t, part, i32, m.cols); d != nil {
		return d
	}
	raw := make([]byte, 4*m.cols)
	if err := t.ReadPieces(raw, 0, len(raw), 0); err != nil {
		return asDiagnostic(err)
	}
	unset := true
	for k := range m.cols {
		unset = unset && word(raw, k) == ^uint32(0)
	}
	for k := range m.cols {
		if group := int64(int32(word(raw, k))); !unset && group != int64(k/m.scales.colsEach) {
			if group < 0 || group >= int64(m.scales.cols) {
				return diag.Errorf(codeValues, "tensor "+t.Name, "element %d is %d; want a group from 0 to %d", k,
					group, m.scales.cols-1)
			}
			return diag.Errorf(codeOrder, "tensor "+t.Name, "column %d belongs to group %d; accepted: groups of "+
				"columns side by side, %d for this one, as desc_act false leaves them", k, group, k/m.scales.colsEach)
		}
	}
	return nil
}

// asDiagnostic returns the diagnostic that package checkpoint hands out as an error.
func asDiagnostic(err error) *diag.Diagnostic {
	d, _ := err.(*diag.Diagnostic)
	return d
}
