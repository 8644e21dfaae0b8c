package cli

import (
	"fmt"
	"strings"
)

// zshScript lets _arguments of zsh do the work, one call a verb.
func zshScript(table []verbFlags) string {
	var b strings.Builder
	b.WriteString("#compdef amkc\n# zsh completion for amkc; source it\n_amkc() {\n    local -a verbs\n    verbs=(\n")
	for _, v := range table {
		fmt.Fprintf(&b, "        %s\n", shellQuote(v.name+":"+v.summary))
	}
	b.WriteString("    )\n    if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n" +
		"        _describe verb verbs\n        _files -/\n        return\n    fi\n" +
		"    local verb=${words[2]}\n    case $verb in\n")
	for _, v := range table {
		if v.name == compileName {
			continue // the default, below
		}
		fmt.Fprintf(&b, "    %s)\n%s        ;;\n", v.name, zshArguments(&v))
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
