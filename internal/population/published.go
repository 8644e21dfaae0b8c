package population

import (
	"compress/bzip2"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"amkc/interchange"
)

// A published program is a line of testdata/amk_ir/population.jsonl.bz2 or models.jsonl.bz2: a whole program, or what
// differs from another one.
type published struct {
	Name    string                     `json:"name"`
	Class   string                     `json:"class"`
	Base    string                     `json:"base"` // the name of the other one; "" with a Program
	Program *interchange.Program       `json:"program"`
	Meta    json.RawMessage            `json:"meta"`
	Buffers map[int]interchange.Buffer `json:"buffers"` // by their places
	Tasks   map[int]interchange.Task   `json:"tasks"`
	Pages   *interchange.Pages         `json:"pages"`
}

// readPublished reads a file of published programs, in its order and by name.
func readPublished(file string) (list []*published, byName map[string]*published) {
	root, err := moduleRoot()
	if err != nil {
		panic(err)
	}
	f, err := os.Open(filepath.Join(root, "testdata", "amk_ir", file))
	if err != nil {
		panic(err) // the tree is not whole
	}
	defer f.Close()
	byName = map[string]*published{}
	for d := json.NewDecoder(bzip2.NewReader(f)); d.More(); {
		p := &published{}
		if err := d.Decode(p); err != nil {
			panic(fmt.Sprintf("population: %s: %v", file, err))
		}
		list, byName[p.Name] = append(list, p), p
	}
	return list, byName
}

// population holds the published lowerings and mutants, by class in the order of the file, and by name.
var population = sync.OnceValues(func() (map[string][]*published, map[string]*published) {
	list, byName := readPublished("population.jsonl.bz2")
	classes := map[string][]*published{}
	for _, p := range list {
		classes[p.Class] = append(classes[p.Class], p)
	}
	return classes, byName
})

// program makes the program whole. It shares with its base what is the same.
func (p *published) program(byName map[string]*published) *interchange.Program {
	if p.Program != nil {
		return p.Program
	}
	out := *byName[p.Base].program(byName)
	if p.Meta != nil {
		out.Meta = p.Meta
	}
	if p.Pages != nil {
		out.Pages = p.Pages
	}
	out.Buffers, out.Tasks = slices.Clone(out.Buffers), slices.Clone(out.Tasks)
	for i, b := range p.Buffers {
		out.Buffers[i] = b
	}
	for i, t := range p.Tasks {
		out.Tasks[i] = t
	}
	return &out
}

// Classes of published programs: the 360 lowerings, 350 mutants of each of eight classes with one injected defect each,
// and on top of those 1,040 more mutants and 260 lowerings in which one thing about the operands of a task is changed.
// Not every mutant is unsafe: a wait that is dropped may have been implied by others.
const (
	Lowering       = "lowering"
	ProfileMutant  = "AMK mutants"
	ProfileOperand = "AMK operands"
)

// MutantClasses are the classes of the published mutants, in the published order.
var MutantClasses = []string{"cycle", "partial_shared", "drop_wait", "kv_before_append", "self_wait", "oob_counter",
	"oob_buffer", "capacity_overflow"}

// NumPublished is how many programs of a class there are.
func NumPublished(class string) int {
	classes, _ := population()
	return len(classes[class])
}

// Published returns the n-th program of a class.
func Published(class string, n uint64) Case {
	classes, byName := population()
	p := classes[class][n]
	name := p.Name
	if class == Lowering {
		name = class + "/" + name
	}
	return Case{Name: name, Class: class, Profile: p.program(byName)}
}

// Models returns the programs of a large model, by name.
func Models() map[string]*interchange.Program {
	list, byName := readPublished("models.jsonl.bz2")
	programs := map[string]*interchange.Program{}
	for _, p := range list {
		programs[p.Name] = p.program(byName)
	}
	return programs
}
