package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// helpWidth is the width of a terminal that nobody has widened.
const helpWidth = 80

// groups are the verbs by what they are for, in the order of the overview.
var groups = []struct {
	title string
	verbs []string
}{
	{"Use", []string{"run", "chat", "serve", "logits", "quality"}},
	{"Build", []string{compileName, "pack", "formats", "doctor", "targets", "models"}},
	{"Trust", []string{"verify", "check", "validate", "simulate", "explore", "dump", "diff"}},
	{"Search", []string{"cost", "bench", "search", "search space", "search eval", "search campaign",
		"mcp"}},
	{"About", []string{"passes", "explain", "version", "licenses", "completion", "help"}},
}

func helpVerb() verb {
	return verb{
		name: "help", synopsis: "[VERB]", max: 2,
		summary: "print this text, or the flags of a verb",
		run: func(c *call) error {
			c.raw = true
			if len(c.args) == 0 {
				return c.print(overview())
			}
			args, _ := currentVerb(c.args)
			v, rest, ok := findVerb(args)
			if !ok || len(rest) > 0 {
				word := strings.Join(args, " ")
				return c.usage("there is no verb %s; %s", typedWord(word), guessVerb(word, verbNames()))
			}
			other := &call{verb: v, stdout: c.stdout, stderr: c.stderr}
			other.defineFlags()
			return other.printVerb()
		},
	}
}

func verbNames() []string {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return names
}

// printHelp prints the help of the call's verb, or the overview where neither a verb nor a model is named.
func (c *call) printHelp() error {
	if c.verb.name == compileName && c.flags.NArg() == 0 {
		c.raw = true
		return c.print(overview())
	}
	return c.printVerb()
}

// printVerb prints what the call's verb does, and its flags.
func (c *call) printVerb() error {
	v := &c.verb
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", wrapped(options("usage: "+v.synopsisLine()), "", "           "), sentence(v.summary))
	if v.details != "" {
		fmt.Fprintf(&b, "\n%s\n", reflowed(strings.TrimPrefix(v.details, "\n")))
	}
	if words := below(v.name); len(words) > 0 {
		fmt.Fprintf(&b, "\nVerbs below it, each with a help of its own:\n")
		for _, word := range words {
			lower, _, _ := findVerb([]string{v.name, word})
			fmt.Fprintf(&b, "  %s %-10s%s\n", v.title(), word, lower.summary)
		}
	}
	own, shared := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags, shared.SortFlags = false, false
	common, compiling := commonFlags(), pflag.NewFlagSet("", pflag.ContinueOnError)
	if v.name != compileName {
		(&modelFlags{}).define(compiling, targetAuto)
	}
	var elsewhere []string
	c.flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case common.Lookup(f.Name) != nil:
			shared.AddFlag(f)
		case compiling.Lookup(f.Name) == nil:
			own.AddFlag(f)
		case compiling.Lookup(f.Name).DefValue != f.DefValue:
			elsewhere = append(elsewhere, fmt.Sprintf("--%s (default %s)", f.Name, f.DefValue))
		default:
			elsewhere = append(elsewhere, "--"+f.Name)
		}
	})
	if own.HasFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", own.FlagUsagesWrapped(helpWidth))
	}
	if len(elsewhere) > 0 {
		fmt.Fprintf(&b, "\nFlags of compiling a MODEL, which amkc help compile describes:\n%s",
			wrapped(strings.Fields(strings.Join(elsewhere, ", ")), "      ", "      "))
	}
	fmt.Fprintf(&b, "\nFlags of every verb:\n%s", shared.FlagUsagesWrapped(helpWidth))
	c.raw = true
	return c.print(b.String())
}

// wrapped puts words on as few lines as they fit on, of which the first has one margin and the rest another.
func wrapped(words []string, first, margin string) string {
	var b strings.Builder
	line := first + words[0]
	for _, word := range words[1:] {
		if len(line)+1+len(word) > helpWidth {
			b.WriteString(line + "\n")
			line = margin + word
			continue
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// options cuts a synopsis at its spaces, but for those of an option in brackets.
func options(synopsis string) []string {
	var words []string
	open := 0
	for _, word := range strings.Fields(synopsis) {
		if open > 0 {
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
		open += strings.Count(word, "[") - strings.Count(word, "]")
	}
	return words
}

// reflowed fits paragraphs to the width. One that is indented stays as it is.
func reflowed(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = strings.TrimSuffix(wrapped(strings.Fields(p), "", ""), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// commonFlags returns the flags that a verb without flags has.
func commonFlags() *pflag.FlagSet {
	c := &call{}
	c.defineFlags()
	return c.flags
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

func overview() string {
	var b strings.Builder
	b.WriteString("amkc compiles a Hugging Face decoder checkpoint into a standalone CUDA project\n" +
		"whose decode step is one persistent kernel.\n\n")
	for _, g := range groups {
		title := g.title
		for _, name := range g.verbs {
			v, _, _ := findVerb(strings.Fields(name))
			if name == compileName {
				name = "MODEL -o DIR"
			}
			fmt.Fprintf(&b, "%-7s%-16s%s\n", title, name, v.summary)
			title = ""
		}
	}
	b.WriteString("\n" + reflowed("A first word that is not a verb is a model: its directory, or its id in the hub's "+
		"cache. amkc help VERB lists the flags of a verb, amkc help compile those of compiling; amkc explain CODE "+
		"says what a diagnostic means.") + "\n" + reflowed("Exit codes: 0 success; 1 the input is at fault, or "+
		"differences were found; 2 bad usage or a broken environment; 130 interrupted.") + "\n")
	return b.String()
}
