package serve

import (
	"crypto/sha256"
	"slices"
	"sync"

	"amkc/runtime/grammar"
)

// grammars keeps those of the last requests, with what has been found of them: which tokens may follow takes tens of
// milliseconds to find for a large vocabulary, and clients send the same tools and schemas again and again.
type grammars struct {
	mu   sync.Mutex
	last []keptGrammar // the one that was used last in front
}

type keptGrammar struct {
	digest [sha256.Size]byte // of what it is of
	*grammar.Grammar
}

// mostGrammars are kept. One may come to 512 masks, which are 8 MB for 2^17 tokens.
const mostGrammars = 4

// of returns the grammar of something of a kind, which has to be all that it depends on besides the model.
func (k *grammars) of(kind string, what any, make func() (*grammar.Grammar, error)) (*grammar.Grammar, error) {
	digest := sha256.Sum256(marshal([]any{kind, what}))
	if g := k.used(digest, nil); g != nil {
		return g, nil
	}
	g, err := make()
	if err != nil {
		return nil, err
	}
	return k.used(digest, g), nil
}

// used puts a grammar in front: the one that is there, or a new one, if that is not nil.
func (k *grammars) used(digest [sha256.Size]byte, g *grammar.Grammar) *grammar.Grammar {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.last, func(kept keptGrammar) bool { return kept.digest == digest })
	switch {
	case at >= 0:
		g = k.last[at].Grammar
		k.last = slices.Delete(k.last, at, at+1)
	case g == nil:
		return nil
	}
	k.last = slices.Insert(k.last, 0, keptGrammar{digest, g})
	k.last = k.last[:min(len(k.last), mostGrammars)]
	return g
}
