package serve

import (
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"net/http"
	"strings"
)

//go:embed page.html
var pageText string

// pagePolicy lets the page run its own script and style, which it names by their digests, and talk to this server:
// nothing else, whatever a model writes.
var pagePolicy = "default-src 'none'; connect-src 'self'; script-src " + digestOf("script") + "; style-src " +
	digestOf("style") + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// digestOf is the source expression for the text of an element of the page.
func digestOf(element string) string {
	_, text, _ := strings.Cut(pageText, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page is a page to talk to the model with.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	send(w, http.StatusOK, "text/html; charset=utf-8", []byte(pageText))
}
