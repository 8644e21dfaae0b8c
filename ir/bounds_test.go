package ir

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ranged returns what Check says of numbers out of range, and nothing else.
func ranged(p *Program) string {
	var out []string
	for _, d := range Check(p) {
		if d.Code == CodeRange.ID {
			out = append(out, d.Error())
		}
	}
	return strings.Join(out, "\n")
}

// entities are the structs of a program whose numbers come from outside as they are, by the name they have in the
// table.
func entities(p *Program) map[string]any {
	return map[string]any{"model": &p.Model, "target": p.Target, "pass": &p.Pass, "config": &p.Config}
}

// Every integer of the model, the target and the configuration has a bound: it is accepted there and refused beyond,
// with what would be accepted. The fields are found by reflection, so that a new one needs a bound.
func TestEveryIntegerHasABound(t *testing.T) {
	seen := map[string]bool{}
	try := func(t *testing.T, entity, key string, set func(p *Program, n int)) {
		b, ok := bounds[entity][key]
		require.True(t, ok, "no bound for %s.%s", entity, key)
		seen[entity+"."+key] = true
		for _, c := range []struct {
			n  int
			ok bool
		}{{b.Lo, true}, {b.Hi, true}, {b.Lo - 1, false}, {b.Hi + 1, false}, {math.MinInt, false},
			{math.MaxInt, false}} {
			p, _ := tiny(t)
			set(p, c.n)
			said := ranged(p)
			if c.ok {
				require.Empty(t, said, "%d", c.n)
				continue
			}
			require.Contains(t, said, fmt.Sprint(c.n))
			require.Contains(t, said, fmt.Sprintf("want %d to %d", b.Lo, b.Hi))
		}
	}
	p, _ := tiny(t)
	for entity, of := range entities(p) {
		typ := reflect.TypeOf(of).Elem()
		for i := range typ.NumField() {
			field := typ.Field(i)
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch field.Type.Kind() {
			case reflect.Int:
				if field.Type != reflect.TypeFor[int]() {
					continue // an enumeration
				}
				try(t, entity, key, func(p *Program, n int) {
					reflect.ValueOf(entities(p)[entity]).Elem().Field(i).
						SetInt(int64(n))
				})
			case reflect.Float64:
				require.Contains(t, []string{"eps", "hbm_gbs"}, key, "TestFloatsAreBounded must try it")
			case reflect.Map, reflect.Struct:
				if key == "" && field.Anonymous { // its fields are of the entity
					for k := range field.Type.NumField() {
						key, _, _ := strings.Cut(field.Type.Field(k).Tag.Get("json"), ",")
						try(t, entity, key, func(p *Program, n int) {
							reflect.ValueOf(entities(p)[entity]).Elem().Field(i).Field(k).SetInt(int64(n))
						})
					}
					continue
				}
				require.Contains(t, []string{"tiling", "sm_assignment", "dtype"}, key, "its numbers need a bound")
			case reflect.String, reflect.Bool, reflect.Slice:
			default:
				t.Fatalf("%s.%s is %v, and nobody has said what bounds it", entity, key, field.Type)
			}
		}
	}
	try(t, "config", "tiling", func(p *Program,
		n int) {
		p.Config.Tiling = map[string]map[string]int{"ring": {"pace": n}}
	})
	try(t, "config", "sm_assignment", func(p *Program,
		n int) {
		p.Config.SMAssignment = Assignment{Rotations: map[string]int{"qkv": n}}
	})
	for entity, keys := range bounds {
		for key := range keys {
			require.True(t, seen[entity+"."+key], "%s.%s bounds nothing", entity, key)
		}
	}
}

// Every number with a fraction is 0, or what float32 holds as a normal number.
func TestFloatsAreBounded(t *testing.T) {
	belowMin, aboveMax := math.Nextafter(MinSingle, 0)/2, MaxSingle*1.0001
	good := []float64{0, MinSingle, 1e-38 * 1.2, 1e-5, 1, MaxSingle}
	bad := []float64{belowMin, 1e-46, 5e-324, aboveMax, 1e308, math.Inf(1), math.NaN()}
	for _, c := range []struct {
		name      string
		negatives bool
		set       func(p *Program, v float64)
	}{
		{"model.eps", false, func(p *Program, v float64) { p.Model.Eps = v }},
		{"eps of an op", true, func(p *Program, v float64) {
			firstOp(t, p, RMSNORM).
				Params = []Param{FloatParam("eps", v)}
		}},
		{"scale of an op", true, func(p *Program, v float64) {
			firstOp(t, p, ATTENTION).
				Params = []Param{FloatParam("scale", v)}
		}},
	} {
		try := func(v float64) string {
			p, _ := tiny(t)
			c.set(p, v)
			return ranged(p)
		}
		for _, v := range good {
			require.Empty(t, try(v), "%s %v", c.name, v)
			if v > 0 {
				require.Equal(t, c.negatives, try(-v) == "", "%s %v", c.name, -v)
			}
		}
		for _, v := range bad {
			require.Contains(t, try(v), Singles, "%s %v", c.name, v)
		}
	}
	for v, ok := range map[float64]bool{0: true, minGBs: true, maxGBs: true, minGBs / 2: false, maxGBs * 2: false,
		-1: false, math.Inf(1): false, math.NaN(): false} {
		p, _ := tiny(t)
		p.Target.HBMGBs = v
		require.Equal(t, ok, ranged(p) == "", "hbm_gbs %v", v)
	}
}

// IsSingle accepts what comes back from float32 as it was rounded to: finite, and not lost.
func TestIsSingle(t *testing.T) {
	for _, v := range []float64{MaxSingle, -MaxSingle, MinSingle, -MinSingle, 1, 0, math.Nextafter(MinSingle, 0)} {
		require.True(t, IsSingle(v), v)
	}
	for _, v := range []float64{math.Nextafter(MinSingle, 0) / 2, MaxSingle * 1.00000006, math.Inf(-1), math.NaN(),
		math.SmallestNonzeroFloat32} {
		require.False(t, IsSingle(v), v)
	}
}

// firstOp finds an op of a program.
func firstOp(t *testing.T, p *Program, code Opcode) *Op {
	var found *Op
	for _, n := range p.Variants[0].Body {
		stages := []*Stage{}
		switch n := n.(type) {
		case *Stage:
			stages = append(stages, n)
		case *Loop:
			stages = n.Body
		}
		for _, s := range stages {
			for i := range s.Ops {
				if s.Ops[i].Code == code && found == nil {
					found = &s.Ops[i]
				}
			}
		}
	}
	require.NotNil(t, found)
	return found
}
