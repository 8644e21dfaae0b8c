package readback

import (
	"strings"

	"amkc/ir/diag"
)

// Marks in megakernel.cu open a region each; a line endMark closes it.
const (
	walkMark    = "// amkc:walk"
	consumeMark = "// amkc:consume"
	anyMark     = "// amkc:"
)

// regionsOf finds the regions of a file by their marks, in order. There are no other marks in it. Everything up to the
// last one is clean; what stands between the regions is not read.
func regionsOf(file, text string, marks ...string) ([]*source, *diag.Diagnostic) {
	whole := &source{file: file, text: text, code: codeCalls, at: pos{1, 1}}
	if len(text) > maxSource {
		whole.fail(whole.at, "has %d bytes; want at most %d", len(text), maxSource)
		return nil, whole.err
	}
	var out []*source
	open := false
	for i := 0; ; {
		line, _, more := strings.Cut(text[i:], "\n")
		whole.clean(line)
		mark := strings.TrimLeft(line, " ")
		want := endMark
		if !open && len(out) < len(marks) {
			want = marks[len(out)]
		}
		switch {
		case mark == want && open:
			last := out[len(out)-1]
			last.text, open = text[:i], false
		case mark == want && len(out) < len(marks):
			out = append(out, &source{file: file, code: codeCalls, marks: "{}()<>[]=;,+-*/%&.!",
				pairs: []string{"++", "&&"}, i: i + len(line), at: pos{whole.at.line, len(line) + 1}})
			open = true
		case strings.HasPrefix(mark, anyMark):
			whole.fail(whole.at, "%s; want the marks %s, each with a line %s after it, and no others", clip(mark),
				strings.Join(marks, " and "), endMark)
		case !more:
			if open || len(out) < len(marks) {
				whole.fail(whole.at, "ends without a line %s", want)
			}
		}
		if whole.err != nil || !more {
			return out, whole.err
		}
		i, whole.at.line = i+len(line)+1, whole.at.line+1
	}
}
