package amk

import (
	"strings"

	"amkc/ir/diag"
)

var (
	programFields = []string{
		"ir_version", "abi_version", "meta", "target", "buffers", "counters", "tasks", "pages", "config",
	}
	bufferFields  = []string{"id", "name", "kind", "dtype", "shape", "space", "source"}
	counterFields = []string{"id", "init", "note"}
	taskFields    = []string{
		"id", "op", "inputs", "outputs", "out_counter", "waits", "params", "sm", "est_bytes", "est_flops", "label",
	}
	waitFields = []string{"counter", "threshold"}
)

// Parse reads a program. The file name is for positions, which are `file:line:col` with columns in bytes.
//
// The list holds warnings (keys that were dropped, keys written twice) and errors; with an error the program is nil.
// Parse checks types, names and versions, and nothing that would need two entities at once: ids may dangle or repeat.
// Its memory is linear in the size of data.
func Parse(data []byte, file string) (*Program, diag.List) {
	src := &source{file: file, text: string(data)}
	root, found := src.read()
	if found.diags.Err() != nil {
		return nil, found.diags
	}
	l := &loader{source: src, findings: found}
	p := l.program(&root)
	if l.diags.Err() != nil {
		return nil, l.diags
	}
	return p, l.diags
}

func (l *loader) program(n *node) *Program {
	r := l.record(n, "program", programFields)
	p := &Program{
		IRVersion:  r.version("ir_version", IRVersion),
		ABIVersion: r.version("abi_version", ABIVersion),
	}
	if l.diags.Err() != nil {
		return nil // what follows would be read by rules that are not its own
	}
	p.Meta = r.objectOr("meta")
	if t := r.find("target"); t != nil && t.truthy() {
		p.Target = l.target(t)
		l.sameGPU(r.find("meta"), p.Target)
	}
	p.Buffers = list(r, r.find("buffers"), "buffers", l.buffer)
	p.Counters = list(r, r.find("counters"), "counters", l.counter)
	p.Tasks = list(r, r.find("tasks"), "tasks", l.task)
	if pages := r.find("pages"); pages != nil && pages.truthy() {
		p.Pages = l.pages(pages)
	}
	if c := r.find("config"); c != nil && c.truthy() {
		p.Config = l.config(c)
	}
	return p
}

// sameGPU warns where meta, which may be absent, names another GPU than the target.
func (l *loader) sameGPU(meta *node, t *Target) {
	if meta == nil || meta.kind != objectNode {
		return
	}
	gpu := record{l, "meta", meta}.find("gpu")
	switch {
	case gpu == nil || gpu.kind == nullNode || gpu.kind == stringNode && gpu.text == t.Name:
	case gpu.kind == stringNode:
		l.warnf(codeGPU, gpu.off, "meta: \"gpu\" is %.60q, and target.name %q, which counts; want the same name, or "+
			"none", gpu.text, t.Name)
	default:
		l.warnf(codeGPU, gpu.off, "meta: \"gpu\" is %s, and target.name %q, which counts; want the same name, or none",
			gpu.kind, t.Name)
	}
}

// version reads a version field and refuses a major version other than ours.
func (r record) version(name, ours string) string {
	theirs := r.nameOr(name, ours)
	got, _, _ := strings.Cut(theirs, ".")
	if want, _, _ := strings.Cut(ours, "."); got != want {
		r.errorf(codeVersion, r.find(name).off, "%s %q has a foreign major version; %s.x is accepted", name, theirs,
			want)
	}
	return theirs
}

func (l *loader) buffer(n *node) Buffer {
	r := l.record(n, "buffer", bufferFields)
	b := Buffer{
		ID:    r.int("id"),
		Name:  r.name("name"),
		Kind:  BufferKind(r.enum("kind", kindNames)),
		DType: DType(r.enum("dtype", dtypeNames)),
		Shape: r.ints("shape"),
		Space: MemSpace(r.enum("space", spaceNames)),
	}
	if s := r.find("source"); s != nil && s.kind != nullNode {
		source := r.nameAt(s, "source", "")
		b.Source = &source
	}
	return b
}

func (l *loader) counter(n *node) Counter {
	r := l.record(n, "counter", counterFields)
	return Counter{ID: r.int("id"), Init: r.intOr("init", 0), Note: r.strOr("note", "")}
}

func (l *loader) task(n *node) Task {
	r := l.record(n, "task", taskFields)
	t := Task{
		ID:         r.int("id"),
		Op:         Op(r.enum("op", opNames)),
		Inputs:     r.ints("inputs"),
		Outputs:    r.ints("outputs"),
		OutCounter: r.int("out_counter"),
		Waits:      list(r, r.find("waits"), "waits", l.wait),
		Params:     r.objectOr("params"),
		EstBytes:   r.numberOr("est_bytes", Int(0)),
		EstFLOPs:   r.numberOr("est_flops", Int(0)),
		Label:      r.nameOr("label", ""),
	}
	if s := r.find("sm"); s != nil && s.kind != nullNode {
		sm := r.intAt(s, "sm", 0)
		t.SM = &sm
	}
	return t
}

func (l *loader) wait(n *node) Wait {
	r := l.record(n, "wait", waitFields)
	return Wait{Counter: r.int("counter"), Threshold: r.int("threshold")}
}
