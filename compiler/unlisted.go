package compiler

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/compiler/builddir"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/text/chat"
)

var codeUnlisted = diag.New("AMK4905", "a file in a build that its manifest does not list", `
Nothing says what the file should be, and make, nvcc, go, pip, Python and the launcher load many files that nothing
names. So it is an error, with a few exceptions. Notes and measurements (.csv, .html, .log, .md, .npy, .out, .png, .svg,
.tsv, .txt, and bench.json, out.json, results.json and trace.json) may be next to the build's own files, and in
directories of their own, which may have .json and .jsonl too; versions that a recompile has kept, NAME.edited of a file
NAME of the build, may be next to it, and below a directory at the root that it has no more. These are reported as
warnings. The directories of the build hold nothing else, and no empty directory; a link, a hidden file or directory,
and a name of more than ASCII letters, digits, spaces and _ . + @ ! - are errors anywhere. Move such files out of the
build, and remove what Python has cached: Python makes it again. The kernels, the launcher and the library that make has
made later are named in a warning: nothing says what they should be, and make does not remake them while they are
newer than their sources.`)

const (
	maxUnlisted = 50      // reported, of each severity
	maxEntries  = 100_000 // looked at: a build has some hundreds
)

// A survey looks for files in a build that its manifest does not list.
type survey struct {
	dir      string
	known    map[string]bool   // listed, or what make makes of them
	made     map[string]bool   // what make makes
	folded   map[string]string // both, by their names in lower case: some file systems do not tell cases apart
	holds    map[string]bool   // directories with files of the build
	places   map[string]bool   // those of them at the root, in lower case
	later    []string          // made by make, and without a digest
	entries  int
	findings map[diag.Severity]int
	list     diag.List
}

// unlisted reports the files that the manifest of a build does not list. Links are not followed: what one leads to is
// not of the build.
func unlisted(dir string, m *codegen.Manifest) diag.List {
	s := &survey{dir: dir, known: map[string]bool{host.ManifestFile: true},
		made: map[string]bool{m.Facts.Model.Name: true, host.LibraryFile: true}, findings: map[diag.Severity]int{}}
	eachFile(m, func(name, _ string, _ int64) bool {
		s.known[name] = true
		if base, ok := strings.CutSuffix(name, ".cu"); ok && !strings.HasPrefix(name, "launcher/") {
			s.made[base+".fatbin"] = true
		}
		return true
	})
	s.fold()
	root := dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		root = real
	}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, at)
		name := filepath.ToSlash(rel)
		switch {
		case name == ".":
			return err
		case err != nil:
			s.report(diag.Error, name, fmt.Sprintf("cannot be read: %v", infile.Reason(err)))
			return nil
		}
		if s.entries++; s.entries > maxEntries {
			s.report(diag.Error, name, fmt.Sprintf("is one of more than %d files; want a directory that holds "+
				"the build", maxEntries))
			return fs.SkipAll
		}
		return s.visit(at, name, d)
	})
	if err != nil {
		s.report(diag.Error, ".", fmt.Sprintf("cannot be read: %v", infile.Reason(err)))
	}
	if len(s.later) > 0 {
		s.list.Add(diag.Warningf(codeUnlisted, dir,
			"%s: made after amkc had written the build, so the manifest has no digest to compare; make -B "+
				"remakes them",
			strings.Join(s.later, ", ")))
	}
	for _, severity := range []diag.Severity{diag.Error, diag.Warning} {
		if more := s.findings[severity] - maxUnlisted; more > 0 {
			d := diag.Errorf(codeUnlisted, dir, "%d more files are not listed by the manifest", more)
			d.Severity = severity
			s.list.Add(d)
		}
	}
	return s.list
}

// fold notes the names and directories of a build in lower case. Templates of chats are loaded from their directory
// whether the build has one or not.
func (s *survey) fold() {
	s.folded, s.holds, s.places = map[string]string{}, map[string]bool{}, map[string]bool{chat.TemplateDir: true}
	for _, names := range []map[string]bool{s.known, s.made} {
		for name := range names {
			s.folded[strings.ToLower(name)] = name
			for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
				s.holds[dir], s.places[strings.ToLower(top(dir))] = true, true
			}
		}
	}
}

func (s *survey) visit(at, name string, d fs.DirEntry) error {
	switch {
	case d.IsDir():
		return s.directory(at, name)
	case d.Type()&fs.ModeSymlink != 0 && leadsToDirectory(at):
		s.report(diag.Error, name, "is a link to a directory, which could hold anything; want the directory "+
			"itself, or none")
	case d.Type()&fs.ModeSymlink != 0:
		s.report(diag.Error, name, "is a link, and what that leads to can change while the build stays as it is; "+
			"want the file itself, or none")
	case !d.Type().IsRegular():
		s.report(diag.Error, name, "is neither a file nor a link; want none of that in a build")
	case s.known[name]:
	case s.made[name] && builddir.IsProduct(at, name):
		s.later = append(s.later, name)
	case s.made[name]:
		s.report(diag.Error, name, "is not what make makes under that name; want none, or the one that make makes")
	default:
		if why := s.loadable(name); why != "" {
			s.report(diag.Error, name, "is not listed by the manifest, and "+why)
		} else {
			s.report(diag.Warning, name, "is not listed by the manifest; nothing loads it")
		}
	}
	return nil
}

// directory looks at a directory. One with a file of the build in it has that file's name, and no other is of interest
// unless something looks into it: Go into an empty launcher/vendor, Python into an empty python/json.
func (s *survey) directory(at, name string) error {
	why := ""
	switch {
	case s.made[name]:
		why = "is a directory, and make makes a file of that name; want none"
	case name == host.WorkDir:
		why = "is what an amkc that was interrupted has left, or one that is writing the build; the same amkc once " +
			"more finishes its work"
	case s.holds[name]:
		return nil
	case !plain.MatchString(path.Base(name)):
		why = notPlain
	case s.isPlace(name) && isEmpty(at):
		why = "is a directory that no file of the build is in, and tools look into " + top(name) + "/; want none"
	case metadata.MatchString(name):
		why = "has a name in which Python looks for what packages load; want another one"
	default:
		return nil
	}
	s.report(diag.Error, name, why)
	return fs.SkipDir
}

func isEmpty(dir string) bool {
	entries, err := infile.List(dir)
	return err == nil && len(entries) == 0
}

func leadsToDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (s *survey) report(severity diag.Severity, name, what string) {
	if s.findings[severity]++; s.findings[severity] > maxUnlisted {
		return
	}
	d := diag.Errorf(codeUnlisted, filepath.Join(s.dir, filepath.FromSlash(name)), "%s", what)
	d.Severity = severity
	s.list.Add(d)
}

// A plain name means the same to every file system and shell: no other name folds to it, and it is not an option.
var plain = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9 ._+@!-]*[A-Za-z0-9_+-])?$`)

const notPlain = "has a name that file systems, tools or shells could take otherwise; want ASCII letters, digits and " +
	"spaces and _ . + @ ! - in it, and no dot at its beginning or end"

// What nothing loads. JSON is loaded by name alongside the build's own files (config.json, tokenizer.json), so there it
// has one of the names that reports and traces are given.
var (
	notes   = []string{".csv", ".html", ".log", ".md", ".npy", ".out", ".png", ".svg", ".tsv", ".txt"}
	data    = []string{".json", ".jsonl"} // in directories of the user's own
	reports = []string{"bench.json", "out.json", "results.json", "trace.json"}
)

// keptVersion is the end of the name of a user's version of a file that Compile has kept, see [builddir.Dir.Commit].
var keptVersion = regexp.MustCompile(`\.edited(\.[0-9]+)?$`)

// isKept reports whether a file is such a version of a file of the build, or of a directory that the build has not.
func (s *survey) isKept(name string) bool {
	end := keptVersion.FindStringIndex(name)
	return end != nil && (s.known[name[:end[0]]] || s.made[name[:end[0]]] ||
		strings.Contains(name, "/") && !s.isPlace(name))
}

// metadata is the end of the names of directories in which Python looks for entry points.
var metadata = regexp.MustCompile(`(?i)\.(dist|egg)-info$`)

// loadable says why a file that the manifest does not list cannot be taken for one that nothing loads, or nothing.
func (s *survey) loadable(name string) string {
	base := path.Base(name)
	extension := strings.ToLower(path.Ext(base))
	own := strings.Contains(name, "/") // directory, unless it is one of the build's
	is := s.folded[strings.ToLower(name)]
	switch {
	case !plain.MatchString(base):
		return notPlain
	case is != "":
		return "differs from the build's " + is + " in the case of letters alone; want another name"
	case s.isKept(name):
		return ""
	case s.isPlace(name):
		return "tools load what is in " + top(name) + "/; want it elsewhere"
	case slices.Contains(notes, extension), own && slices.Contains(data, extension),
		!own && slices.Contains(reports, base):
		return ""
	case extension == ".json", extension == ".jsonl":
		return "JSON next to the build's own is loaded by name; want it in a directory of its own, such as results/"
	}
	return fmt.Sprintf("is of no kind that nothing loads; want it outside the build, which may hold notes and "+
		"measurements (%s)", strings.Join(notes, ", "))
}

// isPlace reports whether a path is below a directory of the build, or that directory.
func (s *survey) isPlace(name string) bool { return s.places[strings.ToLower(top(name))] }

// top is the directory at the root that a path is below, or the path itself.
func top(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}
