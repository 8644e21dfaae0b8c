// Package knobs is the table of what a user can set about a schedule. A row (table.go) gives the knob's name in a
// configuration, its legal values, its default, what it changes and, where the kernel sees it as a constant, that
// constant. Checks, defaults, emitted constants, their readback, `amkc explain`, docs/knobs.md and the JSON Schema of
// a configuration come from the rows.
//
// Consumers read a knob by its key, knobs.ChunkBytes.Of(&p.Config), and nothing outside of this package and ir looks
// into ScheduleConfig.Tiling. Resolve states every knob in the configuration of a program; a program that does not
// state a knob has the default of its row.
package knobs

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// The keys of knobs, by the type of their values. A knob that a variant has a value of its own of has a row for that,
// which is Like the other one (variants.go).
type (
	Int      int // an integer
	Flag     int // 0 or 1
	Word     int // one of a list of words
	PerStage int // an integer for each matrix stage
)

// A Row describes one knob.
type Row struct {
	Group, Name string   // tiling.GROUP.NAME in a configuration
	Stages      []string // of a knob per stage, tiling.GROUP.STAGE instead of a Name
	// Field holds the knob instead. If there is a Name as well, tiling.GROUP.NAME is another spelling of it.
	Field *Field

	Legal   Legal // values that the kernel is written for, whatever the model and the target
	Default int
	Steps   []int // the values that a search tries: of a range, or of OneOf where it does not try all
	Plain   int   // the unoptimised value, at which a cold search begins
	// Rule is the default for a model and a target, where that is not Default; RuleDoc says it in words.
	Rule    func(c *Case, stage string) int
	RuleDoc string
	// Like is the knob whose value is the default; nil: there is none.
	Like *Int
	// Rare: a program states it only where its configuration did, or, without Like, where its value is not Default.
	Rare bool
	// Check returns why a legal value has no place in this configuration, for this model and target; nil if it has.
	Check func(c *Case) *diag.Diagnostic
	Code  *diag.Code // of a value that is not legal; nil: AMK2002
	// Order: it decides in which order a row's sums are added up, and so has one value for all variants of a build and
	// whatever rows its passes take (docs/passes.md).
	Order bool

	Doc      string    // what the knob changes
	Constant *Constant // nil: it is not a constant of the kernel on its own
	form     *form     // of a row that is not a number or a word
}

// A Field is a field of a configuration that holds a knob. Its zero value, 0 or the empty word, means the default.
type Field struct {
	Name string
	Int  func(*ir.ScheduleConfig) *int
	Word func(*ir.ScheduleConfig) *string // of a knob whose values are words
}

// A Constant is what a knob is in the emitted schedule.h: its C++ type, its name, and its comment. That of a
// knob per stage stands in the descriptor of each matrix stage.
type Constant struct{ Type, Name, Note string }

// Legal are the integers that a knob takes: those of OneOf, the numbers of Words, or what lies from Lo to Hi and is a
// multiple of Multiple, unless that is 0.
type Legal struct {
	Lo, Hi, Multiple int
	OneOf            []int
	Words            []string // values are positions in it
}

// Has reports whether n is legal.
func (l Legal) Has(n int) bool {
	switch {
	case l.Words != nil:
		return 0 <= n && n < len(l.Words)
	case l.OneOf != nil:
		return slices.Contains(l.OneOf, n)
	}
	return l.Lo <= n && n <= l.Hi && (l.Multiple == 0 || n%l.Multiple == 0)
}

// String says what is legal, as in "want 0 to 64".
func (l Legal) String() string {
	switch {
	case l.Words != nil:
		return listed(l.Words)
	case l.OneOf != nil:
		words := make([]string, len(l.OneOf))
		for i, n := range l.OneOf {
			words[i] = fmt.Sprint(n)
		}
		return listed(words)
	case l.Multiple != 0:
		return fmt.Sprintf("a multiple of %d from %d to %d", l.Multiple, l.Lo, l.Hi)
	}
	return fmt.Sprintf("%d to %d", l.Lo, l.Hi)
}

func listed(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Path is where a configuration holds the knob, or its value for a stage: tiling.ring.pace, tiling.warps.qkv,
// pipelining_depth. The path of a knob per stage without a stage is that of all of them, tiling.warps.
func (r *Row) Path(stage string) string {
	switch {
	case r.Field != nil:
		return r.Field.Name
	case r.Stages == nil:
		return "tiling." + r.Group + "." + r.Name
	case stage == "":
		return "tiling." + r.Group
	}
	return "tiling." + r.Group + "." + r.tiled(stage)
}

// Each lists the stages that the knob has a value for: one without a name for a knob that has a single value.
func (r *Row) Each() []string {
	if r.Stages != nil {
		return r.Stages
	}
	return []string{""}
}

// tiled is the name of the knob below its group in tiling, or none.
func (r *Row) tiled(stage string) string {
	switch {
	case r.Stages == nil:
		return r.Name
	case stage == "up" || stage == "experts_up" || stage == "router":
		return "gate_up"
	case stage == "experts_down":
		return "down"
	case stage == "bcx", stage == "szba", stage == "qkvg":
		return "qkv"
	case stage == "conv_out", stage == "state_out":
		return "o"
	}
	return stage
}

// IsOf reports whether a knob per stage has a value for the stages of a role. That of gate_up is for up too, which a
// model without a gate has in its place, those of gate_up and down are for experts and their router, and those of qkv
// and o for the products around what a layer has in place of attention.
func (r *Row) IsOf(role string) bool { return slices.Contains(r.Stages, r.tiled(role)) }

// Stated returns what a configuration says of the knob. Words that are not known are -1.
func (r *Row) Stated(c *ir.ScheduleConfig, stage string) (n int, is bool) {
	switch {
	case r.Field == nil:
	case r.Field.Word != nil:
		word := *r.Field.Word(c)
		return slices.Index(r.Legal.Words, word), word != ""
	default:
		if n := *r.Field.Int(c); n != 0 {
			return n, true
		}
	}
	name := r.tiled(stage)
	if name == "" {
		return 0, false
	}
	n, is = c.Tiling[r.Group][name]
	return n, is
}

// OtherOrder returns the path of a knob that decides in which order sums are added up and has another value in one
// configuration than in the other; empty if there is none.
func OtherOrder(a, b *ir.ScheduleConfig) string {
	for i := range table {
		for _, stage := range table[i].Each() {
			if r := &table[i]; r.Order && r.of(a, stage) != r.of(b, stage) {
				return r.Path(stage)
			}
		}
	}
	return ""
}

// Set makes a configuration say n, which is legal. It writes to the maps of c, which others may share.
func (r *Row) Set(c *ir.ScheduleConfig, stage string, n int) {
	switch {
	case r.Field != nil && r.Field.Word != nil:
		*r.Field.Word(c) = r.Legal.Words[n]
		return
	case r.Field != nil:
		*r.Field.Int(c) = n
		return
	case c.Tiling == nil:
		c.Tiling = map[string]map[string]int{}
	}
	if c.Tiling[r.Group] == nil {
		c.Tiling[r.Group] = map[string]int{}
	}
	c.Tiling[r.Group][r.tiled(stage)] = n
}

// of is the value that a configuration states, or the default of the row.
func (r *Row) of(c *ir.ScheduleConfig, stage string) int {
	if n, is := r.Stated(c, stage); is {
		return n
	}
	if r.Like != nil {
		return r.Like.Of(c)
	}
	return r.Default
}

// Row is the knob's row of the table.
func (k Int) Row() *Row      { return &table[k] }
func (k PerStage) Row() *Row { return &table[k] }

// Of returns the value in a configuration, whether it is legal or not, or the default of the row.
func (k Int) Of(c *ir.ScheduleConfig) int { return k.Row().of(c, "") }

// Set is that of the row.
func (k Int) Set(c *ir.ScheduleConfig, n int) { k.Row().Set(c, "", n) }

// Of returns whether the flag is set in a configuration, or in the row if the configuration does not state it.
func (k Flag) Of(c *ir.ScheduleConfig) bool { return table[k].of(c, "") == 1 }

// Of returns the word of a configuration, or that of the row.
func (k Word) Of(c *ir.ScheduleConfig) string {
	r := &table[k]
	if word := *r.Field.Word(c); word != "" {
		return word
	}
	return r.Legal.Words[r.Default]
}

// Of returns the value for a stage, which is named without its layer (qkv). A stage that has no such knob has the
// default of the row.
func (k PerStage) Of(c *ir.ScheduleConfig, stage string) int { return k.Row().of(c, stage) }

// Stated returns the value for a stage if the configuration says it.
func (k PerStage) Stated(c *ir.ScheduleConfig, stage string) (int, bool) {
	return k.Row().Stated(c, stage)
}

// Set is that of the row.
func (k PerStage) Set(c *ir.ScheduleConfig, stage string, n int) { k.Row().Set(c, stage, n) }

// Rows lists the knobs that are numbers or words, in the order of the table.
func Rows() []*Row {
	var rows []*Row
	for i := range table {
		if table[i].form == nil {
			rows = append(rows, &table[i])
		}
	}
	return rows
}

// Constants lists the knobs that are constants of the whole kernel in any build, in the order of schedule.h.
func Constants() []Int {
	var keys []Int
	for i := range table {
		if r := &table[i]; r.Constant != nil && r.Stages == nil && !r.Rare {
			keys = append(keys, Int(i))
		}
	}
	return keys
}

// StageConstants lists the knobs that are constants of each matrix stage, in the order of its descriptor.
func StageConstants() []PerStage {
	var keys []PerStage
	for i := range table {
		if table[i].Constant != nil && table[i].Stages != nil {
			keys = append(keys, PerStage(i))
		}
	}
	return keys
}

// BlockBytes is the shared memory that a block of the kernel may use: smem_bytes_per_block, and at most what the
// target has.
func BlockBytes(c *ir.ScheduleConfig, t *ir.Target) int {
	if n := SharedBytes.Of(c); n > 0 {
		return min(n, t.SMemOptin)
	}
	return t.SMemOptin
}
