package serve

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
)

// responseFields are the fields of responses, less those of its input.
var responseFields = without(with(sharedFields, map[string]field{
	"max_output_tokens": func(_ *Server, r *request, v value) (err error) {
		r.most, err = v.integer(1, math.MaxInt32)
		return err
	},
	"parallel_tool_calls": parallelCalls,
	"text":                textOptions,
	"metadata": func(_ *Server, _ *request, v value) error {
		var pairs map[string]string
		return v.read(&pairs, "an object of strings")
	},
	"stream_options": func(_ *Server, _ *request, v value) error {
		return named(v, func(name string, _ value) error {
			if name != "include_obfuscation" { // padding against onlookers, which may be left out
				return unknown("stream_options." + v.cut(name))
			}
			return nil
		})
	},
	"include": func(_ *Server, r *request, v value) error {
		all, err := list[string](v, maxWords, "a list of strings")
		for _, what := range all {
			switch what {
			case includeLogprobs:
				r.included = true
			case "reasoning.encrypted_content": // which is for sending thoughts back, as their content does
			default:
				return unsupported(v.name, "include of %q is not supported; want %s, or none", v.cut(what),
					includeLogprobs)
			}
		}
		return err
	},
	"top_logprobs": topLogprobs,
	"store": func(s *Server, _ *request, v value) error { // the answer says that nothing was stored
		wanted, err := v.bool()
		if wanted {
			s.hint(v.name)
		}
		return err
	},
	"background": never("an answer comes with its request"),
	"truncation": func(_ *Server, _ *request, v value) error {
		if how, err := v.text(); err != nil || how != "disabled" {
			return unsupported(v.name, `truncation %s is not supported: no item is left out; want "disabled", or none`,
				v.short())
		}
		return nil
	},
	"previous_response_id": stored, "conversation": stored, "prompt": stored,
	"max_tool_calls": tolerated, // of tools that the server would call, which there are none of
}), "max_tokens", "n")

// inputFields are those that the prompt of a response is made of.
var inputFields = []string{"input", "instructions", "tools", "tool_choice", "reasoning", "documents",
	"chat_template_kwargs"}

// without is a table without some fields.
func without(table map[string]field, names ...string) map[string]field {
	left := maps.Clone(table)
	for _, name := range names {
		delete(left, name)
	}
	return left
}

// never is a field that may be false.
func never(why string) field {
	return func(_ *Server, _ *request, v value) error {
		wanted, err := v.bool()
		if wanted {
			return unsupported(v.name, "%s true is not supported: %s; want false, or none", v.name, why)
		}
		return err
	}
}

// stored is a field that names what an earlier request would have left.
func stored(_ *Server, _ *request, v value) error {
	return unsupported(v.name, "%s is not supported, as nothing is stored here; want input with all items of the "+
		"conversation", v.name)
}

// named calls f with each member of a value that is an object, in the order of their names.
func named(v value, f func(name string, member value) error) error {
	all, err := members(v.raw)
	if err != nil {
		return v.unexpected("an object")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := f(name, value{v.name + "." + v.cut(name), all[name].raw}); err != nil {
			return err
		}
	}
	return nil
}

// textOptions reads text: what the answer has to be.
func textOptions(s *Server, r *request, v value) error {
	return named(v, func(name string, member value) error {
		switch name {
		case "format":
			return s.format(r, member, "")
		case "verbosity":
			return unsupported(member.name, "%s is not supported; want none", member.name)
		}
		return unknown(member.name)
	})
}

func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	var req *request
	var p *chatPrompt
	var answer response
	err := s.prepare(w, r, func(all map[string]value) (err error) {
		req, p, answer, err = s.responseRequest(all)
		return err
	})
	if err != nil {
		refuse(w, r, err)
		return
	}
	s.complete(w, r, req, [][]int{p.ids}, &responseForm{s: s, reader: p.reader(s, req.oneCall), streams: req.stream,
		response: answer})
}

// responseRequest reads a request, and begins the answer.
func (s *Server) responseRequest(all map[string]value) (*request, *chatPrompt, response, error) {
	req := s.asked()
	left, err := req.read(s, all, responseFields, inputFields...)
	if err == nil {
		err = askedLogprobs(req)
	}
	if err == nil {
		err = s.asInChat(left)
	}
	if err != nil {
		return nil, nil, response{}, err
	}
	p, err := s.conversing(req, fromInput, left)
	if err != nil {
		return nil, nil, response{}, err
	}
	return req, p, s.response(req, all), nil
}

// asInChat puts what responses say of tools and of thinking as chat completions say it.
func (s *Server) asInChat(left map[string]value) (err error) {
	if v, said := left["reasoning"]; said {
		err := named(v, func(name string, member value) error {
			switch name {
			case "effort":
				left[effort] = member
				return nil
			case "summary", "generate_summary": // a thought comes as it is, and the list of summaries is empty
				word, err := member.text()
				if err == nil && !slices.Contains([]string{"auto", "concise", "detailed"}, word) {
					err = member.unexpected("auto, concise or detailed")
				}
				if err == nil {
					s.hint(member.name)
				}
				return err
			case "context", "mode":
				return unsupported(member.name, "%s is not supported; want none", member.name)
			}
			return unknown(member.name)
		})
		if err != nil {
			return err
		}
	}
	if v, said := left["tools"]; said {
		if left["tools"], err = s.nestedTools(v, responseTools); err != nil {
			return err
		}
	}
	if v, said := left["tool_choice"]; said {
		left["tool_choice"], err = nestedChoice(v)
	}
	return err
}

// A function is a tool as chat completions have it.
type function struct {
	Type     string           `json:"type"`
	Function functionContents `json:"function"`
}

type functionContents struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// A toolForm is how an endpoint writes tools.
type toolForm struct {
	kind    string   // their type
	untyped bool     // which need not be said
	schema  string   // the member with the schema of the arguments
	hints   []string // members that change nothing
}

// responseTools are tools as responses have them.
var responseTools = toolForm{kind: "function", schema: "parameters"}

// nestedTools makes tools of a form those of chat completions.
func (s *Server) nestedTools(v value, form toolForm) (value, error) {
	items, err := v.items(maxTools, "a list of objects")
	if err != nil {
		return v, err
	}
	tools := []function{}
	for _, at := range items {
		tool, kind := function{Type: "function"}, form.kind
		if all, err := members(at.raw); err == nil && (all["type"].raw != nil || !form.untyped) {
			kind, _ = all["type"].text()
		}
		if kind != form.kind { // before members that go with that type
			return v, unsupported(at.name+".type", "%s is of a type that is not supported; want %s", at.name, form.kind)
		}
		err := named(at, func(name string, member value) (err error) {
			switch name {
			case "type":
			case "name":
				tool.Function.Name, err = member.text()
			case "description":
				tool.Function.Description, err = member.text()
			case form.schema:
				tool.Function.Parameters = member.raw
				err = named(member, func(string, value) error { return nil })
			case "strict":
				var strict bool
				strict, err = member.bool()
				tool.Function.Strict = &strict
			default:
				if slices.Contains(form.hints, name) {
					s.hint(name)
				} else {
					err = unsupported(member.name, "%s is not supported; want none", member.name)
				}
			}
			return err
		})
		if err != nil {
			return v, err
		}
		if tool.Function.Name == "" {
			return v, invalid(at.name+".name", "%s has no name", at.name)
		}
		tools = append(tools, tool)
	}
	return value{v.name, marshal(tools)}, nil
}

// nestedChoice makes a choice that names a tool that of chat completions.
func nestedChoice(v value) (value, error) {
	wrong := unsupported(v.name, "tool_choice %s is not supported; want none, auto, required, or "+
		`{"type": "function", "name": NAME}`, v.short())
	if word, err := v.text(); err == nil {
		if !slices.Contains([]string{"none", "auto", "required"}, word) {
			return v, wrong
		}
		return v, nil
	}
	choice := function{}
	err := named(v, func(name string, member value) (err error) {
		switch name {
		case "type":
			choice.Type, err = member.text()
		case "name":
			choice.Function.Name, err = member.text()
		default:
			err = wrong
		}
		return err
	})
	if err != nil || choice.Type != "function" || choice.Function.Name == "" {
		return v, wrong
	}
	return value{v.name, marshal(choice)}, nil
}
