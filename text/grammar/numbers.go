package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A decimal is a number as it is written: its digits without zeros that say nothing, but one in front of the point.
type decimal struct {
	minus       bool
	whole, part string
}

// maxShift is how large an exponent may be.
const maxShift = 400

// readDecimal reads a number in JSON.
func readDecimal(n json.Number) (d decimal, ok bool) {
	text, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e")
	text, d.minus = strings.CutPrefix(text, "-")
	d.whole, d.part, _ = strings.Cut(text, ".")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(strings.TrimPrefix(exponent, "+")); err != nil || shift < -maxShift ||
			shift > maxShift {
			return d, false
		}
	}
	if len(text) > maxShift {
		return d, false
	}
	for ; shift > 0; shift-- {
		first := "0"
		if d.part != "" {
			first, d.part = d.part[:1], d.part[1:]
		}
		d.whole += first
	}
	for ; shift < 0; shift++ {
		last := "0"
		if d.whole != "" {
			last, d.whole = d.whole[len(d.whole)-1:], d.whole[:len(d.whole)-1]
		}
		d.part = last + d.part
	}
	if d.whole, d.part = strings.TrimLeft(d.whole, "0"), strings.TrimRight(d.part, "0"); d.whole == "" {
		d.whole = "0"
	}
	d.minus = d.minus && !d.isZero()
	return d, true
}

func (d *decimal) isZero() bool { return d.whole == "0" && d.part == "" }

// asRead reports whether a number is what the double that it is read as is written as. Then no other number of up to
// 15 digits is read as the same double.
func (d *decimal) asRead() bool {
	f, err := strconv.ParseFloat(d.whole+"."+d.part, 64)
	if err != nil {
		return false
	}
	read, ok := readDecimal(json.Number(strconv.FormatFloat(f, 'e', -1, 64)))
	return ok && read.whole == d.whole && read.part == d.part
}

// less compares the sizes of two numbers.
func (d *decimal) less(than *decimal) bool {
	if len(d.whole) != len(than.whole) {
		return len(d.whole) < len(than.whole)
	}
	return d.whole+d.part < than.whole+than.part
}

// before reports whether one number is less than another.
func (d *decimal) before(other *decimal) bool {
	switch {
	case d.minus != other.minus:
		return d.minus
	case d.minus:
		return other.less(d)
	}
	return d.less(other)
}

// A bound is one of the numbers that may be written.
type bound struct {
	decimal
	open bool // it may not itself
}

// A numberRange says which numbers may be written.
type numberRange struct {
	least, most *bound
	fraction    int // digits after the point, at most
	of          int // what the number is a multiple of; 0: nothing
}

// What is written of numbers that have bounds: those up to 2^53-1 are exact wherever they are read.
const (
	maxExact    = "9007199254740991"
	maxMultiple = 100
)

var numberWords = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}

// numberFormats are the bounds that formats of numbers mean; empty: none that what is written would leave.
var numberFormats = map[string][2]string{"int8": {"-128", "127"}, "int16": {"-32768", "32767"},
	"int32": {"-2147483648", "2147483647"}, "int64": {}, "int": {}, "uint8": {"0", "255"}, "uint16": {"0", "65535"},
	"uint32": {"0", "4294967295"}, "uint64": {"0", ""}, "uint": {"0", ""}, "float": {}, "double": {}}

// number is a rule for the numbers of a schema.
func (c *compiler) number(s *object, whole bool, at string) (int32, error) {
	r := numberRange{fraction: maxFraction}
	if whole {
		r.fraction = 0
	}
	name, _ := s.values["format"].(string)
	for i, text := range numberFormats[name] {
		if text != "" {
			d, _ := readDecimal(json.Number(text))
			r.narrow(bound{decimal: d}, i == 0)
		}
	}
	if _, known := numberFormats[name]; known && name != "float" && name != "double" {
		r.fraction = 0
	}
	for _, keyword := range numberWords {
		v, said := s.values[keyword]
		if !said {
			continue
		}
		text, _ := v.(json.Number)
		d, ok := readDecimal(text)
		if text == "" || !ok {
			return 0, &Error{pointer(at, keyword), Invalid, fmt.Sprintf("is not a number of up to %d digits", maxShift)}
		}
		if keyword == "multipleOf" {
			if err := r.multiple(d); err != nil {
				return 0, &Error{pointer(at, keyword), Unsupported, err.Error()}
			}
			continue
		}
		b := bound{d, strings.HasPrefix(keyword, "exclusive")}
		if b.open && !d.asRead() {
			return 0, &Error{pointer(at, keyword), Unsupported, fmt.Sprintf("has digits that readers round; want at "+
				"most %d, or a bound that is not exclusive", maxDigits)}
		}
		if b.open && !d.isZero() && len(d.whole) <= len(maxExact) { // so that no number is the bound once it is read
			r.fraction = min(r.fraction, max(0, maxDigits-1-len(d.whole)))
		}
		r.narrow(b, strings.HasSuffix(strings.ToLower(keyword), "minimum"))
	}
	if r.least == nil && r.most == nil && r.of <= 1 && (r.fraction == 0 || r.fraction == maxFraction) {
		if r.fraction == 0 {
			return ruleInteger, nil
		}
		return ruleNumber, nil
	}
	rule, err := c.numbers(&r)
	if err != nil {
		kind := Empty
		if errors.Is(err, errStates) {
			kind = TooLarge
		}
		return 0, &Error{at, kind, err.Error()}
	}
	return rule, nil
}

// multiple reads multipleOf.
func (r *numberRange) multiple(d decimal) error {
	n, _ := strconv.Atoi(d.whole)
	switch {
	case d.minus || d.isZero():
		return errors.New("is not a number above 0")
	case d.part == "" && n <= maxMultiple && len(d.whole) <= 3:
		r.of, r.fraction = n, 0
		return nil
	case d.whole == "0" && strings.Trim(d.part, "0") == "1":
		r.fraction = min(r.fraction, len(d.part))
		return nil
	}
	return fmt.Errorf("is not supported; want a whole number up to %d, or 0.1, 0.01 and so on", maxMultiple)
}

// narrow takes another bound into account, from below or from above.
func (r *numberRange) narrow(b bound, below bool) {
	at := &r.most
	if below {
		at = &r.least
	}
	switch {
	case *at == nil:
	case !b.before(&(*at).decimal) && !(*at).before(&b.decimal): // equal
		b.open = b.open || (*at).open
	case b.before(&(*at).decimal) == below:
		return
	}
	*at = &b
}

// sizes are the bounds of the digits of numbers with one sign; ok: there are such numbers.
func (r *numberRange) sizes(minus bool) (least, most *bound, ok bool) {
	exact := &bound{decimal: decimal{whole: maxExact}}
	from, to := r.least, r.most
	if minus {
		from, to = flipped(to), flipped(from)
	}
	if to == nil || exact.less(&to.decimal) && !to.minus {
		to = exact
	}
	switch {
	case to.minus, minus && to.isZero(): // where -0 might be no less than 0
		return nil, nil, false
	case from != nil && from.minus:
		from = nil
	}
	return from, to, true
}

func flipped(b *bound) *bound {
	if b == nil {
		return nil
	}
	out := *b
	out.minus = !b.minus && !b.isZero()
	return &out
}

// A numberState is how far a number has been written, and how what is written compares with the same digits of each
// bound.
type numberState struct {
	at          numberPlace
	minus       bool
	n           int8 // digits of the part that it is in
	least, most int8
	rest        int8 // of the division
}

type numberPlace byte

const (
	numberBegin numberPlace = iota
	numberSign
	numberZero
	numberWhole
	numberPoint
	numberPart
)

// compared goes on with a comparison by the digit n of a number and that of a bound.
func compared(so int8, digit byte, of string, n int8) int8 {
	other := byte('0')
	if int(n) < len(of) {
		other = of[n]
	}
	switch {
	case so != 0 || digit == other:
		return so
	case digit < other:
		return -1
	}
	return 1
}

// wholes compares a whole part of n digits with that of a bound.
func wholes(so, n int8, of string) int8 {
	switch {
	case int(n) < len(of):
		return -1
	case int(n) > len(of):
		return 1
	}
	return so
}

// over is the state that a byte leads to.
func (r *numberRange) over(s numberState, b byte) (numberState, bool) {
	least, most, ok := r.sizes(s.minus || b == '-')
	if !ok {
		return s, false
	}
	if least == nil {
		least = &bound{decimal: decimal{whole: "0"}}
	}
	digit := b >= '0' && b <= '9'
	switch {
	case b == '-' && s.at == numberBegin:
		s.minus, s.at = true, numberSign
	case digit && s.at <= numberSign, digit && s.at == numberWhole && int(s.n) < len(maxExact):
		if s.at = numberWhole; b == '0' && s.n == 0 {
			s.at = numberZero
		}
		s.least, s.most = compared(s.least, b, least.whole, s.n), compared(s.most, b, most.whole, s.n)
		if s.n++; r.of > 0 {
			s.rest = int8((int(s.rest)*10 + int(b-'0')) % r.of)
		}
	case b == '.' && (s.at == numberZero || s.at == numberWhole) && r.fraction > 0:
		s.least, s.most = wholes(s.least, s.n, least.whole), wholes(s.most, s.n, most.whole)
		s.at, s.n = numberPoint, 0
	case digit && s.at >= numberPoint && int(s.n) < r.fraction:
		s.least, s.most = compared(s.least, b, least.part, s.n), compared(s.most, b, most.part, s.n)
		s.at, s.n = numberPart, s.n+1
	default:
		return s, false
	}
	return s, true
}

// mayEnd reports whether a number is one of the range.
func (r *numberRange) mayEnd(s numberState) bool {
	if s.at <= numberSign || s.at == numberPoint || s.rest != 0 {
		return false
	}
	least, most, _ := r.sizes(s.minus)
	end := func(so int8, b *bound) int8 {
		n := s.n
		if s.at <= numberWhole {
			so, n = wholes(so, n, b.whole), 0
		}
		if so == 0 && int(n) < len(b.part) {
			return -1
		}
		return so
	}
	if least != nil {
		if so := end(s.least, least); so < 0 || so == 0 && least.open {
			return false
		}
	}
	so := end(s.most, most)
	return so < 0 || so == 0 && !most.open
}

var errNoNumber = errors.New("has bounds that no number is between; numbers with bounds are written up to " + maxExact)

// numbers is a rule for the numbers of a range.
func (c *compiler) numbers(r *numberRange) (int32, error) {
	key := fmt.Sprint(r.fraction, r.of, r.least, r.most)
	if rule, there := c.made[key]; there {
		return rule, nil
	}
	const letters = "-0123456789."
	states, ids := []numberState{{}}, map[numberState]int{{}: 0}
	var next [][len(letters)]int
	for i := 0; i < len(states); i++ {
		var row [len(letters)]int
		for k := range len(letters) {
			row[k] = -1
			if to, ok := r.over(states[i], letters[k]); ok {
				id, there := ids[to]
				if !there {
					id = len(states)
					ids[to], states = id, append(states, to)
				}
				row[k] = id
			}
		}
		next = append(next, row)
		if c.fuel -= len(letters); c.fuel < 0 {
			return 0, errStates
		}
	}
	leads := make([]bool, len(states)) // to an end
	for changed := true; changed; {
		changed = false
		for i, s := range slices.Backward(states) {
			now := leads[i] || r.mayEnd(s) || slices.ContainsFunc(next[i][:], func(to int) bool {
				return to >= 0 && leads[to]
			})
			changed, leads[i] = changed || now != leads[i], now
		}
	}
	if !leads[0] {
		return 0, errNoNumber
	}
	rule := c.rule()
	places := make([]int32, len(states))
	for i := range states {
		switch {
		case i == 0:
			places[i] = c.begin(rule)
		case leads[i]:
			places[i] = c.place()
		}
	}
	for i, row := range next {
		if !leads[i] {
			continue
		}
		if r.mayEnd(states[i]) {
			c.end(places[i])
		}
		for k := 0; k < len(letters); k++ {
			to, last := row[k], k
			if to < 0 || !leads[to] {
				continue
			}
			for letters[k] >= '0' && letters[last] < '9' && row[last+1] == to {
				last++
			}
			if letters[k] == '-' || letters[k] == '.' {
				last = k
			}
			c.span(places[i], letters[k], letters[last], places[to])
			k = last
		}
	}
	c.made[key] = rule
	return rule, nil
}
