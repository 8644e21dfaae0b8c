package grammar

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A stringFormat is a regular subset of the texts of a format, as a pattern.
type stringFormat struct {
	pattern string
	wide    string // alongside a pattern, where that may ask for what pattern leaves out; empty: the same
	most    int32  // characters; 0: any number
}

const (
	dateText = `(?!0000)(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|` +
		`02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	timeText = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
	timeWide = `(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?`
	label    = `[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*`
	topLabel = `[A-Za-z][A-Za-z0-9]+(?:-[A-Za-z0-9]+)*`
	noLong   = `(?![^/?#]*[A-Za-z0-9-]{64})` // labels have 63 characters
	octet    = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	group    = `[0-9A-Fa-f]{1,4}`
	hexTail  = `[0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}`
	urlChar  = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})`
)

// stringFormats are those that are known. What is written of them is written in one of the ways that all readers take.
var stringFormats = map[string]stringFormat{
	"date":      {pattern: dateText},
	"time":      {pattern: timeText, wide: timeWide},
	"date-time": {pattern: dateText + `T` + timeText, wide: dateText + `T` + timeWide},
	"duration": {pattern: `P(?=[\dT])(?:\d{1,4}W|(?:\d{1,4}D|\d{1,4}M(?:\d{1,4}D)?|` +
		`\d{1,4}Y(?:\d{1,4}M(?:\d{1,4}D)?)?)?` +
		`(?:T(?:\d{1,4}S|\d{1,4}M(?:\d{1,4}S)?|\d{1,4}H(?:\d{1,4}M(?:\d{1,4}S)?)?))?)`},
	"email": {pattern: `(?=[^@]{1,64}@)` + noLong + `[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@(?:` + label +
		`\.)+[A-Za-z]{2,63}`, most: 254},
	"hostname": {pattern: noLong + `(?:` + label + `\.)*` + topLabel, most: 253},
	"ipv4":     {pattern: octet + `(?:\.` + octet + `){3}`},
	"ipv6":     {pattern: ipv6()},
	"uri": {pattern: `[a-z][a-z0-9+.-]*://` + noLong + `(?:` + label + `\.)*` + topLabel + `(?::[1-9]\d{0,3})?(?:/` +
		urlChar + `*)*(?:\?(?:` + urlChar + `|[/?])*)?(?:#(?:` + urlChar + `|[/?])*)?`},
	"uuid":  {pattern: `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]` + hexTail},
	"uuid1": {pattern: uuid("1")}, "uuid3": {pattern: uuid("3")}, "uuid4": {pattern: uuid("4")},
	"uuid5": {pattern: uuid("5")}, "uuid7": {pattern: uuid("7")},
	"ipvanyaddress": {pattern: `(?:` + octet + `(?:\.` + octet + `){3}|` + ipv6() + `)`},
	"base64":        {pattern: `(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?`},
	"path":          {pattern: `[^\0]+`},
	"password":      {pattern: `[^]*`}, "binary": {pattern: `[^]*`}, // which say how a string is shown or used
}

func uuid(version string) string {
	return `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-` + version + `[0-9A-Fa-f]{3}-[89ABab]` + hexTail
}

// ipv6 is an address in groups, of which some may be left out once.
func ipv6() string {
	all := []string{`(?:` + group + `:){7}` + group}
	for before := range 8 {
		ahead := `::`
		if before > 0 {
			ahead = fmt.Sprintf(`%s(?::%s){%d}::`, group, group, before-1)
		}
		after := ``
		if most := 7 - before; most > 0 { // at least one group is left out
			after = fmt.Sprintf(`(?:%s(?::%s){0,%d})?`, group, group, most-1)
		}
		all = append(all, ahead+after)
	}
	return `(?:` + strings.Join(all, `|`) + `)`
}

var stringWords = []string{"minLength", "maxLength", "pattern", "format"}

// maxCount is how many characters of a string are counted.
const maxCount = 1 << 30

// A stringRange says which strings may be written.
type stringRange struct {
	patterns    []string
	formats     []string
	least, most int32    // characters; most is -1 where there is no bound
	without     []string // which may not
}

// narrow takes the keywords of another schema into account.
func (r *stringRange) narrow(s *object, at string) error {
	least, err := count(s, "minLength", at, maxCount)
	if err != nil {
		return err
	}
	most, err := count(s, "maxLength", at, maxCount)
	if err != nil {
		return err
	}
	r.shorter(int32(most))
	r.least = max(r.least, int32(least))
	if v, said := s.values["pattern"]; said {
		text, isText := v.(string)
		if !isText {
			return &Error{pointer(at, "pattern"), Invalid, "is not a string"}
		}
		if _, err := parsePattern(text); err != nil {
			return &Error{pointer(at, "pattern"), Unsupported, err.Error() + patternsKnown}
		}
		r.patterns = append(r.patterns, text)
	}
	if v, said := s.values["format"]; said {
		name, isText := v.(string)
		if !isText {
			return &Error{pointer(at, "format"), Invalid, "is not a string"}
		}
		if !slices.Contains(r.formats, name) {
			r.formats = append(r.formats, name)
		}
	}
	return nil
}

const patternsKnown = `, which is not supported; want characters, ., classes in brackets, \d \w \s and their ` +
	`opposites, groups, |, * + ? {n,m}, ^ and $, and (?= and (?! outside of what is repeated`

func (r *stringRange) shorter(most int32) {
	if most >= 0 && (r.most < 0 || most < r.most) {
		r.most = most
	}
}

// text is a rule for the strings of a range.
func (c *compiler) text(r *stringRange, at string) (int32, error) {
	for _, name := range r.formats {
		if _, known := stringFormats[name]; !known && len(r.patterns) == 0 {
			return 0, unknownFormat(name, at)
		}
	}
	key := fmt.Sprintf("%#v", *r)
	if rule, there := c.made[key]; there {
		return rule, nil
	}
	rule, err := c.string(r)
	kind := Empty
	var pattern *patternError
	switch {
	case errors.As(err, &pattern):
		return 0, &Error{pointer(at, "pattern"), Unsupported, err.Error() + patternsKnown}
	case errors.Is(err, errStates):
		kind = TooLarge
	}
	if err != nil {
		return 0, &Error{at, kind, err.Error()}
	}
	c.made[key] = rule
	return rule, nil
}

// checkFormat checks a format of values that are not strings; that of strings is where their other keywords are.
func checkFormat(s *object, types []string, at string) error {
	v, said := s.values["format"]
	name, isText := v.(string)
	_, known := stringFormats[name]
	switch {
	case !said:
		return nil
	case !isText:
		return &Error{pointer(at, "format"), Invalid, "is not a string"}
	case types != nil && !slices.Contains(types, "string") && !known && !isNumberFormat(name):
		return unknownFormat(name, at)
	}
	return nil
}

func isNumberFormat(name string) bool {
	_, is := numberFormats[name]
	return is
}

// unknownFormat is what is wrong with a format without a pattern, alongside which it is a note, as JSON Schema has it.
func unknownFormat(name, at string) error {
	if isNumberFormat(name) {
		return &Error{pointer(at, "format"), Unsupported, fmt.Sprintf("is %q, which is not supported for strings; "+
			"want the type integer or number, or a pattern that says how the number is written", name)}
	}
	return &Error{pointer(at, "format"), Unsupported, fmt.Sprintf("is %q, which is not supported; want %s, or a "+
		"pattern that says what it is", short(name), strings.Join(knownFormats(), ", "))}
}

// knownFormats are the names of those of strings.
func knownFormats() []string {
	var all []string
	for name := range stringFormats {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// isAny reports whether any string is one of the range.
func (r *stringRange) isAny() bool {
	return len(r.patterns) == 0 && len(r.formats) == 0 && len(r.without) == 0 && r.least == 0 && r.most < 0
}

// expressions are those that are found in the strings of a range. What a format says of lengths it takes over.
func (r *stringRange) expressions() (of []*expression, err error) {
	texts := slices.Clone(r.patterns)
	for _, name := range r.formats {
		format, known := stringFormats[name]
		if !known {
			continue
		}
		pattern := format.pattern
		if format.wide != "" && len(r.patterns) > 0 {
			pattern = format.wide
		}
		if texts = append(texts, "^(?:"+pattern+")$"); format.most > 0 {
			r.shorter(format.most)
		}
	}
	for _, text := range texts {
		e, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		of = append(of, e)
	}
	return of, nil
}

// string makes the rule.
func (c *compiler) string(r *stringRange) (int32, error) {
	of, err := r.expressions()
	if err != nil {
		return 0, err
	}
	if r.most >= 0 && r.least > r.most {
		return 0, fmt.Errorf("wants at least %d characters, and at most %d", r.least, r.most)
	}
	switch {
	case r.isAny():
		return ruleString, nil
	case len(of) == 0 && len(r.without) == 0:
		return c.counted(r.least, r.most), nil
	}
	a, err := c.automaton(of, r.without, 0)
	if err == nil && a.shortest[0] < r.least {
		a, err = c.automaton(of, r.without, r.least)
	}
	if err != nil {
		return 0, err
	}
	most := r.most
	if most >= 0 && a.longest >= 0 && a.longest <= most {
		most = -1
	}
	if most >= 0 && a.shortest[0] > most {
		return 0, errNoText
	}
	rule := c.rule()
	after := c.place()
	c.end(after)
	c.spell(c.literal(c.begin(rule), `"`), a, most, after)
	return rule, nil
}

// automaton is the one of texts in which expressions are found, of least characters or more, without some texts.
func (c *compiler) automaton(of []*expression, without []string, least int32) (*automaton, error) {
	if least > maxRepeats {
		return nil, errStates
	}
	var sets [][]runeRange
	for _, e := range of {
		sets = append(sets, e.sets()...)
	}
	for _, text := range without {
		for _, r := range text {
			sets = append(sets, []runeRange{{r, r}})
		}
	}
	l := newLanguages(sets, &c.fuel)
	all := l.then(l.repeated(l.one(anyRune), least, least), l.all)
	for _, e := range of {
		found, err := l.found(e)
		if err != nil {
			return nil, err
		}
		all = l.and(all, found)
	}
	var others []int32
	for _, text := range without {
		one := nothing
		for _, r := range slices.Backward([]rune(text)) {
			one = l.then(l.one([]runeRange{{r, r}}), one)
		}
		others = append(others, one)
	}
	if all = l.and(all, l.not(l.or(others...))); c.fuel < 0 {
		return nil, errStates
	}
	return l.automaton(all)
}

// counter adds one, and returns its number in places.
func (c *compiler) counter(of counter) int32 {
	c.p.counts = append(c.p.counts, of)
	return int32(len(c.p.counts))
}

// counted is a rule for any string of least to most characters. It takes no more places if these are more.
func (c *compiler) counted(least, most int32) int32 {
	r := c.rule()
	body := c.literal(c.begin(r), `"`)
	if most == 0 {
		c.end(c.literal(body, `"`))
		return r
	}
	after := c.stringBody(body)
	c.end(after)
	n := c.counter(counter{least: least, most: most})
	for at := body; at < int32(len(c.p.places)); at++ {
		if at != after {
			c.p.places[at].count = n
		}
	}
	c.p.places[body].wide = true
	spans := c.p.places[body].spans
	for i := range spans {
		if s := &spans[i]; s.lo == '"' {
			s.how, s.least = ends, least
		} else {
			s.how, s.under = adds, max(most, 0)
		}
	}
	return r
}

// A spelling is how characters are written, byte by byte, that lead to a state.
type spelling struct {
	bytes [][2]byte
	to    int32
}

// spellings are those of characters in a string: as they are, and in escapes where they must be.
func spellings(r runeRange, to int32) (all []spelling) {
	for _, escaped := range []rune{'"', '\\'} {
		if r.lo <= escaped && escaped <= r.hi {
			all = append(all, spelling{[][2]byte{{'\\', '\\'}, {byte(escaped), byte(escaped)}}, to})
		}
	}
	for control := r.lo; control < ' ' && control <= r.hi; control++ {
		text := quoted(string(control)) // \n or \u001f
		var bytes [][2]byte
		for _, b := range []byte(text[1 : len(text)-1]) {
			bytes = append(bytes, [2]byte{b, b})
		}
		all = append(all, spelling{bytes, to})
	}
	for _, plain := range []runeRange{{' ', '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x7F}, {0x80, 0x7FF},
		{0x800, 0xFFFF}, {0x10000, 0x10FFFF}} {
		if lo, hi := max(r.lo, plain.lo), min(r.hi, plain.hi); lo <= hi {
			all = append(all, inUTF8(lo, hi, to)...)
		}
	}
	return all
}

// inUTF8 are the spellings of characters with equally many bytes.
func inUTF8(lo, hi rune, to int32) []spelling {
	for bits := 6; bits < 6*utf8.RuneLen(hi); bits += 6 {
		tail := rune(1)<<bits - 1
		if lo|tail == hi|tail {
			break
		}
		if lo&tail != 0 {
			return append(inUTF8(lo, lo|tail, to), inUTF8((lo|tail)+1, hi, to)...)
		}
		if hi&tail != tail {
			return append(inUTF8(lo, hi&^tail-1, to), inUTF8(hi&^tail, hi, to)...)
		}
	}
	first, last := []byte(string(lo)), []byte(string(hi))
	s := spelling{to: to}
	for i := range first {
		s.bytes = append(s.bytes, [2]byte{first[i], last[i]})
	}
	return []spelling{s}
}

// A speller adds the places of a string whose characters an automaton reads.
type speller struct {
	*compiler
	*automaton
	most   int32 // characters; -1: it does not count them
	count  int32
	states []int32          // places in front of a character
	inside map[string]int32 // of one, by what is left of it
}

// spell leads over the texts of an automaton and a quote from a place to another one.
func (c *compiler) spell(from int32, a *automaton, most, after int32) {
	s := &speller{c, a, most, 0, make([]int32, len(a.next)), map[string]int32{}}
	if most >= 0 {
		s.count = c.counter(counter{most: most, ahead: slices.Max(a.shortest)})
	}
	for i := range s.states {
		if s.states[i] = from; i > 0 {
			s.states[i] = c.place()
		}
		c.p.places[s.states[i]].count = s.count
	}
	for i, at := range s.states {
		if c.fuel -= len(a.classes); c.full || c.fuel < 0 {
			c.full = true
			return
		}
		if a.all[i] && most < 0 {
			c.skip(at, stringBody)
			continue
		}
		if a.ends[i] {
			c.join(at, `"`, after)
			spans := c.p.places[at].spans
			spans[len(spans)-1].how = ends
		}
		to := map[int32][]runeRange{}
		var order []int32
		for class, next := range a.next[i] {
			if next >= 0 {
				if to[next] == nil {
					order = append(order, next)
				}
				to[next] = append(to[next], a.classes[class]...)
			}
		}
		var all []spelling
		for _, next := range order {
			for _, r := range normal(to[next]) {
				all = append(all, spellings(r, next)...)
			}
		}
		if c.fuel -= len(all); c.fuel < 0 {
			c.full = true
			return
		}
		s.lead(at, all)
		bytes := 0
		for _, over := range c.p.places[at].spans {
			bytes += int(over.hi-over.lo) + 1
		}
		c.p.places[at].wide = bytes > manyBytes
	}
}

// manyBytes are more than digits in hexadecimal have.
const manyBytes = 24

// lead adds the ways from a place over some spellings.
func (s *speller) lead(at int32, all []spelling) {
	var edges []int
	for _, way := range all {
		edges = append(edges, int(way.bytes[0][0]), int(way.bytes[0][1])+1)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	for i := range len(edges) - 1 {
		lo, hi := byte(edges[i]), byte(edges[i+1]-1)
		var left []spelling
		shortest := int32(-1)
		for _, way := range all {
			if way.bytes[0][0] <= lo && hi <= way.bytes[0][1] {
				left = append(left, spelling{way.bytes[1:], way.to})
				if n := s.shortest[way.to]; shortest < 0 || n < shortest {
					shortest = n
				}
			}
		}
		if left == nil || s.most >= 0 && s.most <= shortest {
			continue
		}
		over := span{lo: lo, hi: hi, to: s.states[left[0].to], how: adds}
		if len(left[0].bytes) > 0 {
			over.to, over.how = s.within(left), keeps
		}
		if s.most < 0 {
			over.how = keeps
		} else {
			over.under = s.most - shortest
		}
		p := &s.p.places[at]
		if last := len(p.spans) - 1; last >= 0 && p.spans[last].hi+1 == lo && p.spans[last].to == over.to {
			p.spans[last].hi = hi
			continue
		}
		p.spans = append(p.spans, over)
	}
}

// within is the place where some spellings are left of a character.
func (s *speller) within(left []spelling) int32 {
	var key []byte
	for _, way := range left {
		key = binary.AppendVarint(key, int64(way.to))
		for _, b := range way.bytes {
			key = append(key, b[0], b[1])
		}
		key = append(key, 0)
	}
	at, there := s.inside[string(key)]
	if !there {
		at = s.place()
		s.inside[string(key)] = at
		s.p.places[at].count = s.count
		s.lead(at, left)
	}
	return at
}

// count reads a keyword that is a number of items or characters; -1 if there is none.
func count(s *object, keyword, at string, most int) (int, error) {
	v, there := s.values[keyword]
	if !there {
		return -1, nil
	}
	number, _ := v.(json.Number)
	d, ok := readDecimal(number)
	if number == "" || !ok || d.minus || d.part != "" {
		return 0, &Error{pointer(at, keyword), Invalid, fmt.Sprintf("is not a whole number from 0 to %d", most)}
	}
	n, err := json.Number(d.whole).Int64()
	if err != nil || n > int64(most) {
		return 0, &Error{pointer(at, keyword), TooLarge, fmt.Sprintf("is not a whole number from 0 to %d", most)}
	}
	return int(n), nil
}
