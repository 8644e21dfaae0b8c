// Package mutant makes mutants of the device code of a build: copies of its sources with faults in them, such as a
// barrier that is left out or a slot of the ring that is given back too early. An explorer that does not find them all
// is missing something.
//
// One copy of the sources has all mutants, and a number that is set at run time says which of them is on. Places are
// found by a scanner for as much of C++ as the device runtime has (parse), in a table of the primitives that order
// something (primitives) and of the variables that say what is waited for (variables). A mutant has an id that does not
// depend on the build, so that a mutant of several builds is one.
package mutant

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A Mutant is a fault that a copy of the sources has where its number is set.
type Mutant struct {
	Number int
	Kind   Kind
	What   string // tells it from others of its kind at one site
	Site   *Site  // of a statement that is moved, the first in it
}

// ID tells a mutant from all others, in every build that has it.
func (m *Mutant) ID() string {
	id := m.Site.String() + ": " + string(m.Kind)
	if m.What != "" {
		id += ", " + m.What
	}
	return id
}

// A Set is all mutants of the sources of a build.
type Set struct {
	Files   map[string][]byte // all sources, mutated where there are sites
	Sites   []*Site           // by number, from 0
	Mutants []*Mutant         // by number, from 1
	Stays   []Stay            // what is not moved, and why
}

// A Stay is a statement that is not moved in a direction.
type Stay struct {
	Site *Site
	Kind Kind // Earlier or Later
	Why  string
}

// hardware is the directory of the primitives themselves, which have no mutants.
const hardware = "amk/hw"

// Generate makes the mutants of the sources of a build, by their paths: headers of the runtime below amk, and kernels
// with the headers that are emitted for them.
func Generate(sources map[string][]byte) (*Set, error) {
	s := &Set{Files: maps.Clone(sources)}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		switch path.Ext(name) {
		case ".cu", ".cuh", ".h":
		default:
			continue
		}
		if path.Dir(name) == hardware {
			continue
		}
		f, err := parse(string(sources[name]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text, err := (&writer{file: f, set: s, path: name}).all()
		if err != nil {
			return nil, err
		}
		s.Files[name] = []byte(text)
	}
	seen := map[string]bool{}
	for _, m := range s.Mutants {
		if seen[m.ID()] {
			return nil, fmt.Errorf("two mutants have the id %q", m.ID())
		}
		seen[m.ID()] = true
	}
	return s, nil
}

// prefix declares, at the top of each mutated file, what says which mutant is on, and counts.
const prefix = `#ifndef AMK_MUTANT
extern "C" {
extern __attribute__((visibility("default"))) unsigned amk_mutant;
extern __attribute__((visibility("default"))) unsigned amk_mutant_reached[];
}
#define AMK_MUTANT(n) (amk_mutant == (n))
#define AMK_SITE_REACHED(n) (++amk_mutant_reached[n])
#endif
#line 1
`

func (s *Set) site(of Site) *Site {
	of.Number = len(s.Sites)
	s.Sites = append(s.Sites, &of)
	return &of
}

func (s *Set) mutant(kind Kind, what string, at *Site) *Mutant {
	m := &Mutant{len(s.Mutants) + 1, kind, what, at}
	s.Mutants = append(s.Mutants, m)
	return m
}

// isOn is the condition that one of some mutants is on.
func isOn(mutants ...*Mutant) string {
	var each []string
	for _, m := range mutants {
		each = append(each, fmt.Sprintf("AMK_MUTANT(%d)", m.Number))
	}
	return strings.Join(each, " || ")
}
