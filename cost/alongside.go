package cost

import "time"

// An Alongside is a prediction of a prompt that is read while other sequences decode: in parts, between which each of
// the others gets its next tokens. Times are milliseconds. It is what the host would do if it knew how long a part
// takes; it goes by the part before, and so has somewhat shorter ones.
type Alongside struct {
	Pause      float64 `json:"pause_ms"`  // that the others may wait for a token
	Launch     float64 `json:"launch_ms"` // of them, between parts: one step, or as many as fit
	Parts      int     `json:"parts"`
	Most       int     `json:"most_tokens"` // of a part
	Longest    float64 `json:"longest_ms"`  // that the others wait: a part, and the launch after it
	FirstToken float64 `json:"first_token_ms"`
}

// Between predicts how a prompt of n tokens is read alongside others, of which the cache has the first ones: others may
// wait for a pause, in launches of up to some time. nil: all of it is in the cache, or steps read it. The error is a
// diagnostic.
func (m *PromptModel) Between(cached, tokens int, pause, launch time.Duration) (*Alongside, error) {
	known := tokens - 1
	if m.tokens == 0 || cached >= known {
		return nil, nil
	}
	step, err := m.step.latencyAt(known)
	if err != nil {
		return nil, err
	}
	steps := max(1, int(us(launch)/step))
	out := &Alongside{Pause: us(pause) / 1e3, Launch: float64(steps) * step / 1e3}
	// The host leaves a margin of an eighth (host.Batch.part).
	within := us(pause)*7/8 - float64(steps)*step
	for at, n := cached, promptTokens; at < known; out.Parts++ {
		took, err := m.reading(at, min(n, known-at))
		if err != nil {
			return nil, err
		}
		for took > within && n > promptTokens {
			n -= promptTokens
			if took, err = m.reading(at, min(n, known-at)); err != nil {
				return nil, err
			}
		}
		for at+n < known {
			longer, err := m.reading(at, min(n+promptTokens, known-at))
			if err != nil {
				return nil, err
			}
			if longer > within {
				break
			}
			n, took = n+promptTokens, longer
		}
		read := min(n, known-at)
		out.Most = max(out.Most, read)
		out.Longest = max(out.Longest, took/1e3+out.Launch)
		out.FirstToken += took/1e3 + out.Launch
		at += read
	}
	return out, nil
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// reading is the time, in microseconds, of a part of a prompt: of its passes, and of steps for a rest that is too short
// for one.
func (m *PromptModel) reading(at, tokens int) (float64, error) {
	products, attention, _, end, err := m.passes(at, at+tokens)
	if err != nil || end == at+tokens {
		return products + attention, err
	}
	stepping, err := m.stepping(end, at+tokens-1)
	return products + attention + stepping, err
}
