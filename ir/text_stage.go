package ir

func (t *textParser) loopLineAt(c *cursor) {
	if !t.inVariant(c, "loop") {
		return
	}
	l := &Loop{Name: c.name("the loop's name")}
	if !c.atWord("for") {
		c.fail(c.i, "want for FIRST..LAST, found %s", c.found())
	}
	l.First, l.Count, l.Step = c.family(0)
	if c.word("kinds") {
		l.Kinds = c.kinds("iteration")
	}
	t.variant.Body = append(t.variant.Body, l)
	t.loop, t.loopLine = l, t.lineN // also after an error, so that the loop's end finds it
}

// kinds reads the kinds of iterations or layers, to the end of the line.
func (c *cursor) kinds(of string) (kinds []int) {
	for c.err == nil && (len(kinds) == 0 || !c.done()) {
		c.atMost(len(kinds), maxKinds, "kinds of "+of+"s")
		kinds = append(kinds, c.int("the kind of a "+of))
	}
	return kinds
}

// stageLine reads the line that opens a stage: its name and its distribution.
func (t *textParser) stageLine(c *cursor) {
	s := &Stage{}
	t.stage, t.dropped = s, true
	if !t.inVariant(c, "stage") {
		return
	}
	s.Name = c.name("the stage's name")
	d := &s.Dist
	d.Kind = enum(c, "a distribution", ParseDistKind)
	d.Grain = d.defaultGrain()
	role, layer, start := "", "", c.i
	c.keyed(append(d.fields(), field{"kind", &s.Kind}, field{"role", &role}, field{"layer", &layer}),
		func(key string) bool {
			known := key == "empty" && !d.Empty
			d.Empty = d.Empty || known
			return known
		})
	if err := s.read(role, layer); err != nil {
		c.fail(start, "%v", err)
	}
	if t.dropped = c.err != nil; t.dropped {
		return
	}
	if t.loop != nil {
		t.loop.Body = append(t.loop.Body, s)
	} else {
		t.variant.Body = append(t.variant.Body, s)
	}
}

// notOps are the words that end a stage when a line starts with them.
var notOps = []string{"model", "target", "config", "page", "buffer", "group", "variant", "counter", "loop", "end"}

// stageEntity reads a line that belongs to the open stage, and reports whether it does.
func (t *textParser) stageEntity(c *cursor) bool {
	for _, w := range notOps {
		if c.atWord(w) {
			return false
		}
	}
	if t.dropped {
		c.i = len(c.s)
		return true
	}
	s := t.stage
	switch {
	case c.word("task"):
		var sp TaskSpan
		if s.Dist.Kind != Explicit {
			c.fail(0, "task in a stage that is not explicit")
		}
		c.keyed([]field{{"sm", &sp.SM}, {"a", &sp.A}, {"b", &sp.B}}, nil)
		c.atMost(len(s.Dist.Spans), MaxTasks, "tasks in a stage")
		s.Dist.Spans = append(s.Dist.Spans, sp)
	case c.word("wait"):
		w := Wait{Counter: c.name("a counter's name")}
		c.expect(">=")
		w.Threshold = c.int("the threshold")
		c.atMost(len(s.Waits), maxWaits, "waits in a stage")
		s.Waits = append(s.Waits, w)
	case c.word("signal"):
		if s.Signal != "" {
			c.fail(0, "a second signal: a task signals one counter")
		}
		s.Signal = c.name("a counter's name")
	default:
		c.atMost(len(s.Ops), maxOps, "ops in a stage")
		s.Ops = append(s.Ops, c.op())
	}
	return true
}

// op reads `OUTS = OPCODE(INS) KEY=VALUE ...`, or `OPCODE()` when there is no output.
func (c *cursor) op() Op {
	var o Op
	start := c.i
	first := c.name("task, wait, signal, an op, or the next entity")
	if c.peek() == '(' || c.err != nil {
		c.i = start
	} else {
		c.i = start
		o.Out = c.operands()
		if c.peek() != '=' {
			c.fail(c.i, "want = or , after the view %s, found %s", clip(first), c.found())
		}
		c.expect("=")
	}
	o.Code = enum(c, "an opcode", ParseOpcode)
	c.expect("(")
	if c.peek() != ')' {
		o.In = c.operands()
	}
	c.expect(")")
	for !c.done() {
		at := c.i
		key := c.name("a parameter")
		c.expect("=")
		if o.Has(key) {
			c.fail(at, "parameter %s is given twice", clip(key))
		}
		c.atMost(len(o.Params), maxParams, "parameters")
		o.Params = append(o.Params, c.param(key))
	}
	return o
}

// operands reads one operand or more, with commas between.
func (c *cursor) operands() []Operand {
	out := []Operand{c.operand()}
	for c.accept(",") {
		c.atMost(len(out), maxOperands, "operands")
		out = append(out, c.operand())
	}
	return out
}
