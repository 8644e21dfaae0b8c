// Package mutant makes mutants of the device code of a build: copies of its sources with faults, such as an omitted
// barrier or a slot of the ring that is released too early. A mutant that the explorer does not find shows a gap in it.
//
// One copy of the sources has all mutants, and a number that is set at run time selects one of them. A scanner for the
// subset of C++ in the device runtime (parse) finds the sites, by a table of the primitives that order accesses
// (primitives) and of the variables that waits compare (variables). The id of a mutant does not depend on the build, so
// it is the same in several builds.
package mutant

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A Mutant is a fault in a copy of the sources, which its number activates.
type Mutant struct {
	Number int
	Kind   Kind
	What   string // tells it from others of its kind at one site
	Site   *Site  // of a statement that is moved, the first in it
}

// ID identifies a mutant, in every build that has it.
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

// A Stay is a statement that cannot be moved in a direction.
type Stay struct {
	Site *Site
	Kind Kind // Earlier or Later
	Why  string
}

// hardware is the directory of the primitives themselves, which have no mutants.
const hardware = "amk/hw"

// Generate makes the mutants of the sources of a build, given by path: headers of the runtime below amk, and kernels
// with their emitted headers.
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
