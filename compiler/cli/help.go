package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"amkc/ir/diag"
)

// helpWidth is the width that flag descriptions are wrapped to.
const helpWidth = 100

func helpVerb() verb {
	return verb{
		name: "help", synopsis: "[VERB]", max: 1,
		summary: "print this text, or the flags of a verb",
		run: func(c *call) error {
			c.raw = true
			if len(c.args) == 0 {
				return c.print(overview())
			}
			v, ok := findVerb(c.args[0])
			if !ok {
				return c.usage("there is no verb %s; %s", typedWord(c.args[0]),
					diag.Guess(c.args[0], verbNames(), "amkc help lists the verbs"))
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
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", v.synopsisLine(), sentence(v.summary))
	if v.details != "" {
		fmt.Fprintf(&b, "\n%s\n", v.details)
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
		fmt.Fprintf(&b, "\nFlags of compiling a MODEL, which amkc help compile describes:\n%s", wrapped(elsewhere))
	}
	fmt.Fprintf(&b, "\nFlags of every verb:\n%s", shared.FlagUsagesWrapped(helpWidth))
	c.raw = true
	return c.print(b.String())
}

// wrapped lists words on as few lines as they fit, with the margin of flags.
func wrapped(words []string) string {
	const margin = "      "
	var b strings.Builder
	line := margin + words[0]
	for _, word := range words[1:] {
		if line += ","; len(line)+1+len(word) > helpWidth {
			b.WriteString(line + "\n")
			line = margin + word
			continue
		}
		line += " " + word
	}
	return b.String() + line + "\n"
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
	b.WriteString("amkc compiles a Hugging Face decoder checkpoint into a standalone CUDA project whose decode " +
		"step is one\n" +
		"persistent kernel.\n\n")
	width := 0
	for _, v := range verbs() {
		width = max(width, len(v.heading()))
	}
	for _, v := range verbs() {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, v.heading(), v.summary)
	}
	b.WriteString("\nA first word that is not a verb is a model: its directory, or its id in the hub's cache. " +
		"amkc help VERB lists the\n" +
		"flags of a verb, amkc help compile those of compiling; amkc explain CODE says what a diagnostic means.\n\n" +
		"Exit codes: 0 success; 1 the input is at fault, or differences were found; 2 bad usage or a broken " +
		"environment.\n")
	return b.String()
}

// heading is the verb with its arguments, as the overview lists it.
func (v *verb) heading() string {
	if v.name == compileName {
		return "amkc MODEL -o DIR"
	}
	line := "amkc " + v.name + " " + v.synopsis
	line, _, _ = strings.Cut(line, " --")
	line, _, _ = strings.Cut(line, " [-")
	return strings.TrimSpace(line)
}
