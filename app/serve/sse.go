package serve

import "net/http"

// A stream is an answer in server-sent events. Its head is sent with the first of them, so that what goes wrong before
// is answered with a status.
type stream struct {
	w     http.ResponseWriter
	begun bool
	err   error // of a write: the client has gone
}

// An event is one of a stream.
type event struct {
	name string // empty: none is sent
	data []byte
}

// send writes events and flushes once after them: tokens of one launch come together, and a write of its own for each
// would make the last of them late.
func (s *stream) send(all []event) error {
	if len(all) == 0 {
		return s.err
	}
	var text []byte
	for _, e := range all {
		if e.name != "" {
			text = append(append(append(text, "event: "...), e.name...), '\n')
		}
		text = append(append(append(text, "data: "...), e.data...), "\n\n"...)
	}
	return s.put(text)
}

// ping sends a comment, which keeps proxies from closing the connection.
func (s *stream) ping() error { return s.put([]byte(": ping\n\n")) }

func (s *stream) put(text []byte) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("X-Accel-Buffering", "no") // for proxies that would collect what they pass on
		s.w.WriteHeader(http.StatusOK)
	}
	if s.err == nil {
		_, s.err = s.w.Write(text)
	}
	if s.err == nil {
		s.err = http.NewResponseController(s.w).Flush()
	}
	return s.err
}

// stream answers as the answer comes. An error that it returns is to be answered, as nothing has been sent.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, from *outbox, f form) error {
	out := &stream{w: w}
	opened := map[int]bool{}
	err := from.follow(r.Context(), func(deltas []delta) (bool, error) {
		var all []event
		for _, d := range deltas {
			if !opened[d.answer] {
				all, opened[d.answer] = append(all, f.opening(d.answer)...), true
			}
			if d.text != "" || len(d.tokens) > 0 {
				all = append(all, f.piece(d)...)
			}
			if d.finish != "" {
				all = append(all, f.closing(d.answer, d.finish)...)
			}
		}
		return len(all) > 0, out.send(all)
	}, s.pingEvery, out.ping)
	if err == nil {
		err = out.send(f.ending(recordOf(r).usage()))
	}
	switch {
	case out.err != nil || r.Context().Err() != nil: // nobody reads on
	case err != nil && !out.begun:
		return err
	case err != nil:
		told := asAPI(err)
		recordOf(r).fail(told, err)
		_ = out.send(f.failed(told))
	}
	return nil
}
