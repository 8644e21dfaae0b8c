package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"amkc/ir/diag"
	"amkc/passes"
)

func completionVerb() verb {
	return verb{
		name: "completion", synopsis: "bash|zsh|fish", min: 1, max: 1,
		summary: "print a completion script for a shell",
		details: `
    bash: source <(amkc completion bash)
    zsh:  source <(amkc completion zsh)
    fish: amkc completion fish | source`,
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
	above, word   string // of a verb below another: name is both
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
		row := verbFlags{name: v.name, summary: v.summary, word: v.word()}
		row.above = strings.TrimSuffix(strings.TrimSuffix(v.name, row.word), " ")
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

// pairs lists the verbs below others as a pattern of case, and the words of each group by the verb above.
func pairs(table []verbFlags) (pattern string, words map[string][]string) {
	var quoted []string
	words = map[string][]string{}
	for _, v := range table {
		if v.above != "" {
			quoted = append(quoted, `"`+v.name+`"`)
			words[v.above] = append(words[v.above], v.word)
		}
	}
	return strings.Join(quoted, "|"), words
}

// bashScript prints the flags of the verb that is on the line, what the flag before the cursor takes, or files.
func bashScript(table []verbFlags) string {
	var names []string
	var values, flags, second strings.Builder
	both, words := pairs(table)
	for _, v := range table {
		if v.above == "" {
			names = append(names, v.name)
		}
		if lower := words[v.name]; lower != nil {
			fmt.Fprintf(&second, "    %s:2) mapfile -t COMPREPLY < <(compgen -W %q -- \"$cur\"; "+
				"compgen -d -- \"$cur\"); return ;;\n", v.name, strings.Join(lower, " "))
		}
		var all []string
		for _, f := range v.flags {
			all = append(all, f.spellings()...)
			var patterns []string
			for _, s := range f.spellings() {
				patterns = append(patterns, `"`+v.name+":"+s+`"`)
			}
			switch pattern := strings.Join(patterns, "|"); {
			case !f.takesValue:
			case f.words != nil:
				fmt.Fprintf(&values, "    %s) mapfile -t COMPREPLY < <(compgen -W %q -- \"$cur\"); return ;;\n",
					pattern, strings.Join(f.words, " "))
			case f.dirs:
				fmt.Fprintf(&values, "    %s) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); return ;;\n", pattern)
			default:
				fmt.Fprintf(&values, "    %s) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n", pattern)
			}
		}
		fmt.Fprintf(&flags, "    %q) words=%q ;;\n", v.name, strings.Join(all, " "))
	}
	return fmt.Sprintf(`# bash completion for amkc; source it
_amkc() {
    # bash takes a colon for a word of its own, and replaces what is after it
    local first=$COMP_CWORD cur="" word
    while ((first > 2)) && [[ ${COMP_WORDS[first]} == : || ${COMP_WORDS[first-1]} == : ]]; do ((first--)); done
    for word in "${COMP_WORDS[@]:first:COMP_CWORD-first+1}"; do cur+=$word; done
    local prev="${COMP_WORDS[first-1]}" verb="${COMP_WORDS[1]}" words=""
    COMPREPLY=()
    _amkc_replies
    [[ $COMP_WORDBREAKS != *:* ]] || COMPREPLY=("${COMPREPLY[@]#"${cur%%"${cur##*:}"}"}")
}
_amkc_replies() {
    local verbs=%q
    if [[ $COMP_CWORD -eq 1 && $cur != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$cur"; compgen -d -- "$cur")
        return
    fi
    [[ " $verbs " == *" $verb "* ]] || verb=%s
    [[ $cur == -* ]] || case "$verb:$COMP_CWORD" in
%s    esac
    case "$verb ${COMP_WORDS[2]}" in
    %s) verb+=" ${COMP_WORDS[2]}" ;;
    esac
    case "$verb:$prev" in
%s    esac
    case "$verb" in
%s    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    elif [[ $verb == help ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$cur")
    elif [[ $verb == completion ]]; then
        mapfile -t COMPREPLY < <(compgen -W "bash zsh fish" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}
complete -o filenames -F _amkc amkc
`, strings.Join(names, " "), compileName, second.String(), both, values.String(), flags.String())
}

// fishScript prints one complete command for each verb and each flag.
func fishScript(table []verbFlags) string {
	const seen = "__fish_seen_subcommand_from "
	var names []string
	_, words := pairs(table)
	for _, v := range table {
		if v.above == "" {
			names = append(names, v.name)
		}
	}
	// when is the condition for what a verb takes.
	when := func(v *verbFlags) string {
		lower := words[v.name]
		switch {
		case v.name == compileName:
			return "not " + seen + strings.Join(names, " ")
		case v.above != "":
			return seen + v.above + "; and " + seen + v.word
		case lower != nil:
			return seen + v.name + "; and not " + seen + strings.Join(lower, " ")
		}
		return seen + v.name
	}
	above := map[string]string{"": "__fish_use_subcommand"}
	for _, v := range table {
		above[v.name] = when(&v)
	}
	var b strings.Builder
	b.WriteString("# fish completion for amkc; source it\n")
	for _, v := range table {
		fmt.Fprintf(&b, "complete -c amkc -n %s -a %s -d %s\n", shellQuote(above[v.above]), v.word,
			shellQuote(v.summary))
	}
	for _, v := range table {
		when := above[v.name]
		for _, f := range v.flags {
			fmt.Fprintf(&b, "complete -c amkc -n %s -l %s", shellQuote(when), f.long)
			if f.short != "" {
				fmt.Fprintf(&b, " -s %s", f.short)
			}
			switch {
			case !f.takesValue:
			case f.words != nil:
				fmt.Fprintf(&b, " -xa %s", shellQuote(strings.Join(f.words, " ")))
			case f.dirs:
				b.WriteString(" -xa '(__fish_complete_directories)'")
			default:
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", shellQuote(f.usage))
		}
	}
	return b.String()
}

// zshScript lets _arguments of zsh do the work, one call a verb.
func zshScript(table []verbFlags) string {
	var b strings.Builder
	b.WriteString("#compdef amkc\n# zsh completion for amkc; source it\n_amkc() {\n    local -a verbs\n    verbs=(\n")
	both, words := pairs(table)
	list := func(above string) {
		for _, v := range table {
			if v.above == above {
				fmt.Fprintf(&b, "        %s\n", shellQuote(v.word+":"+v.summary))
			}
		}
	}
	list("")
	b.WriteString("    )\n    if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n" +
		"        _describe verb verbs\n        _files -/\n        return\n    fi\n" +
		"    local verb=${words[2]}\n")
	for _, name := range slices.Sorted(maps.Keys(words)) {
		fmt.Fprintf(&b, "    if (( CURRENT == 3 )) && [[ $verb == %s && ${words[3]} != -* ]]; then\n"+
			"        verbs=(\n", name)
		list(name)
		b.WriteString("        )\n        _describe verb verbs\n        _files -/\n        return\n    fi\n")
	}
	fmt.Fprintf(&b, "    case \"$verb ${words[3]}\" in\n    %s) verb+=\" ${words[3]}\" ;;\n    esac\n"+
		"    case $verb in\n", both)
	for _, v := range table {
		if v.name == compileName {
			continue // the default, below
		}
		fmt.Fprintf(&b, "    %q)\n%s        ;;\n", v.name, zshArguments(&v))
	}
	fmt.Fprintf(&b, "    *)\n%s        ;;\n    esac\n}\ncompdef _amkc amkc\n", zshArguments(&table[0]))
	return b.String()
}

func zshArguments(v *verbFlags) string {
	var b strings.Builder
	b.WriteString("        _arguments")
	for _, f := range v.flags {
		value := ""
		switch {
		case !f.takesValue:
		case f.words != nil:
			value = ":value:(" + strings.ReplaceAll(strings.Join(f.words, " "), ":", `\:`) + ")"
		case f.dirs:
			value = ":directory:_files -/"
		default:
			value = ":value:_files"
		}
		text := strings.NewReplacer("[", "(", "]", ")", ":", " -").Replace(f.usage)
		for _, s := range f.spellings() {
			fmt.Fprintf(&b, " \\\n            %s", shellQuote(s+"["+text+"]"+value))
		}
	}
	b.WriteString(" \\\n            '*:file:_files'\n")
	return b.String()
}
