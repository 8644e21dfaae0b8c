package population

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// Mutant changes one thing in a program: seven times in eight in a small native one made for the purpose, which may
// be one of loops or for passes of several tokens, or have a stage for each task, else in a committed one. Operators go round
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
// shows little. In half of them each task is a stage of its own.
func mutantBase(r *rand.Rand) Case {
	slips := 0
	if r.IntN(4) == 0 {
		slips = 1 + r.IntN(100)
	}
	c := Case{Name: "native"}
	switch r.IntN(10) {
	case 0:
		c = committedBase(r)
	case 1, 2:
		c.Name, c.Program = "looped", makeLooped(r, slips)
	case 3, 4:
		c.Name, c.Program = "tokens", makeTokens(r, slips > 0)
	default:
		c.Program = makeNative(r, slips)
	}
	if chance(r, 2) {
		c.Program = listed(c.Program)
	}
	return c
}

// committedBase draws a committed program, the small ones more often.
func committedBase(r *rand.Rand) Case {
	cases, err := Committed()
	if err != nil {
		panic(err)
	}
	files := smallFiles
	if chance(r, 8) {
		files = largeFiles
	}
	name := "committed/" + pick(r, files)
	return cases[slices.IndexFunc(cases, func(c Case) bool { return c.Name == name })]
}
