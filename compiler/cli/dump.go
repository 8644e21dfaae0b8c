package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/importers/checkpoint"
	"amkc/interchange"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
	"amkc/passes/loops"
)

// dumpFlags are the flags of dump.
type dumpFlags struct {
	model  modelFlags
	pass   passFlags
	after  string
	format string
	pos    int
}

func dumpVerb() verb {
	d := &dumpFlags{}
	return verb{
		name: "dump",
		synopsis: "MODEL|FILE|DIR [--after PASS] [--format text|json|amk-json|loops] [--position N] [--rows N] " +
			"[--sequences N]",
		min: 1, max: 1,
		summary: "print the program of a model, or convert a program",
		details: `
MODEL is compiled up to --after; weights are not read. FILE is .amk text, native JSON, a program of the AMK profile,
or a build, whose program.json is meant. With --position, only the variant for that position is printed. --format
amk-json exports the step at that position, as far as the profile can express it, after pass lower of a model.
--format loops lists the loops, and how their iterations use their parameters.`,
		flags: d.define,
		run:   d.run,
	}
}

func (d *dumpFlags) define(f *pflag.FlagSet) {
	f.Var(newChoice(&d.after, "", passNames()...), "after",
		"stop after `PASS`, one that amkc passes lists")
	f.Var(newChoice(&d.format, "text", "text", "json", "amk-json", "loops"), "format", "print in this form")
	f.Var(front.NewCount(&d.pos, 0, 0, math.MaxInt), "position", "print the program for position `N`")
	d.pass.define(f)
	d.model.define(f, defaultTarget)
}

// defaultTarget is what verbs compile for that need no GPU and were given none.
const defaultTarget = "h200"

func (d *dumpFlags) run(c *call) error {
	c.raw = true
	path := c.args[0]
	dir, _, err := checkpoint.Locate(path)
	switch {
	case err != nil:
		return err
	case isModel(dir) && !isBuild(dir):
		return d.dumpModel(c, path)
	case d.after != "":
		return c.usage("--after names a pass over a model directory; %s is not one", path)
	case d.pass.pass() != ir.Pass{}:
		return c.usage(passesOfPrograms, path)
	}
	return d.dumpFile(c, path)
}

func (d *dumpFlags) dumpModel(c *call, model string) error {
	d.model.configOnly = true
	opts, err := d.model.options(c, model)
	if err != nil {
		return err
	}
	opts.Pass = d.pass.pass()
	last := d.after
	switch {
	case last == "" && d.format == "amk-json":
		last = lowered()
	case last == "":
		last = passNames()[len(compiler.Passes)-1]
	}
	var text []byte
	observe := opts.After
	opts.After = func(n int, pass *passes.Pass, s *passes.State, took time.Duration) error {
		if err := observe(n, pass, s, took); err != nil || pass.Name != last {
			return err
		}
		c.report(s.Diags)
		if text, err = d.renderState(c, s); err != nil {
			return err
		}
		return errStop
	}
	if _, err := compiler.RunPasses(opts); !errors.Is(err, errStop) {
		return err
	}
	return c.print(string(text))
}

// errStop ends the pipeline where --after says.
var errStop = errors.New("stopped after the pass that was named")

// renderState prints what a pass has left: the graph while there is no program.
func (d *dumpFlags) renderState(c *call, s *passes.State) ([]byte, error) {
	switch {
	case s.Program == nil && d.format == "text":
		return graphText(s.Graph), nil
	case s.Program == nil:
		return nil, c.usage("after pass %s there is no program yet, and the graph has no form but text; want "+
			"--format text", d.after)
	case d.format == "amk-json":
		theta, err := rotaryBase(s.Source.Config.Model, s.Graph)
		if err != nil {
			return nil, err
		}
		return d.exportProgram(s.Program, theta)
	}
	return d.render(c, s.Program)
}

// render prints a program in the native form that was asked for.
func (d *dumpFlags) render(c *call, p *ir.Program) ([]byte, error) {
	if c.flags.Changed("position") {
		one, err := atPosition(p, d.pos)
		if err != nil {
			return nil, err
		}
		p = one
	}
	switch d.format {
	case "json":
		return p.MarshalJSON()
	case "loops":
		return loopsText(p)
	}
	return ir.Print(p), nil
}

// atPosition returns the program with the one variant that runs at pos.
func atPosition(p *ir.Program, pos int) (*ir.Program, error) {
	i, err := variantAt(p, "--position", pos)
	if err != nil {
		return nil, err
	}
	one := *p
	one.Variants = p.Variants[i : i+1]
	return &one, nil
}

// variantAt returns the number of the variant for a position, which a flag names.
func variantAt(p *ir.Program, flag string, pos int) (int, error) {
	var intervals []string
	for i := range p.Variants {
		v := &p.Variants[i]
		if v.Lo <= pos && pos <= v.Hi {
			return i, nil
		}
		intervals = append(intervals, fmt.Sprintf("%d to %d", v.Lo, v.Hi))
	}
	return 0, diag.Errorf(codePosition, flag, "%d; the program has variants for positions %s", pos,
		strings.Join(intervals, ", "))
}

func (d *dumpFlags) dumpFile(c *call, path string) error {
	p, err := c.readProgram(path)
	if err != nil {
		return err
	}
	var out []byte
	switch {
	case p.profile != nil:
		return d.dumpProfile(c, path, p.profile)
	case d.format == "amk-json":
		out, err = d.exportProgram(p.native, 0)
	default:
		out, err = d.render(c, p.native)
	}
	if err != nil {
		return err
	}
	return c.print(string(out))
}

// dumpProfile writes a program of the AMK profile back.
func (d *dumpFlags) dumpProfile(c *call, path string, p *interchange.Program) error {
	if c.flags.Changed("format") && d.format != "amk-json" {
		return diag.Errorf(codeNotExpressible, path,
			"this program is in the AMK profile; want --format amk-json, the native forms hold scheduled "+
				"programs of amkc")
	}
	return c.print(string(p.Marshal()))
}

// graphText prints the operator graph, one node per line, and the layers of each kind once. The graph has no form that
// is read back: the first program is made by the pass after import.
func graphText(g *ir.Graph) []byte {
	var b bytes.Buffer
	m := &g.Model
	fmt.Fprintf(&b, "graph %s arch=%s dtype=%s layers=%d\n", m.Name, m.Architecture, m.DTypes, m.Layers)
	print := func(indent string, nodes []ir.GraphNode) {
		for _, n := range nodes {
			fmt.Fprintf(&b, "%s%s %v = %s(%s)", indent, n.Name, n.Shape, n.Op, strings.Join(n.Inputs, ", "))
			for i, w := range n.Weights {
				fmt.Fprintf(&b, "%s %s", []string{" weights", ","}[min(i, 1)], w)
				if w.Storage != nil {
					fmt.Fprintf(&b, " as %s %s", w.Storage.DType, w.Storage.Layout())
				}
			}
			for _, p := range n.Params {
				fmt.Fprintf(&b, " %s", p)
			}
			b.WriteByte('\n')
		}
	}
	print("  ", g.Before)
	for k, kind := range g.Kinds {
		fmt.Fprintf(&b, "  layers %s of kind %s\n", spellLayers(g.Of(k)), kind.Name)
		print("    ", kind.Nodes)
	}
	print("  ", g.After)
	return b.Bytes()
}

// spellLayers prints the numbers of layers in rising order, those that follow one another as first..last.
func spellLayers(layers []int) string {
	var spelt []string
	for at := 0; at < len(layers); {
		end := at
		for end+1 < len(layers) && layers[end+1] == layers[end]+1 {
			end++
		}
		text := fmt.Sprint(layers[at])
		if end > at {
			text = fmt.Sprintf("%d..%d", layers[at], layers[end])
		}
		spelt, at = append(spelt, text), end+1
	}
	return strings.Join(spelt, ", ")
}

// loopsText lists the loops of a program: the range of each, its stages, and a line for each parameter of its body
// with how the iterations use it and where it is.
func loopsText(p *ir.Program) ([]byte, error) {
	loops, err := loops.Describe(p)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, u := range loops {
		l := u.Loop
		fmt.Fprintf(&out, "variant %s loop %s for %d..%d", u.Variant, l.Name, l.First, l.Last())
		if l.Step > 1 {
			fmt.Fprintf(&out, " by %d", l.Step)
		}
		out.WriteString("\nstages")
		for _, st := range l.Body {
			out.WriteString(" " + st.Name)
		}
		out.WriteString("\n")
		table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		for _, param := range u.Params {
			fmt.Fprintf(table, "  %s\t%v\t%s\n", param.Name, param.Usage, param.Place)
		}
		if err := table.Flush(); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// lowered is the last pass whose programs the AMK profile can express: one op per stage, nothing distributed over SMs.
func lowered() string { return passes.Lower.Name }

// exportProgram prints one step of a program of amkc in the AMK profile. theta is the base of the rotary embedding,
// which the program does not hold; 0 is not known.
func (d *dumpFlags) exportProgram(p *ir.Program, theta float64) ([]byte, error) {
	out, diags := interchange.ToAMK(p, d.pos, theta)
	if diags.Err() != nil {
		return nil, diags
	}
	return out.Marshal(), nil
}

// rotaryBase returns the base of a model's rotary embedding, which must not be scaled: the profile has no more than a
// base.
func rotaryBase(config *checkpoint.Document, g *ir.Graph) (float64, error) {
	theta := ropeTheta(config)
	if slices.ContainsFunc(g.Kinds, func(k ir.LayerKind) bool { return k.Rope != nil }) {
		return 0, diag.Errorf(codeNotExpressible, config.Name, "layers of two kinds have a rotary embedding each, and "+
			"the AMK profile has one; want one for all layers")
	}
	if g.Rope.Scale != 1 || !isPlainRope(g.Rope.InvFreq, theta, g.Model.HeadDim) {
		return 0, diag.Errorf(codeNotExpressible, config.Name,
			"the rotary embedding is scaled, and the AMK profile has a base alone; want rope type default")
	}
	return theta, nil
}

// ropeTheta reads the base of the rotary embedding in any of its spellings; import has checked them.
func ropeTheta(config *checkpoint.Document) float64 {
	objects := []*checkpoint.Object{config.Object}
	for _, field := range []string{"rope_parameters", "rope_scaling"} {
		if v, ok := config.Get(field); ok {
			if object, ok := v.(*checkpoint.Object); ok {
				objects = append(objects, object)
			}
		}
	}
	for _, object := range objects {
		if v, ok := object.Get("rope_theta"); ok {
			if number, ok := v.(json.Number); ok {
				if theta, err := number.Float64(); err == nil {
					return theta
				}
			}
		}
	}
	return 10000
}

// isPlainRope reports whether the frequencies are theta^(-2k/headDim), up to the rounding to float32.
func isPlainRope(freq []float32, theta float64, headDim int) bool {
	for k, f := range freq {
		want := math.Pow(theta, -float64(2*k)/float64(headDim))
		if math.Abs(float64(f)-want) > 1e-6*want {
			return false
		}
	}
	return true
}
