package population

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// Mutant changes one thing in a program: seven times in eight in a small native one made for the purpose, which may
// be one of loops or for passes of several tokens, or in its unrolled form, else in a committed one. Operators go round
// with the seed; where one finds nothing to change, another base is tried. It panics if the committed programs cannot
// be read, which is when it runs outside the module's tree.
func Mutant(seed uint64) Case {
	op := &Operators[seed%uint64(len(Operators))]
	for try := uint64(0); ; try++ {
		r := rand.New(rand.NewPCG(seed, 'm'+try<<8))
		c := mutantBase(r)
		if op.Apply(r, &c) {
			c.Class = op.Name
			c.Name = op.Name + "/" + c.Name + "/" + strconv.FormatUint(seed, 10)
			return c
		}
	}
}

// mutantBase draws a program to change: safe ones more often than Native makes them, because a change to an unsafe one
// shows little.
func mutantBase(r *rand.Rand) Case {
	if r.IntN(8) == 0 {
		return committedBase(r)
	}
	slips := 0
	if r.IntN(4) == 0 {
		slips = 1 + r.IntN(100)
	}
	c := Case{Name: "native"}
	switch r.IntN(9) {
	case 0, 1, 2, 3, 4:
		c.Program = makeNative(r, slips)
	case 5, 6:
		c.Name, c.Program = "looped", makeLooped(r, slips)
	default:
		c.Name, c.Program = "tokens", makeTokens(r, slips > 0)
	}
	if r.IntN(2) == 0 {
		return unrolled(c)
	}
	return c
}

// committedBase draws a committed program, the small ones more often.
func committedBase(r *rand.Rand) Case {
	cases, err := Committed()
	if err != nil {
		panic(err)
	}
	small := r.IntN(8) > 0
	for {
		c := cases[r.IntN(len(cases)-len(passFiles))] // which are the last
		if isSmall(c.Name) == small {
			return c
		}
	}
}

func isSmall(name string) bool {
	for _, file := range smallFiles {
		if strings.HasPrefix(name, "committed/"+file) {
			return true
		}
	}
	return false
}
