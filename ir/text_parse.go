package ir

import (
	"bytes"
	"fmt"
	"strings"

	"amkc/ir/diag"
)

// maxReadErrors is how many complaints a reader makes about one file before it stops.
const maxReadErrors = 20

// ParseText reads the text form of a program, as Print writes it and as docs/ir.md describes it. It reports up to 20
// errors, at most one per line, at FILE:LINE:COLUMN; the program is nil if there is any. The result follows the
// grammar. Check reports whether it is well-formed.
func ParseText(data []byte, file string) (*Program, diag.List) {
	t := textParser{file: file, p: &Program{}}
	t.run(data)
	if len(t.diags) > 0 {
		return nil, t.diags
	}
	return t.p, nil
}

type textParser struct {
	file  string
	lineN int
	diags diag.List
	p     *Program

	versioned bool // the first line has been read
	once      onceOnly
	variant   *Variant
	loop      *Loop // the open loop, or nil
	loopLine  int
	stage     *Stage // the last stage, which takes indented lines
	dropped   bool   // the last stage's line was malformed: its ops go unread
}

// onceOnly holds the lines that may appear once.
type onceOnly struct{ model, layers, target, pass, ranks, config bool }

func (t *textParser) errorf(code *diag.Code, col int, format string, args ...any) {
	t.diags.Add(diag.Errorf(code, fmt.Sprintf("%s:%d:%d", t.file, t.lineN, col), format, args...))
}

func (t *textParser) run(data []byte) {
	for len(data) > 0 && len(t.diags) < maxReadErrors {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		t.lineN++
		c := cursor{s: strings.TrimSuffix(string(line), "\r")}
		if !strings.HasPrefix(c.s, "config ") {
			c.s = cutComment(c.s)
		}
		if c.done() {
			continue
		}
		if !t.versioned {
			if !t.version(&c) {
				return
			}
			continue
		}
		t.entity(&c)
		if c.end(); c.err != nil {
			t.errorf(CodeText, c.err.off+1, "%s", c.err.msg)
		}
	}
	if len(t.diags) >= maxReadErrors {
		t.errorf(CodeText, 1, "too many errors")
		return
	}
	if !t.versioned {
		t.errorf(CodeText, 1, "the file is empty, want `amk %s`", Version)
	} else if t.loop != nil {
		t.lineN = t.loopLine
		t.errorf(CodeText, 1, "loop %s has no end", t.loop.Name)
	}
}

// cutComment removes what follows a # that stands outside quotes.
func cutComment(s string) string {
	if strings.IndexByte(s, '#') < 0 {
		return s
	}
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '#' && !quoted:
			return s[:i]
		}
	}
	return s
}

// version reads the first line and reports whether to go on.
func (t *textParser) version(c *cursor) bool {
	t.versioned = true
	if !c.word("amk") {
		t.errorf(CodeText, c.i+1, "a program starts with `amk %s`, found %s", Version, c.found())
		return false
	}
	c.peek()
	col := c.i + 1
	version := c.name("the version")
	c.end()
	if c.err != nil {
		t.errorf(CodeText, c.err.off+1, "%s", c.err.msg)
		return false
	}
	if d := checkVersion(version, fmt.Sprintf("%s:%d:%d", t.file, t.lineN, col)); d != nil {
		t.diags.Add(d)
		return false
	}
	return true
}

// checkVersion accepts every minor version of the reader's major version.
func checkVersion(version, pos string) *diag.Diagnostic {
	major, _, _ := strings.Cut(Version, ".")
	if got, _, _ := strings.Cut(version, "."); got != major {
		return diag.Errorf(CodeVersion, pos, "program version %s, this amkc reads version %s.x; want the model "+
			"compiled again with this amkc, or the amkc that wrote the file", clip(version), major)
	}
	return nil
}

// entity reads one line.
func (t *textParser) entity(c *cursor) {
	switch {
	case c.word("stage"):
		t.stageLine(c)
		return
	case t.stage != nil && t.stageEntity(c):
		return
	}
	t.stage, t.dropped = nil, false
	switch {
	case c.word("model"):
		t.only(c, &t.once.model, "model")
		t.p.Model.Name = c.name("the model's name")
		fields, done := t.p.Model.reading("arch")
		c.keyed(fields, nil)
		done()
	case c.word("facts"):
		f := LayerFacts{}
		c.atMost(len(t.p.Model.Kinds), maxKinds, "kinds of layers")
		c.keyed(f.fields(), nil)
		t.p.Model.Kinds = append(t.p.Model.Kinds, f)
	case c.word("layers"):
		t.only(c, &t.once.layers, "layers")
		c.expect("kinds")
		t.p.Model.LayerKinds = c.kinds("layer")
	case c.word("target"):
		t.only(c, &t.once.target, "target")
		t.p.Target = &Target{Name: c.name("the target's name")}
		c.keyed(t.p.Target.fields(), nil)
	case c.word("pass"):
		t.only(c, &t.once.pass, "pass")
		c.keyed(passFields(&t.p.Pass), nil)
		t.p.Pass = PassOf(t.p.Pass.Sequences, t.p.Pass.Rows)
	case c.word("ranks"):
		t.only(c, &t.once.ranks, "ranks")
		t.p.Ranks = ranksOf(c.int("the number of ranks"))
	case c.word("config"):
		t.only(c, &t.once.config, "config")
		t.config(c)
	case c.word("page"):
		t.p.Pages = append(t.p.Pages, c.page())
	case c.word("buffer"):
		t.p.Buffers = append(t.p.Buffers, c.buffer())
	case c.word("group"):
		t.p.Groups = append(t.p.Groups, c.group())
	case c.word("variant"):
		t.variantLine(c)
	case c.word("counter"):
		if t.inVariant(c, "counter") {
			t.variant.Counters = append(t.variant.Counters, c.counter())
		}
	case c.word("loop"):
		t.loopLineAt(c)
	case c.word("end"):
		if t.loop == nil {
			c.fail(0, "end without loop")
		}
		t.loop = nil
	default:
		c.fail(c.i, "unexpected %s, want model, facts, layers, target, pass, ranks, config, page, buffer, group, "+
			"variant, counter, stage, loop or end", c.found())
	}
}

// only complains about the second line of a kind that a program has one of, and about one that comes late.
func (t *textParser) only(c *cursor, seen *bool, what string) {
	if *seen {
		c.fail(0, "a second %s line", what)
	}
	*seen = true
}

func (t *textParser) config(c *cursor) {
	c.peek()
	var diags diag.List
	t.p.Config, diags = parseConfig(c.s, c.i, func(off int) string {
		return fmt.Sprintf("%s:%d:%d", t.file, t.lineN, off+1)
	})
	t.diags.Add(diags...)
	c.i = len(c.s)
}

func (c *cursor) page() Page {
	pg := Page{Name: c.name("the page's name")}
	pg.Space = enum(c, "a space", ParseSpace)
	pg.Layout = enum(c, "a layout", ParseLayout)
	c.keyed([]field{{"bytes", &pg.Bytes}}, nil)
	return pg
}

func (c *cursor) buffer() Buffer {
	b := Buffer{Name: c.name("the buffer's name")}
	b.First, b.Count, b.Step = c.family(1)
	b.Kind = enum(c, "a buffer kind", ParseBufferKind)
	b.DType = enum(c, "a dtype", ParseDType)
	c.expect("[")
	for c.peek() != ']' && c.err == nil {
		if len(b.Shape) > 0 {
			c.expect(",")
		}
		c.atMost(len(b.Shape), MaxRank, "dimensions in a shape")
		b.Shape = append(b.Shape, c.int("a dimension"))
	}
	c.expect("]")
	b.Space = enum(c, "a space", ParseSpace)
	b.Layout = enum(c, "a layout", ParseLayout)
	role := ""
	if c.word("role") {
		role = c.name("a role")
	}
	b.Role = readRole(role, b.NamedRole())
	if c.word("from") {
		for len(b.Pieces) == 0 || !c.done() && !c.atWord("page") && c.err == nil {
			c.atMost(len(b.Pieces), maxPieces, "pieces of a buffer")
			b.Pieces = append(b.Pieces, c.piece())
		}
	}
	if c.word("page") {
		for len(b.Pages) == 0 || !c.done() {
			c.atMost(len(b.Pages), maxPages, "pages of a buffer")
			b.Pages = append(b.Pages, c.name("a page's name"))
		}
	}
	return b
}

// atWord reports whether the bare word w comes next.
func (c *cursor) atWord(w string) bool {
	start := c.i
	ok := c.word(w)
	c.i = start
	return ok
}

// group reads `NAME for FIRST..LAST of MEMBER MEMBER ...`, with a member for each index.
func (c *cursor) group() Group {
	g := Group{Name: c.name("the group's name")}
	if !c.atWord("for") {
		c.fail(c.i, "want for FIRST..LAST, found %s", c.found())
	}
	var count int
	g.First, count, g.Step = c.family(1)
	if !c.word("of") {
		c.fail(c.i, "want of and the members, found %s", c.found())
	}
	c.peek()
	start := c.i
	for len(g.Members) == 0 || !c.done() {
		c.atMost(len(g.Members), MaxBuffers, "members of a group")
		if g.Members = append(g.Members, c.name("a buffer's name")); c.err != nil {
			return g
		}
	}
	if len(g.Members) != count {
		c.fail(start, "%d members for %d indices, want one for each", len(g.Members), count)
	}
	return g
}

func (c *cursor) counter() Counter {
	n := Counter{Name: c.name("the counter's name")}
	n.First, n.Count, n.Step = c.family(1)
	n.How = enum(c, "a realisation", ParseRealisation)
	n.Scope = enum(c, "a scope", ParseScope)
	role := ""
	c.keyed([]field{{"init", &n.Init}, {"role", &role}}, nil)
	n.Role = readRole(role, n.NamedRole())
	return n
}

// inVariant complains about a line that stands before the first variant, or inside a loop.
func (t *textParser) inVariant(c *cursor, what string) bool {
	if t.variant == nil {
		c.fail(0, "%s before the first variant", what)
	} else if t.loop != nil && what != "stage" {
		c.fail(0, "%s inside loop %s, which holds stages only", what, clip(t.loop.Name))
	}
	return c.err == nil
}

func (t *textParser) variantLine(c *cursor) {
	if t.loop != nil {
		c.fail(0, "variant inside loop %s, which has no end yet", clip(t.loop.Name))
		t.loop = nil
	}
	c.atMost(len(t.p.Variants), MaxVariants, "variants")
	v := Variant{Name: c.name("the variant's name")}
	if !c.word("pos") {
		c.fail(c.i, "want pos LO..HI, found %s", c.found())
	}
	v.Lo, v.Hi = c.interval("a position")
	t.p.Variants = append(t.p.Variants, v)
	t.variant = &t.p.Variants[len(t.p.Variants)-1]
}
