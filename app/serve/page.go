package serve

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
)

// pageFiles are the parts of the page. page/marked/marked.js is a release of marked as it was published
// (docs/dependencies.md).
//
//go:embed page/*.html page/*.css page/*.js page/marked/*.js
var pageFiles embed.FS

// pageText is page.html, with the text of the named file in each style and script.
var pageText, pagePolicy = assemblePage()

// assemblePage returns the page, and a policy that lets it run its own scripts and styles, which it names by their
// digests, and talk to this server: nothing else, whatever a model writes. No string becomes markup, in the page's own
// scripts either: with trusted types that no policy makes, a browser refuses to.
func assemblePage() (text, policy string) {
	digests := map[string]string{}
	text = regexp.MustCompile(`<(script|style)>(.*)</`).ReplaceAllStringFunc(pageFile("page.html"),
		func(element string) string {
			opening, rest, _ := strings.Cut(element, ">")
			content := "\n" + pageFile(strings.TrimSuffix(rest, "</"))
			sum := sha256.Sum256([]byte(content))
			digests[opening[1:]] += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
			return opening + ">" + content + "</"
		})
	return text, "default-src 'none'; connect-src 'self'; script-src" + digests["script"] + "; style-src" +
		digests["style"] + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'"
}

func pageFile(name string) string {
	text, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // of the files above
	}
	return string(text)
}

// page is a page to talk to the model with.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-cache") // another release has another one
	send(w, http.StatusOK, "text/html; charset=utf-8", []byte(pageText))
}
