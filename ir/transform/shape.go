package transform

import "fmt"

// A Count is a number of rows or columns: N, or an unknown multiple of N if a program does not state it.
type Count struct {
	N       int
	Unknown bool
}

// Any is an unknown number.
var Any = Count{N: 1, Unknown: true}

// in returns the rows as blocks of n, or why they are not blocks.
func (c Count) in(n int) (Count, string) {
	if c.Unknown {
		if c.N = c.N / gcd(c.N, n) * n; c.N > maxRows {
			return c, fmt.Sprintf("wants a multiple of %d rows, more than the %d that a tensor may have", c.N, maxRows)
		}
		return c, ""
	}
	if c.N%n != 0 {
		return c, fmt.Sprintf("wants blocks of %d rows, and there are %d", n, c.N)
	}
	return c, ""
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Shape returns the rows and columns that the chain makes of a tensor, or what is wrong with the chain. Unknown counts
// stay unknown, and everything that does not depend on them is checked.
func (c Chain) Shape(rows, cols Count) (Count, Count, error) {
	if len(c) > MaxChain {
		return rows, cols, fmt.Errorf("has %d transforms, want at most %d", len(c), MaxChain)
	}
	for i := range c {
		t := &c[i]
		why := t.Illegal()
		s := t.Spec()
		switch {
		case why != "":
		case s.Interleave && i < len(c)-1:
			why = "stands inside " + c[i+1].String() + ", want it outermost"
		case s.Shape != nil:
			rows, cols, why = s.Shape(t.Ints, rows, cols)
		}
		if why != "" {
			return rows, cols, fmt.Errorf("%v %s", *t, why)
		}
	}
	return rows, cols, nil
}

// Fill returns where each piece begins in the rows of a buffer that the pieces fill one after another, or an error.
// rows are those of the chains' results. If some are unknown, their multiples have to fill the rows that the others
// leave.
func Fill(chains []Chain, rows []Count, want int) (first []int, err error) {
	first = make([]int, len(chains))
	known, least, unit := 0, 0, 0
	for i, c := range chains {
		offset, step := c.interleaved()
		after := i > 0 && chains[i-1].isEven()
		if after != (step == 2 && offset == 1) || c.isEven() && i == len(chains)-1 {
			return nil, fmt.Errorf("piece %d is %v; each even piece is followed by an odd one, and none is without "+
				"the other", i+1, c)
		}
		if after && !rows[i].Unknown && !rows[i-1].Unknown && rows[i].N != rows[i-1].N {
			return nil, fmt.Errorf("piece %d has %d odd rows; want %d, as many as the even ones before", i+1, rows[i].N,
				rows[i-1].N)
		}
		first[i] = known
		if after {
			first[i] = first[i-1] + 1
		}
		if rows[i].Unknown {
			least, unit = least+rows[i].N, gcd(unit, rows[i].N)
		} else {
			known += rows[i].N
		}
	}
	switch left := want - known; {
	case unit == 0 && left != 0:
		return nil, fmt.Errorf("its pieces have %d rows; want %d", known, want)
	case unit > 0 && (left < least || left%unit != 0):
		return nil, fmt.Errorf("its pieces have %d rows and multiples of %d; want %d in all", known, unit, want)
	}
	return first, nil
}

func (c Chain) isEven() bool { return len(c) > 0 && c[len(c)-1].Kind == Even }
