package soundness

import (
	"encoding/json"
	"fmt"
)

// A Piece of a run is every Of-th program, from number K-1 on. Pieces can be judged at different times and on different
// machines, and merged: all of a run together count what the run would.
type Piece struct{ K, Of int }

// ParsePiece reads a piece as "K/OF", such as 2/8. The error says what would be accepted.
func ParsePiece(s string) (p Piece, err error) {
	if n, err := fmt.Sscanf(s, "%d/%d", &p.K, &p.Of); n != 2 || err != nil || p.String() != s || p.K < 1 || p.K > p.Of {
		return Piece{}, fmt.Errorf("%q is not a piece of a run; want K/OF with K from 1 to OF, such as 2/8", s)
	}
	return p, nil
}

func (p Piece) String() string { return fmt.Sprintf("%d/%d", p.K, p.Of) }

// every returns the elements of a list that are of a piece.
func every[T any](list []T, p Piece) []T {
	out := make([]T, 0, len(list)/p.Of+1)
	for i := p.K - 1; i < len(list); i += p.Of {
		out = append(out, list[i])
	}
	return out
}

// Counted is what a piece of a run has counted, as a file keeps it.
type Counted struct {
	Programs int // of the run, as it was asked for
	Piece    Piece
	Report   *Report
}

// Merge adds up all pieces of a run, each given as the JSON text of a [Counted]. It refuses pieces of several runs, and
// fewer or more than all pieces of one.
func Merge(files map[string][]byte) (programs int, rep *Report, err error) {
	rep = &Report{Strict: map[string]map[string]int{}, Examples: map[string]string{}}
	byClass, from, of := map[string]*Row{}, map[int]string{}, 0
	for name, text := range files {
		var c Counted
		if err := json.Unmarshal(text, &c); err != nil || c.Report == nil || c.Piece.K < 1 || c.Piece.K > c.Piece.Of {
			return 0, nil, fmt.Errorf("%s: want what a piece of a run has counted", name)
		}
		if len(from) == 0 {
			programs, of = c.Programs, c.Piece.Of
		}
		switch other := from[c.Piece.K]; {
		case c.Programs != programs || c.Piece.Of != of:
			return 0, nil, fmt.Errorf("%s: piece %v of a run of %d programs, and others are of %d pieces of %d", name,
				c.Piece, c.Programs, of, programs)
		case other != "":
			return 0, nil, fmt.Errorf("%s and %s: both are piece %v", name, other, c.Piece)
		}
		from[c.Piece.K] = name
		rep.merge(byClass, c.Report)
	}
	if len(from) < of || of == 0 {
		return 0, nil, fmt.Errorf("%d of the %d pieces of a run; want all", len(from), of)
	}
	rep.rows(byClass)
	return programs, rep, nil
}

// merge adds another report; the rows are collected by class.
func (rep *Report) merge(byClass map[string]*Row, o *Report) {
	for _, r := range o.Rows {
		key := r.Group + "/" + r.Class
		if byClass[key] == nil {
			byClass[key] = &Row{Group: r.Group, Class: r.Class}
		}
		byClass[key].add(&r)
	}
	for code, classes := range o.Strict {
		if rep.Strict[code] == nil {
			rep.Strict[code] = map[string]int{}
		}
		for class, n := range classes {
			rep.Strict[code][class] += n
		}
	}
	for code, name := range o.Examples {
		if known := rep.Examples[code]; known == "" || compareNames(name, known) < 0 {
			rep.Examples[code] = name
		}
	}
}
