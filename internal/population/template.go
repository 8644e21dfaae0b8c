package population

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"text/template"

	"amkc/ir"
)

// Templates are programs in text form with choices in them. What is wrong with a program is not theirs: operators break
// what they make.
//
//go:embed templates
var templateFiles embed.FS

// A writer writes programs by the templates. Their functions draw from its source, and keep what they draw in vars,
// which is the dot of every template.
type writer struct {
	*rand.Rand
	vars      map[string]any
	templates *template.Template
	declared  string // buffers of operands
	before    string // ops that make temporaries of them
}

// writers are those that are not in use: parsing the templates takes longer than writing a program.
var writers = sync.Pool{New: func() any {
	w := &writer{}
	w.templates = template.Must(template.New("").Delims("<<", ">>").Funcs(w.choices()).Funcs(w.operandFuncs()).
		ParseFS(templateFiles, "templates/*.tmpl"))
	return w
}}

func (w *writer) choices() template.FuncMap {
	fold := func(f func(a, b int) int) func(a, b int, more ...int) int {
		return func(a, b int, more ...int) int {
			a = f(a, b)
			for _, b := range more {
				a = f(a, b)
			}
			return a
		}
	}
	return template.FuncMap{
		"set":     func(name string, v any) string { w.vars[name] = v; return "" },
		"pick":    func(list ...any) any { return pick(w.Rand, list) },
		"chance":  func(n int) bool { return chance(w.Rand, n) },
		"int":     func(n int) int { return w.IntN(n) },
		"between": func(lo, hi int) int { return lo + w.IntN(hi-lo+1) },
		"add":     fold(func(a, b int) int { return a + b }),
		"sub":     fold(func(a, b int) int { return a - b }),
		"mul":     fold(func(a, b int) int { return a * b }),
		"div":     func(a, b int) int { return a / b },
		"mod":     func(a, b int) int { return a % b },
		"min":     fold(func(a, b int) int { return min(a, b) }),
		"max":     fold(func(a, b int) int { return max(a, b) }),
		"shifted": shifted,
		"double":  doubled,
		"still":   func(d dist) dist { d.Step = 0; return d },
		"fields":  strings.Fields,
		"digit":   func(s string, i int) int { return int(s[i] - '0') },
		"spans":   func(extent, grain, sms int) dist { return spans(w.Rand, extent, grain, sms) },
		"alone":   func(sms int) dist { return dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: w.IntN(sms), B: 1}}} },
		"seq": func(n int) []int {
			out := make([]int, n)
			for i := range out {
				out[i] = i
			}
			return out
		},
		// some are n elements of a list.
		"some": func(n int, list ...any) []any {
			out := make([]any, n)
			for i := range out {
				out[i] = pick(w.Rand, list)
			}
			return out
		},
		// list is a list with more elements.
		"list": func(parts ...any) []any { return flattened(parts) },
		"dict": func(pairs ...string) map[string]string {
			out := map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				out[pairs[i]] = pairs[i+1]
			}
			return out
		},
		// walk is a list of n elements of which none is the one before it.
		"walk": func(n int, list ...any) []any {
			out := []any{pick(w.Rand, list)}
			for len(out) < n {
				if v := pick(w.Rand, list); v != out[len(out)-1] {
					out = append(out, v)
				}
			}
			return out
		},
		// members are the indices of a family.
		"members": func(first, step, n int) string {
			return fmt.Sprintf("%d..%d by %d", first, first+(n-1)*step, step)
		},
		// word is the layout of exchange words of a type.
		"word": func(dtype string) string {
			if dtype == "F32" {
				return "word64"
			}
			return "word32"
		},
		// how realises a counter: as the program does mostly, and by counting where it orders plain memory or where few
		// SMs end the step.
		"how": func(of map[string]any, plain any) string {
			switch is, _ := template.IsTrue(plain); {
			case is || of["tail"] != "full" || chance(w.Rand, 7):
				return "counter"
			default:
				return fmt.Sprint(of["how"])
			}
		},
		// turns are the pages of the j-th of the vectors of an iteration, which take turns on them.
		"turns": func(pages, vectors, j int) string {
			if pages == 0 {
				return ""
			}
			out := "page"
			for i := range pages {
				if out += fmt.Sprintf(" p%d", (i*vectors+j)%pages); vectors%pages == 0 {
					break
				}
			}
			return out
		},
	}
}

// drawn makes a program of a template. One that is made with care has nothing that is more often wrong than not.
func drawn(r *rand.Rand, name string, care bool) *ir.Program {
	w := writers.Get().(*writer)
	defer writers.Put(w)
	w.Rand, w.vars = r, map[string]any{"care": care}
	var text strings.Builder
	if err := w.templates.ExecuteTemplate(&text, name+".tmpl", w.vars); err != nil {
		panic("population: " + err.Error())
	}
	p := parse(text.String(), name)
	for i := range p.Variants {
		v := &p.Variants[i]
		var body []ir.Node
		for _, n := range v.Body {
			if l, ok := n.(*ir.Loop); ok && l.Count == 1 && chance(r, 2) { // a layer without a loop
				for _, s := range l.Body {
					body = append(body, resolved(s, l.First))
				}
				continue
			}
			body = append(body, n)
		}
		v.Body = body
		e := newEdit(r, p, v)
		for _, s := range e.stages {
			for k := range s.Waits {
				s.Waits[k].Threshold = e.producers(s.Waits[k].Counter)
			}
		}
	}
	ir.NameRoles(p)
	return p
}

// parse reads a program whose declarations stand wherever they are needed. What its waits wait for is told later.
func parse(text, name string) *ir.Program {
	head, body := "amk "+ir.Version+"\n", ""
	counters := 0 // where they go in body
	for line := range strings.Lines(text) {
		switch word, _, _ := strings.Cut(line, " "); strings.TrimSpace(word) {
		case "model", "target", "pass", "page", "buffer", "group":
			head += line
		case "variant":
			body += line
			counters = len(body)
		case "counter":
			body = body[:counters] + line + body[counters:]
		case "":
			if strings.TrimSpace(line) != "" {
				body += strings.Replace(line, ">= all", ">= 0", 1)
			}
		default:
			body += line
		}
	}
	p, err := ir.Parse([]byte(head+body), name)
	if err != nil {
		panic(fmt.Sprintf("population: %v\n%s%s", err, head, body))
	}
	return p
}

// dist is a distribution that prints as a stage has it.
type dist ir.Dist

func (d dist) String() string {
	if d.Kind != ir.Explicit {
		return fmt.Sprintf("%v extent=%d grain=%d sms=%d rot=%d step=%d", d.Kind, d.Extent, d.Grain, d.SMs, d.Rot,
			d.Step)
	}
	out := "explicit"
	for _, t := range d.Spans {
		out += fmt.Sprintf("\n  task sm=%d a=%d b=%d", t.SM, t.A, t.B)
	}
	return out
}

// spans draws a distribution of an axis: by units, in spans of which one SM may have none or that may move with each
// iteration, or listed, sometimes two on one SM.
func spans(r *rand.Rand, extent, grain, sms int) dist {
	d := dist{Kind: ir.Spread, Extent: extent, Grain: grain, SMs: sms - r.IntN(6)/5*min(1, sms-2)}
	switch d.Rot, d.Step = r.IntN(d.SMs), r.IntN(3)/2*r.IntN(d.SMs); r.IntN(6) {
	case 0:
		if extent <= 4 && grain == 1 {
			d.Kind = ir.ByUnit
		}
	case 1:
		d = dist{Kind: ir.Explicit}
		grains, first := extent/grain, r.IntN(sms)
		tasks := 1 + r.IntN(min(grains, sms))
		for t := range tasks {
			sm := (first + t*min(1, r.IntN(5))) % sms
			d.Spans = append(d.Spans, ir.TaskSpan{SM: sm, A: grains * t / tasks * grain,
				B: grains * (t + 1) / tasks * grain})
		}
	}
	return d
}

// doubled is a distribution of an axis of twice as many elements, with as many tasks on the same SMs.
func doubled(d dist) dist {
	out := dist{Kind: ir.Explicit}
	for _, t := range (*ir.Dist)(&d).Tasks(0) {
		out.Spans = append(out.Spans, ir.TaskSpan{SM: t.SM, A: 2 * t.A, B: 2 * t.B})
	}
	return out
}
