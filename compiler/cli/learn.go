package cli

import (
	"fmt"

	"amkc/search"
	"amkc/search/prior"
)

// learnt is the result of campaign learn in JSON.
type learnt struct {
	Corpus   string       `json:"corpus"`
	Verdicts int          `json:"verdicts"`
	Prior    *prior.Prior `json:"prior"`
}

// learnFrom adds the trials of campaigns to a corpus, and says what the corpus teaches.
func learnFrom(c *call, f *judgeFlags, file string, dirs []string) error {
	key, err := f.publicKey()
	if err != nil {
		return err
	}
	corpus, err := search.Gather(file, dirs, key)
	if err != nil {
		return err
	}
	p := corpus.Learn()
	c.payload = learnt{Corpus: file, Verdicts: len(corpus), Prior: p}
	return c.printf("%s: %d verdicts\n%s%s", file, len(corpus),
		learntText("measured times", "RMS error of the logarithm", "the cost model's", &p.Times),
		learntText("refusals", "logarithmic loss", "the mean rate's", &p.Refusals))
}

func learntText(what, error, without string, l *prior.Learnt) string {
	if l.Error == 0 && l.Without == 0 {
		return fmt.Sprintf("%s: %d rows of %d models, too few to learn from\n", what, l.Rows, l.Models)
	}
	used := "not used"
	if l.Used {
		used = "used"
	}
	return fmt.Sprintf("%s: %d rows of %d models; %s on models that are left out %.4f, %s %.4f: %s\n", what, l.Rows,
		l.Models, error, l.Error, without, l.Without, used)
}
