package knobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/ir/diag"
)

// A Value is what a knob is set to, as text: an integer or a word. In JSON it is a number or a string.
type Value string

// MarshalJSON writes an integer as a number.
func (v Value) MarshalJSON() ([]byte, error) {
	if n, err := strconv.Atoi(string(v)); err == nil && strconv.Itoa(n) == string(v) {
		return []byte(v), nil
	}
	return json.Marshal(string(v))
}

// UnmarshalJSON takes an integer or a string.
func (v *Value) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, (*string)(v))
	}
	var n int
	if err := json.Unmarshal(data, &n); err != nil || string(data) == "null" {
		return fmt.Errorf("want an integer or a word as the value of a knob")
	}
	*v = Value(strconv.Itoa(n))
	return nil
}

// An Axis is a knob as a search varies it: one knob, or one for each stage of a knob per stage.
type Axis struct {
	Path    string // tiling.ring.pace
	Group   string // ring; of a field that has none, its name
	Stage   string // of a knob per stage
	Doc     string
	Accepts string // what is legal, in words
	Order   bool   // see Row
	Rare    bool   // see Row
	Plain   Value  // the unoptimised value; empty: the default
	Values  []Value
	row     *Row
}

// Axes lists what a search may vary, in the order of the table: every knob with more than one value. Values are those
// of Row.Steps, or all that are legal where there are none. Resolve and the passes decide which of them a
// model and a target allow.
func Axes() []Axis {
	var axes []Axis
	for i := range table {
		r := &table[i]
		for _, stage := range r.Each() {
			a := Axis{Path: r.Path(stage), Group: r.Group, Stage: stage, Doc: r.Doc, Accepts: r.Legal.String(),
				Order: r.Order, Rare: r.Rare, row: r}
			if a.Group == "" {
				a.Group = r.Field.Name
			}
			switch {
			case r.form != nil && r.form.words != nil:
				a.Accepts, a.Plain = listed(r.form.words), Value(r.form.words[r.form.plain])
				a.add(r.form.words...)
			case r.form != nil:
				continue
			case r.Legal.Words != nil:
				a.Plain = Value(r.Legal.Words[r.Plain])
				a.add(r.Legal.Words...)
			default:
				if a.Plain = Value(strconv.Itoa(r.Plain)); r.Like != nil {
					a.Plain = "" // not to differ
				}
				tried := r.Steps
				if tried == nil {
					tried = r.Legal.OneOf
				}
				for _, n := range tried {
					a.add(strconv.Itoa(n))
				}
			}
			if len(a.Values) > 1 {
				axes = append(axes, a)
			}
		}
	}
	return axes
}

func (a *Axis) add(words ...string) {
	for _, word := range words {
		a.Values = append(a.Values, Value(word))
	}
}

// Of is the value that a configuration states, or the default of the table.
func (a *Axis) Of(c *ir.ScheduleConfig) Value {
	r := a.row
	switch {
	case r.form != nil:
		if word := *r.form.word(c); word != "" {
			return Value(word)
		}
		return Value(r.form.words[r.form.def])
	case r.Legal.Words != nil:
		if word := *r.Field.Word(c); word != "" {
			return Value(word)
		}
		return Value(r.Legal.Words[r.Default])
	}
	return Value(strconv.Itoa(r.of(c, a.Stage)))
}

// set makes a configuration state a value, which is legal whatever the model and the target.
func (a *Axis) set(c *ir.ScheduleConfig, v Value) *diag.Diagnostic {
	r := a.row
	if r.form != nil {
		if !slices.Contains(r.form.words, string(v)) {
			return diag.Errorf(codeKnob, where(a.Path), "%q is not known; want %s", v, listed(r.form.words))
		}
		*r.form.word(c) = string(v)
		return nil
	}
	n, err := strconv.Atoi(string(v))
	if r.Legal.Words != nil {
		n, err = slices.Index(r.Legal.Words, string(v)), nil
	}
	if err != nil || !r.Legal.Has(n) {
		return diag.Errorf(codeRange, where(a.Path), "%q; want %v", v, r.Legal)
	}
	r.Set(c, a.Stage, n)
	return nil
}

// Settings are the knobs that a configuration sets, by path; all others have their defaults.
type Settings map[string]Value

// Config returns the configuration that states the settings. The error is a list of diagnostics: knobs that no search
// varies, and values that are not legal.
func (s Settings) Config() (ir.ScheduleConfig, error) {
	var c ir.ScheduleConfig
	var diags diag.List
	axes := Axes()
	for _, path := range slices.Sorted(maps.Keys(s)) {
		i := slices.IndexFunc(axes, func(a Axis) bool { return a.Path == path })
		if i < 0 {
			known := make([]string, len(axes))
			for k := range axes {
				known[k] = axes[k].Path
			}
			diags.Add(diag.Errorf(codeKnob, where(escaped(path)), "is not a knob that a search varies; %s",
				diag.Guess(path, known, "amkc search space lists them")))
			continue
		}
		if d := axes[i].set(&c, s[path]); d != nil {
			diags.Add(d)
		}
	}
	return c, diags.Err()
}

// escaped is a path that may be anybody's, without what would act on a terminal or in a page.
func escaped(path string) string {
	quoted := strconv.Quote(path)
	return quoted[1 : len(quoted)-1]
}

// SettingsOf returns the settings of a configuration that a search can vary, and the paths of its other settings:
// rotations of stages, fusion groups, and knobs that no search varies.
func SettingsOf(c *ir.ScheduleConfig) (s Settings, besides []string) {
	s = Settings{}
	for _, a := range Axes() {
		stated := false
		switch r := a.row; {
		case r.form != nil:
			stated = *r.form.word(c) != ""
		default:
			_, stated = r.Stated(c, a.Stage)
		}
		if stated {
			s[a.Path] = a.Of(c)
		}
	}
	unsearched := Unsearched()
	for _, r := range Rows() {
		for _, stage := range r.Each() {
			if _, stated := r.Stated(c, stage); stated && slices.Contains(unsearched, r.Path(stage)) {
				besides = append(besides, r.Path(stage))
			}
		}
	}
	if len(c.SMAssignment.Rotations) > 0 {
		besides = append(besides, table[assignment].Path("")+" of stages")
	}
	return s, besides
}

// Unsearched lists the knobs that no search varies, by path.
func Unsearched() []string {
	var paths []string
	searched := map[string]bool{}
	for _, a := range Axes() {
		searched[a.Path] = true
	}
	for i := range table {
		for _, stage := range table[i].Each() {
			if path := table[i].Path(stage); !searched[path] {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// Place is where an integer stands among the values of an axis, as a position in Values with a fraction: between two of
// them, before the first or after the last.
func (a *Axis) Place(v Value) float64 {
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return float64(len(a.Values))
	}
	place := -0.5
	for i, w := range a.Values {
		if m, err := strconv.Atoi(string(w)); err == nil && m <= n {
			place = float64(i)
			if m < n {
				place += 0.5
			}
		}
	}
	return place
}
