package notices

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen/modules"
)

// programs are what is distributed, by the packages that it is linked from, with its notices.
var programs = []struct {
	name, text string
	packages   []string
}{
	{"amkc", Amkc, []string{"amkc/cmd/amkc"}},
	{"libamkref", Amkc, []string{"amkc/cmd/libamkref"}},
	{"launcher", Build, []string{"amkc/app/cli"}},
	{"libamk", Build, []string{"amkc/app/library/shared"}},
}

// title is how the notices call what no module is.
const title = "Go, its runtime and its standard library"

var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)(\..*|-.*)?$`)

// texts returns the legal files of a program by the module that they are of, "PATH VERSION": those of the directories
// of its packages and of all above, as far as the module goes.
func texts(t *testing.T, packages []string) map[string][]string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f",
		"{{if .Standard}}" + title + "\t" + strings.TrimSpace(string(root)) + "\t{{.Dir}}{{else}}" +
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{end}}{{$.Dir}}{{end}}{{end}}"},
		packages...)...)
	// With cgo, which has more packages. Listing them takes no C compiler.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	found, seen := map[string][]string{}, map[string]bool{}
	for line := range strings.Lines(string(out)) {
		part := strings.Split(strings.TrimSpace(line), "\t")
		if len(part) == 1 { // a package of amkc: go test does not see that go list reads it
			_, err := os.ReadDir(part[0])
			require.NoError(t, err)
			continue
		}
		for dir := part[2]; !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			if filepath.Base(dir) == "boring" { // about what GOEXPERIMENT=boringcrypto links, and nothing else does
				continue
			}
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, e := range entries {
				if !e.IsDir() && legal.MatchString(e.Name()) {
					data, err := os.ReadFile(filepath.Join(dir, e.Name()))
					require.NoError(t, err)
					found[part[0]] = append(found[part[0]], strings.TrimRight(string(data), "\n"))
				}
			}
			if dir == part[1] {
				require.NotEmpty(t, found[part[0]], "%s has no license", part[0])
				break
			}
		}
	}
	return found
}

// sections are the parts of notices by what they are titled.
func sections(text string) map[string]string {
	parts := map[string]string{}
	for _, part := range strings.Split(text, "\n"+strings.Repeat("=", 80)+"\n")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		parts[name] = rest
	}
	return parts
}

// lacks lists what notices have not got of the legal files of a program.
func lacks(text string, want map[string][]string) []string {
	var missing []string
	have := sections(text)
	for module, files := range want {
		part, ok := have[module]
		if !ok {
			missing = append(missing, module)
			continue
		}
		for _, file := range files {
			if !strings.Contains(part, "\n"+file+"\n") {
				missing = append(missing, module+": "+strings.TrimSpace(file[:min(len(file), 60)]))
			}
		}
	}
	return missing
}

// Every module that is linked has its license in the notices, with the words that the module itself has.
func TestNoticesOfEverythingLinked(t *testing.T) {
	const remedy = "run `go generate ./codegen/notices`"
	linked := map[string]map[string]bool{Amkc: {}, Build: {}}
	for _, p := range programs {
		want := texts(t, p.packages)
		require.Contains(t, want, title)
		require.Greater(t, len(want), 2, p.name)
		require.Empty(t, lacks(p.text, want), "%s: %s", p.name, remedy)
		for module, files := range want {
			linked[p.text][module] = true
			without := strings.Replace(p.text, "\n"+module+"\n", "\nanother\n", 1)
			require.Equal(t, []string{module}, lacks(without, want), p.name)
			// Modules of one author have equal licenses: change the word in this one's section.
			at := strings.Index(p.text, "\n"+module+"\n")
			changed := p.text[:at] + strings.Replace(p.text[at:], files[0], files[0][1:], 1)
			require.NotEmpty(t, lacks(changed, want), "%s: %s", p.name, module)
		}
	}
	for _, m := range modules.All {
		require.Contains(t, sections(Build), m.Path+" "+m.Version, remedy)
		linked[Build][m.Path+" "+m.Version] = true
	}
	script, err := os.ReadFile("../../app/serve/page/marked/marked.js")
	require.NoError(t, err)
	license, err := os.ReadFile("../../app/serve/page/marked/LICENSE")
	require.NoError(t, err)
	marked := "marked " + regexp.MustCompile(`marked v([\d.]+)`).FindStringSubmatch(string(script))[1]
	for text := range linked {
		require.Empty(t, lacks(text, map[string][]string{marked: {strings.TrimSpace(string(license))}}), remedy)
		linked[text][marked] = true
	}
	for text, modules := range linked {
		require.Len(t, sections(text), len(modules), "of modules that nothing links: "+remedy)
	}
}
