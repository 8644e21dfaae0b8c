package compiler

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/compiler/builddir"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

var codeUnlisted = diag.New("AMK4905", "a file in a build that its manifest does not list", `
Nothing says what the file should be. It is an error where make, nvcc or go could pick it up, because then the build
is not what its program says: anything in launcher/ and amk/, a module of Python in python/, a makefile or a file of a
Go module, a source, header or object file anywhere, a name without an extension such as C++ headers have, a name that
begins with that of a file of the build (schedule.h.gch, Makefile.sh), a link to a directory or in place of a file of
the build, and what is neither file nor link. It is a warning otherwise, and so is a file that is hidden or ends in
.edited. Move such files out of the build; notes and measurements may stay. The kernels, the launcher and the library
that make has made later are named in a warning: nothing says what they should be, and make does not make them anew
while they are newer than their sources.`)

const (
	maxUnlisted = 50      // reported, of each severity
	maxEntries  = 100_000 // looked at: a build has some hundreds
)

// A survey looks for files in a build that its manifest does not list.
type survey struct {
	dir      string
	known    map[string]bool // listed, or what make makes of them
	made     map[string]bool // what make makes
	later    []string        // made by make, and without a digest
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
				"makes them anew",
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

func (s *survey) visit(at, name string, d fs.DirEntry) error {
	hidden := strings.HasPrefix(path.Base(name), ".")
	switch {
	case d.IsDir() && hidden:
		s.report(diag.Warning, name, "is a hidden directory that the manifest does not list; no build looks into it")
		return fs.SkipDir
	case d.IsDir() && s.made[name]:
		s.report(diag.Error, name, "is a directory, and make makes a file of that name; want none")
	case d.IsDir():
		return nil
	case d.Type()&fs.ModeSymlink != 0 && leadsToDirectory(at):
		s.report(diag.Error, name, "is a link to a directory, which could hold anything; want the directory "+
			"itself, or none")
	case !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0:
		s.report(diag.Error, name, "is neither a file nor a link; want none of that in a build")
	case d.Type()&fs.ModeSymlink != 0 && (s.known[name] || s.made[name]):
		s.report(diag.Error, name, "is a link, and what that leads to can change while the build stays as it is; "+
			"want the file itself")
	case s.known[name]:
	case s.made[name] && builddir.IsProduct(at, name):
		s.later = append(s.later, name)
	case s.made[name]:
		s.report(diag.Error, name, "is not what make makes under that name; want none, or what make makes anew")
	default:
		if why := s.pickedUp(name, hidden); why != "" {
			s.report(diag.Error, name, "is not listed by the manifest, and "+why)
		} else {
			s.report(diag.Warning, name, "is not listed by the manifest; no build picks it up")
		}
	}
	return nil
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

var makefiles = []string{"gnumakefile", "makefile"}

// pickedUp says how a build could come to read a file, or nothing. It errs on the side of yes: the Makefile that amkc
// writes reads less, but with -I. on its command line nvcc would read headers of any directory here.
func (s *survey) pickedUp(name string, hidden bool) string {
	base := strings.ToLower(path.Base(name)) // some file systems do not tell case apart
	extension := path.Ext(base)
	top, _, below := strings.Cut(name, "/")
	switch {
	case hidden, isEdited(base):
		return ""
	case below && top == "launcher":
		return "go reads what is in launcher/; want it elsewhere"
	case below && top == "amk":
		return "nvcc looks for headers in amk/; want it elsewhere"
	case below && top == "python" && extension == ".py":
		return "pip reads what is in python/; want it elsewhere"
	case slices.Contains(makefiles, base):
		return "make reads it; want another name or place"
	case slices.Contains(codegen.ToolExtensions, extension):
		return "compilers read files that end in " + extension + "; want it elsewhere"
	case extension == "":
		return "it could be taken for a C++ header, which have no extension; want it elsewhere, or with an " +
			"extension such as .txt"
	case s.shadows(name):
		return "tools look for files that begin like one of the build's; want another name or place"
	}
	return ""
}

// isEdited reports whether a file is a user's version that Compile has kept, see [builddir.Dir.Commit].
func isEdited(base string) bool {
	_, number, found := strings.Cut(base, ".edited")
	return found && strings.Trim(number, ".0123456789") == ""
}

// shadows reports whether the name is that of a file of the build with more extensions: precompiled headers, and the
// sources that make's own rules make files from.
func (s *survey) shadows(name string) bool {
	for {
		dot := strings.LastIndexByte(name, '.')
		if dot <= strings.LastIndexByte(name, '/') {
			return false
		}
		if name = name[:dot]; s.known[name] || s.made[name] {
			return true
		}
	}
}
