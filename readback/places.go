package readback

import (
	"strconv"
	"strings"
)

// A place is an argument of a call: an address (base + name, or base + name[index]), a page (name, of a
// member), a list of them in braces, a variable, or a number.
type place struct {
	at     pos
	base   string // weights, or base, which are the weights of a layer; "" for anything but an address
	name   string // "" for a number
	index  string // the variable, or the number, that an entry of a list is taken by
	number int
	member *member
	inside []place // the braces of a type
}

// A member says on which of several pages a member of a family lies: (c.layer + number) % pages, or number % pages.
type member struct {
	looped        bool
	number, pages int
}

// places reads arguments up to the end of their list.
func (w *walk) places(end string) []place {
	var out []place
	for w.err == nil {
		out = append(out, w.place(end == ")"))
		if t := w.token(); t.text == end {
			break
		} else if t.text != "," {
			w.fail(t.at, "%v in a list; want a comma or %s", t, end)
		}
	}
	return out
}

// place reads one argument. Braces stand in no others.
func (w *walk) place(braces bool) place {
	p := place{at: w.peek().at}
	if w.peek().kind == number {
		p.number = w.integer()
		return p
	}
	p.name = w.word("a page, an address or a variable").text
	switch next := w.peek().text; {
	case next == ".":
		w.want(".")
		p.name += "." + w.word("a member").text
	case next == "+":
		w.want("+")
		p.base, p.name = p.name, w.word("a constant of model_config.h").text
		w.bases[1] = w.bases[1] || p.base == "base"
		if w.peek().text == "[" {
			w.want("[")
			p.index = w.index()
		}
	case next == "[":
		w.want("[")
		if w.peek().text == "(" {
			p.member = w.member()
		} else {
			p.index = w.index()
		}
	case next == "{" && braces:
		w.want("{")
		p.inside = w.places("}")
	}
	return p
}

// index reads what takes an entry of a list, after its opening bracket: the variable of the layers, or a number.
func (w *walk) index() string {
	index := ""
	if w.peek().kind == number {
		index = strconv.Itoa(w.integer())
	} else if index = w.word("the variable of the layers").text; w.peek().text == "." {
		w.want(".")
		index += "." + w.word("a member").text
	}
	w.want("]")
	return index
}

// member reads the number of a page, after its opening bracket.
func (w *walk) member() *member {
	m := &member{}
	w.want("(")
	if m.looped = w.peek().text == "c"; m.looped {
		w.phrase("c . layer")
		if w.peek().text == "+" {
			w.want("+")
			m.number = w.integer()
		}
	} else {
		m.number = w.integer()
	}
	w.phrase(") %")
	m.pages = w.integer()
	w.want("]")
	return m
}

// is reports whether the place is that variable, or that number.
func (p *place) is(text string) bool { return p.spell() == text }

// spell is the place as it is written.
func (p *place) spell() string {
	switch {
	case p.index != "" && p.base == "":
		return p.name + "[" + p.index + "]"
	case p.index != "":
		return p.base + " + " + p.name + "[" + p.index + "]"
	case p.base != "":
		return p.base + " + " + p.name
	case p.name == "":
		return strconv.Itoa(p.number)
	case p.member != nil:
		return p.name + "[" + p.member.spell() + "]"
	case p.inside != nil:
		return p.name + "{" + spelled(p.inside) + "}"
	}
	return p.name
}

func (m *member) spell() string {
	index := strconv.Itoa(m.number)
	if m.looped {
		index = "c.layer"
		if m.number > 0 {
			index += " + " + strconv.Itoa(m.number)
		}
	}
	return "(" + index + ") % " + strconv.Itoa(m.pages)
}

func spelled(places []place) string {
	out := make([]string, len(places))
	for i := range places {
		out[i] = places[i].spell()
	}
	return strings.Join(out, ", ")
}
