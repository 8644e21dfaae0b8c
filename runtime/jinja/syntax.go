package jinja

// The nodes of a template. Every expression knows its line, for errors.
type (
	stmt interface{}
	expr interface{ at() int }
	pos  int
)

func (p pos) at() int { return int(p) }

// Expressions.
type (
	literal struct {
		pos
		value Value
	}
	name struct {
		pos
		id string
	}
	sequence struct { // a list or a tuple
		pos
		kind  seqKind
		items []expr
	}
	mapping struct {
		pos
		keys, values []expr
	}
	attribute struct {
		pos
		of   expr
		name string
	}
	item struct {
		pos
		of, key expr
	}
	slice struct { // of[from:to:step], nil where nothing stands
		pos
		of             expr
		from, to, step expr
	}
	call struct {
		pos
		fn   expr
		args arguments
	}
	filter struct { // of is nil for the body of a block
		pos
		of   expr
		name string
		args arguments
	}
	test struct {
		pos
		of   expr
		name string
		args arguments
	}
	unary struct { // - + not
		pos
		op string
		of expr
	}
	binary struct { // + - * / // % ** and or
		pos
		op          string
		left, right expr
	}
	concat struct {
		pos
		parts []expr
	}
	comparison struct {
		pos
		first expr
		ops   []string // == != < <= > >= in "not in"
		rest  []expr
	}
	conditional struct { // yes if cond else no, which may be nil
		pos
		cond, yes, no expr
	}
)

// arguments of a call.
type arguments struct {
	pos    []expr
	names  []string
	values []expr
	list   expr // *list
	dict   expr // **dict
}

// A target is what is assigned to: a name, an attribute of a namespace, or several targets.
type target struct {
	line  int
	name  string
	attr  string
	items []target
	many  bool
}

// Statements.
type (
	text   string
	output struct{ value expr }
	ifElse struct {
		cond      expr
		then, not []stmt
	}
	forLoop struct {
		line      int
		to        target
		over      expr
		cond      expr // nil: all
		recursive bool
		body, not []stmt
	}
	assign struct {
		line  int
		to    target
		value expr
	}
	assignBlock struct {
		to      target
		filters expr // a chain whose innermost has no operand, or nil
		body    []stmt
	}
	filterBlock struct {
		filters expr
		body    []stmt
	}
	withBlock struct {
		to     []target
		values []expr
		body   []stmt
	}
	macroDef struct {
		line             int
		name             string
		params           []string
		defaults         []expr // of the last ones
		body             []stmt
		caller, rest, kw bool // the body names caller, varargs, kwargs
	}
	callBlock struct {
		macro *macroDef
		call  *call
	}
	scoped struct{ body []stmt } // {% generation %}
	jump   int                   // break or continue
)

const (
	goOn jump = iota
	breakLoop
	continueLoop
)
