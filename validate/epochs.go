package validate

import "amkc/ir"

// maxExchanges is the number of epochs that a 16-bit tag can tell apart; 0 is that of a cleared page.
const maxExchanges = 1<<16 - 1

// checkEpochs: a reader knows the words of an exchange by its epoch, which counts exchanges and starts over. No step
// has so many that a word left from the last step could have the epoch that a reader waits for.
func (p *Proof) checkEpochs() {
	exchanges := 0
	for i := range p.flat.Counters {
		if p.flat.Counters[i].How == ir.Flagged && len(p.producers.of(i)) > 0 {
			exchanges++
		}
	}
	if exchanges >= maxExchanges {
		p.Errorf(CodeEpochs, "", "there are %d flagged counters, and epochs tell fewer than %d exchanges apart",
			exchanges, maxExchanges).
			Suggest("realise %d of them by counting", exchanges-maxExchanges+1)
	}
}
