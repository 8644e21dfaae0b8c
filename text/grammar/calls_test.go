package grammar

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Special tokens of the tests: a mark that is shown, one that is not, and one inside of calls.
const (
	shownMark = iota
	hidden
	inner
)

// talk is a grammar of texts with calls of f, which takes a boolean, or of g, which takes 1 or 2.
func talk(t *testing.T, rng *rand.Rand, change func(*Calls)) *Grammar {
	t.Helper()
	var texts [][]byte
	for _, text := range pieces(t, rng).texts {
		texts = append(texts, text)
	}
	for _, s := range []string{"<c", "c>", "<c>", "x<c", ">f", "c>f", "f{", "{}", "<d", "d>", "<t>", "</t>", "<t", "}<",
		"}{", ` {"`, "}<c>f", `e}`, "<", "</", "c>x", "<c>f{\"a\":true}", "<c>f{\"a\":1}"} {
		texts = append(texts, []byte(s))
	}
	first := len(texts) // of the special ones
	of := Calls{Mark: "<c>", Never: []string{"<d>"}, Again: true, Separators: ";", Open: "<t>", Close: "</t>",
		Options: []Option{
			{Before: "f", At: "f", Schema: []byte(`{"type": "object", "properties": {"a": {"type": "boolean"}},
				"required": ["a"], "additionalProperties": false}`)},
			{Before: "[g|>", At: "g", Schema: []byte(`{"enum": [{"b": 1}, {"b": 2}]}`), After: "]"},
		},
		Specials: map[int]string{first + shownMark: "<c>", first + hidden: "", first + inner: "|>"}}
	if change != nil {
		change(&of)
	}
	v, err := NewVocabulary(first+3, func(id int) []byte {
		if id >= first {
			return nil
		}
		return texts[id]
	})
	require.NoError(t, err)
	g, err := WithCalls(v, of)
	require.NoError(t, err)
	return g
}

func (g *Grammar) shown(id int) string {
	if text, special := g.specials[id]; special {
		return text
	}
	return string(g.v.texts[id])
}

// held reads a text as docs/serving.md says, and reports whether each call in it is one, and how many there are. The
// last one may be cut.
func held(t *testing.T, text string) (calls int) {
	t.Helper()
	begins := strings.TrimLeft(text, spaces)
	if strings.HasPrefix(begins, "<t>") && len(text)-len(begins) <= 64 {
		_, text, _ = strings.Cut(begins, "</t>")
	}
	require.NotContains(t, text, "<d>")
	for {
		_, rest, found := strings.Cut(text, "<c>")
		if !found {
			return calls
		}
		var raw json.RawMessage
		body := rest
		if after, is := strings.CutPrefix(rest, "f"); is {
			body = after
		} else if after, is := strings.CutPrefix(rest, "[g|>"); is {
			body = after
		} else {
			require.True(t, strings.HasPrefix("f", rest) || strings.HasPrefix("[g|>", rest), "%q", rest)
			return calls
		}
		d := json.NewDecoder(strings.NewReader(body))
		if d.Decode(&raw) != nil { // it is cut
			require.NotContains(t, body, "}")
			return calls
		}
		text = body[d.InputOffset():]
		if rest[0] == 'f' {
			require.Contains(t, []string{`{"a":true}`, `{"a":false}`}, squeezed(raw))
		} else {
			require.Contains(t, []string{`{"b":1}`, `{"b":2}`}, squeezed(raw))
			text = strings.TrimLeft(text, spaces)
			if text == "" {
				return calls
			}
			require.Equal(t, byte(']'), text[0])
			text = text[1:]
		}
		calls++
		if next := strings.TrimLeft(text, spaces+";"); next != "" {
			require.NotContains(t, "{[", next[:1], "that would be another call")
		}
	}
}

func squeezed(raw json.RawMessage) string { return strings.Join(strings.Fields(string(raw)), "") }

// Whatever is written around calls, and in whatever tokens, each follows its schema; a mask is what can be taken.
func TestTextsWithCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	rng := rand.New(rand.NewPCG(2, 2))
	g := talk(t, rng, nil)
	whole := 0
	for n := range 150 {
		s := g.Begin(2)
		text := ""
		for range 60 {
			mask := s.Mask()
			var all, likely []int
			for id := range g.v.size {
				if !mask.Allows(id) {
					continue
				}
				all = append(all, id)
				if strings.ContainsAny(g.shown(id), "<>") || len(g.shown(id)) < 2 &&
					strings.Contains(`f[g|{}":]ab1true`, g.shown(id)) {
					likely = append(likely, id)
				}
			}
			require.NotEmpty(t, all, "%q", text)
			if len(likely) > 0 && rng.IntN(4) > 0 {
				all = likely
			}
			if n%20 == 0 {
				sameAsMask(t, s, mask, text)
			}
			id := all[rng.IntN(len(all))]
			require.NoError(t, s.Take(id), "%q after %q", g.shown(id), text)
			text += g.shown(id)
		}
		whole += held(t, text)
	}
	require.Greater(t, whole, 50)
}

// sameAsMask checks that a mask allows what can be taken, token by token.
func sameAsMask(t *testing.T, s *State, mask Mask, text string) {
	t.Helper()
	spots, ended := slices.Clone(s.spots), s.ended
	for id := range s.g.v.size {
		err := s.Take(id)
		if id != 2 || !ended { // which ends a text
			require.Equal(t, mask.Allows(id), err == nil, "token %q after %q: %v", s.g.shown(id), text, err)
		}
		s.spots, s.ended = slices.Clone(spots), ended
	}
}

// follows says whether a text can be written in single bytes and the special tokens between them, and ends there.
func follows(g *Grammar, parts ...any) (may, ends bool) {
	s := g.Begin()
	first := g.v.size - 3
	for _, part := range parts {
		ids := []int{}
		switch part := part.(type) {
		case int:
			ids = append(ids, first+part)
		case string:
			for _, b := range []byte(part) {
				ids = append(ids, int(b))
			}
		}
		for _, id := range ids {
			if !s.Mask().Allows(id) || s.Take(id) != nil {
				return false, false
			}
		}
	}
	return true, s.MayEnd()
}

func TestWhereCallsAreHeld(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	const f = `f{"a":true}`
	for name, c := range map[string]struct {
		change    func(*Calls)
		parts     []any
		may, ends bool
	}{
		"text":                     {nil, []any{"a <c f{}"}, true, true},
		"a call":                   {nil, []any{"a <c>", f}, true, true},
		"by a special token":       {nil, []any{"a ", shownMark, f}, true, true},
		"with another next to it":  {nil, []any{"<c", hidden, ">", f, hidden, "b"}, true, true},
		"none inside of it":        {nil, []any{"<c>f", hidden}, false, false},
		"another one":              {nil, []any{"<c>", f, " ; <<c>", f, " <c>[g", inner, `{"b":2}]`}, true, true},
		"that is not spelled":      {nil, []any{`<c>[g|`}, false, false},
		"that is cut":              {nil, []any{`<c>[g`, inner, `{"b":2}`}, true, false},
		"without a mark":           {nil, []any{"<c>", f, " {"}, false, false},
		"after something else":     {nil, []any{"<c>", f, " a{"}, true, true},
		"without a mark, as text":  {func(c *Calls) { c.Again = false }, []any{"<c>", f, " {"}, true, true},
		"another mark":             {nil, []any{"a<d>"}, false, false},
		"no tool":                  {nil, []any{"<c>h"}, false, false},
		"in a thought":             {nil, []any{" \n<t>a<c>h<d></t>b<c>", f}, true, true},
		"after one":                {nil, []any{"<t>a</t>b<c>h"}, false, false},
		"after spaces without end": {nil, []any{strings.Repeat(" ", 65), "<t><c>h"}, false, false},
		"after some":               {nil, []any{strings.Repeat(" ", 64), "<t><c>h"}, true, true},
		"after no thought":         {nil, []any{"<<t><c>h"}, false, false},
		"after half of one":        {nil, []any{"<<c>", f}, true, true},
		"in one that is open":      {func(c *Calls) { c.Thinking = true }, []any{"<c>h</t><c>", f}, true, true},
		"that is open":             {func(c *Calls) { c.Within = true }, []any{f, "<c>", f}, true, true},
		"that is open, and none":   {func(c *Calls) { c.Within = true }, []any{"a"}, false, false},
		"prose":                    {func(c *Calls) { c.Prose = "all\n" }, []any{"<c>all\nb{<c>", f}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			may, ends := follows(talk(t, rng, c.change), c.parts...)
			require.Equal(t, c.may, may)
			require.Equal(t, c.ends, ends)
		})
	}
}

func TestCallsThatAreRefused(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(1, 10)))
	fine := Option{Before: "a", Schema: []byte(`{"type": "object"}`), At: "one"}
	for want, schema := range map[string]string{"other is false": `false`, "other cannot be": `{`,
		`has the keyword "i`: `{"if": {}}`, "other describes no": `{"$ref": "#/$defs/l", "$defs": {"l": {
			"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/l"}}}}`,
		"has 65537 bytes": strings.Repeat(" ", 1+maxSchema)} {
		other := Option{Before: "b", Schema: []byte(schema), At: "other"}
		_, err := WithCalls(v, Calls{Mark: "<c>", Options: []Option{fine, other}})
		var refused *Error
		require.True(t, errors.As(err, &refused), "%s: %v", want, err)
		require.Contains(t, err.Error(), want)
	}
	_, err := WithCalls(v, Calls{Mark: "<c>"})
	require.ErrorContains(t, err, "want 1 to")
	long := Option{Before: strings.Repeat("a", 1+maxBefore), Schema: []byte(`true`), At: "one"}
	_, err = WithCalls(v, Calls{Mark: "<c>", Options: []Option{long}})
	require.ErrorContains(t, err, "one stand after a name that takes 4097 bytes")
	_, err = Options(v, []Option{long})
	require.ErrorContains(t, err, "one stand after a name that takes 4097 bytes")
}

// typed is a grammar of texts that are calls alone, or an answer of a schema.
func typed(t *testing.T, rng *rand.Rand, change func(*Calls)) *Grammar {
	return talk(t, rng, func(of *Calls) {
		of.Answer, of.AnswerAt = []byte(`{"enum": [{"x": "<c>f{}"}, 12]}`), "answer"
		of.First, of.Closers = of.Mark, []string{"c>"}
		if change != nil {
			change(of)
		}
	})
}

// A text that has to be an answer or calls is one of both, perhaps after a thought, and can be ended only there.
func TestAnswersOrCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	const f, g = `f{"a":true}`, `{"b":1}]`
	opened := func(of *Calls) { of.Thinking = true }
	bare := func(of *Calls) { of.Mark, of.First, of.Never = "", "", nil }
	wrapped := func(of *Calls) { of.First = "<<c>" }
	for name, c := range map[string]struct {
		change    func(*Calls)
		parts     []any
		may, ends bool
	}{
		"an answer":               {nil, []any{`{"x":"<c>f{}"}`}, true, true},
		"a number":                {nil, []any{"\n\n12"}, true, true},
		"more than an answer":     {nil, []any{"12 "}, false, false},
		"a part of one":           {nil, []any{"1"}, true, false},
		"text":                    {nil, []any{"a"}, false, false},
		"nothing":                 {nil, []any{}, true, false},
		"a call":                  {nil, []any{shownMark, f}, true, true},
		"closed":                  {nil, []any{shownMark, f, "\nc>"}, true, true},
		"a part of a call":        {nil, []any{shownMark, `f{"a"`}, true, false},
		"a wrong call":            {nil, []any{shownMark, `f{"b"`}, false, false},
		"two calls":               {nil, []any{shownMark, f, "c>\n", shownMark, "[g", inner, g}, true, true},
		"two without a closer":    {nil, []any{shownMark, f, shownMark, f}, true, true},
		"a call and text":         {nil, []any{shownMark, f, " a"}, false, false},
		"a call and an answer":    {nil, []any{shownMark, f, "12"}, false, false},
		"an answer and a call":    {nil, []any{"12", shownMark}, false, false},
		"a thought":               {nil, []any{"<t>a", shownMark, hidden, "b</t>"}, true, false},
		"inside of one":           {nil, []any{"<t>a"}, true, false},
		"a thought and a call":    {nil, []any{" <t>a</t>\n\n", shownMark, f}, true, true},
		"a thought and an answer": {nil, []any{"<t>a</t>12"}, true, true},
		"a thought and text":      {nil, []any{"<t>a</t>a"}, false, false},
		"two thoughts":            {nil, []any{"<t>a</t><t>"}, false, false},
		"an opened thought":       {opened, []any{"a", hidden, "</t>\n12"}, true, true},
		"an opened one alone":     {opened, []any{"12"}, true, false},
		"without a mark":          {bare, []any{f}, true, true},
		"an answer without one":   {bare, []any{"12"}, true, true},
		"a second without one":    {bare, []any{f, f}, false, false},
		"what begins the first":   {wrapped, []any{"<", shownMark, f, shownMark, f}, true, true},
		"and nothing else":        {wrapped, []any{shownMark}, false, false},
	} {
		may, ends := follows(typed(t, rng, c.change), c.parts...)
		require.Equal(t, []bool{c.may, c.ends}, []bool{may, ends}, name)
	}
	for _, change := range []func(*Calls){nil, opened, bare} { // whatever tokens it comes in
		g := typed(t, rng, change)
		for range 20 {
			s, text := g.Begin(2), ""
			for range 40 {
				mask := s.Mask()
				sameAsMask(t, s, mask, text)
				var all []int
				for id := range g.v.size {
					if mask.Allows(id) && (id != 2 || !s.MayEnd()) {
						all = append(all, id)
					}
				}
				if len(all) == 0 {
					require.True(t, s.MayEnd(), "%q", text)
					break
				}
				id := all[rng.IntN(len(all))]
				require.NoError(t, s.Take(id), "%q after %q", g.shown(id), text)
				text += g.shown(id)
			}
		}
	}
	var refused *Error
	_, err := WithCalls(typed(t, rng, nil).v, Calls{Mark: "<c>", First: "<c>", Answer: []byte(`{"not": {}}`),
		AnswerAt: "answer", Options: []Option{{Before: "f", Schema: []byte(`{}`), At: "f"}}})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "answer", refused.At)
	_, err = WithCalls(typed(t, rng, nil).v, Calls{Mark: "<c>", First: "<c>", Answer: []byte(
		`{"properties": {"a": {"$ref": "#"}}, "required": ["a"]}`), AnswerAt: "answer",
		Options: []Option{{Before: "f", Schema: []byte(`{}`), At: "f"}}})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, Error{"answer", Empty, errNone.Error()}, *refused)
}
