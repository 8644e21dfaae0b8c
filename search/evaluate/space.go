package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
	"amkc/search"
)

// regions are the parts of a step that knobs belong to, by their group; a knob per stage belongs to its stage.
var regions = map[string]string{"ring": "ring", "smem_bytes_per_block": "ring", "exchange": "exchange",
	"page_allocation": "exchange", "attention": "attention", "gemv": "placement", "sm_assignment": "placement",
	"loop": "layers", "long": "ring"}

// regionOf is the region of an axis. What a variant has of its own is of the stream, or of which SMs attend.
func regionOf(a *knobs.Axis) string {
	switch {
	case a.Stage != "":
		return a.Stage
	case a.Path == knobs.ShortRotation.Row().Path("") || a.Path == knobs.LongRotation.Row().Path(""):
		return "attention"
	}
	return regions[a.Group]
}

// An emitted is what a value of a knob makes of a model: files by name, program among them; or why it makes nothing.
type emitted struct {
	files   map[string][]byte
	config  ir.ScheduleConfig // with every knob stated
	tasks   int               // of all variants
	refused error
}

// emit lowers a model with a configuration and renders what depends on the program.
func emit(o compiler.Options, config ir.ScheduleConfig) emitted {
	o.Config, o.ConfigOnly = config, true
	l, err := compiler.RunPasses(o)
	if err != nil {
		return emitted{refused: err}
	}
	defer l.Close()
	e := emitted{config: l.Program.Config, tasks: l.Program.Tasks()}
	if e.files, err = sources(l.Program); err != nil {
		return emitted{refused: err}
	}
	return e
}

// SpaceWork is a budget for Space: the number of tasks of the schedules that it makes. It suffices for all values of a
// model of 1B, and takes some seconds.
const SpaceWork = 5 << 20

// A try is a value of an axis, and what it makes.
type try struct {
	axis  int
	value knobs.Value
	made  emitted
}

// trying lists the values of axes that are tried, one of each axis after the other, up to a number of them. The others
// are left, by axis.
func trying(axes []knobs.Axis, defaults *ir.ScheduleConfig, most int) (tries []try, left [][]knobs.Value) {
	left = make([][]knobs.Value, len(axes))
	for i := range axes {
		left[i] = slices.DeleteFunc(slices.Clone(axes[i].Values), func(v knobs.Value) bool {
			return v == axes[i].Of(defaults)
		})
	}
	for more := true; more && len(tries) < most; {
		more = false
		for i := range axes {
			if len(left[i]) > 0 && len(tries) < most {
				tries, left[i], more = append(tries, try{axis: i, value: left[i][0]}), left[i][1:], true
			}
		}
	}
	return tries, left
}

// Space finds the effect of each value of each knob for a model and a target, with all other knobs at their defaults:
// it lowers the model and renders its sources once for every value. If work is not 0, it tries values as long as all
// schedules together have at most that many tasks, and lists the values that are left. Options.Config is ignored. The
// error is that of the model with all defaults, or the cause of a cancelled context.
func Space(ctx context.Context, o compiler.Options, work int, report progress.Func) (*search.Space, error) {
	base := emit(o, ir.ScheduleConfig{})
	if base.refused != nil {
		return nil, base.refused
	}
	axes, most := knobs.Axes(), math.MaxInt
	if work > 0 {
		most = work / max(1, base.tasks)
	}
	tries, left := trying(axes, &base.config, most)
	var wg sync.WaitGroup
	var mu sync.Mutex
	step := progress.Step{Activity: "trying knobs", Total: int64(len(tries)), Unit: "values"}
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := range next {
				t := &tries[n]
				config, err := knobs.Settings{axes[t.axis].Path: t.value}.Config()
				if t.made.refused = err; err == nil {
					t.made = emit(o, config)
				}
				mu.Lock()
				step.Done++
				report.Report(step)
				mu.Unlock()
			}
		})
	}
	for n := range tries {
		if ctx.Err() != nil {
			break
		}
		next <- n
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s := &search.Space{Model: o.Name, Target: o.Target.Name, Knobs: []search.Knob{}}
	for i := range axes {
		a := &axes[i]
		k := search.Knob{Path: a.Path, Stage: a.Stage, Region: regionOf(a), Doc: a.Doc,
			Accepts: a.Accepts, Order: a.Order, Default: a.Of(&base.config), Plain: a.Plain, Changes: []string{},
			Refused: []search.Refused{}, Same: []search.Same{}, Left: left[i]}
		s.Left += len(left[i])
		for n := range tries {
			t := &tries[n]
			if t.axis == i || t.made.refused != nil || a.Of(&t.made.config) == k.Default {
				continue
			}
			if path := axes[t.axis].Path; !slices.Contains(k.Follows, path) {
				k.Follows = append(k.Follows, path)
			}
		}
		k.Values = []knobs.Value{k.Default}
		distinct, changes := map[knobs.Value]*emitted{k.Default: &base}, map[string]bool{}
		for n := range tries {
			t := &tries[n]
			if t.axis != i {
				continue
			}
			if t.made.refused != nil {
				k.Refused = append(k.Refused, search.Refused{Value: t.value, Reason: firstError(t.made.refused)})
				continue
			}
			if as, is := sameAs(&t.made, k.Values, distinct); is {
				k.Same = append(k.Same, search.Same{Value: t.value, As: as})
				continue
			}
			distinct[t.value] = &t.made
			k.Values = append(k.Values, t.value)
			for _, name := range differing(t.made.files, base.files) {
				changes[name] = true
			}
		}
		slices.SortFunc(k.Values, func(x, y knobs.Value) int { return cmp.Compare(rank(a, x), rank(a, y)) })
		if len(changes) > 0 {
			k.Changes = slices.Sorted(maps.Keys(changes))
		}
		if !slices.Contains(k.Values, k.Plain) {
			k.Plain = k.Default
		}
		// What a variant has of its own is not a knob where there is no such variant.
		if len(k.Values) > 1 || len(k.Left) > 0 || len(k.Refused) > 0 && !a.Rare {
			s.Knobs = append(s.Knobs, k)
		} else {
			s.Idle = append(s.Idle, search.Idle{Path: k.Path, Why: idleBecause(&k)})
		}
	}
	for _, path := range knobs.Unsearched() {
		s.Idle = append(s.Idle, search.Idle{Path: path, Why: "no search varies it"})
	}
	s.Seal()
	return s, nil
}

// idleBecause says why no value of a knob makes a difference.
func idleBecause(k *search.Knob) string {
	var words []string
	for _, same := range k.Same {
		words = append(words, string(same.Value))
	}
	why := []string{}
	if len(words) > 0 {
		why = append(why, fmt.Sprintf("no effect here: %s as %s", strings.Join(words, ", "), k.Default))
	}
	if len(k.Refused) > 0 {
		why = append(why, k.Refused[0].Reason.Msg)
	}
	return strings.Join(why, "; ")
}

// rank is where a value stands among those of its axis. A default that is not one of them stands among integers by
// size.
func rank(a *knobs.Axis, v knobs.Value) float64 {
	if i := slices.Index(a.Values, v); i >= 0 {
		return float64(i)
	}
	return a.Place(v)
}

// sameAs returns the value that makes the same build, if one does.
func sameAs(e *emitted, values []knobs.Value, made map[knobs.Value]*emitted) (knobs.Value, bool) {
	for _, v := range values {
		if len(differing(e.files, made[v].files)) == 0 {
			return v, true
		}
	}
	return "", false
}

// firstError is the first error of what stopped an evaluation, as a diagnostic.
func firstError(err error) *diag.Diagnostic {
	var list diag.List
	var one *diag.Diagnostic
	switch {
	case errors.As(err, &list) && len(list.Errors()) > 0:
		return list.Errors()[0]
	case errors.As(err, &one):
		return one
	}
	return diag.Errorf(codeUnforeseen, "eval", "%s", infile.Reason(err))
}
