package knobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/kernel"
)

// A Case is what defaults and checks look at: a configuration that is being resolved for a model and a target.
type Case struct {
	Model  *ir.Model
	Target *ir.Target // nil: not known
	Build
	given  *ir.ScheduleConfig
	rows   []Row
	values map[setting]int
}

// Build is what defaults follow from besides a model and a target.
type Build struct {
	// Kept is what takes its room from the ring in an SM. Of the residual that is at least an even share.
	Kept    kernel.Kept
	Format  format.Format // of most of the layers' weights; nil: one that the kernel does not stream
	Most    ir.Pass       // what passes of the build take at most
	Windows bool          // some layers see fewer positions than there are
	Ranks   int           // GPUs that share the model, whose sizes are those of a share; 0 means one
}

// A setting is a knob, or its value for a stage.
type setting struct {
	row   int
	stage string
}

// Of returns the value that a knob will have: what the configuration says, or the default for this model and target.
// Instead of a value that is not legal, and will be refused, there is the default as well.
func (c *Case) Of(k Int) int { return c.value(setting{row: int(k)}) }

// OfStage returns the same for a stage.
func (c *Case) OfStage(k PerStage, stage string) int {
	return c.value(setting{row: int(k), stage: stage})
}

func (c *Case) value(s setting) int {
	n, known := c.values[s]
	if !known {
		n = c.find(&c.rows[s.row], s.stage)
		c.values[s] = n
	}
	return n
}

func (c *Case) find(r *Row, stage string) int {
	switch n, is := r.Stated(c.given, stage); {
	case is && r.Legal.Has(n):
		return n
	case r.Rule != nil:
		return r.Rule(c, stage)
	case r.Like != nil:
		return c.Of(*r.Like)
	}
	return r.Default
}

// Given reports whether the configuration states a knob, be it legal or not.
func (c *Case) Given(k Int) bool {
	_, is := c.rows[k].Stated(c.given, "")
	return is
}

// idle is the complaint about a knob that would change nothing.
func (c *Case) idle(k Int, format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(codeKnob, where(c.rows[k].Path("")), "%d would have no effect: "+format,
		append([]any{c.Of(k)}, args...)...)
}

func where(path string) string { return "config: " + path }

// Resolve checks a configuration for a model and a target, which may be nil, and returns it with every knob stated,
// rare ones as Row.Rare says. It leaves sm_assignment to the pass that applies it.
func Resolve(config ir.ScheduleConfig, m *ir.Model, t *ir.Target, b Build) (ir.ScheduleConfig, diag.List) {
	c := &Case{Model: m, Target: t, Build: b, given: &config, rows: table[:], values: map[setting]int{}}
	out := ir.ScheduleConfig{SMAssignment: config.SMAssignment}
	diags := Check(&config)
	for i := range c.rows {
		r := &c.rows[i]
		if r.form != nil {
			continue
		}
		for _, stage := range r.Each() {
			n := c.value(setting{i, stage})
			if _, is := r.Stated(&config, stage); is || !r.Rare || r.Like == nil && n != r.Default {
				r.Set(&out, stage, n)
			}
		}
		if r.Check != nil {
			diags.Add(r.Check(c))
		}
	}
	return out, diags
}

// Check reports the knobs of a configuration that do not exist, and the values that are not legal for any model and
// target.
func Check(c *ir.ScheduleConfig) diag.List {
	var diags diag.List
	for _, r := range Rows() {
		for _, stage := range r.Each() {
			if n, is := r.Stated(c, stage); is && !r.Legal.Has(n) {
				diags.Add(r.refuse(c, stage, n))
			}
		}
		diags.Add(r.contradiction(c))
	}
	diags.Add(Unknown(c)...)
	return diags
}

func (r *Row) refuse(c *ir.ScheduleConfig, stage string, n int) *diag.Diagnostic {
	code := r.Code
	if code == nil {
		code = codeRange
	}
	if r.Legal.Words != nil {
		word := *r.Field.Word(c)
		return diag.Errorf(code, where(r.Path("")), "%q is not known; %s", word,
			diag.Guess(word, r.Legal.Words, "want "+r.Legal.String()))
	}
	return diag.Errorf(code, where(r.Path(stage)), "%d; want %v", n, r.Legal)
}

// contradiction is what there is to say of a knob that is spelt in two ways with two values.
func (r *Row) contradiction(c *ir.ScheduleConfig) *diag.Diagnostic {
	if r.Field == nil || r.Name == "" {
		return nil
	}
	field := *r.Field.Int(c)
	n, is := c.Tiling[r.Group][r.Name]
	if !is || field == 0 || field == n {
		return nil
	}
	return diag.Errorf(codeTwice, where(r.Path("")), "%d, but tiling.%s.%s is %d; give one of them", field, r.Group,
		r.Name, n)
}

// Unknown reports the knobs under tiling that the table does not have.
func Unknown(c *ir.ScheduleConfig) (diags diag.List) {
	known := tilingNames()
	for _, group := range slices.Sorted(maps.Keys(c.Tiling)) {
		for _, name := range slices.Sorted(maps.Keys(c.Tiling[group])) {
			if key := group + "." + name; !slices.Contains(known, key) {
				diags.Add(diag.Errorf(codeKnob, where("tiling."+key), "there is no such knob; %s",
					diag.Guess(key, known, fmt.Sprintf("there are %s", strings.Join(known, ", ")))))
			}
		}
	}
	return diags
}

// tilingNames lists what tiling can hold, as GROUP.NAME in alphabetical order.
func tilingNames() []string {
	var names []string
	for i := range table {
		for _, stage := range table[i].Each() {
			if name := table[i].tiled(stage); name != "" {
				names = append(names, table[i].Group+"."+name)
			}
		}
	}
	slices.Sort(names)
	return names
}
