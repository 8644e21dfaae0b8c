package tokenizer

import "fmt"

// postBuilder reads the post-processor. For ids only one thing matters in it: which ids its template puts around the
// text. ByteLevel and its offsets change no id.
type postBuilder struct {
	t    *Tokenizer
	seen bool
}

func (p *postBuilder) add(c component) error {
	switch c.kind {
	case "ByteLevel":
		return nil
	case "TemplateProcessing":
		if p.seen {
			return &UnsupportedError{c.where, "a second TemplateProcessing", "one"}
		}
		p.seen = true
		return p.template(c)
	}
	return c.unsupported("null, TemplateProcessing, ByteLevel and Sequence of them")
}

// template reads the form for a single text; the one for pairs is never used.
func (p *postBuilder) template(c component) error {
	var f struct {
		Single []struct {
			SpecialToken *struct {
				ID string `json:"id"`
			}
			Sequence *struct {
				ID string `json:"id"`
			}
		} `json:"single"`
		SpecialTokens map[string]struct {
			IDs []int `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := c.fields(&f); err != nil {
		return err
	}
	texts := 0
	for i, piece := range f.Single {
		where := fmt.Sprintf("%s.single[%d]", c.where, i)
		switch {
		case piece.Sequence != nil:
			if piece.Sequence.ID != "A" {
				return &UnsupportedError{where, fmt.Sprintf("sequence %q", piece.Sequence.ID), `"A"`}
			}
			texts++
		case piece.SpecialToken != nil:
			token, ok := f.SpecialTokens[piece.SpecialToken.ID]
			if !ok {
				return malformed(where, "%q is not in special_tokens", piece.SpecialToken.ID)
			}
			if len(token.IDs) != 1 {
				return &UnsupportedError{where, fmt.Sprintf("a special token of %d ids", len(token.IDs)), "one id"}
			}
			id := token.IDs[0]
			if _, known := p.t.text(id); !known {
				return malformed(where, "id %d of %q names no token", id, piece.SpecialToken.ID)
			}
			if texts == 0 {
				p.t.before = append(p.t.before, id)
			} else {
				p.t.after = append(p.t.after, id)
			}
		default:
			return malformed(where, "is neither a SpecialToken nor a Sequence")
		}
	}
	if texts != 1 {
		return &UnsupportedError{c.where + ".single", fmt.Sprintf("a template that holds the text %d times", texts),
			"once"}
	}
	return nil
}
