// Package stopping finds stop strings in a text that comes in parts. It is copied into every launcher, imports the
// standard library only, and must not import any package of amkc.
package stopping

import "strings"

// A Finder finds stop strings in a text that comes in parts, and holds back what may be the beginning of one. Which
// one is found, and where, does not depend on the parts: it is the one that is complete first, and the longest of those
// that are complete with the same byte.
type Finder struct {
	Stops []string // none of them empty
	Found string   // the one that was found
	held  string   // what has come and may be the beginning of a stop string
}

// Push takes the next part. It returns the text that is certainly before any stop string, and whether one was found:
// the text then ends before it.
func (s *Finder) Push(part string) (text string, found bool) {
	s.Found = ""
	all := s.held + part
	for end := len(s.held) + 1; end <= len(all); end++ {
		for _, stop := range s.Stops {
			if strings.HasSuffix(all[:end], stop) && len(stop) > len(s.Found) {
				s.Found = stop
			}
		}
		if s.Found != "" {
			s.held = ""
			return all[:end-len(s.Found)], true
		}
	}
	hold := 0
	for _, stop := range s.Stops {
		hold = max(hold, Overlap(all, stop))
	}
	s.held = all[len(all)-hold:]
	return all[:len(all)-hold], false
}

// Flush ends the text and returns what was held back.
func (s *Finder) Flush() string {
	text := s.held
	s.held = ""
	return text
}

// Overlap is the number of bytes at the end of a text that may be the beginning of another one.
func Overlap(text, other string) int {
	for n := min(len(other)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, other[:n]) {
			return n
		}
	}
	return 0
}
