package codegen

import (
	"cmp"
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/kernel"
	"amkc/knobs"
)

// stage is one stage as the templates see it.
type stage struct {
	IR     *ir.Stage
	Body   *kernel.Body
	Of     *kernel.Stage
	Struct string // name of its descriptor
	Enum   string // name of its number in stall records
	Ops    []string
	Fields []field       // of the descriptor
	Matrix format.Format // of the matrix that it streams, or takes rows of; nil: none
	Func   *stageFunc    // of a matrix product; nil otherwise
}

// field is a constant of a descriptor.
type field struct {
	Type, Name, Value, Note string
}

// Is returns the value of the constant in C++; a list includes its braces.
func (f field) Is() string {
	if strings.HasPrefix(f.Value, "{") {
		return f.Value
	}
	return " = " + f.Value
}

// descriptor returns the stage's descriptor, made at its first use. A stage without a number has none.
func (b *builder) descriptor(s *ir.Stage, kind *kernel.Body, k *kernel.Stage, at site, prefix string) (*stage, error) {
	if kind.Unlisted {
		return &stage{IR: s, Body: kind}, nil
	}
	name := structName(s, at, prefix)
	if st, ok := b.stages[name]; ok {
		if !sameStage(st.IR, s) || b.readings[st.IR] != b.readings[s] {
			return nil, diag.Errorf(codeStructure, "stage "+s.Name,
				"differs from another stage %s with the same descriptor %s: want one loop over the layers, or "+
					"stages that are alike",
				st.IR.Name, name)
		}
		return st, nil
	}
	st := &stage{IR: s, Body: kind, Of: k, Struct: name, Enum: stageNumber(name)}
	for i := range s.Ops {
		st.Ops = append(st.Ops, wrap(ir.PrintOp(&s.Ops[i]), opColumns)...)
	}
	b.stages[name] = st
	if at.loop == nil && s.Dist.Step != 0 {
		return nil, diag.Errorf(codeDist, "stage "+s.Name,
			"turns by %d from iteration to iteration, and stands in no loop: want a step of 0", s.Dist.Step)
	}
	fields, err := b.fields(s, kind, k, at)
	if err != nil {
		return nil, err
	}
	st.Fields, st.Matrix = fields, b.matrixFormat(s, at)
	if q, quantised := st.Matrix.(format.Quantised); quantised {
		st.Fields = append(st.Fields, field{"WeightFormat", "kWeights", weightFormat(q), "of the matrix"})
		b.d.Quantised = true
	}
	if kind.Emitted {
		if err := b.checkFormats(s, at); err != nil {
			return nil, err
		}
		if st.Func, err = b.product(s, k, at, name); err != nil {
			return nil, err
		}
		b.d.Functions = append(b.d.Functions, st.Func)
	}
	b.d.Stages = append(b.d.Stages, st)
	b.d.Descriptors = append(b.d.Descriptors, st)
	return st, nil
}

// matrixFormat is that of the matrix which a stage streams, or takes a row of; nil: it has none.
func (b *builder) matrixFormat(s *ir.Stage, at site) format.Format {
	if matrix := b.matrix(s, at); matrix != nil {
		return matrix.Format()
	}
	return nil
}

// weightFormat is a WeightFormat of weight_format.cuh.
func weightFormat(f format.Quantised) string {
	s := f.Scales()
	text := fmt.Sprintf("%s, %d, %s, %t", format.Enumerators[f.DType()], s.Group, format.Enumerators[s.Type], s.Zeros)
	if s.Mins || s.Steps {
		text += fmt.Sprintf(", %t, %t", s.Mins, s.Steps)
	}
	return "{" + text + "}"
}

// stageNumber is the enumerator of a descriptor's stage.
func stageNumber(descriptor string) string { return "kStage" + descriptor }

// fields lists the constants of a descriptor.
func (b *builder) fields(s *ir.Stage, kind *kernel.Body, k *kernel.Stage, at site) ([]field, error) {
	if err := cmp.Or(b.checkPlace(s, kind), b.checkStage(s, kind, k, at)); err != nil {
		return nil, err
	}
	if advances(s) {
		k.Tasks = len(s.Dist.Tasks(0))
	}
	var fs []field
	for _, f := range kind.Fields {
		if f.If != nil && !*f.If(k) {
			continue
		}
		c := field{Name: f.Name, Note: f.Note}
		if f.Says != nil {
			c.Note = f.Says(k)
		}
		var value any
		switch v := f.At(k).(type) {
		case *int:
			value, c.Type, c.Value = *v, "int", itoa(*v)
		case *bool:
			value, c.Type, c.Value = *v, "bool", fmt.Sprint(*v)
		case *float64:
			value = *v
			if c.Type, c.Value = "float", hexFloat(*v); c.Note != "" {
				c.Note = ", " + c.Note
			}
			c.Note = decimal(*v) + c.Note
		}
		if f.Default == nil || f.Default != value {
			fs = append(fs, c)
		}
	}
	if kind.Streams == kernel.Tiles {
		for _, of := range knobs.StageConstants() {
			c := of.Row().Constant
			fs = append(fs, field{c.Type, c.Name, itoa(of.Of(&b.p.Config, s.Role)), c.Note})
		}
	}
	return fs, nil
}

// checkStage refuses what the constants of a descriptor cannot say, or the kernel has no room for.
func (b *builder) checkStage(s *ir.Stage, kind *kernel.Body, k *kernel.Stage, at site) error {
	switch {
	case kind.Asked:
		if at.loop != nil {
			return diag.Errorf(codeStructure, "stage "+s.Name, "keeps the last hidden state in a loop: want it in none")
		}
	case kind.Replicated():
		parts := max(1, k.Parts)
		if most := kernel.MaxReplicated(&b.p.Model); b.p.Model.Hidden > most/parts {
			return diag.Errorf(codeLimit, "stage "+s.Name, "a residual of %d values on every SM, and branches of "+
				"%d parts; want at most %d values in all", b.p.Model.Hidden, parts, most)
		}
	case k.Placed:
		table := b.buffer(k.PositionTable, at)
		if table == nil || len(table.Shape) != 2 {
			return diag.Errorf(codeStage, "stage "+s.Name, "adds %s; want rows of a table of positions",
				k.PositionTable)
		}
		k.Positions = table.Shape[0]
	case kind.Emitted:
		warps, f := knobs.Warps.Of(&b.p.Config, s.Role), b.matrix(s, at).Format()
		b.products = append(b.products, promptProduct{b.cut(s, f, k.Columns, k.Sums()), k, k.SplitK, k.Added})
		return cmp.Or(b.checkSplit(s, k, at), b.checkExperts(s, k, warps), b.checkParts(s, k, f, warps),
			b.checkGEMV(s, k, f, warps), b.checkReadAgain(s, k, at, f))
	case kind.Streams == kernel.CacheRows:
		if flags := op(s, ir.ATTENTION).IntAt("flags", 0, 0); (flags&2 != 0) != (k.Splits > 1) {
			return diag.Errorf(codeStage, "stage "+s.Name,
				"has flags=%d and parts=%d; splits of the rows have partial results, which flags=2 asks for, and a "+
					"whole unit has none", flags, k.Splits)
		}
		return b.checkAttention(s, k, at)
	}
	return nil
}

func (b *builder) rangeExtent(r ir.Range) int { return r.Hi.At(0) - r.Lo.At(0) }

// opColumns is what is left of a line for an op, after "//   ".
const opColumns = 95

// wrap breaks a comment at spaces into lines of at most width bytes, and longer words at a comma, as far as they allow;
// all but the first are indented.
func wrap(s string, width int) []string {
	var lines []string
	line, rest, more := strings.Cut(s, " ")
	for more {
		var word string
		word, rest, more = strings.Cut(rest, " ")
		if len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = "    " + word
			if at := strings.LastIndexByte(line[:min(width, len(line))], ','); len(line) > width && at > 0 {
				lines, line = append(lines, line[:at+1]), "      "+line[at+1:]
			}
		} else {
			line += " " + word
		}
	}
	return append(lines, line)
}

// list prints names as lines of a brace list.
func list(names []string) []string {
	lines := wrap(strings.Join(names, ", ")+",", opColumns)
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], " ")
	}
	return lines
}
