package serve

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// AnyOrigin allows pages of all origins.
const AnyOrigin = "*"

// ParseOrigin reads an origin whose pages may use a server, as browsers write it, or [AnyOrigin].
func ParseOrigin(text string) (string, error) {
	if text == AnyOrigin {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Hostname() == "" || (url.URL{Scheme: u.Scheme, Host: u.Host}) != *u {
		return "", errors.New("want an origin, as https://app.example or http://localhost:3000, or *")
	}
	host, scheme := strings.ToLower(u.Hostname()), strings.ToLower(u.Scheme)
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "", errors.New("want the name of the host in ASCII, as browsers send it: xn--...")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if host = ip.String(); ip.Is6() {
			host = "[" + host + "]"
		}
	}
	port := strings.TrimLeft(u.Port(), "0")
	if port == "" || port == defaultPorts[scheme] {
		return scheme + "://" + host, nil
	}
	return scheme + "://" + host + ":" + port, nil
}

// defaultPorts are those that browsers leave out of an origin.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// allowOrigin tells the browser of a page of an allowed origin that the page may read the answer. Without it browsers
// keep answers from pages of other origins.
func (s *Server) allowOrigin(w http.ResponseWriter, r *http.Request) {
	if len(s.origins) == 0 {
		return
	}
	h := w.Header()
	switch origin := r.Header.Get("Origin"); {
	case slices.Contains(s.origins, AnyOrigin):
		h.Set("Access-Control-Allow-Origin", AnyOrigin)
	case slices.Contains(s.origins, origin):
		h.Set("Access-Control-Allow-Origin", origin)
		fallthrough
	default:
		h.Add("Vary", "Origin")
	}
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
}

// preflight answers a browser that asks whether a page may send a request, and reports whether it was asked. Any header
// may be sent: clients have some of their own.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" ||
		w.Header().Get("Access-Control-Allow-Origin") == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", method)
	if headers := r.Header.Get("Access-Control-Request-Headers"); headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
