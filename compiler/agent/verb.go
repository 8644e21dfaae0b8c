package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/search"
)

// The end of a verb: it has what time its own flags give it, and a cancelled one is asked to end before it is killed.
const (
	longest = 48 * time.Hour
	grace   = 10 * time.Second

	mostSaved = 16 << 20 // bytes of a result of eval
)

// An arguments is the command line of a verb in the making. The first thing that is wrong stays.
type arguments struct {
	s       *Server
	words   []string
	verb    int    // how many of them name the verb
	scratch string // for configurations, which verbs read from files
	alone   bool   // it measures
	finds   bool   // what is wrong with the environment is what it was asked: exit code 2 is an answer
	saved   string // path in the root that the result is written to; empty: none
	err     error
}

func (a *arguments) add(words ...string) { a.words = append(a.words, words...) }

func (a *arguments) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// text adds a flag, unless its value is empty.
func (a *arguments) text(flag, value string) {
	if value != "" {
		a.add(flag + "=" + value)
	}
}

// number adds a flag, unless its value is 0.
func (a *arguments) number(flag string, value int) {
	if value != 0 {
		a.add(flag + "=" + strconv.Itoa(value))
	}
}

func (a *arguments) numbers(flag string, values []int) {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = strconv.Itoa(v)
	}
	a.text(flag, strings.Join(words, ","))
}

// existing adds a path that is there.
func (a *arguments) existing(name string) {
	path, err := a.s.existing(name)
	if err != nil {
		a.fail(err)
	}
	a.add(path)
}

// given adds a flag with a path that is there, unless its name is empty.
func (a *arguments) given(flag, name string) {
	if name == "" {
		return
	}
	path, err := a.s.existing(name)
	if err != nil {
		a.fail(err)
	}
	a.add(flag + "=" + path)
}

// written adds a flag with a path that is written to.
func (a *arguments) written(flag, name string) {
	path, err := a.s.writable(name)
	if err != nil {
		a.fail(err)
	}
	a.add(flag + "=" + path)
}

// save has the result written to a file, unless its name is empty. A file that is there is overwritten only if it is
// such a result.
func (a *arguments) save(name string) {
	if name == "" {
		return
	}
	path, err := a.s.writable(name)
	if err == nil {
		if _, there := a.s.root.Lstat(path); there == nil && !a.s.isResult(path) {
			err = diag.Errorf(codeArgument, name, "is there and no result of eval; want a name that no file has")
		}
	}
	if err != nil {
		a.fail(err)
	}
	a.saved = path
}

// settings adds a flag with a file of settings, unless there are none. Settings that no schedule can have are refused.
func (a *arguments) settings(flag string, set map[string]any) {
	text, err := json.Marshal(set)
	var s knobs.Settings
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil {
		_, err = s.Config()
	}
	if err != nil {
		a.fail(err)
	}
	a.proposed(flag, set)
}

// proposed is settings for a configuration that is judged: what no schedule can have is for the verb to refuse, whose
// verdict a campaign records.
func (a *arguments) proposed(flag string, set map[string]any) {
	if len(set) == 0 {
		return
	}
	nested, err := nest(set)
	var text []byte
	if err == nil {
		text, err = json.Marshal(nested)
	}
	path := filepath.Join(a.scratch, strings.TrimLeft(flag, "-")+".json")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		a.fail(err)
	}
	a.add(flag + "=" + path)
}

// nest turns settings by path into what a configuration's file has: each group in an object.
func nest(set map[string]any) (map[string]any, error) {
	nested := map[string]any{}
	for _, path := range slices.Sorted(maps.Keys(set)) {
		at, names := nested, strings.Split(path, ".")
		for i, name := range names {
			_, taken := at[name]
			group, is := at[name].(map[string]any)
			switch {
			case i == len(names)-1 && !taken:
				at[name] = set[path]
				if word, is := set[path].(string); is {
					at[name] = knobs.Value(word) // an integer in quotes is an integer
				}
			case i == len(names)-1 || taken && !is:
				return nil, diag.Errorf(codeArgument, path, "is stated by two settings; want each knob once, by its "+
					"path")
			case !taken:
				group = map[string]any{}
				at[name] = group
			}
			at = group
		}
	}
	return nested, nil
}

// run runs a verb in a process and returns its JSON result, and whether that says no more than that the verb
// failed.
func (s *Server) run(ctx context.Context, request *mcp.CallToolRequest, command func(*arguments)) (_ json.RawMessage,
	fails bool, _ error) {
	scratch, err := os.MkdirTemp("", "amkc-mcp-")
	if err != nil {
		return nil, false, diag.Errorf(codeVerb, "mcp", "there is no temporary directory: %s", infile.Reason(err))
	}
	defer os.RemoveAll(scratch)
	a := &arguments{s: s, scratch: scratch}
	if command(a); a.err != nil {
		return nil, false, a.err
	}
	if a.alone {
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
	watched := &progressOf{ctx: ctx, request: request}
	p := search.Process{Dir: s.dir, Limit: longest, Grace: grace, Said: watched,
		Args: slices.Concat([]string{s.options.Exe}, a.words[:a.verb], []string{"--json", "--progress=json"},
			a.words[a.verb:])}
	out, said, err := p.Run(ctx)
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	var exit interface{ ExitCode() int }
	if out = bytes.TrimSpace(out); json.Valid(out) && len(out) > 0 && (err == nil || errors.As(err, &exit)) {
		if failed(out, a.finds) {
			return out, true, nil
		}
		return out, false, s.write(a.saved, out)
	}
	why := "it printed no result"
	if err != nil {
		why = infile.Reason(err)
	}
	return nil, false, diag.Errorf(codeVerb, "amkc "+strings.Join(a.words[:a.verb], " "), "%s: %s", why, said)
}

// isResult reports whether a file of the root is what eval has printed.
func (s *Server) isResult(path string) bool {
	text, err := s.read(path, mostSaved)
	var head struct {
		Schema string `json:"schema"`
	}
	return err == nil && json.Unmarshal(text, &head) == nil && strings.HasPrefix(head.Schema, "amkc.eval/")
}

// failed reports whether a result is an error of the tool: the verb could not run, by its exit code, or has
// said nothing but errors. With exit code 1 a verb may have done all it was asked, and what it found is the result: a
// verdict that is REJECTED, a program that is not proved, builds that differ. Of a verb that finds faults of the
// environment, that is so with exit code 2 as well.
func failed(result json.RawMessage, finds bool) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil {
		return true
	}
	if string(fields["ok"]) == "true" {
		return false
	}
	if string(fields["exit"]) != "1" && !finds {
		return true
	}
	for _, head := range []string{"schema", "ok", "exit", "errors", "warnings"} {
		delete(fields, head)
	}
	return len(fields) == 0
}

// progressOf tells a client what a verb says of its progress, if the client has asked for that.
type progressOf struct {
	ctx     context.Context
	request *mcp.CallToolRequest
	rest    []byte
	told    float64
}

var _ io.Writer = (*progressOf)(nil)

func (p *progressOf) Write(text []byte) (int, error) {
	p.rest = append(p.rest, text...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			if len(p.rest) > 1<<20 { // no line of a verb's
				p.rest = nil
			}
			return len(text), nil
		}
		p.tell(line)
		p.rest = rest
	}
}

func (p *progressOf) tell(line []byte) {
	token := p.request.Params.GetProgressToken()
	var said struct {
		Progress *struct {
			Activity    string
			Done, Total float64
			Unit        string
		}
	}
	if token == nil || json.Unmarshal(line, &said) != nil || said.Progress == nil {
		return
	}
	// What is told has to grow, though activities follow one another: their numbers are in the message.
	p.told++
	message := said.Progress.Activity
	if said.Progress.Total > 0 {
		message += ": " + strconv.FormatFloat(said.Progress.Done, 'f', -1, 64) + " of " +
			strconv.FormatFloat(said.Progress.Total, 'f', -1, 64) + " " + said.Progress.Unit
	}
	p.request.Session.NotifyProgress(p.ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: p.told,
		Message: strings.TrimSpace(message)}) // a client that is gone cancels the context
}
