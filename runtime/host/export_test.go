package host

import "time"

// PromptTokens is for tests: of n tokens after which one is chosen.
func (s *Session) PromptTokens(n int, want Outputs) int {
	tokens, _ := s.nextPrompt(n, want, true)
	return tokens
}

// LateEpoch is for tests.
func LateEpoch(exchanges int) uint64 { return lateEpoch(exchanges) }

// A ReadingPace is for tests.
type ReadingPace struct{ readingPace }

// Fits is for tests.
func (p *ReadingPace) Fits(within time.Duration, at, least int) int { return p.fits(within, at, least) }

// Read is for tests.
func (p *ReadingPace) Read(tokens, at, least int, took time.Duration) {
	p.read(tokens, at, least, took)
}

// WeightsOnGPU is for tests.
func (s *Session) WeightsOnGPU() ([]byte, error) {
	all := make([]byte, s.info.WeightBytes)
	return all, s.dev.CopyDtoH(all, s.mem.weights, nil)
}
