package exploration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"amkc/runtime/host"
)

// A form is what a build has been emitted as: a property for each axis, read from its files.
type form map[string]string

// emitted are the files of a build that its form is read from.
type emitted struct {
	facts            *host.Facts
	program          string // schedule.amk
	schedule, config string // schedule.h and model_config.h
}

// An axis is what builds differ in. Of columns of builds.txt the value is that of the column.
type axis struct {
	name string
	of   func(e *emitted) string
}

// axes are all of them: of the model, and then those of the columns of builds.txt.
var axes = []axis{
	{"norms", func(e *emitted) string {
		before, after := e.has(`\.input_norm\.weight`), e.has(`\.post_attn_norm\.weight|\.post_mlp_norm\.weight`)
		switch {
		case before && after:
			return "before and after branches"
		case before:
			return "before branches"
		}
		return "after branches"
	}},
	{"means", func(e *emitted) string { return e.choose(`LAYERNORM\(`, "taken off", "kept") }},
	{"branches", func(e *emitted) string { // parallel ones read one vector
		by := map[string]string{}
		for _, m := range reader.FindAllStringSubmatch(e.program, -1) {
			if by[m[2]] != "" && by[m[2]] != m[1] {
				return "parallel"
			}
			by[m[2]] = m[1]
		}
		return "in turn"
	}},
	{"windows", func(e *emitted) string { return e.chooseIn(e.schedule, `kWindowRows = [1-9]`, "some", "none") }},
	{"norms of heads", func(e *emitted) string {
		if strings.Contains(e.schedule, "kWholeNorm = true") {
			return "of all"
		}
		return e.chooseIn(e.schedule, `kWholeNorm = false`, "of each", "none")
	}},
	{"biases", func(e *emitted) string { return e.choose(`\.qkvg?\.bias`, "some", "none") }},
	{"caps", func(e *emitted) string { return e.chooseIn(e.schedule, `kScoreCap = 0x1`, "some", "none") }},
	{"experts", func(e *emitted) string { return e.choose(`\.experts_up\.weight`, "some", "none") }},
	{"gates", func(e *emitted) string { return e.choose(`\.(gate_up|experts_up)\.weight`, "some", "none") }},

	{"arch", func(e *emitted) string { return strings.TrimSuffix(e.facts.Target.Arch, "a") }},
	{"dtype", func(e *emitted) string { return dtypeNames[e.facts.Model.DType] }},
	{"weights", func(e *emitted) string {
		m := matrix.FindStringSubmatch(e.program)
		if m == nil {
			return "no matrix"
		}
		switch {
		case m[1] == "I8":
			return "int8"
		case m[1] == "I4" && strings.HasSuffix(m[2], ".zeros"):
			return "int4 with zeros"
		case m[1] == "I4":
			return "int4"
		case m[1] == "F8E4M3":
			return "fp8"
		}
		return "none"
	}},
	{"cache", func(e *emitted) string { return e.chooseIn(e.config, `CacheElement = Int8`, "int8", "dtype") }},
	{"rows", func(e *emitted) string {
		for _, p := range e.facts.Passes {
			if p.NumSequences() == 1 {
				return fmt.Sprint(p.Rows)
			}
		}
		return "1"
	}},
	{"sequences", func(e *emitted) string {
		form := "1"
		for _, p := range e.facts.Passes {
			if p.NumSequences() > 1 {
				form = fmt.Sprint(p.Sequences)
				if p.NumRows() > 1 {
					form += fmt.Sprintf("x%d", p.Rows)
				}
			}
		}
		return form
	}},
	{"context", func(e *emitted) string {
		if !regexp.MustCompile(`kSplits = [2-9]`).MatchString(e.schedule) {
			return "whole"
		}
		if len(e.facts.Variants) > 1 {
			return "crossing"
		}
		return "split"
	}},
	{"prompt", func(e *emitted) string {
		if e.facts.Prompt > 0 {
			return "yes"
		}
		return "no"
	}},
	{"exchange", func(e *emitted) string { return e.chooseIn(e.schedule, `kFlagged = true`, "words", "counters") }},
	{"barrier", func(e *emitted) string { return e.choose(`"barrier":1`, "yes", "no") }},
	{"prefetch", func(e *emitted) string { return e.chooseIn(e.schedule, `kRunAhead = [1-9]`, "yes", "no") }},
}

// ofModel is how many axes come before those of columns.
const ofModel = 9

var (
	dtypeNames = map[string]string{"BF16": "bf16", "F16": "fp16", "F32": "fp32"}
	reader     = regexp.MustCompile(`(?m)^stage L\{i\}\.(qkvg?|gate_up|up) .*\n  wait (\S+)`)
	matrix     = regexp.MustCompile(`\.qkvg?\.weight[^\n]* WEIGHT (\w+) \[[0-9,]*\] HBM (\S+)`)
)

func (e *emitted) has(pattern string) bool { return regexp.MustCompile(pattern).MatchString(e.program) }

func (e *emitted) choose(pattern, there, not string) string {
	return e.chooseIn(e.program, pattern, there, not)
}

func (e *emitted) chooseIn(text, pattern, there, not string) string {
	if regexp.MustCompile(pattern).MatchString(text) {
		return there
	}
	return not
}

// formOf reads what a build has been emitted as. What its tokens are chosen by is for its jobs to say.
func formOf(dir string, b Build) (form, error) {
	facts, err := host.ReadFacts(dir)
	if err != nil {
		return nil, err
	}
	e := &emitted{facts: facts}
	for name, into := range map[string]*string{"schedule.amk": &e.program, "schedule.h": &e.schedule,
		"model_config.h": &e.config} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		*into = string(text)
	}
	f := form{"ends": b["ends"]}
	for _, a := range axes {
		f[a.name] = a.of(e)
	}
	return f, nil
}

// stated is what a row of builds.txt says of an axis, in the words of forms.
func (b Build) stated(axis string) string {
	value := b[axis]
	switch {
	case axis == "cache" && value == b["dtype"]:
		return "dtype"
	case axis == "weights" && value == "int4":
		return "int4 with zeros" // unless :sym says otherwise
	case axis == "weights":
		format, _, _ := strings.Cut(value, ":")
		return format
	}
	return value
}
