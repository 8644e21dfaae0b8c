package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// Schemas that are open to many alternatives cost in proportion to their size, however those are combined.
func TestManyAlternatives(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v := pieces(t, rng)
	var tower, wide, arrays strings.Builder
	for i := range 40 { // each level has two ways to the next, which has two
		fmt.Fprintf(&tower, `"a%d": {"anyOf": [{"$ref": "#/$defs/b%d"}, {"$ref": "#/$defs/c%d"}]},`, i, i, i)
		fmt.Fprintf(&tower, `"b%d": {"$ref": "#/$defs/a%d"}, "c%d": {"$ref": "#/$defs/a%d"},`, i, i+1, i, i+1)
	}
	for i := range maxAlternatives {
		fmt.Fprintf(&wide, `"p%d": {"type": "null"},`, i)
	}
	fmt.Fprint(&arrays, `{"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "maxItems": 3}]}`)
	for name, schema := range map[string]string{
		"tower":  `{"$ref": "#/$defs/a0", "$defs": {` + tower.String() + `"a40": {"type": "null"}}}`,
		"wide":   `{"properties": {` + strings.TrimSuffix(wide.String(), ",") + `}, "additionalProperties": false}`,
		"arrays": arrays.String(),
	} {
		took := watch.Thread(func() {
			g, err := Schema(v, []byte(schema))
			require.NoError(t, err, name)
			for range 3 {
				if text, ended := sample(t, g, rng); ended {
					require.True(t, json.Valid([]byte(text)), "%q", text)
				}
			}
		})
		require.Less(t, took, 20*time.Second, name)
		t.Logf("%s: %v", name, took)
	}
	_, err := Schema(v, []byte(`{"properties": {`+wide.String()+`"more": {}}}`))
	require.ErrorContains(t, err, "# has 501 properties; want at most 500")
	_, err = Schema(v, []byte(`{"anyOf": [{}`+strings.Repeat(",{}", maxAlternatives)+`]}`))
	require.ErrorContains(t, err, "#/anyOf has 501 schemas; want at most 500")
}

// What a schema costs to read is bounded before it is spent: places of arrays within arrays, and names that are
// required again and again.
func TestSchemasThatGrow(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(3, 4)))
	nested := func(deep, least int) string {
		return strings.Repeat(fmt.Sprintf(`{"minItems": %d, "items": `, least), deep) + "{}" + strings.Repeat("}", deep)
	}
	var wide, refs strings.Builder
	for i := range 499 {
		fmt.Fprintf(&wide, `"p%d": {},`, i)
	}
	for i := range 60 { // each of which is found inside of the one before it
		fmt.Fprintf(&refs, `"a%d": {"items": {"$ref": "#/$defs/a%d"}, "minItems": 1000},`, i, i+1)
	}
	const large = "makes the schema too large: it would take more than 50000 places"
	for schema, want := range map[string]string{
		nested(60, 1000): large,
		nested(3, 1000):  "",
		`{"anyOf": [` + nested(30, 999) + `,` + nested(20, 998) + `]}`:      large,
		`{"$ref": "#/$defs/a0", "$defs": {` + refs.String() + `"a60": {}}}`: large,
		`{"properties": {` + wide.String() + `"x": {}},
			"required": ["x"` + strings.Repeat(`,"x"`, 12000) + `]}`: "",
		`{"enum": ["` + strings.Repeat("a", 40000) + `",
			"` + strings.Repeat("a", 20000) + `"]}`: "",
	} {
		var g *Grammar
		var err error
		took := watch.Thread(func() { g, err = Schema(v, []byte(schema)) })
		require.Less(t, took, 2*time.Second, short(schema))
		if want == "" {
			require.NoError(t, err)
			require.LessOrEqual(t, len(g.p.places), maxPlaces)
			continue
		}
		var refused *Error
		require.ErrorAs(t, err, &refused, short(schema))
		require.Contains(t, refused.What, want)
	}
	var refused *Error
	_, err := Options(v, []Option{{Schema: []byte(nested(2, 1000)), At: "a"},
		{Schema: []byte(nested(20, 1000)), At: "b"}})
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.What, "makes the schema too large")
	_, err = WithCalls(v, Calls{Mark: "<call>", Options: []Option{{Schema: []byte(nested(20, 1000)), At: "b"}}})
	require.ErrorAs(t, err, &refused)
}

// So is what patterns, lengths, numbers and schemas that exclude each other cost, one by one and together.
func TestConstraintsThatGrow(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(3, 5)))
	many := func(n int, one func(i int) string) string {
		var all []string
		for i := range n {
			all = append(all, one(i))
		}
		return strings.Join(all, ",")
	}
	for name, c := range map[string]struct {
		schema string
		kind   Kind // empty: it is not refused
	}{
		"doubling": {`{"pattern": "(a|b)*a(a|b){20}$"}`, TooLarge},
		"all of many": {`{"pattern": "` + strings.ReplaceAll(many(26, func(i int) string {
			return fmt.Sprintf("(?=.*%c)", 'a'+i)
		}), ",", "") + `"}`, TooLarge},
		"nested":   {`{"pattern": "(((a{0,100}){0,100}){0,100}){0,100}b"}`, TooLarge},
		"optional": {`{"pattern": "^` + strings.Repeat("a?", 20000) + `$"}`, TooLarge},
		"characters": {`{"pattern": "` + strings.ReplaceAll(many(8000, func(i int) string {
			return string(rune(0x4000 + i))
		}), ",", "|") + `"}`, TooLarge},
		"classes": {`{"pattern": "` + strings.ReplaceAll(many(4000, func(i int) string {
			return fmt.Sprintf("[%c-%c]", 0x4000+i, 0x6000+2*i)
		}), ",", "|") + `"}`, TooLarge},
		"class": {`{"minLength": 5, "pattern": "[` + strings.ReplaceAll(many(20000, func(i int) string {
			return string(rune(0x4000 + 2*i))
		}), ",", "") + `]"}`, ""},
		"class again": {`{"pattern": "^[` + strings.ReplaceAll(many(20000, func(i int) string {
			return string(rune(0x4000 + 2*i))
		}), ",", "") + `]{2000}$"}`, TooLarge},
		"patterns": {`{"properties": {` + many(490, func(i int) string {
			return fmt.Sprintf(`"p%d": {"pattern": "(a|b)*a(a|b){%d}$", "minLength": %d}`, i, 6+i%5, i)
		}) + `}}`, TooLarge},
		"numbers": {`{"anyOf": [` + many(500, func(i int) string {
			return fmt.Sprintf(`{"type": "integer", "minimum": 1234567%d, "multipleOf": 97}`, i)
		}) + `]}`, TooLarge},
		"lengths": {`{"anyOf": [` + many(500, func(i int) string {
			return fmt.Sprintf(`{"type": "string", "minLength": %d, "maxLength": 1000000}`, i)
		}) + `]}`, ""},
		"kinds": {`{"oneOf": [` + many(400, func(i int) string {
			return fmt.Sprintf(`{"type": "object", "properties": {"k": {"const": "v%d"}}, "required": ["k"]}`, i)
		}) + `]}`, ""},
		"alternatives": {`{"oneOf": [` + many(30, func(i int) string {
			return `{"anyOf": [` + many(60, func(k int) string { return fmt.Sprintf(`{"enum": [%d]}`, 100*i+k) }) + `]}`
		}) + `]}`, TooLarge},
		"values": {`{"$defs": {"e": {"enum": [` + many(4000, func(i int) string { return fmt.Sprint(10000 + i) }) + `]},
			"f": {"enum": [` + many(4000, func(i int) string { return fmt.Sprint(20000 + i) }) + `]}},
			"oneOf": [{"anyOf": [` + many(200, func(int) string { return `{"$ref": "#/$defs/e"}` }) + `]},
			{"anyOf": [` + many(200, func(int) string { return `{"$ref": "#/$defs/f"}` }) + `]}]}`, TooLarge},
		"kinds of values": {`{"$defs": {"e": {"enum": [` + many(9000, func(int) string { return "1" }) + `]},
			"f": {"type": [` + many(2000, func(int) string { return `"string"` }) + `]}},
			"oneOf": [{"anyOf": [` + many(300, func(int) string { return `{"$ref": "#/$defs/e"}` }) + `]},
			{"anyOf": [` + many(300, func(int) string { return `{"$ref": "#/$defs/f"}` }) + `]}]}`, ""},
		"required": {`{"$defs": {"e": {"type": "object", "required": [` +
			many(5000, func(int) string { return `"a"` }) + `]}, "f": {"type": "object", "required": [` +
			many(4000, func(int) string { return `"b"` }) + `]}},
			"oneOf": [{"anyOf": [` + many(200, func(int) string { return `{"$ref": "#/$defs/e"}` }) + `]},
			{"anyOf": [` + many(200, func(int) string { return `{"$ref": "#/$defs/f"}` }) + `]}]}`, Unsupported},
	} {
		var g *Grammar
		var err error
		took := watch.Thread(func() { g, err = Schema(v, []byte(c.schema)) })
		require.Less(t, took, 4*time.Second, name)
		t.Logf("%s: %v, %v", name, took, err)
		if c.kind == "" {
			require.NoError(t, err, name)
			require.LessOrEqual(t, len(g.p.places), maxPlaces)
			continue
		}
		var refused *Error
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, c.kind, refused.Kind, "%s: %v", name, err)
	}
}

// Of many kinds of strings at one place some are followed, so that a token takes no longer than a bounded number of
// walks: what the mask has can be taken, and it does not depend on what is cached.
func TestManyKindsOfStrings(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(3, 6)))
	var all []string
	for i := range 150 {
		all = append(all, fmt.Sprintf(`{"type": "string", "pattern": "^[^%c]*x{%d}$"}`, 'A'+i%26, i%40),
			fmt.Sprintf(`{"type": "string", "minLength": %d}`, i))
	}
	text := []byte(`{"anyOf": [` + strings.Join(all, ",") + `]}`)
	g, err := Schema(v, text)
	require.NoError(t, err)
	s := state(t, g, `"a`)
	require.Greater(t, len(s.spots), 200)
	mask := s.Mask()
	explored := len(g.locals)
	require.LessOrEqual(t, explored, 5*maxWide)
	for id := range v.size {
		if mask.Allows(id) {
			other := State{g: g, m: newMachine(g.p), masks: map[spot]Mask{}, spots: slices.Clone(s.spots)}
			require.NoError(t, other.Take(id))
		}
	}
	require.True(t, mask.Allows('b'))
	require.NoError(t, s.Take('b'))
	s.Mask()
	require.Equal(t, mask, state(t, g, `"a`).Mask())
	again, err := Schema(v, text)
	require.NoError(t, err)
	require.Equal(t, mask, state(t, again, `"a`).Mask())
}

// Near the bounds of its length, which are within reach of the longest token nearly always, what follows in a string is
// what a walk through all tokens finds, and takes no such walk for each character.
func TestBoundedStrings(t *testing.T) {
	v := large(t)
	for _, schema := range []string{`{"maxLength": 100}`, `{"minLength": 100}`, `{"minLength": 40, "maxLength": 60}`,
		`{"pattern": "^[^0-9]*€?$", "maxLength": 90}`, `{"minLength": 1, "maxLength": 300}`} {
		g, err := Schema(v, []byte(schema))
		require.NoError(t, err)
		full := func(at spot) (mask Mask, edges []int32) {
			mask = v.newMask()
			newMachine(g.p).walk(v, 0, int32(len(v.nodes)), []spot{{at: at.at, n: at.n}},
				func(n int32) { mask.allow(v.at(n)) }, func(n int32) { edges = append(edges, n) }, nil)
			return mask, edges
		}
		tokens := 0
		took := watch.Thread(func() {
			for s := state(t, g, `"`); tokens < 100 && s.Take('A') == nil; tokens++ {
				s.Mask()
			}
		})
		clear(g.locals)
		s, walks, walked := state(t, g, `"`), 0, time.Duration(0)
		for n := 0; n <= tokens; n++ {
			if at := s.spots[0]; n%9 == 0 || n > 95 || n > 55 && n < 62 {
				var mask Mask
				var edges []int32
				walked += watch.Thread(func() { mask, edges = full(at) })
				walks++
				got := g.local(g.point(at))
				require.True(t, slices.Equal(mask, got.mask), "%s %d", schema, n)
				require.Equal(t, edges, got.edges, "%s %d", schema, n)
			}
			if s.Take('A') != nil {
				break
			}
		}
		require.GreaterOrEqual(t, tokens, 60)
		t.Logf("%s: %v for %d tokens, and %v for %d walks", schema, took, tokens, walked, walks)
		require.Less(t, took, walked/time.Duration(walks)*30, schema)
	}
}

// A schema that refers to itself in many ways, and long tokens, take no more than what is followed: not the square of
// it, and not all that there might be.
func TestAlternativesOfAlternatives(t *testing.T) {
	var texts [][]byte
	for c := range 256 {
		texts = append(texts, []byte{byte(c)})
	}
	for n := range 100 {
		texts = append(texts, bytes.Repeat([]byte("["), n+2), bytes.Repeat([]byte("a"), 10*n+2))
	}
	v, err := NewVocabulary(len(texts), func(id int) []byte { return texts[id] })
	require.NoError(t, err)
	cut := false
	for _, item := range []string{`{"$ref": "#"}`, `{}`, `{"type": "string"}`} {
		for _, n := range []int{20, 200, 300} {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf(`{"items": %s, "minItems": %d}`, item, i%50))
			}
			took := watch.Thread(func() {
				g, err := Schema(v, []byte(`{"anyOf": [`+strings.Join(all, ",")+`]}`))
				require.NoError(t, err)
				for _, path := range []string{"[ \" aaaaaaaaaa", "[[[[[[[[[[[[[[[[[[[[[[", "[ [[ [["} {
					s := g.Begin()
					for _, text := range strings.Fields(path) {
						if text[0] == 'a' {
							text = strings.Repeat("a", 992)
						}
						id := slices.IndexFunc(texts, func(t []byte) bool { return string(t) == text })
						allowed := s.Mask().Allows(id)
						err := s.Take(id)
						require.LessOrEqual(t, len(s.spots), maxSpots)
						cut = cut || len(s.spots) == maxSpots
						require.False(t, allowed && err != nil, "%s %d %q: %v", item, n, text, err)
						if err != nil {
							break
						}
					}
					if s.MayGoOn() { // whatever was cut, something follows
						require.NotZero(t, slices.Max(s.Mask()))
					}
				}
			})
			require.Less(t, took, 10*time.Second, "%s %d", item, n)
		}
	}
	require.True(t, cut)
}
