package reply

import (
	"bytes"
	"strings"

	"amkc/text/stopping"
)

// Places of a callReader in an answer.
const (
	inText   = iota
	inWrap   // after the mark in front of all calls
	inHeader // after an opening mark, in front of arguments
	inBody   // of a call, or of a list of them
	between  // after a body
	allText  // there are no calls from here on
)

// maxHeader bounds what stands in front of arguments: the name of a tool, and marks.
const maxHeader = 512

// A callReader finds calls of one form.
type callReader struct {
	*form
	tools *Tools
	at    int
	held  []byte // what has come and is neither text nor read
	given int    // bytes that have come
	spans []Span // of the text in those

	lead   string // what it has taken since the text, to be text again if there is no call
	header string
	scan   scan // of the body
	closed bool // a closing mark has come after the body
	opens  []string
	alone  bool // no text is in front of calls
}

// newCallReader begins inside of a call if the prompt has opened one.
func newCallReader(f *form, prompt string, tools *Tools) *callReader {
	r := &callReader{form: f, tools: tools, opens: f.opens()}
	if open := f.call.open; open != "" && strings.HasSuffix(prompt, open) {
		r.open("")
	}
	return r
}

// maxPart is the length of a part that is searched at once: a search starts again after each marker.
const maxPart = 4096

func (r *callReader) push(part string) (text string, calls []Call) {
	var b strings.Builder
	for {
		n := min(len(part), maxPart)
		r.held = append(r.held, part[:n]...)
		r.given += n
		part = part[n:]
		for more := true; more; {
			var say string
			var found []Call
			say, found, more = r.step()
			b.WriteString(say)
			r.says(say)
			calls = append(calls, found...)
		}
		if part == "" {
			return b.String(), calls
		}
	}
}

// says notes where a text stands: in front of what is held back, to be text or not.
func (r *callReader) says(text string) {
	if text != "" {
		to := r.given - len(r.lead) - len(r.held)
		r.spans = append(r.spans, Span{to - len(text), to})
	}
}

// step reads on as far as the next place. more is false where it depends on what comes.
func (r *callReader) step() (text string, calls []Call, more bool) {
	switch r.at {
	case allText:
		text = string(r.held)
		r.held = nil
		return text, nil, false
	case inText:
		text, more = r.search()
		return text, nil, more
	case inWrap:
		return r.wrapped()
	case inHeader:
		return r.head()
	case inBody:
		return r.body()
	}
	text, more = r.afterBody()
	return text, nil, more
}

// take takes bytes from what is held, for the call.
func (r *callReader) take(n int) {
	r.lead += string(r.held[:n])
	r.held = r.held[n:]
}

// open is after an opening mark.
func (r *callReader) open(lead string) {
	r.lead, r.header, r.scan, r.closed = lead, "", scan{}, false
	r.at = inBody
	if r.form.header != "" {
		r.at = inHeader
	}
}

// fail makes what was taken text, with some of what is held.
func (r *callReader) fail(n int) (text string, calls []Call, more bool) {
	r.take(n)
	text, r.lead = r.lead, ""
	r.at = inText
	if r.bare() {
		r.at = allText
	}
	return text, nil, true
}

// search looks for the first mark of a call.
func (r *callReader) search() (text string, more bool) {
	if r.bare() || r.alone {
		return r.first()
	}
	held := string(r.held)
	first, found := len(held), ""
	for _, mark := range append(r.opens, r.wrap.open) {
		if at := strings.Index(held, mark); mark != "" && at >= 0 &&
			(at < first || at == first && len(mark) > len(found)) {
			first, found = at, mark
		}
	}
	if found == "" {
		hold := stopping.Overlap(held, r.wrap.open)
		for _, mark := range r.opens {
			hold = max(hold, stopping.Overlap(held, mark))
		}
		sure := unspaced(held[:len(held)-hold])
		r.held = r.held[sure:]
		return held[:sure], false
	}
	sure := unspaced(held[:first])
	r.held = r.held[first+len(found):]
	r.enter(held[sure:first+len(found)], found)
	return held[:sure], true
}

// enter is after a mark, with which lead ends.
func (r *callReader) enter(lead, mark string) {
	if r.open(lead); mark == r.wrap.open {
		r.at = inWrap
	}
}

// first looks whether an answer begins with a call, in front of which a mark stands in some forms.
func (r *callReader) first() (text string, more bool) {
	held := string(r.held)
	begins := strings.TrimLeft(held, spaces)
	skip := len(held) - len(begins)
	if skip > maxSpaces {
		r.at = allText
		return "", true
	}
	for _, mark := range append(r.opens, r.wrap.open) {
		switch {
		case mark == "":
		case strings.HasPrefix(begins, mark):
			r.held = r.held[skip+len(mark):]
			r.enter(held[:skip+len(mark)], mark)
			return "", true
		case begun(begins, mark):
			return "", false
		}
	}
	switch {
	case begins == "":
		return "", false
	case !r.bare():
		r.at = allText
		return "", true
	}
	r.open(held[:skip])
	r.held = r.held[skip:]
	return "", true
}

// wrapped looks for the opening mark after the one in front of all calls.
func (r *callReader) wrapped() (string, []Call, bool) {
	held := string(r.held)
	begins := strings.TrimLeft(held, spaces)
	skip := len(held) - len(begins)
	if skip > maxSpaces {
		return r.fail(0)
	}
	wait := begins == ""
	for _, mark := range r.opens {
		if strings.HasPrefix(begins, mark) {
			r.take(skip + len(mark))
			r.open(r.lead)
			return "", nil, true
		}
		wait = wait || begun(begins, mark)
	}
	if wait {
		return "", nil, false
	}
	return r.fail(0)
}

// head reads what is in front of arguments.
func (r *callReader) head() (string, []Call, bool) {
	held := string(r.held[:min(len(r.held), maxHeader)])
	at := strings.Index(held, r.form.header)
	if at < 0 {
		if len(held) == maxHeader || r.bare() && !r.tools.begins(strings.TrimSpace(held)) {
			return r.fail(0)
		}
		return "", nil, false
	}
	name := held[:at]
	if r.named != nil {
		name = r.named(name)
	}
	name = strings.TrimSpace(name)
	if r.prose != "" && name == r.prose { // text that only looks like a call
		r.held, r.lead, r.at = r.held[at+len(r.form.header):], "", inText
		return "", nil, true
	}
	if r.tools == nil || !plausible(name) || r.bare() && !r.tools.has(name) {
		return r.fail(0)
	}
	r.take(at + len(r.form.header))
	r.header, r.at = name, inBody
	return "", nil, true
}

// body reads up to the end of arguments, of a list of calls, or of what is in front of a closing mark.
func (r *callReader) body() (string, []Call, bool) {
	n, how := 0, unfinished
	if r.begins != "" { // what does not is not waited for
		begins := strings.TrimLeft(string(r.held[:min(len(r.held), maxSpaces+len(r.begins))]), spaces)
		if !strings.HasPrefix(begins, r.begins) && !begun(begins, r.begins) {
			return r.fail(0)
		}
	}
	if r.kind == marked {
		from := max(0, r.scan.at-len(r.call.close)+1)
		if at := bytes.Index(r.held[from:], []byte(r.call.close)); at >= 0 {
			n, how = from+at, finished
		}
		r.scan.at = len(r.held)
	} else {
		how = r.scan.value(r.held, r.kind == python)
		n = r.scan.at
	}
	if how == unfinished {
		return "", nil, false
	}
	text := string(r.held[:n])
	if r.kind == marked {
		n += len(r.call.close)
	}
	calls := r.read(r.header, text, r.tools)
	if calls == nil {
		return r.fail(n)
	}
	r.held, r.lead, r.at, r.closed = r.held[n:], "", between, r.kind == marked
	return "", calls, true
}

// afterBody reads what follows a body: its closing mark, another call, or text.
func (r *callReader) afterBody() (text string, more bool) {
	skip := spaces + r.separators
	begins := strings.TrimLeft(string(r.held), skip)
	r.held = r.held[len(r.held)-len(begins):]
	if begins == "" {
		return "", false
	}
	for _, mark := range append(r.closes(), r.wrap.close) {
		switch {
		case mark == "":
		case strings.HasPrefix(begins, mark):
			r.held, r.closed = r.held[len(mark):], true
			return "", true
		case begun(begins, mark):
			return "", false
		}
	}
	for _, mark := range append(r.opens, r.wrap.open) {
		switch {
		case mark == "":
		case strings.HasPrefix(begins, mark):
			r.held = r.held[len(mark):]
			r.enter(mark, mark)
			return "", true
		case begun(begins, mark):
			return "", false
		}
	}
	switch {
	case r.bare(), !r.closed && r.form.header == "" && strings.ContainsRune("{[", rune(begins[0])):
		r.open("")
	default:
		r.at = inText
	}
	return "", true
}

// end ends the answer.
func (r *callReader) end() (text string, calls []Call) {
	rest := string(r.held)
	r.held = nil
	if r.at == inBody && r.kind == marked { // whose closing mark has not come
		if calls = r.read(r.header, rest, r.tools); calls != nil {
			return "", calls
		}
	}
	text, r.lead = r.lead+rest, ""
	r.says(text)
	return text, nil
}
