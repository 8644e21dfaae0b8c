package mutant

import "fmt"

// An edit is a mutant of its own: an expression that becomes another, or a statement that comes after one.
type edit struct {
	kind     Kind
	what     string
	file     string
	function string
	find     string // tokens of the function
	nth      int    // which of the places where they are, from 1; 0: they are there once
	to       string // what takes their place
	insert   bool   // it comes after them instead
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
				if found++; e.nth == 0 || found == e.nth {
					places[at] = &place{first: at, last: at + len(sought), edit: e}
				}
			}
		}
		if e.nth == 0 && found != 1 || found < e.nth {
			return nil, fmt.Errorf("%s: %s has %q %d times; want it where the edit %q looks for it", path, fn.name,
				e.find, found, e.what)
		}
	}
	return places, nil
}

// edits are the faults that this project has had in device code, and numbers of rounds, which no table of names finds.
var edits = []edit{
	// An attention unit polled its words again after its result, whose readers may act on it at once: by then the
	// words may be those of a later exchange on the page.
	{kind: Historical, what: "words polled again after publishing", file: "amk/attention_mma.cuh",
		function: "attend_token", find: "merge_warps<S, H::kWarpSets>(c, u, out, own_value, sinks);", insert: true,
		to: `if (u.owns_row()) {
			for (int i = 0; i < Reader::kQuads; ++i) {
				const UnitQuad<H> q = Reader::quad(c.tid, i);
				if (q.is_there()) words.missing |= 1u << i;
			}
			poll_all(c, words);
		}`},
	// An SM without rows of the vocabulary published its best logit at once, over a page that others were still
	// reading.
	{kind: Historical, what: "an empty task that does not read", file: "amk/gemv_fma.cuh", function: "gemv_fma",
		find: "tiles > 0 || S::kEmpty", nth: 1, to: "tiles > 0"},

	{kind: Count, what: "the tally that is cleared", file: "amk/search.cuh", function: "join_round",
		find: "(turn + 2) % 3", to: "(turn + 1) % 3"},
	{kind: Count, what: "the arrivals of a round", file: "amk/search.cuh", function: "join_round",
		find: "load_acquire(&rounds.joined) - (turn + 1) * kSMs", to: "load_acquire(&rounds.joined) - turn * kSMs"},
	{kind: Count, what: "the round that comes next", file: "amk/search.cuh", function: "join_round",
		find: "pool.turn = turn + 1", to: "pool.turn = turn"},
	{kind: Count, what: "the first round", file: "amk/search.cuh", function: "find_left",
		find: "load_relaxed(&rounds.joined) / kSMs", to: "load_relaxed(&rounds.joined) / kSMs + 1"},
}
