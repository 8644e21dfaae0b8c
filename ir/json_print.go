package ir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// MarshalJSON returns the native JSON form, one entity a line so that it diffs well. Call it directly to keep the
// lines: json.Marshal removes them. The only error is a float that is not finite, which JSON cannot hold.
func (p *Program) MarshalJSON() ([]byte, error) {
	j := jsonPrinter{}
	j.put(`{`)
	j.line(1, `"ir_version": `)
	j.str(Version)
	j.put(",")
	j.line(1, `"model": {"name": `)
	j.str(p.Model.Name)
	j.fields(p.Model.printed("architecture"))
	if len(p.Model.Kinds) > 0 {
		j.key("facts")
		each(&j, 2, p.Model.Kinds, func(j *jsonPrinter, f *LayerFacts) {
			j.put(`{"intermediate": `)
			j.int(f.Intermediate)
			j.fields(stated(f.fields())[1:])
			j.put("}")
		})
		j.key("layer_kinds")
		j.ints(p.Model.LayerKinds)
	}
	j.put("},")
	if p.Target != nil {
		j.line(1, `"target": {"name": `)
		j.str(p.Target.Name)
		j.fields(p.Target.fields())
		j.put("},")
	}
	if pass := p.Pass.Written(); pass != (Pass{Sequences: 1, Rows: 1}) {
		j.line(1, `"pass": {"sequences": `)
		j.int(pass.Sequences)
		j.keyInt("rows", pass.Rows)
		j.put("},")
	}
	if n := p.NumRanks(); n > 1 {
		j.line(1, `"ranks": `)
		j.int(n)
		j.put(",")
	}
	j.line(1, `"config": `)
	j.b = p.Config.append(j.b)
	j.put(",")
	j.line(1, `"pages": `)
	each(&j, 2, p.Pages, (*jsonPrinter).page)
	j.put(",")
	j.line(1, `"buffers": `)
	each(&j, 2, p.Buffers, (*jsonPrinter).buffer)
	j.put(",")
	if len(p.Groups) > 0 {
		j.line(1, `"groups": `)
		each(&j, 2, p.Groups, (*jsonPrinter).group)
		j.put(",")
	}
	j.line(1, `"variants": `)
	each(&j, 2, p.Variants, (*jsonPrinter).variant)
	j.line(0, "}\n")
	return j.b, j.err
}

type jsonPrinter struct {
	b   []byte
	err error
}

func (j *jsonPrinter) put(s string)      { j.b = append(j.b, s...) }
func (j *jsonPrinter) int(n int)         { j.b = appendInt(j.b, n) }
func (j *jsonPrinter) str(s string)      { j.b = appendString(j.b, s) }
func (j *jsonPrinter) names(ss []string) { j.b = appendNames(j.b, ss) }

// line starts a new line, indented by one space a level.
func (j *jsonPrinter) line(indent int, s string) {
	j.b = append(j.b, '\n')
	for range indent {
		j.b = append(j.b, ' ')
	}
	j.put(s)
}

// each prints an array with an element a line.
func each[T any](j *jsonPrinter, indent int, items []T, print func(*jsonPrinter, *T)) {
	j.put("[")
	for i := range items {
		j.b = appendComma(j.b, i)
		j.line(indent, "")
		print(j, &items[i])
	}
	if len(items) > 0 {
		j.line(indent-1, "")
	}
	j.put("]")
}

func (j *jsonPrinter) key(k string) {
	j.put(`, "`)
	j.put(k)
	j.put(`": `)
}

func (j *jsonPrinter) keyInt(k string, n int) {
	j.key(k)
	j.int(n)
}

func (j *jsonPrinter) keyStr(k, s string) {
	j.key(k)
	j.str(s)
}

func (j *jsonPrinter) fields(fields []field) {
	for _, f := range fields {
		j.key(f.key)
		switch p := f.ptr.(type) {
		case *float64:
			j.finite(*p)
			j.b = f.append(j.b)
		case *string:
			j.str(*p)
		case *DType:
			j.str(p.String())
		default:
			j.b = f.append(j.b)
		}
	}
}

func (j *jsonPrinter) finite(v float64) {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		j.err = fmt.Errorf("a program with the float %v has no JSON form", v)
	}
}

// appendString prints a JSON string; unlike json.Marshal it leaves <, > and & as they are.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(s); err != nil {
				return append(dst, `""`...) // strings always encode
			}
			return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

func (j *jsonPrinter) page(pg *Page) {
	j.put(`{"name": `)
	j.str(pg.Name)
	j.keyStr("space", pg.Space.String())
	j.keyStr("layout", pg.Layout.String())
	j.keyInt("bytes", pg.Bytes)
	j.put("}")
}

// role prints a role, unless it is left out.
func (j *jsonPrinter) role(role string) {
	if role != "" {
		j.keyStr("role", role)
	}
}

func (j *jsonPrinter) family(first, count, step int) {
	if count > 0 {
		j.keyInt("first", first)
		j.keyInt("count", count)
		j.step(step)
	}
}

// step prints that between indices, unless it is 1.
func (j *jsonPrinter) step(step int) {
	if step > 1 {
		j.keyInt("step", step)
	}
}

func (j *jsonPrinter) buffer(b *Buffer) {
	j.put(`{"name": `)
	j.str(b.Name)
	j.family(b.First, b.Count, b.Step)
	j.role(printedRole(b.Role, b.NamedRole()))
	j.keyStr("kind", b.Kind.String())
	j.keyStr("dtype", b.DType.String())
	j.key("shape")
	j.ints(b.Shape)
	j.keyStr("space", b.Space.String())
	j.keyStr("layout", b.Layout.String())
	if len(b.Pieces) > 0 {
		j.key("from")
		j.put("[")
		for i, pc := range b.Pieces {
			j.b = appendComma(j.b, i)
			j.str(pc.String())
		}
		j.put("]")
	}
	if len(b.Pages) > 0 {
		j.key("pages")
		j.names(b.Pages)
	}
	j.put("}")
}

func (j *jsonPrinter) group(g *Group) {
	j.put(`{"name": `)
	j.str(g.Name)
	j.keyInt("first", g.First)
	j.step(g.Step)
	j.key("members")
	j.names(g.Members)
	j.put("}")
}

func (j *jsonPrinter) variant(v *Variant) {
	j.put(`{"name": `)
	j.str(v.Name)
	j.keyInt("lo", v.Lo)
	j.keyInt("hi", v.Hi)
	j.key("counters")
	each(j, 3, v.Counters, (*jsonPrinter).counter)
	j.key("body")
	each(j, 3, v.Body, func(j *jsonPrinter, n *Node) {
		switch n := (*n).(type) {
		case *Stage:
			j.stage(n)
		case *Loop:
			j.put(`{"loop": `)
			j.str(n.Name)
			j.keyInt("first", n.First)
			j.keyInt("count", n.Count)
			j.step(n.Step)
			if len(n.Kinds) > 0 {
				j.key("kinds")
				j.ints(n.Kinds)
			}
			j.key("body")
			each(j, 4, n.Body, func(j *jsonPrinter, s **Stage) { j.stage(*s) })
			j.put("}")
		}
	})
	j.put("}")
}

func (j *jsonPrinter) ints(list []int) {
	j.put("[")
	for i, n := range list {
		j.b = appendComma(j.b, i)
		j.int(n)
	}
	j.put("]")
}

func (j *jsonPrinter) counter(c *Counter) {
	j.put(`{"name": `)
	j.str(c.Name)
	j.family(c.First, c.Count, c.Step)
	j.role(printedRole(c.Role, c.NamedRole()))
	j.keyStr("realisation", c.How.String())
	j.keyStr("scope", c.Scope.String())
	if c.Init != 0 {
		j.keyInt("init", c.Init)
	}
	j.put("}")
}

func (j *jsonPrinter) stage(s *Stage) {
	j.put(`{"stage": `)
	j.str(s.Name)
	_, named := s.named()
	j.role(printedRole(s.Role, named))
	if layer := s.layerToPrint(); layer != "" {
		j.keyStr("layer", layer)
	}
	if s.Kind != 0 {
		j.keyInt("kind", s.Kind)
	}
	j.key("dist")
	j.put(`{"kind": `)
	j.str(s.Dist.Kind.String())
	for _, f := range s.Dist.fields() {
		if s.Dist.printed(f) {
			j.fields([]field{f})
		}
	}
	if s.Dist.Empty {
		j.key("empty")
		j.put("true")
	}
	if len(s.Dist.Spans) > 0 {
		j.key("tasks")
		each(j, 5, s.Dist.Spans, func(j *jsonPrinter, t *TaskSpan) {
			j.put(`{"sm": `)
			j.int(t.SM)
			j.keyInt("a", t.A)
			j.keyInt("b", t.B)
			j.put("}")
		})
	}
	j.put("}")
	if len(s.Waits) > 0 {
		j.key("waits")
		each(j, 5, s.Waits, func(j *jsonPrinter, w *Wait) {
			j.put(`{"counter": `)
			j.str(w.Counter)
			j.keyInt("threshold", w.Threshold)
			j.put("}")
		})
	}
	j.key("ops")
	each(j, 5, s.Ops, (*jsonPrinter).op)
	if s.Signal != "" {
		j.keyStr("signal", s.Signal)
	}
	j.put("}")
}

func (j *jsonPrinter) op(o *Op) {
	j.put(`{"op": `)
	j.str(o.Code.String())
	j.operands("out", o.Out)
	j.operands("in", o.In)
	if len(o.Params) > 0 {
		j.key("params")
		j.put("{")
		for i, p := range o.Params {
			j.b = appendComma(j.b, i)
			j.str(p.Key)
			j.put(": ")
			j.param(p)
		}
		j.put("}")
	}
	j.put("}")
}

// param prints a number when the value is one, with a point or an exponent when it is a float, else an expression.
func (j *jsonPrinter) param(p Param) {
	n, number := p.Int.IsConst()
	if p.IsFloat {
		j.finite(p.Float)
	}
	if number && abs(n) <= maxInt {
		j.put(p.value())
	} else {
		j.str(p.value())
	}
}

func (j *jsonPrinter) operands(key string, ops []Operand) {
	j.key(key)
	j.put("[")
	for i, o := range ops {
		if i > 0 {
			j.put(", ")
		}
		j.str(o.String())
	}
	j.put("]")
}
