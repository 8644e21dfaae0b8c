package cli

import (
	"fmt"
	"strings"
)

// fishScript prints one complete command for each verb and each flag.
func fishScript(table []verbFlags) string {
	var names []string
	for _, v := range table {
		names = append(names, v.name)
	}
	all := strings.Join(names, " ")
	var b strings.Builder
	b.WriteString("# fish completion for amkc; source it\n")
	for _, v := range table {
		fmt.Fprintf(&b, "complete -c amkc -n '__fish_use_subcommand' -a %s -d %s\n", v.name, shellQuote(v.summary))
	}
	for _, v := range table {
		when := "__fish_seen_subcommand_from " + v.name
		if v.name == compileName {
			when = "not __fish_seen_subcommand_from " + all
		}
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
