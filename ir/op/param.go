package op

import "strconv"

// A Param is a parameter with the values that it may have. Unless Real is set it is an integer.
type Param struct {
	Key    string
	Doc    string
	Needed bool
	// Moves: it may depend on positions and on the row; other parameters are constants.
	Moves bool

	Lo, Hi int     // of an integer
	Values []Named // if there are any, an integer is one of them
	Real   bool    // any number that the kernel's float32 holds and is not subnormal, or 0
	Sign   Sign    // of such a number
}

// Named is a value with the name that it stands for.
type Named struct {
	Value int
	Name  string
}

// Sign restricts a real parameter.
type Sign uint8

const (
	AnySign Sign = iota
	NotNegative
	Positive
)

// Allows reports whether an integer parameter may have a value.
func (p *Param) Allows(n int) bool {
	if p.Values == nil {
		return p.Lo <= n && n <= p.Hi
	}
	for _, v := range p.Values {
		if v.Value == n {
			return true
		}
	}
	return false
}

// AllowsReal reports whether a real parameter may have the sign of a value.
func (p *Param) AllowsReal(v float64) bool {
	return p.Sign == AnySign || v > 0 || p.Sign == NotNegative && v == 0
}

// Want describes the accepted values, for messages.
func (p *Param) Want() string {
	switch {
	case p.Values != nil:
		out := ""
		for i, v := range p.Values {
			if i > 0 {
				out += " or "
			}
			out += strconv.Itoa(v.Value) + " (" + v.Name + ")"
		}
		return out
	case !p.Real:
		return strconv.Itoa(p.Lo) + " to " + strconv.Itoa(p.Hi)
	case p.Sign == NotNegative:
		return "0 or more"
	case p.Sign == Positive:
		return "a positive number"
	}
	return "any number"
}

// Param returns the declaration of a parameter, or nil if the op has none of that name.
func (s *Spec) Param(key string) *Param {
	for i := range s.Params {
		if s.Params[i].Key == key {
			return &s.Params[i]
		}
	}
	return nil
}

// Keys lists the parameters that the op needs, or those that are optional.
func (s *Spec) Keys(needed bool) []string {
	var keys []string
	for i := range s.Params {
		if p := &s.Params[i]; p.Needed == needed {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

func need(p Param) Param {
	p.Needed = true
	return p
}

// Parameters that several ops have.
var (
	eps   = Param{Key: "eps", Real: true, Sign: NotNegative, Doc: "added to a mean or a sum of squares"}
	scale = Param{Key: "scale", Real: true,
		Doc: "multiplies the scores of attention, cos and sin of a rotation, rows of a table, or the operand"}

	// A buffer of w's type could not hold 1 + w, which has eight bits after the point in BF16, whatever w is.
	unitOffset = Param{Key: "unit_offset", Values: []Named{{0, "w"}, {1, "1 + w"}},
		Doc: "what rows are multiplied by; 1 + w is not rounded to the type of w"}

	bound = Param{Key: "cap", Real: true, Sign: Positive, Doc: "the bound of the result, or of scores"}

	headDim = Param{Key: "head_dim", Lo: 1, Hi: MaxInt, Doc: "elements of a head"}
	heads   = Param{Key: "n_heads", Lo: 1, Hi: MaxInt, Doc: "query heads"}
	kvHeads = Param{Key: "n_kv_heads", Lo: 1, Hi: MaxInt, Doc: "heads of keys and values"}

	qdtype = Param{Key: "qdtype", Values: []Named{{6, "I8"}, {7, "I4"}},
		Doc: "the type of quantised elements; needs group"}
	group = Param{Key: "group", Lo: 1, Hi: MaxInt, Doc: "columns that share a scale"}

	ownPos = Param{Key: "pos", Lo: 0, Hi: MaxInt, Moves: true, Doc: "the position of a row's token"}

	first = Param{Key: "first", Lo: 0, Hi: MaxInt, Doc: "the number of the first element of the operand"}

	block = Param{Key: "block", Lo: 1, Hi: MaxInt, Doc: "the number of rows, or of elements, in a block"}
	parts = Param{Key: "parts", Lo: 1, Hi: MaxInt, Doc: "the number of parts"}

	firstRow = Param{Key: "first_row", Lo: 0, Hi: MaxInt, Doc: "the first row to use; needs rows"}
	rowCount = Param{Key: "rows", Lo: 1, Hi: MaxInt, Doc: "the number of rows to use; default: all"}
)
