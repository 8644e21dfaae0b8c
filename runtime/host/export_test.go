package host

// PromptTokens is for tests.
func (s *Session) PromptTokens(n int, logits bool) int { return s.promptTokens(n, logits) }

// LateEpoch is for tests.
func LateEpoch(exchanges int) uint64 { return lateEpoch(exchanges) }
