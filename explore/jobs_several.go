package explore

import (
	"fmt"
	"slices"

	"amkc/runtime/host"
	"amkc/text/draft"
	"amkc/text/sampling"
)

// rows decodes a text by passes of n rows, by passes that leave one of them unused, and in one call.
func (a *attempt) rows(rows int) error {
	for _, part := range slices.Compact([]int{rows, max(2, rows-1), stepTokens}) {
		err := a.open(host.Options{}, func(s *host.Session) error {
			for ids := range slices.Chunk(a.ids(0, a.tokensOf(stepTokens)), part) {
				if _, err := s.Decode(a.ctx, host.Input{IDs: ids}, a.outputs()); err != nil {
					return err
				}
			}
			return a.cache(s, fmt.Sprintf("parts of %d", part))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prompt decodes a prompt in two parts, of which the first chooses a token, and the second gives logits and hidden
// states, and the tokens after it.
func (a *attempt) prompt(cut int) error {
	return a.open(host.Options{}, func(s *host.Session) error {
		ids := a.ids(0, textTokens)
		known, rest := ids[:textTokens-2], ids[textTokens-2:]
		for _, part := range []struct {
			ids  []int
			want host.Outputs
		}{{ids: known[:cut]}, {known[cut:], a.outputs()}} {
			if len(part.ids) == 0 {
				continue
			}
			next, err := s.Decode(a.ctx, host.Input{IDs: part.ids}, part.want)
			if err != nil {
				return err
			}
			a.chosen(s, next, "")
		}
		if _, err := a.one(s, rest, ""); err != nil {
			return err
		}
		return a.cache(s, "all")
	})
}

// sequences decodes two texts side by side: with logits, by given tokens, and then on their own, in launches of several
// steps.
func (a *attempt) sequences() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		texts := [][]int{a.ids(0, stepTokens), a.other()}
		b := s.NewBatch(host.BatchOptions{})
		given := make([]int, len(texts)) // tokens of each that have been decoded
		ids := make([]int, len(texts))
		for i, text := range texts {
			var err error
			ids[i], _, err = b.Admit(text[:len(text)-1], host.SequenceOptions{Logits: true, Most: 2})
			if err != nil {
				return err
			}
			given[i] = len(text) - 1
		}
		for range 2 {
			tokens, err := b.Step(a.ctx)
			if err != nil {
				return err
			}
			for _, t := range tokens {
				i := slices.Index(ids, t.Sequence)
				name := [...]string{"", otherText}[i]
				a.shared(fmt.Sprintf("logits at position %d%s", given[i]-1, name), bitsOf(t.Logits))
				if given[i] < len(texts[i]) {
					if err := b.Replace(t.Sequence, texts[i][given[i]]); err != nil {
						return err
					}
				}
				given[i]++
			}
		}
		for _, id := range ids {
			b.Retire(id)
		}
		if _, err := a.goOn(s, host.BatchOptions{Steps: chosenTokens}, chosenTokens); err != nil {
			return err
		}
		if err := a.cache(s, "all"); err != nil {
			return err
		}
		if err := a.drawAlongside(s, []string{"a temperature", "a temperature"}, 1, false); err != nil {
			return err
		}
		return a.drawAlongside(s, drawnByTwo, chosenTokens, false)
	})
}

// continued are the texts that are continued side by side, and what they are called.
func (a *attempt) continued() (texts [][]int, names []string) {
	return [][]int{a.ids(0, 3), a.other()}, []string{afterThree, afterOther}
}

// continueBoth continues both texts in one batch, for at most the given steps, and returns what was chosen for each: at
// most that many tokens. Each text draws by its settings; nil: the largest logits are chosen.
func (a *attempt) continueBoth(s *host.Session, o host.BatchOptions, settings []sampling.Options, most, steps int) (
	[][]int, error) {
	b := s.NewBatch(o)
	texts, _ := a.continued()
	ids, chosen := make([]int, len(texts)), make([][]int, len(texts))
	for i, text := range texts {
		wanted := host.SequenceOptions{Most: most}
		if settings != nil {
			wanted.Sampling = &settings[i]
		}
		var err error
		if ids[i], _, err = b.Admit(text, wanted); err != nil {
			return nil, err
		}
	}
	for ended := 0; ended < len(ids) && steps > 0; {
		tokens, err := b.Step(a.ctx)
		if err != nil {
			return nil, err
		}
		if len(tokens) > 0 { // and not a step that has read prompts alone
			steps--
		}
		for _, t := range tokens {
			if t.Err != nil {
				return nil, t.Err
			}
			i := slices.Index(ids, t.Sequence)
			if chosen[i] = append(chosen[i], t.ID); t.Ended {
				ended++
			}
		}
	}
	return chosen, nil
}

// goOn continues the texts by the largest logits.
func (a *attempt) goOn(s *host.Session, o host.BatchOptions, steps int) ([][]int, error) {
	chosen, err := a.continueBoth(s, o, nil, chosenTokens, steps)
	if err != nil {
		return nil, err
	}
	_, names := a.continued()
	for i, name := range names {
		a.sharedTokens(name, chosen[i])
	}
	return chosen, nil
}

// drawAlongside draws what follows the texts, each by settings of its own: on the host, and then by the kernel, in a
// launch of several steps, or by a pass that verifies drafts of which the last is wrong.
func (a *attempt) drawAlongside(s *host.Session, names []string, n int, drafts bool) error {
	texts, after := a.continued()
	all, settings := drawn(), make([]sampling.Options, len(texts))
	g := guesses{vocab: a.facts.Model.Vocab}
	for i, text := range texts {
		settings[i] = all[names[i]]
		after[i] += ", drawn by " + names[i]
		want, err := a.drawOnHost(s, &settings[i], text, n)
		if err != nil {
			return err
		}
		a.sharedTokens(after[i], want)
		g.texts = append(g.texts, slices.Concat(text, want))
	}
	o, steps := host.BatchOptions{Steps: n}, n
	if drafts {
		o, steps = host.BatchOptions{Drafter: g}, 1
	}
	got, err := a.continueBoth(s, o, settings, n, steps)
	for i := range got {
		a.sharedTokens(after[i], got[i])
	}
	return err
}

// drafts continues two texts, and then by a pass that verifies drafts of which the first is right and the last wrong,
// and by one that draws. One such pass: whether more are worth it depends on how long they take.
func (a *attempt) drafts() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		chosen, err := a.goOn(s, host.BatchOptions{}, chosenTokens)
		if err != nil {
			return err
		}
		texts, _ := a.continued()
		g := guesses{vocab: a.facts.Model.Vocab}
		for i := range texts {
			g.texts = append(g.texts, slices.Concat(texts[i], chosen[i]))
		}
		if _, err = a.goOn(s, host.BatchOptions{Drafter: g}, 1); err != nil {
			return err
		}
		if err := a.cache(s, "all"); err != nil {
			return err
		}
		return a.drawAlongside(s, drawnByTwo, chosenTokens, true)
	})
}

// drawnByTwo are the settings that two texts draw by, each by its own.
var drawnByTwo = []string{"min-p and a penalty", "top-p"}

// guesses are drafts that know how texts go on, but for the last token of each draft.
type guesses struct {
	texts [][]int
	vocab int
}

var _ draft.Drafter = guesses{}

// Draft implements [draft.Drafter].
func (g guesses) Draft(text []int, n int) []int {
	for _, known := range g.texts {
		if len(known) <= len(text) || !slices.Equal(known[:len(text)], text) {
			continue
		}
		ids := slices.Clone(known[len(text):min(len(known), len(text)+n)])
		ids[len(ids)-1] = (ids[len(ids)-1] + 1) % g.vocab
		return ids
	}
	return nil
}
