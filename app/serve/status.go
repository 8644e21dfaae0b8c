package serve

import (
	"bytes"
	"net/http"
	"slices"

	"amkc/text/chat"
	"amkc/text/jinja"
)

// A card is what the list of models says of one.
type card struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	MaxLen  int    `json:"max_model_len"`

	// What the page has to know, and any client may.
	Chat           bool             `json:"chat"`                      // it has a chat template
	ThinkingSwitch string           `json:"thinking_switch,omitempty"` // the variable of the template that does
	Defaults       samplingDefaults `json:"defaults"`
}

// samplingDefaults are options of a request that says nothing of them.
type samplingDefaults struct {
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p"`
}

// card is that of a name of the model.
func (s *Server) card(name string) card {
	c := card{ID: name, Object: "model", Created: s.started.Unix(), OwnedBy: "amkc",
		MaxLen: s.engine.Limits().MaxSeq, Defaults: samplingDefaults{s.sampling.Temperature, s.sampling.TopP}}
	if s.chat != nil {
		c.Chat, c.ThinkingSwitch = true, s.thinks()
	}
	return c
}

// thinkingSwitch is the variable that turns thinking on and off in the answer to a message.
func (s *Server) thinkingSwitch() string {
	hello := &jinja.Dict{}
	hello.Set("role", "user")
	hello.Set("content", "hello")
	name, err := s.chat.Thinking(&chat.Conversation{Messages: jinja.NewList(hello)}, chat.Options{Now: s.now()})
	if err != nil {
		return "" // a template that takes no such conversation
	}
	return name
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	var all []card
	for _, name := range s.called {
		all = append(all, s.card(name))
	}
	send(w, http.StatusOK, "application/json", marshal(struct {
		Object string `json:"object"`
		Data   []card `json:"data"`
	}{"list", all}))
}

func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("model")
	if !slices.Contains(s.called, name) {
		refuse(w, r, s.noModel(name))
		return
	}
	send(w, http.StatusOK, "application/json", marshal(s.card(name)))
}

// health is 200 where a request would be decoded, and 503 where the server is shutting down or the last step failed.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	running, waiting, failed, stopping := s.scheduler.load()
	status, code := "ok", http.StatusOK
	switch {
	case stopping:
		status, code = "shutting down", http.StatusServiceUnavailable
	case failed != nil:
		status, code = "decoding failed", http.StatusServiceUnavailable
	}
	sendHealth(w, code, status, running, waiting)
}

func sendHealth(w http.ResponseWriter, code int, status string, running, waiting int) {
	send(w, code, "application/json", marshal(struct {
		Status  string `json:"status"`
		Running int    `json:"running"`
		Waiting int    `json:"waiting"`
	}{status, running, waiting}))
}

func (s *Server) showMetrics(w http.ResponseWriter, _ *http.Request) {
	running, waiting, _, _ := s.scheduler.load()
	var b bytes.Buffer
	s.metrics.write(&b, running, waiting)
	send(w, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", b.Bytes())
}
