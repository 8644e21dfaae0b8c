package chat

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"amkc/runtime/infile"
	"amkc/text/jinja"
)

// Where a model keeps its chat templates and special tokens.
const (
	ConfigFile   = "tokenizer_config.json"
	TemplateFile = "chat_template.jinja"
	TemplateDir  = "additional_chat_templates" // with NAME.jinja for each further template
	tokensFile   = "special_tokens_map.json"
)

// maxTemplates is the most templates that a model may have.
const maxTemplates = 64

// Files lists the files of a model that Load reads, by slash-separated paths in its folder. Except for those in
// TemplateDir, they need not exist. If TemplateDir has too many templates, which Load refuses, it lists none of them.
func Files(dir string) []string {
	names := []string{TemplateFile, tokensFile, ConfigFile}
	entries, err := infile.List(filepath.Join(dir, TemplateDir))
	if err != nil {
		return names // which Load says
	}
	var templates []string
	for _, e := range entries {
		if _, ok := templateName(e.Name()); ok {
			templates = append(templates, path.Join(TemplateDir, e.Name()))
		}
	}
	if len(templates) > maxTemplates {
		return names
	}
	return append(names, templates...)
}

// IsFile reports whether Files may list a path.
func IsFile(name string) bool {
	folder, base := path.Split(name)
	_, isTemplate := templateName(base)
	return isTemplate && folder == TemplateDir+"/" ||
		slices.Contains([]string{TemplateFile, tokensFile, ConfigFile}, name)
}

// templateName is the name of the template that a file in TemplateDir has: letters, digits and -_. alone.
func templateName(file string) (name string, ok bool) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	name, ok = strings.CutSuffix(file, ".jinja")
	return name, ok && name != "" && name[0] != '.' && strings.Trim(name, letters) == ""
}

// A Format holds the templates of a model, by name, and its special tokens. It may be used concurrently.
type Format struct {
	sources   map[string]string // of the templates, by name
	templates map[string]func() (*jinja.Template, error)
	tokens    *jinja.Dict // bos_token and the like, which templates find by these names
}

// A FileError is a fault of a file of a model, or a missing template.
type FileError struct {
	Path string
	What string
	Err  error
}

func (e *FileError) Error() string {
	if e.Err != nil {
		return e.Path + ": " + e.What + ": " + infile.Reason(e.Err)
	}
	return e.Path + ": " + e.What
}

func (e *FileError) Unwrap() error { return e.Err }

// ErrNone is wrapped by the error of Load for a model without a chat template.
var ErrNone = errors.New("there is no chat template")

// Load reads the templates of a model or a build. Templates in separate files replace those in tokenizer_config.json.
// Errors are *FileError; a template that cannot be read is an error of Render.
func Load(dir string) (*Format, error) {
	config, err := object(dir, ConfigFile)
	if err != nil {
		return nil, err
	}
	sources, err := separate(dir)
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		if sources, err = configured(filepath.Join(dir, ConfigFile), config); err != nil {
			return nil, err
		}
	}
	if len(sources) == 0 {
		return nil, &FileError{dir, fmt.Sprintf("want %s, %s/NAME.jinja, or chat_template in %s", TemplateFile,
			TemplateDir, ConfigFile), ErrNone}
	}
	f := New(sources, nil)
	if f.tokens, err = tokens(dir, config); err != nil {
		return nil, err
	}
	return f, nil
}

// New returns the format of templates, by name, with special tokens, by name, which may be nil.
func New(sources map[string]string, tokens *jinja.Dict) *Format {
	f := &Format{sources: sources, templates: map[string]func() (*jinja.Template, error){}, tokens: tokens}
	for name, source := range sources {
		f.templates[name] = sync.OnceValues(func() (*jinja.Template, error) { return jinja.Parse(source) })
	}
	return f
}

// Names returns the names of the templates, sorted.
func (f *Format) Names() []string { return slices.Sorted(maps.Keys(f.templates)) }

// Mentions reports whether a word, such as the name of a variable or a role, occurs in one of the templates. A variable
// that does not occur has no effect on prompts.
func (f *Format) Mentions(word string) bool {
	for _, source := range f.sources {
		if strings.Contains(source, word) {
			return true
		}
	}
	return false
}

// Check parses a template, and returns its first error.
func (f *Format) Check(name string) error {
	_, err := f.template(name, false)
	return err
}

// template finds a template by its name, or the one for conversations with tools or without.
func (f *Format) template(name string, tools bool) (*jinja.Template, error) {
	if name == "" {
		name = "default"
		if tools && f.templates["tool_use"] != nil {
			name = "tool_use"
		}
	}
	if t := f.templates[name]; t != nil {
		return t()
	}
	return nil, fmt.Errorf("the model has no chat template %q; it has %q", name, f.Names())
}

// object reads a file that is an object in JSON. Nil is one that is not there.
func object(dir, name string) (*jinja.Dict, error) {
	path := filepath.Join(dir, name)
	data, err := infile.Read(path, infile.ModelConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{path, "it cannot be read", err}
	}
	v, err := jinja.FromJSON(data)
	if err != nil {
		return nil, &FileError{path, "it cannot be read", err}
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		return nil, &FileError{Path: path, What: "it is not an object; want an object with the fields of a tokenizer"}
	}
	return d, nil
}

// separate reads the templates that are in files of their own.
func separate(dir string) (map[string]string, error) {
	sources := map[string]string{}
	paths := map[string]string{"default": filepath.Join(dir, TemplateFile)}
	folder := filepath.Join(dir, TemplateDir)
	entries, err := infile.List(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &FileError{folder, "it cannot be read", err}
	}
	for _, e := range entries {
		if name, ok := templateName(e.Name()); ok {
			paths[name] = filepath.Join(folder, e.Name())
		}
	}
	if len(paths) > maxTemplates {
		return nil, &FileError{Path: folder, What: fmt.Sprintf("it has %d templates; %d are the most", len(paths),
			maxTemplates)}
	}
	for name, path := range paths {
		text, err := infile.Read(path, infile.ChatTemplate)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &FileError{path, "it cannot be read", err}
		}
		sources[name] = string(text)
	}
	return sources, nil
}

// configured reads chat_template of a tokenizer's configuration: one template, or a list of them with names.
func configured(path string, config *jinja.Dict) (map[string]string, error) {
	if config == nil {
		return nil, nil
	}
	sources := map[string]string{}
	wrong := &FileError{Path: path, What: `chat_template is not as expected; want a template, or a list of at most ` +
		fmt.Sprint(maxTemplates) + ` objects with "name" and "template"`}
	switch v, _ := config.Get("chat_template"); v := v.(type) {
	case nil:
	case string:
		sources["default"] = v
	case *jinja.List:
		for _, item := range v.Items() {
			d, ok := item.(*jinja.Dict)
			if !ok || len(v.Items()) > maxTemplates {
				return nil, wrong
			}
			name, _ := d.Get("name")
			source, _ := d.Get("template")
			n, isName := name.(string)
			s, isSource := source.(string)
			if !isName || !isSource {
				return nil, wrong
			}
			sources[n] = s
		}
	default:
		return nil, wrong
	}
	return sources, nil
}

// Special reads a special token of a model or a build by its name in templates, "" if there is none, and the ids of
// added tokens by their text, as far as tokenizer_config.json lists them. Errors are *FileError.
func Special(dir, name string) (text string, listed map[string]int, err error) {
	config, err := object(dir, ConfigFile)
	if err != nil {
		return "", nil, err
	}
	all, err := tokens(dir, config)
	if err != nil {
		return "", nil, err
	}
	if v, there := all.Get(name); there {
		text, _ = v.(string)
	}
	return text, listedTokens(config), nil
}

// listedTokens are the added tokens that a tokenizer_config.json lists, with their ids.
func listedTokens(config *jinja.Dict) map[string]int {
	out := map[string]int{}
	if config == nil {
		return out
	}
	v, _ := config.Get("added_tokens_decoder")
	added, ok := v.(*jinja.Dict)
	if !ok {
		return out
	}
	for _, key := range added.Keys() {
		token, _ := added.Get(key)
		id, err := strconv.Atoi(key)
		if d, ok := token.(*jinja.Dict); ok && err == nil {
			if content, _ := d.Get("content"); content != nil {
				if text, ok := content.(string); ok {
					out[text] = id
				}
			}
		}
	}
	return out
}

// standard are the special tokens that every tokenizer may have.
var standard = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// tokens reads the special tokens, by the rules of transformers: those of tokenizer_config.json, and above them, where
// that lists no added tokens, those of special_tokens_map.json.
func tokens(dir string, config *jinja.Dict) (*jinja.Dict, error) {
	out := &jinja.Dict{}
	add := func(from *jinja.Dict, anyName bool) {
		if from == nil {
			return
		}
		for _, key := range from.Keys() {
			v, _ := from.Get(key)
			text, isText := v.(string)
			if d, ok := v.(*jinja.Dict); ok && (anyName || slices.Contains(standard, key)) {
				content, _ := d.Get("content")
				text, isText = content.(string)
			}
			if isText && (anyName || strings.HasSuffix(key, "_token")) {
				out.Set(key, text)
			}
		}
	}
	add(config, false)
	listed := false
	if config != nil {
		_, listed = config.Get("added_tokens_decoder")
	}
	sources := []*jinja.Dict{config}
	if !listed {
		legacy, err := object(dir, tokensFile)
		if err != nil {
			return nil, err
		}
		add(legacy, false)
		sources = append(sources, legacy)
	}
	for _, from := range sources {
		if from == nil {
			continue
		}
		if extra, _ := from.Get("extra_special_tokens"); extra != nil {
			if d, ok := extra.(*jinja.Dict); ok {
				add(d, true)
			}
		}
	}
	return out, nil
}
