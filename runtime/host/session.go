package host

import (
	"errors"
	"time"

	"amkc/runtime/driver"
)

// A Session is a build on a GPU, and the position of the next token. It serves one goroutine at a time.
type Session struct {
	dir   string
	facts *Facts
	info  Info

	dev             *driver.Device
	module          *driver.Module
	decode, ceiling *driver.Function
	stream          *driver.Stream
	mem             *memory
	closed          bool

	spinLimit     time.Duration
	openReference ReferenceOpener

	position int    // of the next token; the cache holds the rows before it
	variant  int    // that the exchange pages were last used by, or noVariant
	epoch    uint64 // steps since the exchange pages were cleared
	checked  bool   // Check has passed
}

// noVariant makes the next launch clear the exchange pages.
const noVariant = -1

// Facts returns what the manifest says about the build.
func (s *Session) Facts() Facts { return *s.facts }

// Info returns what the fatbin says about itself.
func (s *Session) Info() Info { return s.info }

// Device returns what was read about the GPU.
func (s *Session) Device() driver.Facts { return s.dev.Facts() }

// Position returns the position of the next token: the number of tokens decoded since the start or [Session.Reset].
func (s *Session) Position() int { return s.position }

// Reset starts a new sequence at position 0. The cache needs no clearing: no step reads a row at or past its position.
func (s *Session) Reset() { s.position = 0 }

// Close frees the GPU. Closing twice is harmless.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	if s.mem != nil {
		errs = append(errs, s.mem.free(s.dev))
	}
	if s.stream != nil {
		errs = append(errs, s.stream.Close())
	}
	if s.module != nil {
		errs = append(errs, s.module.Close())
	}
	// After a failure that ended the context every call repeats it, and the caller has it already.
	for i, err := range errs {
		if driver.IsSticky(err) {
			errs[i] = nil
		}
	}
	return errors.Join(append(errs, s.dev.Close())...)
}

// room checks that steps more positions exist from the session's position on.
func (s *Session) room(steps int) error {
	if s.closed {
		return ErrClosed
	}
	if s.position+steps > s.info.MaxSeq {
		return &PositionError{First: s.position, Steps: steps, MaxSeq: s.info.MaxSeq}
	}
	return nil
}

// valid checks that every id names a row of the embedding.
func (s *Session) valid(ids ...int) error {
	for _, id := range ids {
		if id < 0 || id >= s.info.Vocab {
			return &TokenError{ID: id, Vocab: s.info.Vocab}
		}
	}
	return nil
}
