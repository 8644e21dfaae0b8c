package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"amkc/runtime/infile"
	"amkc/text/grammar"
)

// An apiError is an answer that refuses a request, in the shape that clients of OpenAI expect.
type apiError struct {
	status  int
	kind    string
	code    string // empty: null
	param   string // the field of the request that is at fault; empty: null
	message string
	retry   int // seconds after which to try again; 0: not said
}

func (e *apiError) Error() string { return e.message }

// Kinds of errors, as clients know them.
const (
	kindRequest = "invalid_request_error"
	kindBusy    = "rate_limit_error"
	kindServer  = "server_error"
)

// invalid is what is wrong with a field of a request.
func invalid(param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: kindRequest, code: "invalid_value", param: param,
		message: fmt.Sprintf(format, args...)}
}

// unsupported is a field, or a value of one, that would change the answer and is not supported.
func unsupported(param, format string, args ...any) *apiError {
	e := invalid(param, format, args...)
	e.code = "unsupported_parameter"
	return e
}

// schemaFault is a schema that cannot constrain an answer. Its code says whether that is for its contents, for its
// size, or because it is not a schema.
func schemaFault(param string, refused *grammar.Error, format string, args ...any) *apiError {
	e := invalid(param, format, append(args, infile.Reason(refused))...)
	e.code = string(refused.Kind)
	return e
}

var (
	errFull = &apiError{status: http.StatusTooManyRequests, kind: kindBusy, code: "queue_full", retry: 1,
		message: "as many requests are waiting as may; try again later"}
	errStopping = &apiError{status: http.StatusServiceUnavailable, kind: kindServer, code: "shutting_down", retry: 5,
		message: "the server is shutting down"}
	errLoading = &apiError{status: http.StatusServiceUnavailable, kind: kindServer, code: "loading", retry: 5,
		message: "the model is being loaded; try again later"}
	errInternal = &apiError{status: http.StatusInternalServerError, kind: kindServer, code: "internal_error",
		message: "the server failed to answer; its log says more under the id of this request"}
	errHost = &apiError{status: http.StatusMisdirectedRequest, kind: kindRequest, code: "unknown_host",
		message: "this server answers at its address and as localhost; to reach it by another name, it needs --api-key"}
	errKey = &apiError{status: http.StatusUnauthorized, kind: kindRequest, code: "invalid_api_key",
		message: "the API key is missing or wrong; want it as Authorization: Bearer KEY, or as X-Api-Key: KEY"}
)

// asAPI returns the answer for an error; what nobody foresaw is told to the log alone.
func asAPI(err error) *apiError {
	if e, ok := err.(*apiError); ok {
		return e
	}
	return errInternal
}

// body is the error as it is sent.
func (e *apiError) body() []byte {
	type fields struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	out := fields{Message: e.message, Type: e.kind}
	if e.param != "" {
		out.Param = &e.param
	}
	if e.code != "" {
		out.Code = &e.code
	}
	text, err := json.Marshal(map[string]fields{"error": out})
	if err != nil {
		panic(err) // strings can always be written
	}
	return text
}

// refuse answers with an error. It does nothing where an answer has begun, or where the client has gone.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if err == errGone {
		return
	}
	e := asAPI(err)
	recordOf(r).fail(e, err)
	e.send(w, r)
}

// send answers with the error, in the form of the API that the path is of.
func (e *apiError) send(w http.ResponseWriter, r *http.Request) {
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retry))
	}
	switch e.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Connection", "close")
	}
	body := e.body()
	if path := r.URL.Path; path == messagesPath || strings.HasPrefix(path, messagesPath+"/") {
		body = e.anthropicBody(w.Header().Get("X-Request-Id"))
	}
	send(w, e.status, "application/json", body)
}
