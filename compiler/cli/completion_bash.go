package cli

import (
	"fmt"
	"strings"
)

// bashScript prints the flags of the verb that is on the line, what the flag before the cursor takes, or files.
func bashScript(table []verbFlags) string {
	var names []string
	var values, flags strings.Builder
	for _, v := range table {
		names = append(names, v.name)
		var all []string
		for _, f := range v.flags {
			all = append(all, f.spellings()...)
			var patterns []string
			for _, s := range f.spellings() {
				patterns = append(patterns, v.name+":"+s)
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
		fmt.Fprintf(&flags, "    %s) words=%q ;;\n", v.name, strings.Join(all, " "))
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
`, strings.Join(names, " "), compileName, values.String(), flags.String())
}
