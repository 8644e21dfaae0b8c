package grammar

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// takes reports whether a text is one of a grammar, without a look at masks.
func takes(g *Grammar, text string) bool {
	s := g.Begin()
	for _, b := range []byte(text) {
		if s.Take(int(b)) != nil {
			return false
		}
	}
	return s.MayEnd()
}

func schema(t testing.TB, v *Vocabulary, format string, args ...any) *Grammar {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	g, err := Schema(v, []byte(text))
	require.NoError(t, err, text)
	return g
}

// A number is written if and only if it is one of the range, which fractions of any size decide.
func TestNumbersOfRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 1))
	v := pieces(t, rng)
	var domain []string
	for n := -1200; n <= 1200; n++ {
		sign, size := "", n
		if n < 0 {
			sign, size = "-", -n
		}
		domain = append(domain, fmt.Sprint(n), fmt.Sprintf("%s%d.%d", sign, size/10, size%10),
			fmt.Sprintf("%s%d.%02d0", sign, size/100, size%100))
	}
	bounds := []string{"0", "-0", "1", "7", "9", "10", "-10", "99", "100", "101", "-101", "0.5", "-0.05", "1e1",
		"12.34", "-99.9", "1.0", "0.123456789", "1e-2", "999", "-1000", "5e17", "-2e300", "0.99999999999999999"}
	keywords := []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}
	none, written, draws := 0, 0, 40
	if os.Getenv("AMKC_LONG") != "" {
		draws = 400
	}
	for range draws {
		kind := []string{"number", "integer"}[rng.IntN(2)]
		said, limits := []string{`"type": "` + kind + `"`}, map[string]*big.Rat{}
		for _, keyword := range keywords {
			if rng.IntN(2) == 0 {
				text := bounds[rng.IntN(len(bounds))]
				if len(text) > 17 && strings.HasPrefix(keyword, "exclusive") {
					continue
				}
				limits[keyword], _ = new(big.Rat).SetString(text)
				said = append(said, fmt.Sprintf("%q: %s", keyword, text))
			}
		}
		multiple := int64(0)
		if kind == "integer" && rng.IntN(3) == 0 {
			multiple = 1 + rng.Int64N(12)
			said = append(said, fmt.Sprintf(`"multipleOf": %d`, multiple))
		}
		text := "{" + strings.Join(said, ", ") + "}"
		within := func(number string) bool {
			r, _ := new(big.Rat).SetString(number)
			for keyword, limit := range limits {
				so := r.Cmp(limit)
				if keyword == "minimum" && so < 0 || keyword == "maximum" && so > 0 ||
					keyword == "exclusiveMinimum" && so <= 0 || keyword == "exclusiveMaximum" && so >= 0 {
					return false
				}
			}
			whole := !strings.Contains(number, ".")
			return (kind == "number" || whole) &&
				(multiple == 0 || whole && new(big.Int).Rem(r.Num(), big.NewInt(multiple)).Sign() == 0)
		}
		g, err := Schema(v, []byte(text))
		if err != nil {
			require.ErrorContains(t, err, "no number is between", text)
			require.False(t, slices.ContainsFunc(domain, within), text)
			none++
			continue
		}
		for _, number := range domain {
			require.Equal(t, within(number), takes(g, number), "%s: %s", text, number)
		}
		for range 5 { // of any size
			if number, ended := sample(t, g, rng); ended && !strings.ContainsAny(number, "eE") {
				require.True(t, within(strings.TrimSpace(number)), "%s: %s", text, number)
				written++
			}
		}
	}
	require.Greater(t, none, draws/20)
	require.Greater(t, written, 2*draws)
	for _, c := range []struct{ schema, yes, no string }{ // as zod 4 writes int()
		{`{"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}`,
			"9007199254740991|-9007199254740991|0", "9007199254740992|-9007199254740992|10000000000000000|1.0"},
		{`{"type": "number", "multipleOf": 0.01}`, "1.25|-0.5|3", "1.255|1e3"},
		{`{"type": "integer", "format": "uint64"}`, "0|5", "-5"},
	} {
		g := schema(t, v, "%s", c.schema)
		for _, number := range strings.Split(c.yes, "|") {
			require.True(t, takes(g, number), "%s: %s", c.schema, number)
		}
		for _, number := range strings.Split(c.no, "|") {
			require.False(t, takes(g, number), "%s: %s", c.schema, number)
		}
	}
}

// all calls a function with each text of some characters up to a length.
func all(letters []rune, most int, of func(text string)) {
	var more func(text string, left int)
	more = func(text string, left int) {
		of(text)
		for _, r := range letters {
			if left > 0 {
				more(text+string(r), left-1)
			}
		}
	}
	more("", most)
}

// A string is written if and only if the pattern matches it, as another implementation says: that of Go, where the
// pattern means the same there, and a function where Go has no such thing.
func TestPatterns(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(22, 1)))
	letters := []rune{'a', 'b', '1', '-', 'ö', '"', '\n'}
	for _, c := range []struct {
		pattern string
		matches func(string) bool // nil: as in Go
	}{
		{"", nil}, {"a", nil}, {"^a", nil}, {"a$", nil}, {"^$", nil}, {"^a|b$", nil}, {"^(a|b)*$", nil},
		{"^(?:a|b){2,3}$", nil}, {"^[^a]*$", nil}, {"^[a-b1]+-?$", nil}, {`^\d+|\w-$`, nil}, {`^a.b$`, nil},
		{"^(a|^b)1", nil}, {"(a$|b)", nil}, {"^(a$|b)", nil}, {"^a?b?1?$", nil}, {"^(a+b)+$", nil}, {"^a{2}$", nil},
		{"^a{2,}", nil}, {"^(?:(?:a|b1)*-)?ö$", nil}, {`^[\w\-]*"`, nil}, {"(?P<x>a)b", nil}, {`^[^\d]`, nil},
		{"a^", nil}, {"$a", nil}, {"^[-a]+$", nil}, {"^(|a)b$", nil}, {"^.$", nil}, {`\n`, nil}, {"^a*?b$", nil},
		{"^(?!a)", func(s string) bool { return !strings.HasPrefix(s, "a") }},
		{"^(?!.*aa)[ab]+$", func(s string) bool {
			return s != "" && strings.Trim(s, "ab") == "" && !strings.Contains(s, "aa")
		}},
		{"(?=.*1)(?=.*b)^", func(s string) bool { // up to the end of the line
			first, _, _ := strings.Cut(s, "\n")
			return strings.Contains(first, "1") && strings.Contains(first, "b")
		}},
		{"a(?!b)", func(s string) bool { return strings.Contains(strings.ReplaceAll(s, "ab", ""), "a") }},
		{"^(?:a(?=b)|1)", func(s string) bool { return strings.HasPrefix(s, "ab") || strings.HasPrefix(s, "1") }},
		{"^(?=[ab]{2}$)a", func(s string) bool { return s == "aa" || s == "ab" }},
		{`^[^]$`, func(s string) bool { return utf8.RuneCountInString(s) == 1 }},
		{`^\u00f6\x61\u{62}$`, func(s string) bool { return s == "öab" }},
	} {
		matches := c.matches
		if matches == nil {
			matches = regexp.MustCompile(c.pattern).MatchString
		}
		any, count := false, 0
		pattern := quoted(strings.Replace(c.pattern, "?P<", "?<", 1))
		g, err := Schema(v, []byte(`{"type": "string", "pattern": `+pattern+`}`))
		all(letters, 4, func(text string) {
			yes := matches(text)
			any = any || yes
			if err == nil {
				require.Equal(t, yes, takes(g, quoted(text)), "%s: %q", c.pattern, text)
				count++
			}
		})
		require.Equal(t, any, err == nil, "%s: %v", c.pattern, err)
	}
}

// A panic of the parser that does not say what is wrong with a pattern is a mistake, and is not taken for a pattern.
func TestPatternPanics(t *testing.T) {
	var err error
	require.PanicsWithValue(t, "mistake", func() {
		defer failed(&err)
		panic("mistake")
	})
	require.NoError(t, err)
	_, err = parsePattern("(")
	require.ErrorAs(t, err, new(*patternError))
}

// Lengths count characters, whichever way those are written, and no bound is too large to be counted.
func TestLengths(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	v := pieces(t, rng)
	letters := []string{"a", "ö", "€", "😀", `\n`, `\u00e4`, `\ud83d\ude00`, `\"`}
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(letters[rng.IntN(len(letters))])
		}
		return `"` + b.String() + `"`
	}
	for _, c := range []struct{ least, most int }{{0, 0}, {0, 1}, {1, 1}, {0, 3}, {2, 5}, {3, -1}, {1, -1}, {30, 40},
		{0, 100000}, {99990, 100000}, {5000, -1}} {
		s := fmt.Sprintf(`{"minLength": %d}`, c.least)
		if c.most >= 0 {
			s = fmt.Sprintf(`{"minLength": %d, "maxLength": %d}`, c.least, c.most)
		}
		g := schema(t, v, "%s", s)
		require.Less(t, len(g.p.places), int(numCommon)+40, "more characters take no more places")
		for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 29, 30, 40, 41, c.least - 1, c.least, c.most, c.most + 1} {
			if n >= 0 {
				require.Equal(t, n >= c.least && (c.most < 0 || n <= c.most), takes(g, text(n)), "%s: %d", s, n)
			}
		}
	}
	for _, pattern := range []string{"^(ab)+$", "^a*$", "b", "^(aaa|bb)*$"} { // which some lengths do not go with
		re := regexp.MustCompile(pattern)
		for least := range 4 {
			for most := least; most < 6; most++ {
				g, err := Schema(v, []byte(fmt.Sprintf(`{"pattern": %q, "minLength": %d, "maxLength": %d}`, pattern,
					least, most)))
				any := false
				all([]rune{'a', 'b'}, 7, func(text string) {
					yes := re.MatchString(text) && len(text) >= least && len(text) <= most
					any = any || yes
					if err == nil {
						require.Equal(t, yes, takes(g, quoted(text)), "%s %d %d: %q", pattern, least, most, text)
					}
				})
				require.Equal(t, any, err == nil, "%s %d %d: %v", pattern, least, most, err)
			}
		}
	}
}

// Masks of strings that are counted are what can be taken, at and around their bounds.
func TestMasksOfCountedStrings(t *testing.T) {
	rng := rand.New(rand.NewPCG(24, 1))
	v := pieces(t, rng)
	for _, s := range []string{`{"minLength": 25, "maxLength": 60}`, `{"maxLength": 12}`, `{"minLength": 20}`,
		`{"minLength": 10, "maxLength": 11}`, `{"pattern": "^([a-c]{3})+$", "maxLength": 32}`,
		`{"pattern": "^(a|b€|:\"){2}[^:]*$", "minLength": 4, "maxLength": 20}`} {
		g := schema(t, v, `{"items": %s}`, s)
		for range 4 {
			st := g.Begin()
			require.NoError(t, st.Take('['))
			for range 40 {
				mask := st.Mask()
				var can []int
				for id := range v.size {
					other := State{g: g, m: newMachine(g.p), masks: map[spot]Mask{}, spots: slices.Clone(st.spots)}
					ok := other.Take(id) == nil
					require.Equal(t, ok, mask.Allows(id), "%s: %q", s, v.texts[id])
					if ok {
						can = append(can, id)
					}
				}
				require.NotEmpty(t, can)
				require.NoError(t, st.Take(can[rng.IntN(len(can))]))
				if st.MayEnd() {
					break
				}
			}
		}
	}
}

// What is written of a format is one, as parsers of others say, and texts that are near are not.
func TestFormats(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 1))
	v := pieces(t, rng)
	parsed := func(layout string) func(string) bool {
		return func(s string) bool { _, err := time.Parse(layout, s); return err == nil }
	}
	address := func(s string) (a netip.Addr, ok bool) {
		a, err := netip.ParseAddr(s)
		return a, err == nil && a.Zone() == ""
	}
	oracles := map[string]func(string) bool{
		"date":      parsed(time.DateOnly),
		"time":      func(s string) bool { return parsed(time.RFC3339)("2024-01-01T" + s) },
		"date-time": parsed(time.RFC3339),
		"ipv4":      func(s string) bool { a, ok := address(s); return ok && a.Is4() },
		"ipv6":      func(s string) bool { a, ok := address(s); return ok && a.Is6() },
		"email": func(s string) bool {
			a, err := mail.ParseAddress(s)
			return err == nil && a.Address == s && len(s) <= 254 && strings.IndexByte(s, '@') <= 64
		},
		"uri": func(s string) bool {
			u, err := url.Parse(s)
			return err == nil && u.IsAbs() && u.Host != ""
		},
		"hostname": func(s string) bool {
			u, err := url.Parse("x://" + s)
			return err == nil && u.Hostname() == s
		},
		"duration":      regexp.MustCompile(`^P(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?)$`).MatchString,
		"ipvanyaddress": func(s string) bool { _, ok := address(s); return ok },
		"base64": func(s string) bool {
			_, err := base64.StdEncoding.Strict().DecodeString(s)
			return err == nil
		},
		"uuid": regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString,
	}
	for _, name := range knownFormats() {
		oracle := oracles[name]
		switch {
		case strings.HasPrefix(name, "uuid"):
			oracle = oracles["uuid"]
		case name == "password" || name == "binary" || name == "path":
			continue
		}
		require.NotNil(t, oracle, name)
		g := schema(t, v, `{"format": %q}`, name)
		written, near := 0, 0
		for range 60 {
			said, ended := sample(t, g, rng)
			if !ended {
				continue
			}
			written++
			text := strings.Trim(said, ` "`)
			require.True(t, oracle(text), "%s: %q", name, text)
			for k := 0; k < 20 && text != ""; k++ { // a text that is no more one is not taken
				i, bytes := rng.IntN(len(text)), []byte(text)
				bytes[i] = "0129:-+TZ.@aPx/ "[rng.IntN(16)]
				changed := string(bytes)
				if rng.IntN(3) == 0 {
					changed = text[:i]
				}
				if !oracle(changed) {
					near++
					require.False(t, takes(g, quoted(changed)), "%s: %q", name, changed)
				}
			}
		}
		require.Greater(t, written, 20, name)
		require.True(t, near > 20 || name == "uri" || name == "hostname" || name == "email", name)
	}
	date := schema(t, v, `{"format": "date"}`)
	for _, year := range []int{1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 9999} {
		for month := range 15 {
			for day := range 40 {
				text := fmt.Sprintf("%04d-%02d-%02d", year, month, day)
				require.Equal(t, oracles["date"](text), takes(date, quoted(text)), text)
			}
		}
	}
	for _, text := range []string{`"a@b.example"`, `"a.b+c@sub-1.example.org"`} {
		require.True(t, takes(schema(t, v, `{"format": "email"}`), text), text)
	}
	for _, text := range []string{`"a@b"`, `"a..b@c.de"`, `".a@c.de"`, `"a@-c.de"`, `"a@c-.de"`, `"a b@c.de"`,
		`"` + strings.Repeat("a", 65) + `@c.de"`} {
		require.False(t, takes(schema(t, v, `{"format": "email"}`), text), text)
	}
	for _, text := range []string{`"https://a.example"`, `"http://a.b.example:8080/x/%20?q=1&r#f"`} {
		require.True(t, takes(schema(t, v, `{"format": "uri", "minLength": 1, "maxLength": 2083}`), text), text)
	}
	both := schema(t, v, `{"format": "time", "pattern": "^([01]\\d|2[0-3]):[0-5]\\d$"}`)
	require.True(t, takes(both, `"12:30"`), "a pattern may ask for a time without an offset")
	require.False(t, takes(both, `"24:30"`))
	require.True(t, takes(schema(t, v, `{"format": "ulid", "pattern": "^x$"}`), `"x"`), "a format alongside a pattern")
}

// Schemas are known to be apart only where no value is valid by both.
func TestApart(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		apart bool
	}{
		{`{"type": "string"}`, `{"type": "null"}`, true}, {`{"type": "string"}`, `{}`, false},
		{`{"type": "integer"}`, `{"type": "number"}`, false}, {`{"const": 1}`, `{"const": 1.0}`, false},
		{`{"enum": [1, 2]}`, `{"enum": [3, "1"]}`, true}, {`{"enum": [1, 2]}`, `{"type": "string"}`, true},
		{`{"enum": [1, 2.0]}`, `{"enum": [2]}`, false}, {`{"const": {"a": 1, "b": 2}}`, `{"const": {"b": 2, "a": 1}}`,
			false},
		{`{"$ref": "#/$defs/a"}`, `{"allOf": [{"$ref": "#/$defs/b"}]}`, true}, {`{"$ref": "#/$defs/a"}`, `true`, false},
		{`{"anyOf": [{"type": "string"}, {"type": "null"}]}`, `{"oneOf": [{"type": "array"}, {"type": "boolean"}]}`,
			true},
		{`{"anyOf": [{"type": "string"}, {"type": "null"}]}`, `{"type": ["array", "null"]}`, false},
		{`{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]}`,
			`{"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}`, true},
		{`{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]}`,
			`{"type": "object", "properties": {"k": {"const": "b"}}}`, true},
		{`{"type": "object", "properties": {"k": {"const": "a"}}}`,
			`{"type": "object", "properties": {"k": {"const": "b"}}}`, false},
		{`{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]}`,
			`{"properties": {"k": {"const": "b"}}, "required": ["k"]}`, true}, // common are objects alone
		{`{"type": "object", "properties": {"k": true}, "required": ["k"]}`,
			`{"type": "object", "properties": {"l": true}, "additionalProperties": false}`, true},
		{`{"$ref": "#/$defs/loop"}`, `{"type": "null"}`, false},
	} {
		whole, err := read([]byte(`{"$defs": {"a": {"type": "string"}, "b": {"type": "number"}, "loop": {"$ref":
			"#/$defs/loop"}}, "one": ` + c.a + `, "other": ` + c.b + `}`))
		require.NoError(t, err)
		compiler := newCompiler()
		compiler.refer(whole)
		values := whole.(*object).values
		for _, pair := range [][2]document{{values["one"], values["other"]}, {values["other"], values["one"]}} {
			got := compiler.apart(pair[0], pair[1], 0)
			require.Equal(t, c.apart, got, "%s %s", c.a, c.b)
		}
	}
}

// What cannot be kept of strings, numbers and combinations is refused by its place.
func TestConstraintsThatAreRefused(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(26, 1)))
	for _, c := range [][]string{ // a schema, a part of the message, and perhaps the code
		{`{"type": "object", "oneOf": [true]}`, `# has oneOf alongside type`},
		{`{"oneOf": [{"type": "integer"}, {"type": "number"}]}`, `#/oneOf has the schemas 0 and 1, which one value`},
		{`{"oneOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]}`,
			`want schemas of diff`},
		{`{"allOf": [{"type": "object"}, {"type": "object"}]}`, `#/allOf has 2 schemas, alongside nothing; want`},
		{`{"allOf": [{"minLength": 1}], "minimum": 1}`, `#/allOf has 1 schemas, alongside minimum`},
		{`{"pattern": "(?<=a)b"}`, `#/pattern looks behind`},
		{`{"pattern": "\\bword"}`, `#/pattern has \b, the border of a word`},
		{`{"pattern": "(a)\\1"}`, `#/pattern refers back`},
		{`{"pattern": "(?i)a"}`, `#/pattern has a group that begins with (?i`},
		{`{"pattern": "(^a|b$)*"}`, `#/pattern repeats a group with ^`},
		{`{"pattern": "a{3,2}"}`, `#/pattern has {3,2}`},
		{`{"pattern": "[b-a]"}`, `#/pattern has a range of characters`},
		{`{"pattern": "(a"}`, `#/pattern has a ( that is not closed`},
		{`{"pattern": "a)"}`, `#/pattern has a ) that closes nothing`},
		{`{"pattern": "a**"}`, `#/pattern repeats what is repeated`},
		{`{"pattern": "\\p{L}"}`, `#/pattern has the escape \p`},
		{`{"pattern": 1}`, `#/pattern is not a string`},
		{`{"pattern": "a^"}`, `# has no text`},
		{`{"pattern": "(a|b)*a(a|b){20}$"}`, `# takes more than 10000 states`},
		{`{"pattern": "^a{5}$", "maxLength": 4}`, `# has no text`},
		{`{"minLength": 4, "maxLength": 3}`, `# wants at least 4 characters`},
		{`{"minLength": 20000, "pattern": "a"}`, `# takes more than 10000 states`},
		{`{"minLength": -1}`, `#/minLength is not a whole number from 0 to`},
		{`{"minimum": "1"}`, `#/minimum is not a number`},
		{`{"type": "number", "minimum": 2, "exclusiveMaximum": 2}`, `# has bounds that no number is between`},
		{`{"type": "integer", "minimum": 0.2, "maximum": 0.8}`, `# has bounds that no number is between`},
		{`{"type": "integer", "minimum": 1e16}`, `# has bounds that no number is between`},
		{`{"type": "number", "minimum": 1e20}`, `# has bounds that no number is between`, "schema_without_values"},
		{`{"multipleOf": 0.25}`, `#/multipleOf is not supported; want a whole`},
		{`{"multipleOf": 0}`, `#/multipleOf is not a number above 0`},
		{`{"exclusiveMinimum": true}`, `#/exclusiveMinimum is not a number`},
		{`{"exclusiveMinimum": 0.12345678901234567890}`, `#/exclusiveMinimum has digits that readers round`},
		{`{"type": "number", "format": "money"}`, `#/format is "money"`},
		{`{"type": "string", "format": "int64"}`, `#/format is "int64", which is not supported for strings; want`,
			"unsupported_schema"},
		{`{"type": ["null", "string"], "format": "double"}`, `#/format is "double", which is not supported for str`},
		{`{"propertyNames": {"format": "int32"}}`, `#/propertyNames/format is "int32", which is not supported for`},
		{`{"allOf": [{"format": "int32"}, {"minLength": 1}]}`, `#/format is "int32", which is not supported for str`},
		{`{"type": "string", "format": ""}`, `#/format is "", which is not supported`, "unsupported_schema"},
		{`{"allOf": [{"type": "string"}, {"format": ""}]}`, `#/format is "", which is not supported`},
		{`{"allOf": [{"type": "string"}, {"format": 5}]}`, `#/allOf/1/format is not a string`, "invalid_schema"},
		{`{"propertyNames": {"format": 5}}`, `#/propertyNames/format is not a string`},
		{`{"patternProperties": {"a": true, "b": true}}`, `#/patternProperties is not supported here; want one`},
		{`{"patternProperties": {"a": true}, "additionalProperties": true}`,
			`#/patternProperties is not supported here`},
		{`{"patternProperties": {"^a/": true}, "properties": {"a/b": {}}}`,
			`#/patternProperties/^a~1 matches the property`},
		{`{"patternProperties": {"(": true}}`, `#/patternProperties/( has a ( that is not closed`},
		{`{"patternProperties": {"a": {"not": 1}}}`, `#/patternProperties/a has the keyword "not"`},
		{`{"patternProperties": {"a": true}, "required": ["b"]}`,
			`#/required has "b", which patternProperties does not match; want`, "unsupported_schema"},
		{`{"patternProperties": {"a": true}, "required": ["b"], "additionalProperties": false}`,
			`#/required has "b", which is not a property`, "schema_without_values"},
		{`{"propertyNames": {"type": "integer"}}`, `#/propertyNames allows no strings`},
		{`{"propertyNames": {"properties": {}}}`, `#/propertyNames has properties; want enum`},
		{`{"propertyNames": {"enum": ["a"]}, "required": ["b"]}`, `#/required has "b"`},
		{`{"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"$id": "b", "items": {"$ref": "#"}}}}`,
			`#/properties/a/$ref cannot be followed alongside #/$defs/b/$id, which changes`, "unsupported_schema"},
		{`{"oneOf": [{"type": "null"}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"$id": "b", "type": "string"}}}`,
			`#/oneOf/1/$ref cannot be followed alongside`},
		{`{"oneOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]}`, `#/oneOf/1/$ref refers to something that is not`},
		{`{"propertyNames": {"$ref": "#/$defs/b"}, "$defs": {"b": {"$id": "b"}}}`,
			`#/propertyNames refers to no schema`, "unsupported_schema"},
		{`{"const": "\ud800"}`, `# cannot be read: it has \ud800, half of a surrogate pair`, "invalid_schema"},
		{`{"properties": {"\udC00\ud800": {}}}`, `# cannot be read: it has \udC00, half`},
		{`{"const": "\\\ud83d\ud83d\ude00"}`, `# cannot be read: it has \ud83d, half`},
		{`{"const": "\uDBFF\\uDC00"}`, `# cannot be read: it has \uDBFF, half`},
		{`{"prefixItems": {}}`, `#/prefixItems is not a list`},
		{`{"prefixItems": [{"type": "string"}], "items": [{"type": "number"}]}`,
			`# has prefixItems alongside a list in`},
		{`{"prefixItems": 5, "items": [{"type": "number"}]}`, `# has prefixItems alongside a list in`},
		{`{"prefixItems": [true], "minItems": 2}`, `# wants at least 2 items and says what the first 1 are; want items`,
			"unsupported_schema"},
		{`{"prefixItems": [true], "items": false, "minItems": 2}`, `# wants at least 2 items, and at most 1`},
	} {
		_, err := Schema(v, []byte(c[0]))
		var refused *Error
		require.ErrorAs(t, err, &refused, c[0])
		require.Contains(t, err.Error(), c[1], c[0])
		if len(c) > 2 {
			require.Equal(t, Kind(c[2]), refused.Kind, c[0])
		}
	}
}
