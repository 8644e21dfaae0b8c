package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"amkc/ir/diag"
	"amkc/passes"
)

func completionVerb() verb {
	return verb{
		name: "completion", synopsis: "bash|zsh|fish", min: 1, max: 1,
		summary: "print a completion script for a shell",
		details: "bash: source <(amkc completion bash)\n" +
			"zsh:  source <(amkc completion zsh)\n" +
			"fish: amkc completion fish | source",
		run: func(c *call) error {
			c.raw = true
			script, ok := map[string]func([]verbFlags) string{"bash": bashScript, "zsh": zshScript,
				"fish": fishScript}[c.args[0]]
			if !ok {
				return c.usage("there is no completion for %s; %s", typedWord(c.args[0]),
					diag.Guess(c.args[0], []string{"bash", "zsh", "fish"}, "want bash, zsh or fish"))
			}
			return c.print(script(flagTable()))
		},
	}
}

// verbFlags is a verb with the flags that a script completes.
type verbFlags struct {
	name, summary string
	flags         []flagInfo
}

// flagInfo is a flag as a script sees it.
type flagInfo struct {
	long, short string // without dashes
	usage       string
	takesValue  bool
	words       []string // what the value can be, if that is a list
	dirs        bool     // the value is a directory
}

// flagTable reads the flags off the table of verbs.
func flagTable() []verbFlags {
	var out []verbFlags
	for _, v := range verbs() {
		c := &call{verb: v}
		c.defineFlags()
		row := verbFlags{name: v.name, summary: v.summary}
		c.flags.VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			info := flagInfo{long: f.Name, short: f.Shorthand, usage: usage, takesValue: f.NoOptDefVal == "",
				dirs: name == "DIR"}
			switch value := f.Value.(type) {
			case *choice:
				info.words = value.accepted
			case *weightFormats:
				info.words = passes.WeightFormatWords()
			}
			if f.Name == "target" {
				info.words = append(targetNames(), targetAuto)
			}
			row.flags = append(row.flags, info)
		})
		row.flags = append(row.flags, flagInfo{long: "help", short: "h", usage: "print the flags of the verb"})
		out = append(out, row)
	}
	return out
}

// spellings returns the flag as it is typed.
func (f *flagInfo) spellings() []string {
	if f.short == "" {
		return []string{"--" + f.long}
	}
	return []string{"-" + f.short, "--" + f.long}
}

// shellQuote puts a text between single quotes, which all three shells read the same way but for the quote itself.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// shellWord is a word of a command line, between quotes where a shell would make something else of it.
func shellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@+%"
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return shellQuote(s)
	}
	return s
}
