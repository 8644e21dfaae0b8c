package passes

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// PageColor is the pass that assigns exchange buffers to pages. Two buffers may share a page if every access of one
// comes before every write of the other; pages are then colours of the interference graph. The order is that of the
// unrolled program, so that a family of buffers is assigned to one page, or to two alternating ones, wherever that is
// safe.
var PageColor = Pass{
	Name:  "pagecolor",
	Doc:   "lay exchange buffers onto shared pages by colouring their interference graph",
	After: []string{"assign", "loop"},
	Run:   runPageColor,
}

// PageReport has the savings of page colouring. Bytes include every copy.
type PageReport struct {
	Buffers, Pages          int
	BytesBefore, BytesAfter int
}

func (r PageReport) String() string {
	return fmt.Sprintf("%d exchange buffers on %d pages, %d bytes instead of %d", r.Buffers, r.Pages, r.BytesAfter,
		r.BytesBefore)
}

func runPageColor(s *State) error {
	p := s.Program
	flats, err := unrolledWords(p)
	if err != nil {
		return err
	}
	narrow := keepPolledCopies(p, flats)
	conflicts, err := interference(flats)
	if err != nil {
		return err
	}
	apart := resultsOfUnits(p)
	var slots []slot
	for _, f := range exchangeFamilies(p) {
		slots = append(slots, foldFamily(f, knobs.PageAllocation.Of(&p.Config), conflicts)...)
	}
	p.Pages = carriedPages(p)
	carried := len(p.Pages)
	onto := colour(slots, knobs.PageAllocation.Of(&p.Config), func(a, b *slot) bool {
		return narrow[a.buf.Name] == narrow[b.buf.Name] && apart[a.buf.Name] == apart[b.buf.Name] &&
			compatible(a, b, conflicts)
	})
	s.Pages = PageReport{}
	for i, sl := range slots {
		if carried+onto[i] == len(p.Pages) {
			p.Pages = append(p.Pages, ir.Page{Name: fmt.Sprintf("xchg%d", onto[i]), Space: sl.buf.Space,
				Layout: sl.buf.Layout})
		}
		page := &p.Pages[carried+onto[i]]
		page.Bytes = max(page.Bytes, sl.bytes())
		for _, buf := range sl.runs {
			if sl.first {
				buf.Pages = nil
			}
			buf.Pages = append(buf.Pages, page.Name)
		}
		s.Pages.Buffers += len(sl.members)
	}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; isExchange(b) {
			s.Pages.BytesBefore += max(1, b.Count) * b.Bytes() * max(1, b.Layout.Copies)
		}
	}
	for _, page := range p.Pages[carried:] {
		s.Pages.BytesAfter += page.Bytes * max(1, page.Layout.Copies)
	}
	s.Pages.Pages = len(p.Pages) - carried
	return nil
}

// resultsOfUnits names the exchanges that units of attention or a convolution write in a pass of several tokens. They
// share no page with others: a product of many columns reads its vector again for each flush of such a pass, after a
// unit may have written (codegen, checkReadAgain).
func resultsOfUnits(p *ir.Program) map[string]bool {
	out := map[string]bool{}
	if p.Pass.NumTokens() == 1 {
		return out
	}
	buffers := rewrite.NewBuffers(p)
	for i := range p.Variants {
		rewrite.EachStage(&p.Variants[i], func(s *ir.Stage, loop *ir.Loop) {
			if !attends(s) && !has(s, ir.ShortConv) {
				return
			}
			for k := range s.Ops {
				for _, o := range s.Ops[k].Out {
					if b := buffers.Find(o.Buf, ir.FirstIndex(s, loop)); b != nil {
						out[b.Name] = true
					}
				}
			}
		})
	}
	return out
}

// carriedPages returns the pages of chains that pass loop has put on chip.
func carriedPages(p *ir.Program) []ir.Page {
	used := map[string]bool{}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; !isExchange(b) {
			for _, name := range b.Pages {
				used[name] = true
			}
		}
	}
	return slices.DeleteFunc(p.Pages, func(page ir.Page) bool { return !used[page.Name] })
}

// An exchangeFamily is a buffer or family of exchange buffers, and the indices of its members in the unrolled program.
// A family of which layers have members of several lengths is declared in runs, one after another.
type exchangeFamily struct {
	runs    []*ir.Buffer
	members []int
}

// goesOn reports whether a declared family is the next run of one.
func (f *exchangeFamily) goesOn(b *ir.Buffer) bool {
	last := f.runs[len(f.runs)-1]
	return b.Count > 0 && last.Count > 0 && b.Name == last.Name && b.Step == last.Step && b.Layout == last.Layout &&
		b.First == last.Last()+max(1, b.Step)
}

// exchangeFamilies finds the buffers that are to be laid onto pages.
func exchangeFamilies(p *ir.Program) []exchangeFamily {
	var out []exchangeFamily
	of := 0
	for _, m := range ir.BufferDirectory(p).Members() {
		b := &p.Buffers[m.Declared]
		if !isExchange(b) {
			continue
		}
		if m.K == 0 {
			of = slices.IndexFunc(out, func(f exchangeFamily) bool { return f.goesOn(b) })
			if of < 0 {
				of, out = len(out), append(out, exchangeFamily{})
			}
			out[of].runs = append(out[of].runs, b)
		}
		out[of].members = append(out[of].members, m.Number)
	}
	return out
}

func isExchange(b *ir.Buffer) bool {
	return b.Kind == ir.Activation && (b.Space == ir.GlobalScratch || b.Space == ir.PeerScratch) &&
		b.Layout.Words()
}

// A slot is what goes onto one page as a whole: all members of a family, or every other one.
type slot struct {
	buf     *ir.Buffer   // the first of the runs
	runs    []*ir.Buffer // of its family
	members []int
	first   bool // of its family
}

// bytes is the size of its largest member.
func (s *slot) bytes() int {
	most := 0
	for _, b := range s.runs {
		most = max(most, b.Bytes())
	}
	return most
}

// foldFamily divides a family into as few slots as its members allow: one, two alternating ones, or one each.
func foldFamily(f exchangeFamily, allocation string, conflicts func(a, b int) bool) []slot {
	period := len(f.members)
	if allocation != knobs.PagesApart {
		for _, try := range []int{1, 2} {
			if try < period && !foldConflicts(f.members, try, conflicts) {
				period = try
			}
		}
	}
	slots := make([]slot, period)
	for i, m := range f.members {
		turn := f.runs[0].Turn(i) % period // runs go on where the one before ends
		sl := &slots[turn]
		sl.buf, sl.runs, sl.first = f.runs[0], f.runs, turn == 0
		sl.members = append(sl.members, m)
	}
	return slots
}

func foldConflicts(members []int, period int, conflicts func(a, b int) bool) bool {
	for i := range members {
		for j := i % period; j < i; j += period {
			if conflicts(members[i], members[j]) {
				return true
			}
		}
	}
	return false
}

// colour gives every slot a page, numbered by first use in slot order. Slots are coloured from the largest to the
// smallest, so that a small buffer fills a page that a large one has already made.
func colour(slots []slot, allocation string, together func(a, b *slot) bool) []int {
	order := make([]int, len(slots))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(slots[j].bytes(), slots[i].bytes()) })
	var pages [][]int
	colours := make([]int, len(slots))
	for _, i := range order {
		fits := func(page []int) bool {
			return !slices.ContainsFunc(page, func(j int) bool { return !together(&slots[i], &slots[j]) })
		}
		k := -1
		if allocation == knobs.PagesByColour {
			k = slices.IndexFunc(pages, fits)
		}
		if k < 0 {
			k = len(pages)
			pages = append(pages, nil)
		}
		pages[k] = append(pages[k], i)
		colours[i] = k
	}
	number := map[int]int{}
	for i, c := range colours {
		if _, seen := number[c]; !seen {
			number[c] = len(number)
		}
		colours[i] = number[c]
	}
	return colours
}

// compatible reports whether two slots may share a page.
func compatible(a, b *slot, conflicts func(a, b int) bool) bool {
	if a.buf.Layout != b.buf.Layout || a.buf.Space != b.buf.Space {
		return false
	}
	for _, m := range a.members {
		for _, n := range b.members {
			if conflicts(m, n) {
				return false
			}
		}
	}
	return true
}
