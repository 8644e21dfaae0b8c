package jinja

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// doubling is a template that doubles the size of x, from start on, in each of 100 rounds.
func doubling(start, grow string) string {
	return "{% set ns = namespace(x=" + start + ") %}{% for i in range(100) %}{% set ns.x = " + grow +
		" %}{% endfor %}{{ ns.x is defined }}"
}

// What a hostile template takes is bounded, whichever way it goes about it. With AMKC_LONG the bounds are those that
// users have.
func TestLimits(t *testing.T) {
	limits := Limits{Steps: 400_000, Memory: 16 << 20, Output: 4 << 20}
	if os.Getenv("AMKC_LONG") != "" {
		limits = Limits{}
	}
	deep := func(open, inside, end string, n int) string {
		return strings.Repeat(open, n) + inside + strings.Repeat(end, n)
	}
	nested := "{% set ns = namespace(x=[]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}"
	tree := "{% set ns = namespace(x=[]) %}{% for i in range(150) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
	for name, source := range map[string]string{
		"source":          strings.Repeat("x", MaxSource+1),
		"brackets":        "{{ " + deep("(", "1", ")", 200) + " }}",
		"lists":           "{{ " + deep("[", "1", "]", 200) + " }}",
		"signs":           "{{ " + deep("-", "1", "", 200) + " }}",
		"nots":            "{{ " + deep("not ", "1", "", 200) + " }}",
		"ifs":             deep("{% if 1 %}", "", "{% endif %}", 200),
		"elses":           "{{ " + deep("1 if 1 else ", "1", "", 200) + " }}",
		"sums":            "{{ 1" + strings.Repeat("+1", 2000) + " }}",
		"filters":         "{{ 1" + strings.Repeat("|abs", 2000) + " }}",
		"items":           "{{ a" + strings.Repeat("[0]", 2000) + " }}",
		"elifs":           "{% if 0 %}" + strings.Repeat("{% elif 0 %}", 2000) + "{% endif %}",
		"range":           "{{ range(1000000)|length }}",
		"loops":           deep("{% for a in range(1000) %}", "", "{% endfor %}", 4),
		"recursion":       "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"caller":          "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
		"recursive":       "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		"chains in calls": "{% macro m() %}{{ m()" + strings.Repeat("~1+1", 900) + " }}{% endmacro %}{{ m() }}",
		"nested chains": "{% macro m() %}{{ " + deep("(", "m()", strings.Repeat("+1", 900)+")", 90) +
			" }}{% endmacro %}{{ m() }}",
		"text":          doubling("'a'", "ns.x + ns.x"),
		"concatenation": doubling("'a'", "ns.x ~ ns.x"),
		"list":          doubling("[1]", "ns.x + ns.x"),
		"product":       doubling("'a'", "ns.x * 10"),
		"replacement":   doubling("'aa'", "ns.x|replace('a', 'aaaa')"),
		"join":          doubling("'aa'", "ns.x|join('bbbbb')"),
		"escapes":       doubling("'<'", "ns.x ~ (ns.x|forceescape)"),
		"indent":        doubling("'a\n'", "(ns.x|indent(1000)) * 2"),
		"integer":       doubling("10", "ns.x * ns.x"),
		"power":         "{{ 10 ** (10 ** 10) }}",
		"width":         "{{ '%999999999d' % 1 }}",
		"formats":       "{{ '{:999999999}'.format('a') }}",
		"centre":        "{{ 'a'|center(999999999) }}",
		"zeros":         "{{ 'a'.zfill(999999999) }}",
		"tabs":          "{{ '\t'.expandtabs(999999999) }}",
		"batch":         "{{ [1]|batch(999999999, 0)|list }}",
		"slices":        "{{ [1]|slice(999999999)|list|length }}",
		"generators":    strings.Replace(doubling("[1]", "ns.x|map('abs')"), "range(100)", "range(99999)", 1),
		"shown values":  nested + "{{ ns.x }}",
		"JSON":          nested + "{{ ns.x|tojson }}",
		"equal":         nested + strings.ReplaceAll(nested, "ns", "b") + "{{ ns.x == b.x }}",
		"tree":          tree + "{{ ns.x }}",
		"tree in JSON":  tree + "{{ ns.x|tojson(indent=1) }}",
		"equal trees":   tree + strings.ReplaceAll(tree, "ns", "b") + "{{ ns.x == b.x }}",
		"self":          "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
		"printing":      "{% set x = 'a' * 1000000 %}{% for a in range(1000) %}{{ x }}{% endfor %}",
		"capture": "{% set x %}{% for a in range(9999) %}" + strings.Repeat("y", 9999) +
			"{% endfor %}{% endset %}",
		"digits":  "{{ 1" + strings.Repeat("0", maxDigits) + " }}",
		"sorting": "{% set x = range(100000)|list %}{% for a in x %}{% set y = x|sort %}{% endfor %}",
		"search":  "{% set x = 'a' * 10000000 %}{% for a in range(100000) %}{% set y = 'b' in x %}{% endfor %}",
		"big sum": "{% set x = 2 ** 60000 %}{% for a in range(100000) %}{% set y = x % 7919 %}{% endfor %}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(source, &Dict{}, Options{Limits: limits})
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, Limit, e.Kind, "%v", e)
		})
	}
}

// A conversation that fills a model is far from the limits.
func TestLimitsAreWide(t *testing.T) {
	messages := NewList()
	for range 5000 {
		m := &Dict{}
		m.Set("role", "user")
		m.Set("content", strings.Repeat("Hello, world! ", 50))
		messages.items = append(messages.items, m)
	}
	variables := &Dict{}
	variables.Set("messages", messages)
	out, err := render("{% for m in messages %}{% if m.role == 'user' and m['content'] is string %}<|{{ m.role }}|>"+
		"{{ m.content | trim }}{{ m|tojson }}{% endif %}{% endfor %}", variables, Options{})
	require.NoError(t, err)
	require.Greater(t, len(out), 5_000_000)
}

// The caller's limits hold, and errors name what they are about with its line.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		source string
		limits Limits
		kind   Kind
		says   string
	}{
		{"a\n{% if %}", Limits{}, Syntax, "line 2: found %}; want an expression"},
		{"{% include 'x' %}", Limits{}, Unsupported, "line 1: the tag {% include %} is not supported"},
		{"\n\n{{ 'a'|wordwrap }}", Limits{}, Unsupported, "line 3: the filter wordwrap is not supported"},
		{"\n{{ raise_exception('Roles must alternate') }}", Limits{}, Raised, "line 2: Roles must alternate"},
		{"{{ missing.x }}", Limits{}, Failed, "line 1: 'missing' is undefined"},
		{"{{ 1 + 'a' }}", Limits{}, Failed, "line 1: int + str has no meaning"},
		{"{{ strftime_now('%Y') }}", Limits{}, Failed, "line 1: strftime_now: no time was given to render with"},
		{"{% for a in 'abc' %}{{ a }}{% endfor %}", Limits{Output: 2}, Limit, "prints more than 2 bytes"},
		{"{% for a in 'abc' %}{{ a }}{% endfor %}", Limits{Steps: 5}, Limit, "takes more than 5 steps"},
		{"{{ 'abc' * 10 }}", Limits{Memory: 20}, Limit, "makes more than 20 bytes of values"},
		{"{{ [[1]] }}", Limits{Depth: 1}, Limit, "more than 1 macros and recursive loops"},
		{"\xff", Limits{}, Syntax, "not valid UTF-8"},
	} {
		_, err := render(c.source, &Dict{}, Options{Limits: c.limits})
		var e *Error
		require.ErrorAs(t, err, &e, c.source)
		require.Equal(t, c.kind, e.Kind, c.source)
		require.ErrorContains(t, err, c.says)
	}
}

// A JSON text has a bound of values, wherever they stand in it.
func TestValuesOfJSON(t *testing.T) {
	list := func(part string, n int) string { return "[" + strings.Repeat(part+",", n-1) + part + "]" }
	for _, text := range []string{list("0", maxJSONValues-1), list(`{"a":""}`, (maxJSONValues-1)/2)} {
		_, err := FromJSON([]byte(text))
		require.NoError(t, err)
	}
	for _, text := range []string{list("0", maxJSONValues), list(`{"a":""}`, maxJSONValues/2),
		list("[]", maxJSONValues)} {
		_, err := FromJSON([]byte(text))
		require.EqualError(t, err, "it has more than 262144 values")
	}
}
