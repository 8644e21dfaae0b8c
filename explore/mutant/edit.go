package mutant

import "fmt"

// An edit is a mutant of its own: an expression that becomes another, or a statement that comes behind one.
type edit struct {
	kind     Kind
	what     string
	file     string
	function string
	find     string // tokens of the function, which are there once
	to       string // what takes their place
	insert   bool   // it comes behind them instead
}

// findEdits finds the places of edits in a function of a file.
func (f *file) findEdits(path string, fn function) (map[int]*place, error) {
	places := map[int]*place{}
	for i := range edits {
		e := &edits[i]
		if e.file != path || e.function != fn.name {
			continue
		}
		sought, err := scan(e.find)
		if err != nil {
			return nil, err
		}
		found := 0
		for at := fn.body.first; at+len(sought) <= fn.body.last; at++ {
			same := true
			for k, t := range sought {
				same = same && f.tokens[at+k].text == t.text
			}
			if same {
				found++
				places[at] = &place{first: at, last: at + len(sought), edit: e}
			}
		}
		if found != 1 {
			return nil, fmt.Errorf("%s: %s has %q %d times; want the edit %q to find it once", path, fn.name, e.find,
				found, e.what)
		}
	}
	return places, nil
}

var edits = []edit{}
