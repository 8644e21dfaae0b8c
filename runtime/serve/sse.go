package serve

import (
	"encoding/json"
	"net/http"
)

// A stream is an answer in server-sent events. Its head is sent with the first of them, so that what goes wrong before
// is answered with a status.
type stream struct {
	w     http.ResponseWriter
	begun bool
	err   error // of a write: the client has gone
}

// event sends a line of data.
func (s *stream) event(data []byte) error { return s.put("data: " + string(data) + "\n\n") }

// ping sends a comment, which keeps what is between server and client from giving the connection up.
func (s *stream) ping() error { return s.put(": ping\n\n") }

func (s *stream) put(text string) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("X-Accel-Buffering", "no") // for proxies that would collect what they pass on
		s.w.WriteHeader(http.StatusOK)
	}
	if s.err == nil {
		_, s.err = s.w.Write([]byte(text))
	}
	if s.err == nil {
		s.err = http.NewResponseController(s.w).Flush()
	}
	return s.err
}

// stream answers as the answer comes. An error that it returns is to be answered, as nothing has been sent.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, req *request, g *generation, m message, f form) error {
	out := &stream{w: w}
	choice := func(c any) error {
		m.Choices = []any{c}
		if req.includeUsage {
			m.Usage = json.RawMessage("null")
		}
		return out.event(marshal(m))
	}
	opened := false
	err := g.out.follow(r.Context(), func(d delta) (bool, error) {
		var all []any
		if first := f.opening(); first != nil && !opened {
			all = append(all, first)
		}
		opened = true
		if d.text != "" || len(d.tokens) > 0 {
			all = append(all, f.piece(d.text, d.tokens)...)
		}
		if d.finish != "" {
			all = append(all, f.closing(d.finish)...)
		}
		for _, c := range all {
			if err := choice(c); err != nil {
				return true, err
			}
		}
		return len(all) > 0, nil
	}, s.pingEvery, out.ping)
	switch {
	case out.err != nil || r.Context().Err() != nil:
		return nil // nobody reads on
	case err != nil && !out.begun:
		return err
	case err != nil:
		told := asAPI(err)
		recordOf(r).fail(told, err)
		_ = out.event(told.body())
		return nil
	}
	if req.includeUsage {
		m.Choices, m.Usage = []any{}, g.record.usage()
		_ = out.event(marshal(m))
	}
	_ = out.event([]byte("[DONE]"))
	return nil
}
