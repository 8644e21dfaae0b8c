package population

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"amkc/ir"
)

// Native is a small program of the kind that amkc compiles models to, and Looped one of loops in all the forms that
// there are. Both are well formed. A third of them or more are as the template has them; the others have one to three
// slips, in which pages are shared too soon, waits are missing, words are polled late or by nobody, and flagged
// counters are trusted with plain memory.
func Native(seed uint64) Case { return random("native", rand.New(rand.NewPCG(seed, 'n')), seed, 65) }
func Looped(seed uint64) Case { return random("looped", rand.New(rand.NewPCG(seed, 'l')), seed, 55) }

func random(class string, r *rand.Rand, seed uint64, spoilt int) Case {
	care := r.IntN(100) >= spoilt
	p := drawn(r, class, care)
	if !care {
		for range 1 + r.IntN(3) {
			p = slipped(r, p)
		}
	}
	return Case{Name: class + "/" + strconv.FormatUint(seed, 10), Class: class, Program: p}
}

// NativeFlat is the first variant of Native, unrolled.
func NativeFlat(seed uint64) Case {
	p := Native(seed).Program
	return Case{Name: "native-flat/" + strconv.FormatUint(seed, 10), Class: "native", Flat: unrolled(p),
		Target: p.Target}
}

// unrolled is the first variant of a program, which is well formed.
func unrolled(p *ir.Program) *ir.Flat {
	f, diags := ir.Unroll(p, &p.Variants[0])
	if f == nil {
		panic("population: " + p.Variants[0].Name + " does not unroll: " + diags.Error())
	}
	return f
}

// slips are operators that mostly leave a program well formed, so that order and memory decide.
var slips = named("drop-wait", "drop-wait", "drop-wait", "wait-on-another-counter", "flag-a-counter", "swap-in-queue",
	"exchange-sms", "move-task", "rotate-by-iteration", "swap-ops", "merge-pages", "move-to-another-page",
	"swap-pages-of-a-family", "single-for-double-buffer", "attend-to-new-row", "window-before-the-first-row",
	"another-share", "shrink-read", "empty-spans", "step-without-signal", "repeat-task")

// tokenSlips are what passes of several tokens can get wrong, where the others are right.
var tokenSlips = append(named("append-beside-pos", "attend-to-new-row", "drop-wait", "window-before-the-first-row",
	"rows-of-one-split", "rows-of-every-split", "position-off-by-one"), tokenOperators...)

func named(names ...string) (list []Operator) {
	for _, name := range names {
		list = append(list, Operators[slices.IndexFunc(Operators, func(op Operator) bool { return op.Name == name })])
	}
	return list
}

// slipped is a program with one slip more, or as it was if the one that is drawn changes nothing or too much.
func slipped(r *rand.Rand, p *ir.Program) *ir.Program {
	op := pick(r, slips)
	if q := op.applied(r, p); q != nil && ir.Check(q).Err() == nil {
		return q
	}
	return p
}

// Tokens is a small program that takes several sequences, or several rows of each, in a pass. Two in three have a slip,
// in which sequences, rows or positions are taken for one another; the class says which.
func Tokens(seed uint64) Case {
	r := rand.New(rand.NewPCG(seed, 'p'))
	c := Case{Name: "tokens/" + strconv.FormatUint(seed, 10), Class: "tokens"}
	care := chance(r, 3)
	for c.Program == nil {
		p := drawn(r, "tokens", care)
		switch op := pick(r, tokenSlips); {
		case care:
			c.Program = p
		case chance(r, 16): // what the template has without care
			c.Class, c.Program = "tokens: memory by two positions", p
		default:
			c.Class, c.Program = "tokens: "+op.Name, op.applied(r, p)
		}
	}
	return c
}

// Indices is a small program that computes rows of tables. A third of them are made with care.
func Indices(seed uint64) Case {
	r := rand.New(rand.NewPCG(seed, 0x1d8))
	return Case{Name: "indices/" + strconv.FormatUint(seed, 10), Class: "indices",
		Program: drawn(r, "indices", chance(r, 3))}
}

// Streamed is a small program for the kernel, which reads some operands ahead.
func Streamed(seed uint64) Case { return flat("streamed", seed, true) }

// Exchange is a program of a few tasks that publish exchange words. One in three keeps its words in copies.
func Exchange(seed uint64) Case { return flat("exchange", seed, false) }

func flat(class string, seed uint64, kernel bool) Case {
	p := drawn(rand.New(rand.NewPCG(seed, 'f')), class, false)
	return Case{Name: class + "/" + strconv.FormatUint(seed, 10), Class: class, Flat: unrolled(p), Kernel: kernel}
}

// Mutant changes one thing in a program: nine times in ten in a small one made for the purpose, which may be one of
// loops or for passes of several tokens, and else in a committed one. Operators go round with the seed; where one finds
// nothing to change, another base is tried. It panics if the committed programs cannot be read, which is when it runs
// outside the module's tree.
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

// mutantBase draws a program to change, mostly one that is safe: a change to another shows little. In half of them each
// task is a stage of its own.
func mutantBase(r *rand.Rand) Case {
	name := pick(r, []string{"committed", "looped", "looped", "tokens", "tokens", "native", "native", "native",
		"native", "native"})
	c := Case{Name: name}
	if name == "committed" {
		c = committedBase(r)
	} else if c.Program = drawn(r, name, !chance(r, 8)); chance(r, 8) {
		c.Program = slipped(r, c.Program)
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
