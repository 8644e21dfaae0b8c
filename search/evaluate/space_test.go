package evaluate

import (
	"bytes"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
	"amkc/search"
)

func optionsFor(t *testing.T, model, target string) compiler.Options {
	t.Helper()
	i := slices.IndexFunc(ir.Targets, func(t ir.Target) bool { return t.Name == target })
	require.GreaterOrEqual(t, i, 0)
	gpu := ir.Targets[i]
	return compiler.Options{Model: "../../testdata/" + model, Name: "model", Target: &gpu}
}

// Every value that is listed changes the program or what is emitted, or is the default; every other value of an axis is
// listed as refused, or as the same.
func TestEveryListedValueChangesTheBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	cases := map[string][]string{"models/zoo/llama-gqa": {"h200"}, "models/zoo/gemma2-tied": {"t4"}}
	if os.Getenv("AMKC_LONG") != "" {
		for _, model := range []string{"models/pycoder-5m", "configs/llama-3.2-1b", "configs/qwen3-0.6b"} {
			cases[model] = []string{"h200", "h100", "t4"}
		}
	}
	for model, targets := range cases {
		for _, target := range targets {
			o := optionsFor(t, model, target)
			o.ConfigOnly = true
			if model == small {
				o.MaxSeq = 1024 // with a variant from 512 on
			}
			s, err := Space(t.Context(), o, 0, nil)
			require.NoError(t, err)
			if model == small {
				for _, k := range knobs.VariantConstants() {
					require.NotNil(t, s.Knob(k.Row().Path("")))
				}
				require.Contains(t, s.Knob("tiling.long.run_ahead").Follows, "tiling.ring.run_ahead")
				require.Contains(t, s.Knob("tiling.long.stock").Follows, "tiling.ring.stock")
				require.Empty(t, s.Knob("tiling.exchange.copies").Follows)
			}
			sources := func(settings knobs.Settings) (map[string][]byte, error) {
				with := o
				with.Config, err = settings.Config()
				require.NoError(t, err)
				l, err := compiler.RunPasses(with)
				if err != nil {
					return nil, err
				}
				files, err := codegen.CUDA(l.Program)
				if err != nil {
					return nil, err
				}
				l.Program.Config = ir.ScheduleConfig{}
				files["program"] = ir.Print(l.Program)
				return files, nil
			}
			base, err := sources(nil)
			require.NoError(t, err)
			differs := func(a, b map[string][]byte) bool {
				for name := range a {
					if !bytes.Equal(a[name], b[name]) {
						return true
					}
				}
				return len(a) != len(b)
			}
			listed := 0
			for _, k := range s.Knobs {
				require.NotEmpty(t, k.Region, k.Path)
				require.Contains(t, k.Values, k.Plain)
				require.Contains(t, k.Values, k.Default)
				for _, v := range k.Values {
					if v == k.Default {
						continue
					}
					files, err := sources(knobs.Settings{k.Path: v})
					require.NoError(t, err)
					require.True(t, differs(base, files), "%s %s: %s = %s changes nothing", model, target, k.Path, v)
					listed++
				}
				for _, r := range k.Refused {
					require.NotEmpty(t, r.Reason.Code, "%s %s", k.Path, r.Value)
					require.NotContains(t, k.Values, r.Value)
				}
				for _, same := range k.Same {
					files, err := sources(knobs.Settings{k.Path: same.Value})
					require.NoError(t, err)
					as := base
					if same.As != k.Default {
						as, err = sources(knobs.Settings{k.Path: same.As})
						require.NoError(t, err)
					}
					require.False(t, differs(as, files), "%s: %s is not %s", k.Path, same.Value, same.As)
				}
			}
			require.Greater(t, listed, 25, "%s %s", model, target)
			requireAllNamed(t, s)
			_, err = sources(s.Cold())
			require.NoError(t, err, "%s %s: the coldest configuration", model, target)
		}
	}
}

// requireAllNamed demands that every knob is listed, or said not to be varied and why, and none of them twice.
func requireAllNamed(t *testing.T, s *search.Space) {
	t.Helper()
	named := []string{}
	for _, k := range s.Knobs {
		named = append(named, k.Path)
	}
	why := map[string]string{}
	for _, k := range s.Idle {
		named, why[k.Path] = append(named, k.Path), k.Why
		require.NotEmpty(t, k.Why, k.Path)
	}
	all := knobs.Unsearched()
	for _, a := range knobs.Axes() {
		all = append(all, a.Path)
	}
	require.ElementsMatch(t, all, named)
	require.Equal(t, "no effect here: 1, 2, 3, 6, 8 as 4", why["tiling.gemv.split_k"])
	require.Equal(t, "no search varies it", why["tiling.prompt.tokens"])
	if s.Target == "t4" {
		require.Contains(t, why["tiling.long.pace"], "t4 has no bulk copies")
	}
}

// A space with a budget tries the same values whenever it is asked for, of each knob some, and names those that it
// leaves; what it says of the values that it tried is what the whole space says.
func TestSpaceOfABudget(t *testing.T) {
	axes := knobs.Axes()
	o := optionsFor(t, "models/zoo/llama-gqa", "h200")
	base := emit(o, ir.ScheduleConfig{})
	require.NoError(t, base.refused)
	require.Positive(t, base.tasks)
	all, none := trying(axes, &base.config, math.MaxInt)
	for _, left := range none {
		require.Empty(t, left)
	}
	most := len(axes) + 3
	tries, left := trying(axes, &base.config, most)
	require.Len(t, tries, most)
	of := func(tries []try) map[int][]knobs.Value {
		values := map[int][]knobs.Value{}
		for _, t := range tries {
			values[t.axis] = append(values[t.axis], t.value)
		}
		return values
	}
	some, whole := of(tries), of(all)
	for i := range axes {
		require.Equal(t, whole[i], slices.Concat(some[i], left[i]), axes[i].Path)
		require.Equal(t, len(whole[i]) > 0, len(some[i]) > 0, axes[i].Path)
	}
	const few = 3
	o.ConfigOnly = true
	s, err := Space(t.Context(), o, few*base.tasks, nil)
	require.NoError(t, err)
	require.Equal(t, len(all)-few, s.Left)
	named := 0
	for _, k := range s.Knobs {
		named += len(k.Left)
	}
	require.Equal(t, s.Left, named, "no knob that has values left is said to have no effect")
}

// A model of 8B keeps to the budget of amkc search space, and one of 1B is tried whole.
func TestBudgetOfLargeModels(t *testing.T) {
	values := 0
	for _, a := range knobs.Axes() {
		values += len(a.Values)
	}
	for model, whole := range map[string]bool{"configs/llama-3.2-1b": true, "configs/llama-3.1-8b": false} {
		base := emit(optionsFor(t, model, "h200"), ir.ScheduleConfig{})
		require.NoError(t, base.refused)
		require.Equal(t, whole, SpaceWork/base.tasks >= values, "%s: %d tasks", model, base.tasks)
		require.Greater(t, SpaceWork/base.tasks, len(knobs.Axes()), "each knob has some of its values tried")
	}
}
