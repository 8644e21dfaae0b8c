package ir

import (
	"strings"

	"amkc/ir/diag"
)

// ParseJSON reads the native JSON form of a program. It reports up to 20 errors at FILE:LINE:COLUMN; the program is nil
// if there is any. Unknown fields are errors. Like ParseText, it checks the schema and leaves the rest to Check.
func ParseJSON(data []byte, file string) (*Program, diag.List) {
	s := string(data)
	r := newJSONReader(s, 0, filePos(file, s))
	p := r.program()
	r.end()
	if len(r.diags) > 0 {
		return nil, r.diags
	}
	return p, nil
}

func (r *jsonReader) program() *Program {
	p := &Program{}
	r.object("program", []string{"ir_version", "model", "buffers", "variants"}, func(key string) bool {
		switch key {
		case "ir_version":
			r.peek()
			at := r.i
			if d := checkVersion(r.str(key), r.pos(at)); d != nil && !r.stopped {
				r.diags.Add(d)
				r.stopped = true // whatever follows may mean anything
			}
		case "model":
			fields, done := p.Model.reading("architecture")
			fields = append(fields, field{"name", &p.Model.Name})
			r.object(key, nil, func(key string) bool {
				switch m := &p.Model; key {
				case "facts":
					r.arrayOf(key, maxKinds, func() { m.Kinds = append(m.Kinds, r.layerFacts()) })
				case "layer_kinds":
					r.arrayOf(key, maxKinds, func() { m.LayerKinds = append(m.LayerKinds, r.int("kind")) })
				default:
					return r.field(fields, key)
				}
				return true
			})
			done()
		case "target":
			p.Target = &Target{}
			fields := append(p.Target.fields(), field{"name", &p.Target.Name})
			r.object(key, nil, func(key string) bool { return r.field(fields, key) })
		case "pass":
			r.object(key, nil, func(key string) bool { return r.field(passFields(&p.Pass), key) })
			p.Pass = PassOf(p.Pass.Sequences, p.Pass.Rows)
		case "ranks":
			p.Ranks = ranksOf(r.int(key))
		case "config":
			p.Config = r.config()
		case "pages":
			r.array(key, func() { p.Pages = append(p.Pages, r.page()) })
		case "buffers":
			r.array(key, func() { p.Buffers = append(p.Buffers, r.buffer()) })
		case "groups":
			r.array(key, func() { p.Groups = append(p.Groups, r.group()) })
		case "variants":
			r.arrayOf(key, MaxVariants, func() { p.Variants = append(p.Variants, r.variant()) })
		default:
			return false
		}
		return true
	})
	return p
}

func (r *jsonReader) page() Page {
	var pg Page
	fields := []field{{"name", &pg.Name}, {"bytes", &pg.Bytes}}
	r.object("page", []string{"name", "space", "layout", "bytes"}, func(key string) bool {
		switch key {
		case "space":
			pg.Space = enumJSON(r, key, ParseSpace)
		case "layout":
			pg.Layout = enumJSON(r, key, ParseLayout)
		default:
			return r.field(fields, key)
		}
		return true
	})
	return pg
}

// indices checks what the object at an offset says about its indices, as the text form would, and returns the step as
// programs hold it.
func (r *jsonReader) indices(at, first, count, step, least int) int {
	switch {
	case step < 1:
		r.errorf(at, "indices by %d, want a step of 1 or more", step)
	case first < 0 || count < least:
		r.errorf(at, "first %d and count %d, want indices from 0 on", first, count)
	case indexOf(first, step, count-1) > maxInt:
		r.errorf(at, "first %d, count %d and step %d, want a last index of at most 2^53", first, count, step)
	}
	return oneAsZero(step)
}

func (r *jsonReader) buffer() Buffer {
	var b Buffer
	b.Step = 1
	role := ""
	fields := []field{{"name", &b.Name}, {"first", &b.First}, {"count", &b.Count}, {"step", &b.Step}, {"role", &role}}
	r.peek()
	at := r.i
	r.object("buffer", []string{"name", "kind", "dtype", "shape", "space", "layout"}, func(key string) bool {
		switch key {
		case "kind":
			b.Kind = enumJSON(r, key, ParseBufferKind)
		case "dtype":
			b.DType = enumJSON(r, key, ParseDType)
		case "shape":
			r.arrayOf(key, MaxRank, func() { b.Shape = append(b.Shape, r.int("a dimension")) })
		case "space":
			b.Space = enumJSON(r, key, ParseSpace)
		case "layout":
			b.Layout = enumJSON(r, key, ParseLayout)
		case "from":
			r.arrayOf(key, maxPieces, func() { b.Pieces = append(b.Pieces, enumJSON(r, "piece", ParsePiece)) })
		case "pages":
			b.Pages = r.names(key, maxPages)
		default:
			return r.field(fields, key)
		}
		return true
	})
	least := 0
	if b.First != 0 || b.Step != 1 {
		least = 1 // only families have indices
	}
	b.Step = r.indices(at, b.First, b.Count, b.Step, least)
	b.Role = readRole(role, b.NamedRole())
	return b
}

func (r *jsonReader) group() Group {
	g := Group{Step: 1}
	fields := []field{{"name", &g.Name}, {"first", &g.First}, {"step", &g.Step}}
	r.peek()
	at := r.i
	r.object("group", []string{"name", "first", "members"}, func(key string) bool {
		if key == "members" {
			g.Members = r.names(key, MaxBuffers)
			return true
		}
		return r.field(fields, key)
	})
	g.Step = r.indices(at, g.First, len(g.Members), g.Step, 1)
	return g
}

func (r *jsonReader) variant() Variant {
	var v Variant
	fields := []field{{"name", &v.Name}, {"lo", &v.Lo}, {"hi", &v.Hi}}
	r.object("variant", []string{"name", "lo", "hi", "counters", "body"}, func(key string) bool {
		switch key {
		case "counters":
			r.array(key, func() { v.Counters = append(v.Counters, r.counter()) })
		case "body":
			r.array(key, func() { v.Body = append(v.Body, r.node()) })
		default:
			return r.field(fields, key)
		}
		return true
	})
	return v
}

func (r *jsonReader) counter() Counter {
	var c Counter
	c.Step = 1
	role := ""
	fields := []field{{"name", &c.Name}, {"first", &c.First}, {"count", &c.Count}, {"step", &c.Step},
		{"init", &c.Init}, {"role", &role}}
	r.peek()
	at := r.i
	r.object("counter", []string{"name", "realisation", "scope"}, func(key string) bool {
		switch key {
		case "realisation":
			c.How = enumJSON(r, key, ParseRealisation)
		case "scope":
			c.Scope = enumJSON(r, key, ParseScope)
		default:
			return r.field(fields, key)
		}
		return true
	})
	least := 0
	if c.First != 0 || c.Step != 1 {
		least = 1
	}
	c.Step = r.indices(at, c.First, c.Count, c.Step, least)
	c.Role = readRole(role, c.NamedRole())
	return c
}

// node reads a loop or a stage: an object is a loop if `loop` is its first field.
func (r *jsonReader) node() Node {
	start := r.i
	loop := false
	if r.peek() == '{' {
		r.i++
		loop = r.peek() == '"' && strings.HasPrefix(r.s[r.i:], `"loop"`)
		r.i = start
	}
	if !loop {
		return r.stage()
	}
	l := &Loop{Step: 1}
	fields := []field{{"loop", &l.Name}, {"first", &l.First}, {"count", &l.Count}, {"step", &l.Step}}
	r.object("loop", []string{"first", "count", "body"}, func(key string) bool {
		switch key {
		case "body":
			r.array(key, func() { l.Body = append(l.Body, r.stage()) })
			return true
		case "kinds":
			r.arrayOf(key, maxKinds, func() { l.Kinds = append(l.Kinds, r.int("kind")) })
			return true
		}
		return r.field(fields, key)
	})
	l.Step = r.indices(start, l.First, l.Count, l.Step, 0)
	return l
}

func (r *jsonReader) stage() *Stage {
	s := &Stage{}
	role, layer := "", ""
	fields := []field{{"stage", &s.Name}, {"kind", &s.Kind}, {"signal", &s.Signal}, {"role", &role}, {"layer", &layer}}
	r.peek()
	at := r.i
	r.object("stage", []string{"stage", "dist", "ops"}, func(key string) bool {
		switch key {
		case "dist":
			s.Dist = r.dist()
		case "waits":
			r.arrayOf(key, maxWaits, func() { s.Waits = append(s.Waits, r.wait()) })
		case "ops":
			r.arrayOf(key, maxOps, func() { s.Ops = append(s.Ops, r.op()) })
		default:
			return r.field(fields, key)
		}
		return true
	})
	if err := s.read(role, layer); err != nil {
		r.errorf(at, "%v", err)
	}
	return s
}

func (r *jsonReader) dist() Dist {
	var d Dist
	grain := false
	fields := append(d.fields(), field{"empty", &d.Empty})
	r.peek()
	at := r.i
	r.object("dist", []string{"kind"}, func(key string) bool {
		switch key {
		case "kind":
			d.Kind = enumJSON(r, key, ParseDistKind)
		case "tasks":
			r.arrayOf(key, MaxTasks, func() {
				var t TaskSpan
				span := []field{{"sm", &t.SM}, {"a", &t.A}, {"b", &t.B}}
				r.object("task", []string{"sm", "a", "b"}, func(key string) bool { return r.field(span, key) })
				d.Spans = append(d.Spans, t)
			})
		default:
			grain = grain || key == "grain"
			return r.field(fields, key)
		}
		return true
	})
	if !grain {
		d.Grain = d.defaultGrain()
	}
	if len(d.Spans) > 0 && d.Kind != Explicit {
		r.errorf(at, "tasks in a distribution that is not explicit")
	}
	return d
}

func (r *jsonReader) wait() Wait {
	var w Wait
	fields := []field{{"counter", &w.Counter}, {"threshold", &w.Threshold}}
	r.object("wait", []string{"counter", "threshold"}, func(key string) bool { return r.field(fields, key) })
	return w
}

func (r *jsonReader) op() Op {
	var o Op
	r.object("op", []string{"op", "out", "in"}, func(key string) bool {
		switch key {
		case "op":
			o.Code = enumJSON(r, key, ParseOpcode)
		case "out":
			r.arrayOf(key, maxOperands, func() { o.Out = append(o.Out, enumJSON(r, "operand", ParseOperand)) })
		case "in":
			r.arrayOf(key, maxOperands, func() { o.In = append(o.In, enumJSON(r, "operand", ParseOperand)) })
		case "params":
			r.object(key, nil, func(key string) bool {
				if len(o.Params) == maxParams {
					r.errorf(r.i, "more than %d parameters", maxParams)
				}
				r.checkName(r.i, "a parameter", key)
				o.Params = append(o.Params, r.param(key))
				return true
			})
		default:
			return false
		}
		return true
	})
	return o
}

// param reads a number or an expression.
func (r *jsonReader) param(key string) Param {
	if r.peek() == '"' {
		return IntParam(key, enumJSON(r, "parameter "+clip(key), ParseExpr))
	}
	if strings.ContainsAny(r.bare(), ".eE") {
		return FloatParam(key, r.float(key))
	}
	return IntParam(key, Int(r.int(key)))
}

func (r *jsonReader) layerFacts() LayerFacts {
	f := LayerFacts{}
	r.object("facts", nil, func(key string) bool { return r.field(f.fields(), key) })
	return f
}
