package grammar

// Rules that all grammars begin with, in this order.
const (
	ruleSpace   int32 = iota // what may stand after a bracket or a comma: nothing, a space, or a new line, indented
	ruleBlank                // what may stand after a colon: nothing or a space
	ruleString               // any string
	ruleNumber               // any number
	ruleInteger              // one without a fraction and an exponent
	ruleValue                // any value
	ruleObject
	ruleArray
	ruleBoolean
	ruleNull
	ruleKey // the rest of a string without escapes, up to its second quote
	numCommonRules
)

// Bounds that no text needs to leave, and that a model which repeats itself would: numbers are finite, and whole ones
// below 10^15 exact, wherever they are read.
const (
	maxIndent   = 32
	maxDigits   = 15
	maxFraction = 17
	maxExponent = 2
)

// commonProgram is what all grammars begin with, and numCommon the number of its places: with the same numbers in all,
// so that what follows from them is found once for all.
var (
	commonProgram = common()
	numCommon     = int32(len(commonProgram.places))
)

// Places in strings: in front of a character, and in a key without escapes, for how far a character has come.
var (
	stringBody int32
	keyBody    = make([]int32, len(characters))
)

func common() *program {
	b := &builder{p: &program{}}
	for range numCommonRules {
		b.rule()
	}
	b.space()
	at := b.begin(ruleBlank)
	b.end(at)
	b.end(b.literal(at, " "))
	stringBody = b.literal(b.begin(ruleString), `"`)
	b.end(b.stringBody(stringBody))
	b.text(b.begin(ruleKey), keyBody)
	b.end(b.literal(keyBody[0], `"`))
	b.number(ruleNumber, true)
	b.number(ruleInteger, false)
	for _, r := range []int32{ruleString, ruleNumber, ruleObject, ruleArray, ruleBoolean, ruleNull} {
		b.end(b.call(b.begin(ruleValue), r))
	}
	for _, c := range []struct {
		rule     int32
		from, to string
	}{{ruleObject, "{", "}"}, {ruleArray, "[", "]"}} {
		first := b.call(b.literal(b.begin(c.rule), c.from), ruleSpace)
		item := b.place()
		b.skip(first, item)
		last := item
		if c.rule == ruleObject {
			last = b.call(b.literal(b.call(item, ruleString), ":"), ruleBlank)
		}
		last = b.call(last, ruleValue)
		b.skip(b.call(b.literal(last, ","), ruleSpace), item)
		closed := b.literal(b.call(last, ruleSpace), c.to)
		b.end(closed)
		b.join(first, c.to, closed)
	}
	b.end(b.literal(b.begin(ruleBoolean), "true"))
	b.end(b.literal(b.begin(ruleBoolean), "false"))
	b.end(b.literal(b.begin(ruleNull), "null"))
	return b.p
}

// space is a space, or a new line and an indentation, or neither. More of it would let a model write nothing else.
func (b *builder) space() {
	at := b.begin(ruleSpace)
	b.end(at)
	b.end(b.literal(at, " "))
	at = b.literal(at, "\n")
	b.end(at)
	for range maxIndent {
		next := b.place()
		b.span(at, ' ', ' ', next)
		b.span(at, '\t', '\t', next)
		b.end(next)
		at = next
	}
}

func (b *builder) number(rule int32, fraction bool) {
	digits := func(from int32, most int) (all []int32) {
		for range most {
			next := b.place()
			b.span(from, '0', '9', next)
			all = append(all, next)
			from = next
		}
		return all
	}
	at := b.begin(rule)
	whole := b.literal(at, "-")
	b.skip(at, whole)
	first := b.place()
	b.span(whole, '1', '9', first)
	ends := append(digits(first, maxDigits-1), first, b.literal(whole, "0"))
	for _, end := range ends {
		b.end(end)
	}
	if !fraction {
		return
	}
	point, power := b.place(), b.place()
	for _, end := range ends {
		b.span(end, '.', '.', point)
		b.span(end, 'e', 'e', power)
		b.span(end, 'E', 'E', power)
	}
	for _, end := range digits(point, maxFraction) {
		b.end(end)
		b.span(end, 'e', 'e', power)
		b.span(end, 'E', 'E', power)
	}
	signed := b.place()
	b.skip(power, signed)
	b.span(power, '+', '+', signed)
	b.span(power, '-', '-', signed)
	for _, end := range digits(signed, maxExponent) {
		b.end(end)
	}
}

// stringBody is what stands in a string after its first quote, up to the second: characters in UTF-8, and escapes, of
// which surrogates come in pairs. It returns the place after it.
func (b *builder) stringBody(body int32) int32 {
	b.text(body, make([]int32, len(characters)))
	escape := b.literal(body, `\`)
	for _, c := range []byte(`"\/bfnrt`) {
		b.span(escape, c, c, body)
	}
	hex := func(from int32, to int32) {
		b.span(from, '0', '9', to)
		b.span(from, 'A', 'F', to)
		b.span(from, 'a', 'f', to)
	}
	chain := func(n int, to int32) int32 { // n digits in front of a place
		for range n {
			from := b.place()
			hex(from, to)
			to = from
		}
		return to
	}
	code, two, three := b.literal(escape, "u"), chain(2, body), chain(3, body)
	for _, r := range [][2]byte{{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}} {
		b.span(code, r[0], r[1], three)
	}
	d := b.place() // \uD: a character of its own up to \uD7FF, and from there on half a pair
	b.span(code, 'D', 'D', d)
	b.span(code, 'd', 'd', d)
	b.span(d, '0', '7', two)
	low := b.place()
	high := chain(2, low)
	b.span(d, '8', '9', high)
	b.span(d, 'A', 'B', high)
	b.span(d, 'a', 'b', high)
	low = b.literal(low, `\u`)
	second := b.place()
	b.span(low, 'D', 'D', second)
	b.span(low, 'd', 'd', second)
	b.span(second, 'C', 'F', two)
	b.span(second, 'c', 'f', two)
	return b.literal(body, `"`)
}

// text leads over characters in UTF-8 from a place back to it, and sets the places where one has come so far.
func (b *builder) text(body int32, places []int32) {
	for i := range places {
		if places[i] = body; i > 0 {
			places[i] = b.place()
		}
	}
	for i, ways := range characters {
		for _, way := range ways {
			b.span(places[i], way.lo, way.hi, places[way.to])
		}
	}
}
