package quantised

import (
	"regexp"
	"strings"

	"amkc/importers/checkpoint"
)

// modules are those of a model that a config names.
type modules struct {
	names map[string]bool // of modules, and of classes of them
	exprs []*regexp.Regexp
}

// linears are the modules that have matrices.
func linears() modules { return modules{names: map[string]bool{"Linear": true}} }

// How closely modules say which one is meant: a name that is given as it is comes before an expression, and that before
// a class, as in compressed-tensors.
const (
	noMatch = iota
	byClass
	byExpression
	byName
)

func (m *modules) match(module string) int {
	if m.names[module] {
		return byName
	}
	for _, expr := range m.exprs {
		if expr.MatchString(module) {
			return byExpression
		}
	}
	if m.names["Linear"] {
		return byClass
	}
	return noMatch
}

// name reports whether a module has one of the names, or begins or ends in one.
func (m *modules) name(module string) bool {
	for i := range len(module) + 1 {
		if i == len(module) || module[i] == '.' {
			if m.names[module[:i]] || m.names[strings.TrimPrefix(module[i:], ".")] {
				return true
			}
		}
	}
	return m.names[module]
}

// modules reads names, of which those that begin with re: are regular expressions from the beginning of a name on.
func (s *settings) modules(field string) modules {
	out := modules{names: map[string]bool{}}
	for _, name := range s.names(field) {
		if text, ok := strings.CutPrefix(name, "re:"); ok {
			out.exprs = append(out.exprs, s.expression(field, text)...)
		} else {
			out.names[name] = true
		}
	}
	return out
}

// globs reads names, in which * stands for any characters.
func (s *settings) globs(field string) modules {
	out := modules{names: map[string]bool{}}
	for _, name := range s.names(field) {
		if strings.Contains(name, "*") {
			text := strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*") + "$"
			out.exprs = append(out.exprs, s.expression(field, text)...)
		} else {
			out.names[name] = true
		}
	}
	return out
}

// Limits on the expressions of a config and on the bytes of one: each is tried on every module.
const (
	mostExpressions = 256
	mostExpression  = 1000
)

// expression returns a regular expression from the beginning of a name on, or none if it is at fault.
func (s *settings) expression(field, text string) []*regexp.Regexp {
	*s.exprs++
	expr, err := regexp.Compile("^(?:" + text + ")")
	if err != nil || len(text) > mostExpression || *s.exprs > mostExpressions {
		s.fail(codeSetting, field, "has the expression %s, which cannot be used; want at most %d of RE2's syntax, "+
			"without look-ahead, of up to %d bytes", checkpoint.Spell(text), mostExpressions, mostExpression)
		return nil
	}
	return []*regexp.Regexp{expr}
}
