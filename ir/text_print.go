package ir

import (
	"strconv"
)

// Print returns the text form of the program. ParseText reads it back; docs/ir.md has the grammar.
func Print(p *Program) []byte {
	t := printer{}
	t.line("amk ", Version)
	t.b = appendName(append(t.b, "model "...), p.Model.Name)
	t.keyed(p.Model.printed("arch"))
	t.layerFacts(&p.Model)
	if p.Target != nil {
		t.b = appendName(append(t.b, "target "...), p.Target.Name)
		t.keyed(p.Target.fields())
	}
	if pass := p.Pass.Written(); pass != (Pass{Sequences: 1, Rows: 1}) {
		t.put("pass")
		t.keyed(passFields(&pass))
	}
	if n := p.NumRanks(); n > 1 {
		t.put("ranks ")
		t.int(n)
		t.line()
	}
	t.b = append(p.Config.append(append(t.b, "config "...)), '\n')
	for i := range p.Pages {
		t.page(&p.Pages[i])
	}
	for i := range p.Buffers {
		t.buffer(&p.Buffers[i])
	}
	for i := range p.Groups {
		t.group(&p.Groups[i])
	}
	for i := range p.Variants {
		t.variant(&p.Variants[i])
	}
	return t.b
}

type printer struct{ b []byte }

// line prints words as they are, and a line break.
func (t *printer) line(words ...string) {
	t.put(words...)
	t.b = append(t.b, '\n')
}

func (t *printer) put(words ...string) {
	for _, w := range words {
		t.b = append(t.b, w...)
	}
}

func (t *printer) name(n string) { t.b = appendName(t.b, n) }
func (t *printer) int(n int)     { t.b = strconv.AppendInt(t.b, int64(n), 10) }

func (t *printer) interval(lo, hi int) {
	t.int(lo)
	t.put("..")
	t.int(hi)
}

// indices prints those of a family, a loop or a group after its name.
func (t *printer) indices(first, last, step int) {
	t.put(" for ")
	t.interval(first, last)
	if step > 1 {
		t.put(" by ")
		t.int(step)
	}
}

// keyed prints fields, and a line break.
func (t *printer) keyed(fields []field) {
	for _, f := range fields {
		t.put(" ", f.key, "=")
		t.b = f.append(t.b)
	}
	t.b = append(t.b, '\n')
}

// keyedName prints a field that is left out where it is empty.
func (t *printer) keyedName(key, name string) {
	if name != "" {
		t.put(" ", key, "=")
		t.name(name)
	}
}

func (t *printer) page(pg *Page) {
	t.put("page ")
	t.name(pg.Name)
	t.put(" ", pg.Space.String(), " ", pg.Layout.String(), " bytes=")
	t.int(pg.Bytes)
	t.line()
}

func (t *printer) buffer(b *Buffer) {
	t.put("buffer ")
	t.name(b.Name)
	if b.Count > 0 {
		t.indices(b.First, b.Last(), b.Step)
	}
	t.put(" ", b.Kind.String(), " ", b.DType.String(), " [")
	for i, d := range b.Shape {
		if i > 0 {
			t.put(",")
		}
		t.int(d)
	}
	t.put("] ", b.Space.String(), " ", b.Layout.String())
	if role := printedRole(b.Role, b.NamedRole()); role != "" {
		t.put(" role ")
		t.name(role)
	}
	for i, pc := range b.Pieces {
		if i == 0 {
			t.put(" from")
		}
		t.put(" ", pc.String())
	}
	for i, pg := range b.Pages {
		if i == 0 {
			t.put(" page")
		}
		t.put(" ")
		t.name(pg)
	}
	t.line()
}

func (t *printer) group(g *Group) {
	t.put("group ")
	t.name(g.Name)
	t.indices(g.First, g.Last(), g.Step)
	t.put(" of")
	for _, m := range g.Members {
		t.put(" ")
		t.name(m)
	}
	t.line()
}

func (t *printer) variant(v *Variant) {
	t.put("variant ")
	t.name(v.Name)
	t.put(" pos ")
	t.interval(v.Lo, v.Hi)
	t.line()
	for i := range v.Counters {
		t.counter(&v.Counters[i])
	}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *Stage:
			t.stage(n)
		case *Loop:
			t.put("loop ")
			t.name(n.Name)
			t.indices(n.First, n.Last(), n.Step)
			t.kinds(n.Kinds)
			t.line()
			for _, s := range n.Body {
				t.stage(s)
			}
			t.line("end")
		}
	}
}

// layerFacts prints a line for each kind of layers that a model tells apart, and one that says which layers are of
// which.
func (t *printer) layerFacts(m *Model) {
	for i := range m.Kinds {
		t.put("facts")
		t.keyed(stated(m.Kinds[i].fields()))
	}
	if len(m.LayerKinds) > 0 {
		t.put("layers")
		t.kinds(m.LayerKinds)
		t.line()
	}
}

func (t *printer) kinds(kinds []int) {
	for k, kind := range kinds {
		if k == 0 {
			t.put(" kinds")
		}
		t.put(" ")
		t.int(kind)
	}
}

func (t *printer) counter(c *Counter) {
	t.put("counter ")
	t.name(c.Name)
	if c.Count > 0 {
		t.indices(c.First, c.Last(), c.Step)
	}
	t.put(" ", c.How.String(), " ", c.Scope.String())
	if c.Init != 0 {
		t.put(" init=")
		t.int(c.Init)
	}
	t.keyedName("role", printedRole(c.Role, c.NamedRole()))
	t.line()
}

func (t *printer) stage(s *Stage) {
	t.put("stage ")
	t.name(s.Name)
	t.put(" ", s.Dist.Kind.String())
	for _, f := range s.Dist.fields() {
		if s.Dist.printed(f) {
			t.put(" ", f.key, "=")
			t.b = f.append(t.b)
		}
	}
	if s.Kind != 0 {
		t.put(" kind=")
		t.int(s.Kind)
	}
	_, named := s.named()
	t.keyedName("role", printedRole(s.Role, named))
	t.keyedName("layer", s.layerToPrint())
	if s.Dist.Empty {
		t.put(" empty")
	}
	t.line()
	for _, sp := range s.Dist.Spans {
		t.put("  task sm=")
		t.int(sp.SM)
		t.put(" a=")
		t.int(sp.A)
		t.put(" b=")
		t.int(sp.B)
		t.line()
	}
	for _, w := range s.Waits {
		t.put("  wait ")
		t.name(w.Counter)
		t.put(" >= ")
		t.int(w.Threshold)
		t.line()
	}
	for i := range s.Ops {
		t.op(&s.Ops[i])
	}
	if s.Signal != "" {
		t.put("  signal ")
		t.name(s.Signal)
		t.line()
	}
}

func (t *printer) op(o *Op) {
	t.put("  ")
	t.operands(o.Out)
	if len(o.Out) > 0 {
		t.put(" = ")
	}
	t.put(o.Code.String(), "(")
	t.operands(o.In)
	t.put(")")
	for _, p := range o.Params {
		t.put(" ")
		t.name(p.Key)
		t.put("=", p.value())
	}
	t.line()
}

func (t *printer) operands(ops []Operand) {
	for i, o := range ops {
		if i > 0 {
			t.put(", ")
		}
		t.b = o.append(t.b)
	}
}

// PrintStage returns a stage as the text form has it, its ops and tasks included.
func PrintStage(s *Stage) string {
	var t printer
	t.stage(s)
	return string(t.b)
}

// PrintOp returns an op as the text form has it, without indentation.
func PrintOp(o *Op) string {
	var t printer
	t.op(o)
	return string(t.b[2 : len(t.b)-1])
}

// String returns the parameter as the text form has it.
func (p Param) String() string { return p.Key + "=" + p.value() }
