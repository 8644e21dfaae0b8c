package cli

import (
	"strconv"
	"strings"

	"amkc/text/tokenizer"
)

// A stream prints tokens as they come: whole characters of text, or ids with commas between them.
type stream struct {
	c       *call
	decoder *tokenizer.Decoder // nil without a tokenizer
	asText  bool
	text    string // of the completion so far
	ids     int    // printed
}

// newStream starts after the prompt, which goes through the decoder as well: what a token looks like may depend on
// the one before it.
func newStream(c *call, tok *tokenizer.Tokenizer, prompt []int, asText bool) *stream {
	s := &stream{c: c, asText: asText}
	if tok != nil {
		s.decoder = tok.NewDecoder(true)
		for _, id := range prompt {
			s.decoder.Push(id)
		}
	}
	return s
}

func (s *stream) emit(id int) error {
	if s.decoder != nil {
		if err := s.write(s.decoder.Push(id)); err != nil {
			return err
		}
	}
	if s.asText {
		return nil
	}
	separator := ","
	if s.ids == 0 {
		separator = ""
	}
	s.ids++
	return s.c.printf("%s%s", separator, strconv.Itoa(id))
}

// end prints what the decoder held back, and ends the last line.
func (s *stream) end() error {
	if s.decoder != nil {
		if err := s.write(s.decoder.Flush()); err != nil {
			return err
		}
	}
	if s.asText && strings.HasSuffix(s.text, "\n") {
		return nil
	}
	return s.c.printf("\n")
}

func (s *stream) write(text string) error {
	s.text += text
	if text == "" || !s.asText || s.c.json {
		return nil
	}
	return s.c.print(text)
}
