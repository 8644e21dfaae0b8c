package codegen

import (
	"cmp"
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/knobs"
)

// descriptor returns the stage's descriptor, made at its first use. A stage without a number has none.
func (b *builder) descriptor(s *ir.Stage, kind body, at site, prefix string) (*stage, error) {
	if !kind.numbered() {
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
	st := &stage{IR: s, Body: kind, Struct: name, Enum: stageNumber(name)}
	for i := range s.Ops {
		st.Ops = append(st.Ops, wrap(ir.PrintOp(&s.Ops[i]), opColumns)...)
	}
	b.stages[name] = st
	if at.loop == nil && s.Dist.Step != 0 {
		return nil, diag.Errorf(codeDist, "stage "+s.Name,
			"turns by %d from iteration to iteration, and stands in no loop: want a step of 0", s.Dist.Step)
	}
	fields, err := b.fields(s, kind, at)
	if err != nil {
		return nil, err
	}
	st.Fields, st.Matrix = fields, b.matrixFormat(s, at)
	if q, quantised := st.Matrix.(format.Quantised); quantised {
		st.Fields = append(st.Fields, field{"WeightFormat", "kWeights", weightFormat(q), "of the matrix"})
		b.d.Quantised = true
	}
	if kind == bodyProduct {
		if err := b.checkFormats(s, at); err != nil {
			return nil, err
		}
		if st.Func, err = b.product(s, at, name); err != nil {
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
	return fmt.Sprintf("{%s, %d, %s, %t}", elementTypes[f.DType()], f.Group(), elementTypes[f.Scale()], f.Zeros())
}

var elementTypes = map[string]string{"F32": "kFp32", "F16": "kFp16", "BF16": "kBf16", "I4": "kInt4", "I8": "kInt8",
	"F8E4M3": "kE4m3"}

// stageNumber is the enumerator of a descriptor's stage.
func stageNumber(descriptor string) string { return "kStage" + descriptor }

// fields lists the constants of a descriptor.
func (b *builder) fields(s *ir.Stage, kind body, at site) ([]field, error) {
	if kind.replicated() {
		return b.replicatedFields(s, kind)
	}
	if kind == bodyKeepHidden {
		return b.hiddenFields(s, at)
	}
	d := &s.Dist
	want := ir.Spread
	if kind == bodyAttend || kind == bodyCombine {
		want = ir.ByUnit
	}
	if d.Kind != want || d.SMs != b.p.Target.SMs {
		return nil, diag.Errorf(codeDist, "stage "+s.Name, "is distributed %s over %d SMs, want %s over %d", d.Kind,
			d.SMs, want, b.p.Target.SMs)
	}
	var fs []field
	add := func(typ, name, value, note string) { fs = append(fs, field{typ, name, value, note}) }
	if want == ir.Spread {
		if d.Grain%8 != 0 {
			return nil, diag.Errorf(codeDist, "stage "+s.Name,
				"grain %d, want a multiple of 8 rows, the height of a tile", d.Grain)
		}
		add("int", "kRows", itoa(d.Extent), "")
		add("int", "kGrain", itoa(d.Grain), "rows that stay together")
	} else {
		add("int", "kUnits", itoa(d.Extent), "")
	}
	if g := op(s, ir.GEMV); len(g.In) == 2 {
		columns := b.rangeExtent(g.In[1].Dims[1])
		add("int", "kColumns", itoa(columns), "")
		parts, _ := b.splitK(s, at)
		b.products = append(b.products, promptProduct{columns, max(1, parts),
			knobs.Warps.Of(&b.p.Config, s.Role), b.matrixFormat(s, at)})
		split, err := b.splitFields(s, at)
		if err != nil {
			return nil, err
		}
		fs = append(fs, split...)
	}
	add("int", "kRotation", itoa(d.Rot), "of the SMs against the work")
	add("int", "kRotationStep", itoa(d.Step), "more, from layer to layer")
	tasks := len(d.Tasks(0))
	if !advances(s) {
		tasks = 0
	}
	add("int", "kTasks", itoa(tasks), "that hand over "+counterName(s.Signal))
	if b.readings[s].holds {
		add("bool", "kHolds", "true", "what it reads, for a stage behind")
	}
	if b.readings[s].held {
		add("bool", "kReadsHeld", "true", "what was kept, and keeps what it passes over")
	}
	switch kind {
	case bodyEmbed:
		fs = append(fs, embedScale(s)...)
		if last := &s.Ops[len(s.Ops)-1]; last.Code == ir.ADD {
			table := b.buffer(operand(last.In, 1).Buf, at)
			if table == nil || len(table.Shape) != 2 {
				return nil, diag.Errorf(codeStage, "stage "+s.Name, "adds %s; want rows of a table of positions",
					operand(last.In, 1).Buf)
			}
			add("int", "kPositions", itoa(table.Shape[0]), "rows of the table")
			add("int", "kPositionOffset", itoa(positionOffset(last)), "its row for position 0")
		}
	case bodyAddNormRows:
		fs = append(fs, branchFields(s)...)
	case bodyProduct:
		add("bool", "kEmpty", fmt.Sprint(d.Empty), emptyNote(d.Empty))
		warps := knobs.Warps.Of(&b.p.Config, s.Role)
		f := b.matrix(s, at).Format()
		columns := b.rangeExtent(op(s, ir.GEMV).In[1].Dims[1])
		if err := cmp.Or(b.checkGEMV(s, f, columns, warps), b.checkReadAgain(s, at, f, columns, warps)); err != nil {
			return nil, err
		}
		for _, k := range knobs.StageConstants() {
			c := k.Row().Constant
			add(c.Type, c.Name, itoa(k.Of(&b.p.Config, s.Role)), c.Note)
		}
	case bodyAttend:
		a := op(s, ir.ATTENTION)
		splits := a.IntAt("parts", 0, 1)
		if flags := a.IntAt("flags", 0, 0); (flags&2 != 0) != (splits > 1) {
			return nil, diag.Errorf(codeStage, "stage "+s.Name,
				"has flags=%d and parts=%d; splits of the rows have partial results, which flags=2 asks for, and a "+
					"whole unit has none",
				flags, splits)
		}
		add("int", "kSplits", itoa(splits), "of a kv head's rows")
		rows := a.IntAt("block", 0, b.wholeShare())
		if err := b.checkAttention(s, rows); err != nil {
			return nil, err
		}
		add("int", "kShareRows", itoa(rows), "cache rows per chunk, dealt round robin to splits")
		add("int", "kWindowRows", itoa(a.Window()), "that a position sees, its own among them; 0: all")
		scale := a.FloatOr("scale", 1)
		add("float", "kScale", hexFloat(scale), decimal(scale))
		limit := a.FloatOr("cap", 0)
		add("float", "kScoreCap", hexFloat(limit), decimal(limit)+", of scaled scores; 0: none")
		if normsHeads(s) {
			norm := &s.Ops[0]
			eps := norm.FloatOr("eps", 0)
			add("float", "kNormEps", hexFloat(eps), decimal(eps)+", of the norms of q and k")
			add("bool", "kNormUnitOffset", fmt.Sprint(norm.IntAt("unit_offset", 0, 0) == 1), "times 1 + weight")
			add("bool", "kWholeNorm", fmt.Sprint(normsWhole(s)), "one of all of q and one of all of k")
			add("bool", "kNormCentred", fmt.Sprint(centresHeads(s)), "the mean is taken off")
			add("bool", "kNormShifted", fmt.Sprint(shiftsHeads(s)), "a bias is added")
			add("bool", "kOwnGains", fmt.Sprint(hasOwnGains(s)), "each head has weights of its own")
			add("bool", "kRotates", fmt.Sprint(rotatesHeads(s)), "q and k, once they are normalised")
			if rotatesHeads(s) {
				add("int", "kAngles", itoa(b.rotationOf(op(s, ir.ROPE), at).number), "table that q and k rotate by")
			}
		}
	case bodyCombine:
		c := op(s, ir.AttentionCombine)
		add("int", "kSplits", itoa(c.IntAt("splits", 0, 1)), "")
		add("int", "kWidth", itoa(b.combineWidth(s)), "elements of a unit")
	}
	return fs, nil
}

// emptyNote says what an SM without rows does.
func emptyNote(empty bool) string {
	if empty {
		return "SMs without rows take part too"
	}
	return "SMs without rows skip the stage"
}

// wholeShare is the number of cache rows of a chunk when a unit has all rows: as many 16-row blocks as fit a ring slot,
// one for each consumer warp at most.
func (b *builder) wholeShare() int {
	return 16 * max(1, min(8, knobs.ChunkBytes.Of(&b.p.Config)/b.cacheBytes(16)))
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
