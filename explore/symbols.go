package explore

import (
	"debug/dwarf"
	"debug/elf"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// symbols turn offsets in shared objects into functions, files and lines. They are for one goroutine at a time.
type symbols struct {
	paths  map[string]string // of objects, by the module that findings call them
	tables map[string]*lineTable
}

// symbolsOf are those of compiled kernels and of the machine.
func symbolsOf(o *Objects) *symbols {
	s := &symbols{paths: map[string]string{libraryName: o.Library}, tables: map[string]*lineTable{}}
	for name, path := range o.Kernels {
		s.paths[name] = path
	}
	return s
}

// resolve fills in the frames of a finding's sites. A site that a primitive has named keeps its file and line.
func (s *symbols) resolve(f *Finding) {
	for i := range f.Sites {
		site := &f.Sites[i]
		if site.File != "" {
			site.File = cleaned(site.File)
		}
		if site.Module != "" && len(site.Frames) == 0 {
			site.Frames = s.frames(site.Module, site.Offset)
		}
	}
}

// frames are the functions that are at work before an offset of a module, the innermost first: those that the compiler
// has put instead of a call too. The offset is where a call returns to, so that the instruction before it counts.
// There are none where the module is not known.
func (s *symbols) frames(module string, offset uint64) []Frame {
	t, ok := s.tables[module]
	if !ok {
		if at := s.paths[module]; at != "" {
			t = openLines(at)
		}
		s.tables[module] = t
	}
	if t == nil {
		return nil
	}
	return t.frames(offset - min(1, offset))
}

// A lineTable is what an object has for debuggers.
type lineTable struct {
	data  *dwarf.Data
	units []*unit
}

// A unit is what was compiled at once.
type unit struct {
	entry     *dwarf.Entry
	ranges    [][2]uint64
	files     []*dwarf.LineFile
	functions []function // in the order of the file; nil: not read yet
	read      bool
}

// A function is a stretch of code, or a call that was replaced by one.
type function struct {
	name     string
	ranges   [][2]uint64
	depth    int
	inlined  bool
	callFile int
	callLine int
}

// openLines reads the tables of an object; nil where it has none.
func openLines(at string) *lineTable {
	f, err := elf.Open(at)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		return nil
	}
	t := &lineTable{data: data}
	r := data.Reader()
	for {
		e, err := r.Next()
		if err != nil || e == nil {
			return t
		}
		if e.Tag == dwarf.TagCompileUnit {
			if ranges, err := data.Ranges(e); err == nil {
				t.units = append(t.units, &unit{entry: e, ranges: ranges})
			}
		}
		r.SkipChildren()
	}
}

func (t *lineTable) frames(offset uint64) []Frame {
	for _, u := range t.units {
		if !within(u.ranges, offset) {
			continue
		}
		lines, err := t.data.LineReader(u.entry)
		if err != nil || lines == nil {
			return nil
		}
		line, ok := lineAt(lines, offset)
		if !ok || line.File == nil {
			return nil
		}
		if !u.read {
			u.files, u.read = lines.Files(), true
			t.readFunctions(u)
		}
		at := Frame{File: cleaned(line.File.Name), Line: line.Line}
		var all []Frame
		inner := slices.DeleteFunc(slices.Clone(u.functions), func(f function) bool {
			return !within(f.ranges, offset)
		})
		slices.SortStableFunc(inner, func(a, b function) int { return b.depth - a.depth })
		for _, f := range inner {
			at.Function = f.name
			all = append(all, at)
			if !f.inlined {
				return all
			}
			at = Frame{Line: f.callLine}
			if f.callFile >= 0 && f.callFile < len(u.files) && u.files[f.callFile] != nil {
				at.File = cleaned(u.files[f.callFile].Name)
			}
		}
		return append(all, at)
	}
	return nil
}

// lineAt finds the line of an offset. Each section has a sequence of its own, and linkers do not put sections in the
// order of sequences, which LineReader.SeekPC asks for.
func lineAt(lines *dwarf.LineReader, offset uint64) (line dwarf.LineEntry, ok bool) {
	var next dwarf.LineEntry
	for before := (dwarf.LineEntry{EndSequence: true}); lines.Next(&next) == nil; before = next {
		if !before.EndSequence && before.Address <= offset && offset < next.Address {
			return before, true
		}
	}
	return dwarf.LineEntry{}, false
}

// readFunctions reads the functions of a unit.
func (t *lineTable) readFunctions(u *unit) {
	r := t.data.Reader()
	r.Seek(u.entry.Offset)
	if e, err := r.Next(); err != nil || e == nil || !e.Children {
		return
	}
	for depth := 1; depth > 0; {
		e, err := r.Next()
		if err != nil || e == nil {
			return
		}
		if e.Tag == 0 {
			depth--
			continue
		}
		if e.Tag == dwarf.TagSubprogram || e.Tag == dwarf.TagInlinedSubroutine {
			if ranges, err := t.data.Ranges(e); err == nil && len(ranges) > 0 {
				f := function{name: t.nameOf(e), ranges: ranges, depth: depth, callFile: -1,
					inlined: e.Tag == dwarf.TagInlinedSubroutine}
				if n, ok := e.Val(dwarf.AttrCallFile).(int64); ok {
					f.callFile = int(n)
				}
				if n, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
					f.callLine = int(n)
				}
				u.functions = append(u.functions, f)
			}
		}
		if e.Children {
			depth++
		}
	}
}

// nameOf is the name of a function, which the entry that it refers to may have.
func (t *lineTable) nameOf(e *dwarf.Entry) string {
	for range 4 { // of chains that are that long
		if name, ok := e.Val(dwarf.AttrName).(string); ok {
			return name
		}
		at, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if at, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				return ""
			}
		}
		r := t.data.Reader()
		r.Seek(at)
		next, err := r.Next()
		if err != nil || next == nil {
			return ""
		}
		e = next
	}
	return ""
}

func within(ranges [][2]uint64, pc uint64) bool {
	return slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= pc && pc < r[1] })
}

// cleaned is a path from the root of the build, or of explore/cpu, without detours.
func cleaned(file string) string {
	return strings.TrimPrefix(path.Clean(filepath.ToSlash(file)), "/")
}
