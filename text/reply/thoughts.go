package reply

import (
	"strings"

	"amkc/text/stopping"
)

// A thoughtForm is how models of some families write what they think before they answer.
type thoughtForm struct {
	marks
	answer marks // around the answer itself; may be empty
}

// thoughtForms are those that are known.
var thoughtForms = []*thoughtForm{
	{marks: marks{"<think>", "</think>"}, answer: marks{"<response>", "</response>"}}, // the latter of Granite 3.3
	{marks: marks{"<seed:think>", "</seed:think>"}},                                   // Seed-OSS
	{marks: marks{"[THINK]", "[/THINK]"}},                                             // Magistral, Ministral 3
	{marks: marks{"<|START_THINKING|>", "<|END_THINKING|>"},
		answer: marks{"<|START_RESPONSE|>", "<|END_RESPONSE|>"}}, // Command R7B, Command A
	{marks: marks{"<|inner_prefix|>", "<|inner_suffix|>"}},                   // Apertus
	{marks: marks{"<thought>", "</thought>"}},                                // EXAONE Deep
	{marks: marks{"<think:opensource>", "</think:opensource>"}},              // Hunyuan 3
	{marks: marks{"<mm:think>", "</mm:think>"}},                              // MiniMax-M3
	{marks: marks{"Here is my thought process:", "Here is my response:"}},    // Granite 3.2
	{marks: marks{"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"}}, // Apriel
}

// Places of a thoughtReader in an answer.
const (
	atBegin   = iota // nothing but spaces has come
	inThought        // after the opening mark
	afterMark        // after the closing mark: nothing but spaces has come since
	inAnswer
)

// A thoughtReader finds the thought that an answer may begin with. Spaces at its borders belong to neither.
type thoughtReader struct {
	*thoughtForm
	at      int
	held    string
	written bool // something of the thought is out
}

// newThoughtReader begins inside of a thought if the prompt has opened one.
func newThoughtReader(t *thoughtForm, prompt string) *thoughtReader {
	r := &thoughtReader{thoughtForm: t}
	if strings.HasSuffix(strings.TrimRight(prompt, spaces), t.open) {
		r.at = inThought
	}
	return r
}

// after goes on where an answer has begun with some text.
func (r *thoughtReader) after(text string) {
	text = strings.TrimLeft(text, spaces)
	thought, opened := strings.CutPrefix(text, r.open)
	switch {
	case text == "" || r.at == inThought:
	case opened && !strings.Contains(thought, r.close):
		r.at, r.written = inThought, strings.Trim(thought, spaces) != ""
	default:
		r.at = inAnswer
	}
}

// CloseThought closes the thought that a prompt has opened, if it has, so that the answer does not begin with one.
func (f *Format) CloseThought(prompt string) string {
	if f.thoughts != nil && strings.HasSuffix(strings.TrimRight(prompt, spaces), f.thoughts.open) {
		return strings.TrimRight(prompt, spaces) + "\n\n" + f.thoughts.close + "\n\n"
	}
	return prompt
}

// maxSpaces is how many spaces are held back, which may stand in front of a mark.
const maxSpaces = 64

// unspaced is how long a text is without spaces at its end, but for those before the last 64.
func unspaced(text string) int {
	least := max(0, len(text)-maxSpaces)
	return least + len(strings.TrimRight(text[least:], spaces))
}

func (r *thoughtReader) push(part string) (thought, text string) {
	r.held += part
	for {
		switch r.at {
		case atBegin, afterMark:
			begins := strings.TrimLeft(r.held, spaces)
			far := len(r.held)-len(begins) > maxSpaces
			switch {
			case far && r.at == atBegin:
			case r.at == atBegin && strings.HasPrefix(begins, r.open):
				r.at, r.held = inThought, begins[len(r.open):]
				continue
			case r.answer.open != "" && strings.HasPrefix(begins, r.answer.open):
				r.at, r.held = inAnswer, strings.TrimLeft(begins[len(r.answer.open):], spaces)
				continue
			case r.at == atBegin && begun(begins, r.open), begun(begins, r.answer.open), begins == "":
				if r.at == afterMark {
					r.held = begins
				}
				return thought, text
			}
			if r.at == afterMark {
				r.held = begins
			}
			r.at = inAnswer
		case inThought:
			if !r.written {
				r.held = strings.TrimLeft(r.held, spaces)
			}
			i := strings.Index(r.held, r.close)
			if i < 0 {
				sure := unspaced(r.held[:len(r.held)-stopping.Overlap(r.held, r.close)])
				thought += r.held[:sure]
				r.held, r.written = r.held[sure:], r.written || sure > 0
				return thought, text
			}
			thought += r.held[:unspaced(r.held[:i])]
			r.at, r.held = afterMark, r.held[i+len(r.close):]
		default:
			sure := len(r.held) - r.closing()
			text += r.held[:sure]
			r.held = r.held[sure:]
			return thought, text
		}
	}
}

// closing is how many bytes at the end may be the mark after the answer.
func (r *thoughtReader) closing() int {
	if r.answer.close == "" {
		return 0
	}
	trimmed := r.held[:unspaced(r.held)]
	if strings.HasSuffix(trimmed, r.answer.close) {
		return len(r.held) - len(trimmed) + len(r.answer.close)
	}
	return stopping.Overlap(r.held, r.answer.close)
}

func (r *thoughtReader) end() (thought, text string) {
	held := r.held
	r.held = ""
	switch r.at {
	case inThought:
		return strings.TrimRight(held, spaces), ""
	case inAnswer:
		if trimmed := strings.TrimRight(held, spaces); r.answer.close != "" && trimmed == r.answer.close {
			return "", ""
		}
	}
	return "", held
}
