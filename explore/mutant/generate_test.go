package mutant

// The generator on a small header and a small kernel, whose mutated text and ids are goldens, and on the device
// runtime: every entry of its tables is of use, and every brace of every header is understood.

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"amkc/runtime"
)

var update = flag.Bool("update", false, "rewrite the goldens")

func fixture(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{"amk/fixture.cuh", "megakernel.cu"} {
		text, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	return files
}

func TestGenerated(t *testing.T) {
	s, err := Generate(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	var ids strings.Builder
	for _, m := range s.Mutants {
		fmt.Fprintf(&ids, "%d at %d of line %d: %s\n", m.Number, m.Site.Number, m.Site.Line, m.ID())
	}
	for _, stay := range s.Stays {
		fmt.Fprintf(&ids, "not %s, for %s: %s\n", stay.Kind, stay.Why, stay.Site)
	}
	golden(t, "mutants.golden", ids.String())
	golden(t, "fixture.golden", string(s.Files["amk/fixture.cuh"]))
	golden(t, "megakernel.golden", string(s.Files["megakernel.cu"]))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	at := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(at, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; go test ./explore/mutant -update, and read the diff. It is now:\n%s", name, got)
	}
}

// Ids depend on the function that a site is in alone: a line more before it, or another file, changes none.
func TestIDsAreStable(t *testing.T) {
	before, err := Generate(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	files := fixture(t)
	files["amk/another.cuh"] = []byte("inline void f() {\n  block_sync();\n}\n")
	text := string(files["amk/fixture.cuh"])
	files["amk/fixture.cuh"] = []byte(strings.Replace(text, "struct Producer {",
		"inline void g() { warp_sync(); }\n\nstruct Producer {", 1))
	after, err := Generate(files)
	if err != nil {
		t.Fatal(err)
	}
	now := idsOf(after)
	for id := range idsOf(before) {
		if !now[id] {
			t.Errorf("%s has another id now", id)
		}
	}
	if len(now) <= len(before.Mutants) {
		t.Errorf("%d mutants with a file more, %d without", len(now), len(before.Mutants))
	}
}

func idsOf(s *Set) map[string]bool {
	ids := map[string]bool{}
	for _, m := range s.Mutants {
		ids[m.ID()] = true
	}
	return ids
}

// Of the device runtime, every header is read to its end, every entry of the tables finds something, and every kind has
// mutants.
func TestTablesAreOfUse(t *testing.T) {
	sources := map[string][]byte{}
	for name, text := range runtime.DeviceSources() {
		sources[name] = text
	}
	s, err := Generate(sources)
	if err != nil {
		t.Fatal(err)
	}
	names, kinds := map[string]int{}, map[Kind]int{}
	for _, site := range s.Sites {
		names[site.Name]++
	}
	for _, m := range s.Mutants {
		kinds[m.Kind]++
	}
	// what only emitted kernels and stages call
	emitted := []string{"arrive", "await_join", "drain", "init_barriers", "init_scratch", "join_step", "publish_row",
		"stop", "tell_host"}
	for _, p := range primitives {
		if names[p.name] == 0 && !slices.Contains(emitted, p.name) {
			t.Errorf("no header calls %s; want the table without it", p.name)
		}
	}
	for _, v := range variables {
		if names[v.name] == 0 {
			t.Errorf("no header sets %s; want the table without it", v.name)
		}
	}
	for _, kind := range Kinds {
		if kinds[kind] == 0 && kind != StageOrder {
			t.Errorf("no mutant is of the kind %q", kind)
		}
	}
	why := map[string]int{}
	for _, stay := range s.Stays {
		why[stay.Why]++
	}
	t.Logf("%d sites, %d mutants; not moved:", len(s.Sites), len(s.Mutants))
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		t.Logf("%5d  %s", why[reason], reason)
	}
}

func TestNotUnderstood(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"void f() {", "line 1: a block does not end"},
		{"void f() {}\n}", "line 2: a brace closes nothing"},
		{"void f() {\n  g(1;\n}", "line 3: a statement does not end"},
		{"/* ", "line 1: a comment does not end"},
		{"\nconst char* s = \"", "line 2: a string does not end"},
		{"void f() {\n  if x;\n}", "line 2: a condition is missing"},
		{"template <class T", "line 1: a list of template parameters does not end"},
		{"int a[3", "line 1: a bracket is not closed"},
	} {
		_, err := Generate(map[string][]byte{"amk/a.cuh": []byte(c.text)})
		if want := "amk/a.cuh: " + c.want; err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", c.text, err, want)
		}
	}
}

// Each reason has words, and is not told twice.
func TestReasons(t *testing.T) {
	if len(Equivalent) == 0 {
		t.Error("no mutant has a reason")
	}
	for text, table := range map[string]map[string]string{equivalent: Equivalent, unjudged: Unjudged} {
		for id, reason := range table {
			if len(strings.Fields(reason)) < 3 {
				t.Errorf("%s: the reason is %q", id, reason)
			}
		}
		n := 0
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "\t") && line != "\n" {
				n++
			}
		}
		if n != len(table) {
			t.Errorf("%d ids are listed, %d of them once", n, len(table))
		}
	}
	const id = "megakernel.cu run init_scratch 1: one statement later"
	if Reason(id) == "" || Reason("rows2/"+id) != Reason(id) || Reason("amk/"+id) != "" {
		t.Errorf("%q, %q and %q for %s", Reason(id), Reason("rows2/"+id), Reason("amk/"+id), id)
	}
}
