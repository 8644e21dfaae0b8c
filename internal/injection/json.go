package injection

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON calls visit with documents that are the given one with hostile text in one place each: in place of every
// string, after every string and key, and as the key of a further member of every object. The path says where, and
// text makes the document.
func JSON(document []byte, hostile string, visit func(path string, text func() []byte)) error {
	var root any
	dec := json.NewDecoder(strings.NewReader(string(document)))
	dec.UseNumber()
	if err := dec.Decode(&root); err != nil {
		return err
	}
	w := jsonWalk{root: &root, quoted: quote(hostile), out: visit}
	w.visit(root, "$", func(v any) { root = v })
	return w.err
}

// placeholder stands for the hostile text while a document is encoded: encoding/json would repair what is not UTF-8.
const placeholder = "HOSTILE-TEXT"

type jsonWalk struct {
	root   *any
	quoted string
	out    func(string, func() []byte)
	err    error
}

// emit hands the document out as it is now.
func (w *jsonWalk) emit(path string) {
	w.out(path, func() []byte {
		text, err := json.Marshal(w.root)
		w.err = errors.Join(w.err, err)
		return []byte(strings.ReplaceAll(string(text), placeholder, w.quoted))
	})
}

func (w *jsonWalk) visit(v any, path string, set func(any)) {
	switch v := v.(type) {
	case string:
		set(placeholder)
		w.emit(path)
		set(v + placeholder)
		w.emit(path + "+")
		set(v)
	case []any:
		for i := range v {
			w.visit(v[i], fmt.Sprintf("%s[%d]", path, i), func(n any) { v[i] = n })
		}
	case map[string]any:
		v[placeholder] = json.Number("1")
		w.emit(path + "{}")
		delete(v, placeholder)
		for _, key := range sortedKeys(v) {
			value := v[key]
			delete(v, key)
			v[key+placeholder] = value
			w.emit(path + "." + key + ":")
			delete(v, key+placeholder)
			v[key] = value
			w.visit(value, path+"."+key, func(n any) { v[key] = n })
		}
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// quote is the inside of a JSON string that holds s, bytes that are not UTF-8 included as they are.
func quote(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// All is every text of Texts that a JSON document or a line of a file can hold, one after the other: where a test
// asks only that nothing comes out raw, one run with all of them says as much as a run with each.
func All() string {
	var b strings.Builder
	for i, s := range Texts {
		if utf8.ValidString(s) && len(s) < 100 {
			b.WriteString(strconv.Itoa(i) + s)
		}
	}
	return b.String()
}
